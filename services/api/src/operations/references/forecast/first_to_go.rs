//! Which objects go before one that nobody has deleted, once somebody deletes it. Pure.

use std::collections::{HashMap, HashSet};

use super::DeletionOrder;
use crate::operations::references::answer::State;
use crate::operations::references::tree::Node;

/// Kind, group and uid.
type Identity<'a> = (String, &'a str, &'a str);

impl Node {
    /// Below an object that nobody has deleted: each holder that stays until somebody deletes it, what nothing else
    /// holds among those that are deleted along with the object, and all cycles. Each object once.
    pub fn first_to_go(&self) -> Vec<&Self> {
        let mut search = Search {
            with_holders: HashMap::new(),
            along: HashSet::from([identity(self)]),
            found: Vec::new(),
        };
        search.note_holders(self);
        search.below(self);
        let Search { along, mut found, .. } = search;
        // What stays for one holder may be deleted along with another.
        found.retain(|&node| !stays(node) || !along.contains(&identity(node)));
        let mut seen = HashSet::new();
        found.retain(|&node| seen.insert((identity(node), node.cycle.as_slice())));
        found
    }
}

/// A walk over what is deleted along.
struct Search<'a> {
    /// Each object where its holders are shown.
    with_holders: HashMap<Identity<'a>, &'a Node>,
    /// What is deleted along, or is being deleted, and the object itself.
    along: HashSet<Identity<'a>>,
    /// In the order of the tree.
    found: Vec<&'a Node>,
}

impl<'a> Search<'a> {
    fn note_holders(&mut self, node: &'a Node) {
        if !node.repeated && node.cycle.is_empty() {
            self.with_holders.insert(identity(node), node);
        }
        for holder in &node.holders {
            self.note_holders(holder);
        }
    }

    fn below(&mut self, node: &'a Node) {
        for holder in &node.holders {
            let identity = identity(holder);
            if !holder.cycle.is_empty() {
                self.found.push(holder);
            } else if stays(holder) {
                self.found.push(holder);
                self.cycles_below(holder);
            } else if !self.along.contains(&identity) {
                let shown = self.with_holders.get(&identity).copied().unwrap_or(holder);
                self.along.insert(identity);
                match shown.holders.is_empty() {
                    true => self.found.push(holder),
                    false => self.below(shown),
                }
            }
        }
    }

    /// Whoever deletes what stays meets them.
    fn cycles_below(&mut self, node: &'a Node) {
        for holder in &node.holders {
            if !holder.cycle.is_empty() {
                self.found.push(holder);
            }
            self.cycles_below(holder);
        }
    }
}

/// Whether somebody has to delete it.
fn stays(holder: &Node) -> bool {
    let is_free = matches!(holder.state, State::Live | State::Archived) && holder.cycle.is_empty();
    is_free && holder.deletion_order() == DeletionOrder::Stays
}

fn identity(node: &Node) -> Identity<'_> {
    (node.kind.to_ascii_lowercase(), &node.group, &node.uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::references::tree::Field;
    use crate::operations::references::tree::tests::node;

    fn named(name: &str, on_delete: &str, holders: Vec<Node>) -> Node {
        Node {
            fields: vec![Field {
                reference: "thing".to_owned(),
                path: "spec.thing".to_owned(),
                on_delete: on_delete.to_owned(),
                owned: false,
            }],
            holders,
            ..node(name)
        }
    }

    fn repeated(node: Node) -> Node {
        Node { repeated: true, ..node }
    }

    fn back_to(name: &str, on_delete: &str, cycle: &[&str]) -> Node {
        Node {
            cycle: cycle.iter().map(|name| format!("thing/{name}")).collect(),
            ..named(name, on_delete, Vec::new())
        }
    }

    /// `b: somebody has to delete it` of each below a live object.
    fn said(holders: Vec<Node>) -> Vec<String> {
        let top = Node {
            holds: false,
            holders,
            ..node("a")
        };
        let first = top.first_to_go().into_iter();
        let lines = first.map(|node| format!("{}: {}", node.name, node.describe_consequence()));
        lines.collect()
    }

    /// As if it were enough to delete the last one.
    #[test]
    fn a_holder_that_stays_is_named_and_not_what_goes_with_it() {
        let below = named("c", "cascade", Vec::new());
        assert_eq!(
            said(vec![named("b", "block", vec![below])]),
            ["b: somebody has to delete it"]
        );
    }

    #[test]
    fn below_what_goes_along_the_first_that_stays_is_named() {
        let below = named("c", "block", vec![named("d", "block", Vec::new())]);
        let along = named("b", "cascade", vec![below, named("e", "cascade", Vec::new())]);
        assert_eq!(
            said(vec![along]),
            ["c: somebody has to delete it", "e: is deleted along with what it names"]
        );
    }

    #[test]
    fn what_is_being_deleted_or_not_known_waits_for_nobody_to_delete_it() {
        let leaving = Node {
            state: State::Deleting,
            ..named("b", "block", vec![named("c", "cascade", Vec::new())])
        };
        let unknown = Node {
            state: State::Unknown,
            notes: vec!["no answer".to_owned()],
            ..node("d")
        };
        assert_eq!(
            said(vec![leaving, unknown]),
            [
                "c: is deleted along with what it names",
                "d: nothing more is known of it"
            ]
        );
    }

    #[test]
    fn cycles_are_named_wherever_they_are() {
        let around = |name, on_delete| named(name, on_delete, vec![back_to("a", "cascade", &["a", name, "a"])]);
        assert_eq!(
            said(vec![around("b", "cascade"), around("c", "block")]),
            [
                "a: would wait for itself: thing/a -> thing/b -> thing/a",
                "c: somebody has to delete it",
                "a: would wait for itself: thing/a -> thing/c -> thing/a",
            ]
        );
    }

    /// The tree shows what holds it once: here below what stays.
    #[test]
    fn what_is_in_the_tree_twice_is_named_once_by_the_way_that_deletes_it() {
        let twice = |on_delete, holders| named("d", on_delete, holders);
        let last = || vec![named("e", "cascade", Vec::new())];
        let stays = named("b", "block", vec![twice("block", last())]);
        let along = |on_delete| named("c", "cascade", vec![repeated(twice(on_delete, Vec::new()))]);
        assert_eq!(
            said(vec![stays.clone(), along("cascade")]),
            ["b: somebody has to delete it", "e: is deleted along with what it names"]
        );
        assert_eq!(
            said(vec![stays, along("block")]),
            ["b: somebody has to delete it", "d: somebody has to delete it"]
        );
        let blocks = named("c", "cascade", vec![repeated(twice("block", Vec::new()))]);
        assert_eq!(
            said(vec![named("b", "cascade", vec![twice("block", last())]), blocks]),
            ["d: somebody has to delete it"]
        );
        let goes = named("c", "cascade", vec![repeated(twice("cascade", Vec::new()))]);
        assert_eq!(
            said(vec![named("b", "cascade", vec![twice("block", last())]), goes]),
            ["e: is deleted along with what it names"]
        );
    }
}
