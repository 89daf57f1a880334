//! What a deletion would come to, in lines for people: what would go with the object, and what it would wait for. Pure.

mod first_to_go;

use super::answer::State;
use super::tree::Node;

/// Lines at most.
const LINES_MAX: usize = 20;

/// When a holder is deleted with the object above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeletionOrder {
    /// It is deleted at once.
    First,
    /// It is deleted as well, once nothing but what the object above it owns refers to that.
    Last,
    /// It stays until somebody deletes it, and so does the object above it.
    Stays,
}

impl Node {
    fn deletion_order(&self) -> DeletionOrder {
        let is_owned = self.fields.iter().any(|field| field.owned);
        let mut fields = self.fields.iter();
        match fields.any(|field| field.on_delete == "cascade" && !field.owned) {
            true => DeletionOrder::First,
            false if is_owned => DeletionOrder::Last,
            false => DeletionOrder::Stays,
        }
    }

    /// What its deletion would come to, the next objects first; at most twenty lines, and one that says how many more.
    pub fn forecast(&self) -> Vec<String> {
        let mut lines = Vec::new();
        add(self, &mut lines);
        let more = lines.len().saturating_sub(LINES_MAX);
        if more > 0 {
            lines.truncate(LINES_MAX);
            lines.push(format!("and {more} more: read the references with resolve=true"));
        }
        lines
    }
}

fn add(node: &Node, lines: &mut Vec<String>) {
    let target = node.label();
    add_notes(node, lines);
    for holder in &node.holders {
        let (name, how) = (holder.label(), holder.how());
        lines.push(match (holder.cycle.as_slice(), holder.deletion_order()) {
            ([], DeletionOrder::First) => format!("{target}: {name} would be deleted first ({how})"),
            ([], DeletionOrder::Last) => {
                format!("{target}: {name} would be deleted with it, once nothing else refers to it ({how})")
            }
            ([], DeletionOrder::Stays) => format!("{target}: waits for {name}, which somebody has to delete ({how})"),
            (cycle, _) => would_wait_for_itself(&target, cycle),
        });
    }
    for holder in &node.holders {
        match holder.deletion_order() {
            DeletionOrder::First | DeletionOrder::Last => add(holder, lines),
            DeletionOrder::Stays => {
                add_notes(holder, lines);
                add_cycles(holder, lines);
            }
        }
    }
}

fn add_notes(node: &Node, lines: &mut Vec<String>) {
    let target = node.label();
    lines.extend(node.notes.iter().map(|note| format!("{target}: {note}")));
}

/// Of what holds an object that stays: it is deleted by nobody, but no deletion ends while it waits for itself.
fn add_cycles(node: &Node, lines: &mut Vec<String>) {
    for holder in &node.holders {
        if !holder.cycle.is_empty() {
            lines.push(would_wait_for_itself(&node.label(), &holder.cycle));
        }
        add_cycles(holder, lines);
    }
}

fn would_wait_for_itself(target: &str, cycle: &[String]) -> String {
    format!("{target}: {}", would_wait(cycle))
}

fn would_wait(cycle: &[String]) -> String {
    format!("would wait for itself: {}", cycle.join(" -> "))
}

impl Node {
    /// Why it is still there, as far as nothing below it says so.
    pub fn reason(&self) -> String {
        if !self.cycle.is_empty() {
            return format!("waits for itself: {}", self.cycle.join(" -> "));
        }
        match self.state {
            _ if !self.holders.is_empty() => "waits for what holds it".to_owned(),
            State::Deleting if self.finalizers.is_empty() => "is being deleted".to_owned(),
            State::Deleting => format!("is being deleted and waits for {}", self.finalizers.join(", ")),
            State::Live | State::Archived if self.deletion_order() != DeletionOrder::Stays => {
                "is to be deleted with what it names, and is not yet".to_owned()
            }
            State::Live | State::Archived => "nobody has deleted it".to_owned(),
            State::Deleted => "is gone and has not released its reference".to_owned(),
            State::Unknown if self.service.is_empty() && self.notes.is_empty() => {
                "no object of this uid is known: its reference is left over".to_owned()
            }
            State::Unknown => "nothing more is known of it".to_owned(),
        }
    }

    /// The same below an object that nobody has deleted: what becomes of it once somebody deletes that one.
    pub fn describe_consequence(&self) -> String {
        let is_top = !self.holds && self.fields.is_empty();
        match self.state {
            State::Live | State::Archived if self.cycle.is_empty() => match self.deletion_order() {
                _ if is_top => "nobody has deleted it".to_owned(),
                DeletionOrder::First | DeletionOrder::Last => "is deleted along with what it names".to_owned(),
                DeletionOrder::Stays => "somebody has to delete it".to_owned(),
            },
            State::Live | State::Archived => would_wait(&self.cycle),
            State::Deleting | State::Deleted | State::Unknown => self.reason(),
        }
    }

    /// Whether everything below it is known.
    pub fn is_whole(&self) -> bool {
        self.notes.is_empty() && self.holders.iter().all(Self::is_whole)
    }

