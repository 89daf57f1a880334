//! What an object waits for in the end: the objects at the ends of the chains of those that hold it. Reads only what is
//! known in memory, of the objects of one service.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;

use crate::graph::Graph;
use crate::object::{DeletionState, Key, Object};

/// Objects that a search looks at.
const REACHED_MAX: usize = 200;
/// References that it looks at, on all of them together: one object may have very many.
const REFERENCES_MAX: usize = 10_000;

/// One that others wait for, and that waits for no holder itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The object; its reference where the object is not known here.
    pub name: String,
    /// Since when it has its phase, or what it holds has; `None` where none is recorded.
    pub since: Option<Timestamp>,
    /// The objects between on a shortest way: the first one holds the object that waits, each next one the one before
    /// it, and this one the last. Empty where this one holds the object itself.
    pub through: Arc<[Key]>,
}

/// Those that an object waits for in the end, the longest wait first. Of very many, some.
pub fn roots(graph: &Graph, key: &Key) -> Vec<Root> {
    let mut found: BTreeMap<String, (Option<Timestamp>, Arc<[Key]>)> = BTreeMap::new();
    let mut reached = BTreeSet::from([key.clone()]);
    let nothing: Arc<[Key]> = [].into();
    let mut next: VecDeque<_> = graph.get(key).map(|object| (object, nothing)).into_iter().collect();
    let mut left = REFERENCES_MAX;
    while let Some((object, through)) = next.pop_front() {
        let looked = object.references.iter().take(left);
        left = left.saturating_sub(object.references.len());
        for name in looked {
            let holder = graph.find(name.uid()).and_then(|key| graph.get(key));
            if let Some(holder) = holder.filter(|holder| waits(holder)) {
                if reached.len() < REACHED_MAX && reached.insert(holder.key.clone()) {
                    let further = through.iter().chain([&holder.key]).cloned().collect();
                    next.push_back((holder, further));
                }
                continue;
            }
            let root = holder.map_or_else(|| name.to_string(), |holder| holder.key.to_string());
            let since = holder.and_then(|holder| holder.since).or(object.since);
            let (known, _) = found.entry(root).or_insert_with(|| (since, Arc::clone(&through)));
            *known = [*known, since].into_iter().flatten().min();
        }
    }
    let found = found.into_iter();
    let mut roots: Vec<_> = found
        .map(|(name, (since, through))| Root { name, since, through })
        .collect();
    roots.sort_by_key(|root| (root.since.is_none(), root.since));
    roots
}

/// Whether an object that goes waits for a holder.
fn waits(object: &Object) -> bool {
    object.state == DeletionState::Deleting && !object.references.is_empty()
}

#[cfg(test)]
mod tests {
    use kindex_model::object::ResourceVersion;
    use kindex_model::reference_name::ReferenceName;

    use super::*;
    use crate::fixture::{deleting, key, live};

    fn reference(uid: &str) -> ReferenceName {
        ReferenceName::new("Node", "x.example.com", uid).expect("a name")
    }

    fn at(second: i64) -> Option<Timestamp> {
        Some(Timestamp::from_second(second).expect("a time"))
    }

    /// One whose uid is its name, in a phase since then, held by these.
    fn going(name: &str, since: i64, held_by: &[&str]) -> Object {
        Object {
            since: at(since),
            references: held_by.iter().map(|uid| reference(uid)).collect(),
            ..deleting(key("Node", name), name)
        }
    }

    fn roots_of_a(objects: Vec<Object>) -> Vec<Root> {
        let mut graph = Graph::new(Vec::new());
        for (version, object) in objects.into_iter().enumerate() {
            let version = u64::try_from(version).expect("few");
            graph.apply(Object {
                version: ResourceVersion(version + 1),
                ..object
            });
        }
        roots(&graph, &key("Node", "a"))
    }

    fn found(objects: Vec<Object>) -> Vec<(String, Option<Timestamp>)> {
        let roots = roots_of_a(objects).into_iter();
        roots.map(|root| (root.name, root.since)).collect()
    }

    fn node(name: &str) -> String {
        key("Node", name).to_string()
    }

    #[test]
    fn the_ends_of_all_chains_are_found_with_the_longest_wait_first() {
        let objects = vec![
            going("a", 1, &["b", "c"]),
            going("b", 5, &["d", "elsewhere"]),
            going("c", 3, &["d"]),
            live(key("Node", "d"), "d"),
        ];
        assert_eq!(
            found(objects),
            [(node("d"), at(3)), (reference("elsewhere").to_string(), at(5))]
        );
        let cleans_up = vec![going("a", 1, &["b"]), going("b", 7, &[])];
        assert_eq!(found(cleans_up), [(node("b"), at(7))], "it waits for no object");
        assert!(found(vec![going("a", 1, &[])]).is_empty());
    }

    #[test]
    fn a_shortest_way_leads_to_each_end() {
        let objects = vec![
            going("a", 1, &["b", "z"]),
            going("b", 2, &["c", "d"]),
            going("c", 3, &["d", "y"]),
            going("d", 4, &["x"]),
        ];
        let ways: BTreeMap<_, _> = roots_of_a(objects)
            .into_iter()
            .map(|root| (root.name, root.through.to_vec()))
            .collect();
        let way = |names: &[&str]| names.iter().map(|name| key("Node", name)).collect::<Vec<_>>();
        let expected = [("x", way(&["b", "d"])), ("y", way(&["b", "c"])), ("z", way(&[]))];
        let expected = expected.map(|(uid, way)| (reference(uid).to_string(), way));
        assert_eq!(ways, BTreeMap::from(expected));
    }

    #[test]
    fn a_search_looks_at_so_many_references_on_all_objects_together() {
        let holders: Vec<_> = (0..REFERENCES_MAX).map(|number| format!("n{number:05}")).collect();
        let all: Vec<&str> = holders.iter().map(String::as_str).collect();
        assert_eq!(found(vec![going("a", 1, &all)]).len(), REFERENCES_MAX);
        let more = [&all[..], &["z"]].concat();
        assert_eq!(found(vec![going("a", 1, &more)]).len(), REFERENCES_MAX);
        let behind = vec![going("a", 1, &["b", "c"]), going("b", 1, &all), going("c", 1, &["y"])];
        let found = found(behind);
        assert_eq!(found.len(), REFERENCES_MAX - 2, "two lead to the others");
        assert!(found.iter().all(|(name, _)| *name != reference("y").to_string()));
    }

    #[test]
    fn a_search_through_a_cycle_or_very_many_ends() {
        let cycle = vec![going("a", 1, &["b"]), going("b", 2, &["a", "c"]), going("c", 3, &["b"])];
        assert!(found(cycle).is_empty(), "nobody is at its end");
        let names: Vec<_> = (0..2 * REACHED_MAX).map(|number| format!("n{number}")).collect();
        let mut chain: Vec<_> = names.windows(2).map(|two| going(&two[0], 1, &[&two[1]])).collect();
        chain.push(going("a", 1, &["n0", "z"]));
        chain.push(live(key("Node", "z"), "z"));
        assert_eq!(found(chain), [(node("z"), at(1))]);
    }
}
