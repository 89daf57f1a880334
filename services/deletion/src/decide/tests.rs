//! Every cell of the decision, one test for each rule.

use kindex_model::reference::OnDelete;
use kindex_model::reference_name::ReferenceName;

use super::*;
use crate::fixture::{self, GROUP, key};
use crate::object::Object;

mod archive;

mod cause;

mod waits;

const NOTHING: Step = Step::Rest(Vec::new());

fn seen(kind: &str, name: &str) -> Seen {
    Seen {
        key: key(kind, name),
        uid: format!("uid-{name}"),
    }
}

fn reference(name: &str, owned: bool) -> HeldReference {
    let name = ReferenceName::new("Holder", GROUP, name);
    HeldReference {
        name: name.expect("a name"),
        at: HolderLocation::Unknown,
        owned,
    }
}

fn missing(name: &str, owned: bool, cascades: bool) -> MissingReference {
    MissingReference {
        holder: key("Holder", name),
        owned,
        cascades,
        stays: false,
    }
}

fn edge(name: &'static str, owned: bool, on_delete: OnDelete) -> Edge {
    Edge {
        reference: name,
        target: key("Target", name),
        owned,
        on_delete,
    }
}

fn cascade(name: &'static str) -> Edge {
    edge(name, false, OnDelete::Cascade)
}

fn present(name: &str, has_reference: bool, leaving: bool, phase: Option<Phase>) -> Named {
    Named::Present {
        seen: seen("Target", name),
        has_reference,
        leaving,
        phase,
    }
}

fn placed(name: &str) -> Named {
    present(name, true, false, None)
}

fn going(name: &str, phase: Phase) -> Named {
    present(name, true, true, Some(phase))
}

fn object(state: DeletionState) -> Object {
    Object {
        state,
        requested: state == DeletionState::Requested,
        ..fixture::live(key("Object", "o"), "uid-o")
    }
}

fn input(object: &Object) -> Input<'_> {
    Input {
        object,
        named: Vec::new(),
        targets: Vec::new(),
        has_former: false,
        references: Vec::new(),
        missing: Vec::new(),
        holders_unknown: Vec::new(),
        targets_unknown: Vec::new(),
        cleanup: CleanupState::Gone,
        archived: Archived::Off,
    }
}

/// A live object with these edges, and what each of them names.
fn live(edges: Vec<(Edge, Named)>) -> (Object, Vec<Named>) {
    let (edges, named) = edges.into_iter().unzip();
    let object = Object {
        edges,
        ..object(DeletionState::Live)
    };
    (object, named)
}

fn decide_named((object, named): &(Object, Vec<Named>)) -> Step {
    decide(&Input {
        named: named.clone(),
        ..input(object)
    })
}

fn deleting(phase: Option<Phase>) -> Object {
    Object {
        phase,
        ..object(DeletionState::Deleting)
    }
}

#[test]
fn every_object_gets_the_deletion_finalizer_before_anything_else() {
    for state in [DeletionState::Live, DeletionState::Requested] {
        let bare = Object {
            has_deletion_finalizer: false,
            ..object(state)
        };
        assert_eq!(decide(&input(&bare)), Step::Adopt);
    }
    assert_eq!(decide(&input(&object(DeletionState::Live))), NOTHING);
}

#[test]
fn what_is_requested_by_annotation_is_deleted_at_once() {
    let step = decide(&input(&object(DeletionState::Requested)));
    assert_eq!(step, Step::Delete(Cause::Requested));
}

#[test]
fn a_reference_is_placed_on_what_a_field_names() {
    let step = decide_named(&live(vec![
        (cascade("a"), placed("a")),
        (cascade("b"), present("b", false, false, None)),
    ]));
    let place = Step::Place {
        reference: "b",
        target: seen("Target", "b"),
    };
    assert_eq!(step, place);
    assert_eq!(decide_named(&live(vec![(cascade("a"), placed("a"))])), NOTHING);
}

#[test]
fn no_reference_is_placed_on_what_is_leaving_absent_unknown_or_the_object_itself() {
    let cases = [
        (present("a", false, true, None), RefusalReason::Leaving),
        (Named::Archived { leaving: true }, RefusalReason::Leaving),
        (Named::Absent, RefusalReason::Absent),
        (Named::Unknown, RefusalReason::Unknown),
        (Named::Itself, RefusalReason::Itself),
    ];
    for (named, why) in cases {
        let refused = Refused {
            reference: "a",
            target: key("Target", "a"),
            why,
        };
        let block = || edge("a", false, OnDelete::Block);
        assert_eq!(
            decide_named(&live(vec![(block(), named.clone())])),
            Step::Rest(vec![refused])
        );
        // It keeps no other one from being placed.
        let other = (cascade("b"), present("b", false, false, None));
        let step = decide_named(&live(vec![(block(), named), other]));
        assert!(matches!(step, Step::Place { reference: "b", .. }), "{step:?}");
    }
}

