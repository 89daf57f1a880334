//! Cycles of what is known here, and over what other services say of their objects.

use super::*;
use crate::fixture::{deleting, key, key_in, live};

fn reference(uid: &str) -> ReferenceName {
    ReferenceName::new("Node", "x.example.com", uid).expect("a name")
}

fn node(name: &str) -> Key {
    key("Node", name)
}

/// One that is being deleted, whose uid is its name, held by these.
fn going(name: &str, held_by: &[&str]) -> Object {
    Object {
        references: held_by.iter().map(|uid| reference(uid)).collect(),
        ..deleting(node(name), name)
    }
}

fn graph(objects: Vec<Object>) -> Graph {
    let mut graph = Graph::new(Vec::new());
    for object in objects {
        graph.apply(object);
    }
    graph
}

fn foreign() -> ReferenceName {
    ReferenceName::new("Cluster", "y.example.com", "f").expect("a name")
}

/// What the other service says of its cluster.
fn found(is_leaving: bool, held_by: &[&str]) -> FoundHolder {
    FoundHolder {
        key: key_in("y.example.com", "Cluster", "f"),
        is_leaving,
        held_by: held_by.iter().map(|uid| reference(uid)).collect(),
    }
}

/// A node that the cluster of the other service holds.
fn held_elsewhere() -> Object {
    let mut object = going("b", &[]);
    object.references.insert(foreign());
    object
}

#[test]
fn a_cycle_is_found_over_what_another_service_says_of_its_deleted_object() {
    let graph = graph(vec![going("a", &["b"]), held_elsewhere()]);
    let cycle = |said: Option<&FoundHolder>| {
        let search = graph.search_cycle(&node("a"), |name| said.filter(|_| *name == foreign()));
        search.cycle.map(|path| Seen::keys(&path))
    };
    let path = [node("a"), node("b"), found(true, &[]).key];
    assert_eq!(cycle(Some(&found(true, &["z", "a"]))).as_deref(), Some(&path[..]));
    assert_eq!(cycle(Some(&found(true, &["z"]))), None, "others hold it");
    assert_eq!(cycle(Some(&found(false, &["a"]))), None, "nobody deletes it");
    assert_eq!(cycle(None), None, "its service has not answered");
}

/// As if a name had one object: its service may know a deleted one beside the one that has its name now.
#[test]
fn objects_that_had_one_name_are_told_apart_by_their_uids() {
    let said = [found(true, &["b"]), found(true, &["a"])];
    let names = ["f", "f2"].map(|uid| ReferenceName::new("Cluster", "y.example.com", uid).expect("a name"));
    let held = |name: &str, holder: &ReferenceName| {
        let mut object = going(name, &[]);
        object.references.insert(holder.clone());
        object
    };
    let graph = graph(vec![held("a", &names[0]), held("b", &names[1])]);
    let search = graph.search_cycle(&node("a"), |name| {
        let at = names.iter().position(|one| one == name)?;
        Some(&said[at])
    });
    let path = search.cycle.expect("a cycle");
    let uids: Vec<_> = path.iter().map(|seen| seen.uid.as_str()).collect();
    assert_eq!(uids, ["a", "f", "b", "f2"]);
}

#[test]
fn all_are_known_that_a_search_has_looked_at() {
    let holders = vec![
        going("a", &["b", "d", "elsewhere"]),
        going("b", &["c"]),
        going("c", &[]),
        live(node("d"), "d"),
        going("e", &["a"]),
    ];
    let search = graph(holders).search_cycle(&node("a"), |_| None);
    assert_eq!(search.cycle, None);
    assert_eq!(search.looked_at, ["a", "b", "c"].map(node));
    let unknown = graph(Vec::new()).search_cycle(&node("a"), |_| None);
    assert_eq!((unknown.cycle, unknown.looked_at), (None, vec![node("a")]));
}

/// As if nobody asked the archive for the rest of a path that another service knows the beginning of.
#[test]
fn what_an_object_of_another_service_waits_for_may_be_archived() {
    let graph = graph(vec![going("a", &["unknown", "b"]), held_elsewhere()]);
    let may_be_archived = |held_by: &[&str]| {
        let said = found(true, held_by);
        let search = graph.search_cycle(&node("a"), |name| Some(&said).filter(|_| *name == foreign()));
        search.may_be_archived
    };
    assert!(may_be_archived(&["b", "unknown"]));
    assert!(!may_be_archived(&["b"]), "what ours wait for is known otherwise");
}

#[test]
fn a_search_ends_at_so_many_references_on_all_objects_together() {
    let many: Vec<_> = (0..REFERENCES_MAX).map(|number| format!("n{number:05}")).collect();
    let is_found = |others: usize| {
        let mut held_by: Vec<&str> = many[..others].iter().map(String::as_str).collect();
        held_by.push("z");
        let graph = graph(vec![going("a", &held_by), going("z", &["a"])]);
        graph.search_cycle(&node("a"), |_| None).cycle.is_some()
    };
    assert!(is_found(REFERENCES_MAX - 2));
    assert!(!is_found(REFERENCES_MAX - 1));
}

#[test]
fn who_bears_a_reference_waits_for_its_holder_with_or_without_a_field() {
    let with_reference = |name: &str, state| Object {
        state,
        ..going(name, &["h"])
    };
    let graph = graph(vec![
        with_reference("a", DeletionState::Deleting),
        with_reference("b", DeletionState::Requested),
        with_reference("c", DeletionState::Evicting),
        with_reference("d", DeletionState::Live),
        going("e", &["other"]),
    ]);
    let waiting = graph.waiting_on(&Seen::of(&live(node("h"), "h")));
    let names: Vec<_> = waiting.iter().map(|seen| seen.uid.as_str()).collect();
    assert_eq!(names, ["a"]);
}
