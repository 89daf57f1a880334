//! What is known of objects that were moved, that came back, or that nobody vouches for.

use kindex_model::deletion::Phase;
use kindex_model::reference::OnDelete;

use super::*;
use crate::fixture::{key, key_in, live};

fn network(name: &str) -> Key {
    key("Network", name)
}

/// A cluster that was moved from the network `old` to `new`.
fn cluster() -> Object {
    Object {
        edges: vec![Edge {
            reference: "network",
            target: network("new"),
            owned: false,
            on_delete: OnDelete::Cascade,
        }],
        ..live(key("Cluster", "c"), "c")
    }
}

/// The network that it was moved to, in its first phase.
fn new() -> Object {
    Object {
        state: DeletionState::Deleting,
        phase: Some(Phase::Deleting),
        ..live(network("new"), "new")
    }
}

/// The network that it was moved from.
fn old(version: u64, state: DeletionState, has_reference: bool) -> Object {
    let name = cluster().reference_name().filter(|_| has_reference);
    Object {
        version: ResourceVersion(version),
        state,
        references: name.into_iter().collect(),
        ..live(network("old"), "old")
    }
}

/// Both, and the network that it was moved to.
fn moved(old: Object) -> Graph {
    let declared = Declared {
        holder: key("Cluster", "c").kind,
        target: network("new").kind,
        owned: false,
    };
    let mut graph = Graph::new(vec![declared]);
    for object in [cluster(), new(), old] {
        graph.apply(object);
    }
    graph
}

/// Whether the cluster stays, for itself and for the network that it names.
fn stays(graph: &Graph) -> bool {
    let of = |key: &Key| graph.input(key, CleanupState::Gone).expect("it is known");
    let (holder, named) = (of(&cluster().key), of(&network("new")));
    assert_eq!(named.missing.len(), 1);
    assert_eq!(holder.has_former, named.missing[0].stays);
    holder.has_former
}

#[test]
fn a_former_target_holds_who_was_moved_unless_it_is_deleted_itself() {
    for (state, holds) in [
        (DeletionState::Live, true),
        (DeletionState::Evicting, true),
        (DeletionState::Requested, false),
        (DeletionState::Deleting, false),
    ] {
        assert_eq!(stays(&moved(old(1, state, true))), holds, "{state:?}");
        assert!(
            !stays(&moved(old(1, state, false))),
            "{state:?}: it does not have the reference"
        );
    }
    let unrelated = Object {
        key: key("Project", "old"),
        ..old(1, DeletionState::Live, true)
    };
    assert!(!stays(&moved(unrelated)), "no field can name it");
}

/// As if only its neighbors were concerned: what is being deleted would wait for ever for a holder that stays.
#[test]
fn who_refuses_a_holder_is_concerned_by_all_that_happens_to_its_former_target() {
    let mut graph = moved(old(1, DeletionState::Live, false));
    let changes = [
        (2, DeletionState::Live, true),
        (3, DeletionState::Evicting, true),
        (4, DeletionState::Evicting, false),
        (5, DeletionState::Evicting, true),
    ];
    for (version, state, has_reference) in changes {
        let concerned = graph.apply(old(version, state, has_reference));
        assert!(concerned.contains(&network("new")), "{version}: {concerned:?}");
        assert_eq!(stays(&graph), has_reference, "{version}");
    }
    let concerned = graph.remove(&network("old"), "old");
    assert!(concerned.contains(&network("new")), "{concerned:?}");
    assert!(!stays(&graph));
    let mut graph = moved(old(1, DeletionState::Live, true));
    let renamed = Object {
        version: ResourceVersion(2),
        edges: Vec::new(),
        ..cluster()
    };
    graph.apply(renamed);
    let concerned = graph.apply(old(2, DeletionState::Live, false));
    assert!(!concerned.contains(&network("new")), "nobody names it: {concerned:?}");
}

/// As if a deletion counted that a restored service does not know of: what the former target holds would be deleted
/// with it.
#[test]
fn a_former_target_of_a_service_that_is_doubted_stays() {
    let old = Object {
        key: key_in("identity.example.com", "Project", "old"),
        ..old(1, DeletionState::Deleting, true)
    };
    let mut graph = Graph::new(vec![Declared {
        holder: cluster().key.kind,
        target: old.key.kind.clone(),
        owned: false,
    }]);
    let kind = old.key.kind.clone();
    for object in [cluster(), new(), old] {
        graph.apply(object);
    }
    assert!(!stays(&graph), "it is being deleted");
    graph.doubt(&kind);
    assert!(stays(&graph));
    graph.complete(&kind);
    assert!(!stays(&graph), "it is known again");
}

fn phase(graph: &Graph) -> Option<Phase> {
    let input = graph.input(&cluster().key, CleanupState::Gone).expect("it is known");
    match &input.named[0] {
        Named::Present { phase, .. } => *phase,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_phase_is_not_believed_while_its_service_is_doubted() {
    let (mut graph, kind) = (moved(old(1, DeletionState::Live, false)), network("new").kind);
    graph.complete(&kind);
    graph.lose(&kind);
    assert_eq!(phase(&graph), Some(Phase::Deleting), "it is not followed for a while");
    graph.doubt(&kind);
    assert_eq!(phase(&graph), None);
    let again = Object {
        version: ResourceVersion(2),
        ..new()
    };
    graph.apply(again);
    assert_eq!(phase(&graph), None, "others of its kind may be missing");
    let concerned = graph.complete(&kind);
    assert!(concerned.contains(&cluster().key), "{concerned:?}");
    assert_eq!(phase(&graph), Some(Phase::Deleting));
}

#[test]
fn what_went_comes_back_only_by_a_later_look_up_and_never_in_its_own_cluster() {
    let at = |version: u64| old(version, DeletionState::Live, true);
    let mut graph = moved(at(1));
    graph.remove_until(&network("old"), "old", ResourceVersion(5));
    assert!(graph.has_gone("old"));
    graph.remove_until(&network("old"), "old", ResourceVersion(4));
    assert!(graph.apply(at(5)).is_empty(), "that was sent before");
    assert!(graph.apply(at(6)).contains(&network("old")));
    assert!(!graph.has_gone("old") && stays(&graph));
    graph.remove(&network("old"), "old");
    assert!(graph.apply(at(7)).is_empty());
    assert!(graph.has_gone("old") && graph.get(&network("old")).is_none());
}