#[test]
fn the_old_target_is_released_after_the_new_one_is_held() {
    let (object, _) = live(vec![(cascade("new"), placed("new"))]);
    let moved = |named: Named| {
        decide(&Input {
            named: vec![named],
            targets: vec![seen("Target", "new"), seen("Target", "old")],
            ..input(&object)
        })
    };
    assert!(matches!(moved(present("new", false, false, None)), Step::Place { .. }));
    assert!(matches!(moved(present("new", false, true, None)), Step::Rest(refused) if refused.len() == 1));
    assert_eq!(moved(placed("new")), Step::Release(seen("Target", "old")));
}

#[test]
fn a_target_that_was_created_anew_under_the_name_is_another_one() {
    let (object, _) = live(vec![(cascade("a"), placed("a"))]);
    let old = Seen {
        uid: "uid-before".to_owned(),
        ..seen("Target", "a")
    };
    let step = decide(&Input {
        named: vec![placed("a")],
        targets: vec![seen("Target", "a"), old.clone()],
        ..input(&object)
    });
    assert_eq!(step, Step::Release(old));
}

#[test]
fn a_deletion_waits_while_a_reference_is_left() {
    let references = vec![reference("h", false), reference("c", true)];
    let step = |phase| {
        decide(&Input {
            references: references.clone(),
            targets: vec![seen("Target", "a")],
            ..input(&deleting(phase))
        })
    };
    let holders = vec![reference("h", false).name];
    assert_eq!(
        step(None),
        Step::Record(Phase::Deleting, holders),
        "what it owns goes later"
    );
    // Even where a later phase was recorded: nothing goes back, and nothing goes on.
    for phase in Phase::ALL {
        let wait = Wait::Holders(vec![reference("h", false)], Vec::new());
        assert_eq!(step(Some(phase)), Step::Wait(wait));
    }
}

/// As if a reference lapsed where nobody has seen its holder, or nobody finds it.
#[test]
fn a_reference_holds_wherever_its_holder_is() {
    let places = [
        HolderLocation::Seen(key("Holder", "h")),
        HolderLocation::Unknown,
        HolderLocation::Absent,
        HolderLocation::NotFound,
    ];
    for (at, phase) in places.iter().flat_map(|at| Phase::ALL.map(|phase| (at, phase))) {
        let mut held = reference("h", false);
        held.at = at.clone();
        let step = decide(&Input {
            references: vec![held.clone()],
            ..input(&deleting(Some(phase)))
        });
        assert_eq!(step, Step::Wait(Wait::Holders(vec![held], Vec::new())));
    }
}

/// As if a deletion that is asked for once more began anew.
#[test]
fn no_phase_is_recorded_again() {
    for phase in Phase::ALL {
        for references in [vec![reference("h", false)], vec![reference("c", true)], Vec::new()] {
            let step = decide(&Input {
                references,
                targets: vec![seen("Target", "a")],
                ..input(&deleting(Some(phase)))
            });
            let is_again = matches!(step, Step::Record(recorded, _) if recorded <= phase);
            assert!(!is_again, "{phase}: {step:?}");
        }
    }
}

#[test]
fn a_deletion_waits_for_holders_that_go_with_it_and_not_for_those_that_were_refused() {
    let object = deleting(Some(Phase::Deleting));
    let step = |cascades| {
        decide(&Input {
            missing: vec![missing("h", false, cascades)],
            ..input(&object)
        })
    };
    assert_eq!(
        step(true),
        Step::Wait(Wait::Holders(Vec::new(), vec![key("Holder", "h")]))
    );
    assert_eq!(step(false), Step::Free { confirm: Vec::new() });
}

#[test]
fn nothing_drains_while_it_is_unknown_who_refers_to_it() {
    let unknown = vec!["holder".to_owned()];
    let object = deleting(None);
    let step = decide(&Input {
        holders_unknown: unknown.clone(),
        ..input(&object)
    });
    assert_eq!(step, Step::Wait(Wait::Unknown(unknown)));
}

#[test]
fn an_owner_drains_before_it_releases() {
    let step = |phase, references, missing| {
        decide(&Input {
            references,
            missing,
            targets: vec![seen("Target", "a")],
            ..input(&deleting(phase))
        })
    };
    for phase in [None, Some(Phase::Deleting)] {
        assert_eq!(
            step(phase, vec![reference("c", true)], Vec::new()),
            Step::Record(Phase::Draining, Vec::new())
        );
    }
    let held = Wait::Owned(vec![reference("c", true)], Vec::new());
    assert_eq!(
        step(Some(Phase::Draining), vec![reference("c", true)], Vec::new()),
        Step::Wait(held)
    );
    let late = Wait::Owned(Vec::new(), vec![key("Holder", "c")]);
    let missing = vec![missing("c", true, false)];
    assert_eq!(step(Some(Phase::Draining), Vec::new(), missing), Step::Wait(late));
}

