//! Objects that wait for each other over others, of which many may hold one.

use kindex_model::reference::OnDelete;

use super::*;
use crate::decide::CleanupState;
use crate::fixture::{key, live};
use crate::graph::Declared;

/// An object that goes with the one that it names, and has the references of others.
fn link(name: &str, to: &str, state: DeletionState, held_by: &[String]) -> Object {
    let references = held_by
        .iter()
        .filter_map(|uid| live(key("Link", uid), uid).reference_name());
    Object {
        state,
        references: references.collect(),
        edges: vec![Edge {
            reference: "to",
            target: key("Link", to),
            owned: false,
            on_delete: OnDelete::Cascade,
        }],
        ..live(key("Link", name), name)
    }
}

fn graph(objects: Vec<Object>) -> Graph {
    let kind = key("Link", "a").kind;
    let mut graph = Graph::new(vec![Declared {
        holder: kind.clone(),
        target: kind,
        owned: false,
    }]);
    for object in objects {
        graph.apply(object);
    }
    graph
}

fn missing(graph: &Graph, name: &str) -> Vec<Key> {
    let input = graph
        .input(&key("Link", name), CleanupState::Gone)
        .expect("it is known");
    input.missing.into_iter().map(|missing| missing.holder).collect()
}

/// As if a search from an object to its holders gave up among very many, and both waited for ever.
#[test]
fn a_way_is_found_past_an_object_with_very_many_holders() {
    let of = |name: &str, to: &str, held_by: &[String]| link(name, to, DeletionState::Deleting, held_by);
    let mut holders: Vec<_> = (0..2 * LOOKED_AT_MAX).map(|number| format!("a{number:05}")).collect();
    let mut objects: Vec<_> = holders.iter().map(|name| of(name, "h", &[])).collect();
    holders.push("x".to_owned());
    objects.extend([
        of("h", "t", &holders),
        of("x", "h", &["t".to_owned()]),
        of("t", "x", &[]),
    ]);
    assert!(missing(&graph(objects), "t").is_empty(), "h waits for x, and x for t");
}

/// As if those who name an object mattered before it is deleted, and each of its versions cost a look at all of them.
#[test]
fn what_stays_waits_for_nobody_who_names_it() {
    for (state, waits) in [
        (DeletionState::Live, false),
        (DeletionState::Requested, false),
        (DeletionState::Deleting, true),
        (DeletionState::Evicting, true),
    ] {
        let named = Object {
            edges: Vec::new(),
            ..link("t", "t", state, &[])
        };
        let graph = graph(vec![link("h", "t", DeletionState::Live, &[]), named]);
        assert_eq!(missing(&graph, "t").len(), usize::from(waits), "{state:?}");
    }
}