    /// By what it holds the object above it.
    pub fn how(&self) -> String {
        let fields = self.fields.iter().map(|field| {
            let owned = if field.owned { ", owned" } else { "" };
            format!("{}: {}{owned}", field.path, field.on_delete)
        });
        let reference = self.holds.then(|| "reference".to_owned());
        fields.chain(reference).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::references::tree::Field;
    use crate::operations::references::tree::tests::node;

    fn field(on_delete: &str, owned: bool) -> Field {
        Field {
            reference: "thing".to_owned(),
            path: "spec.thing".to_owned(),
            on_delete: on_delete.to_owned(),
            owned,
        }
    }

    fn named(name: &str, on_delete: &str, holds: bool) -> Node {
        Node {
            fields: vec![field(on_delete, false)],
            holds,
            ..node(name)
        }
    }

    #[test]
    fn what_goes_along_is_told_from_what_is_waited_for() {
        let below = Node {
            holders: vec![node("d")],
            ..named("b", "cascade", true)
        };
        let again = Node {
            cycle: vec!["thing/a".to_owned(), "thing/c".to_owned(), "thing/a".to_owned()],
            ..node("a")
        };
        let waits = Node {
            holders: vec![again],
            ..named("c", "block", false)
        };
        let tree = Node {
            holders: vec![below, waits],
            notes: vec!["one note".to_owned()],
            ..node("a")
        };
        assert_eq!(
            tree.forecast(),
            [
                "thing/a: one note",
                "thing/a: thing/b would be deleted first (spec.thing: cascade, reference)",
                "thing/a: waits for thing/c, which somebody has to delete (spec.thing: block)",
                "thing/b: waits for thing/d, which somebody has to delete (reference)",
                "thing/c: would wait for itself: thing/a -> thing/c -> thing/a",
            ]
        );
    }

    #[test]
    fn nothing_is_said_to_go_along_with_what_stays() {
        let stays = Node {
            holders: vec![named("y", "cascade", true)],
            notes: vec!["one note".to_owned()],
            ..named("x", "block", true)
        };
        let tree = Node {
            holders: vec![stays],
            ..node("p")
        };
        assert_eq!(
            tree.forecast(),
            [
                "thing/p: waits for thing/x, which somebody has to delete (spec.thing: block, reference)",
                "thing/x: one note",
            ]
        );
    }

    #[test]
    fn what_is_owned_goes_last_unless_another_field_takes_it_along() {
        let owned = |name: &str, more: Option<Field>| Node {
            fields: [field("cascade", true)].into_iter().chain(more).collect(),
            ..node(name)
        };
        let part = Node {
            holders: vec![named("c", "cascade", true)],
            ..owned("a", Some(field("block", false)))
        };
        let tree = Node {
            holders: vec![part, owned("b", Some(field("cascade", false)))],
            ..node("p")
        };
        let (last, both) = (
            "spec.thing: cascade, owned, spec.thing: block, reference",
            "spec.thing: cascade, owned, spec.thing: cascade, reference",
        );
        assert_eq!(
            tree.forecast(),
            [
                format!("thing/p: thing/a would be deleted with it, once nothing else refers to it ({last})"),
                format!("thing/p: thing/b would be deleted first ({both})"),
                "thing/a: thing/c would be deleted first (spec.thing: cascade, reference)".to_owned(),
            ]
        );
    }

    #[test]
    fn the_reason_is_that_of_the_state() {
        let state = |state| Node { state, ..node("a") };
        let reasons = [
            state(State::Live),
            named("a", "cascade", true),
            state(State::Deleting),
            Node {
                finalizers: vec!["x/y".to_owned()],
                ..state(State::Deleting)
            },
            state(State::Deleted),
            state(State::Unknown),
            Node {
                service: "compute".to_owned(),
                ..state(State::Unknown)
            },
            Node {
                holders: vec![node("b")],
                ..state(State::Deleting)
            },
        ];
        assert_eq!(
            reasons.each_ref().map(Node::reason),
            [
                "nobody has deleted it",
                "is to be deleted with what it names, and is not yet",
                "is being deleted",
                "is being deleted and waits for x/y",
                "is gone and has not released its reference",
                "no object of this uid is known: its reference is left over",
                "nothing more is known of it",
                "waits for what holds it",
            ]
        );
    }

    /// As if its deletion had begun.
    #[test]
    fn below_what_nobody_has_deleted_it_is_said_what_would_happen() {
        let waits = Node {
            holders: vec![node("c")],
            ..named("b", "block", true)
        };
        let circle = Node {
            cycle: vec!["thing/a".to_owned(), "thing/b".to_owned(), "thing/a".to_owned()],
            ..named("a", "block", false)
        };
        let leaving = Node {
            state: State::Deleting,
            ..named("d", "cascade", true)
        };
        let top = Node {
            holds: false,
            ..node("a")
        };
        let all = [top, named("b", "cascade", false), waits, circle, leaving];
        assert_eq!(
            all.each_ref().map(Node::describe_consequence),
            [
                "nobody has deleted it",
                "is deleted along with what it names",
                "somebody has to delete it",
                "would wait for itself: thing/a -> thing/b -> thing/a",
                "is being deleted",
            ]
        );
    }

    #[test]
    fn a_forecast_has_an_end() {
        let tree = Node {
            holders: (0..22).map(|number| node(&number.to_string())).collect(),
            ..node("a")
        };
        let lines = tree.forecast();
        assert_eq!(
            (lines.len(), lines[20].as_str()),
            (21, "and 2 more: read the references with resolve=true")
        );
    }
}