#[test]
fn nothing_is_released_before_the_cleanup_outside_is_confirmed() {
    let step = |phase, cleanup, others: &[&str]| {
        let object = Object {
            others: others.iter().map(|&other| other.to_owned()).collect(),
            ..deleting(phase)
        };
        decide(&Input {
            cleanup,
            targets: vec![seen("Target", "a")],
            ..input(&object)
        })
    };
    let draining = Some(Phase::Draining);
    for left in [Remaining::Pending("m".to_owned()), Remaining::Failed("m".to_owned())] {
        let cleanup = CleanupState::Remaining(left.clone());
        assert_eq!(
            step(None, cleanup.clone(), &[]),
            Step::Record(Phase::Draining, Vec::new())
        );
        assert_eq!(step(draining, cleanup, &[]), Step::Wait(Wait::Cleanup(left)));
    }
    assert_eq!(
        step(None, CleanupState::Unconfirmed, &[]),
        Step::Record(Phase::Draining, Vec::new())
    );
    assert_eq!(step(draining, CleanupState::Unconfirmed, &[]), Step::CleanUp);
    assert_eq!(
        step(None, CleanupState::Gone, &["a.b/c"]),
        Step::Record(Phase::Draining, Vec::new())
    );
    let others = Wait::Finalizers(vec!["a.b/c".to_owned()]);
    for cleanup in [CleanupState::Gone, CleanupState::Unconfirmed] {
        assert_eq!(step(draining, cleanup, &["a.b/c"]), Step::Wait(others.clone()));
    }
    assert_eq!(
        step(draining, CleanupState::Gone, &[]),
        Step::Record(Phase::Finalizing, Vec::new())
    );
}

#[test]
fn nothing_is_cleaned_up_outside_before_holders_and_what_is_owned_are_gone() {
    let object = deleting(Some(Phase::Draining));
    for owned in [false, true] {
        let step = decide(&Input {
            cleanup: CleanupState::Unconfirmed,
            references: vec![reference("h", owned)],
            ..input(&object)
        });
        assert!(
            matches!(step, Step::Wait(Wait::Holders(..) | Wait::Owned(..))),
            "{step:?}"
        );
    }
}

#[test]
fn all_references_are_released_before_the_object_is_freed() {
    let step = |phase, targets, targets_unknown| {
        decide(&Input {
            targets,
            targets_unknown,
            ..input(&deleting(phase))
        })
    };
    let both = || vec![seen("Target", "a"), seen("Target", "b")];
    for phase in [None, Some(Phase::Deleting), Some(Phase::Draining)] {
        assert_eq!(
            step(phase, both(), Vec::new()),
            Step::Record(Phase::Finalizing, Vec::new())
        );
    }
    let finalizing = Some(Phase::Finalizing);
    assert_eq!(step(finalizing, both(), Vec::new()), Step::Release(seen("Target", "a")));
    let silent = vec!["region".to_owned()];
    assert_eq!(
        step(finalizing, both(), silent.clone()),
        Step::Release(seen("Target", "a")),
        "a service that is silent keeps no other from being released"
    );
    assert_eq!(
        step(finalizing, Vec::new(), silent.clone()),
        Step::Wait(Wait::Unknown(silent))
    );
    assert_eq!(
        step(finalizing, Vec::new(), Vec::new()),
        Step::Free { confirm: Vec::new() }
    );
}

#[test]
fn an_object_without_holders_or_anything_else_is_freed_at_once() {
    assert_eq!(decide(&input(&deleting(None))), Step::Free { confirm: Vec::new() });
    let bare = Object {
        has_deletion_finalizer: false,
        ..deleting(None)
    };
    assert_eq!(decide(&input(&bare)), NOTHING);
}

#[test]
fn what_a_field_names_is_read_again_before_the_object_is_freed() {
    let object = Object {
        edges: vec![cascade("a"), cascade("b")],
        ..deleting(Some(Phase::Finalizing))
    };
    let step = decide(&Input {
        named: vec![Named::Absent, Named::Itself],
        ..input(&object)
    });
    assert!(matches!(step, Step::Free { confirm } if confirm == [key("Target", "a")]));
    for (phase, confirm) in [(None, vec![key("Target", "a")]), (Some(Phase::Deleting), Vec::new())] {
        let step = decide(&Input {
            named: vec![present("a", false, true, phase), Named::Itself],
            ..input(&object)
        });
        assert_eq!(step, Step::Free { confirm }, "{phase:?}");
    }
}
