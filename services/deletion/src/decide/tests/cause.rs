//! Why an object is deleted with another one.

use super::*;

fn by_target(reference: &'static str, held: bool) -> Cause {
    Cause::Target {
        reference,
        target: seen("Target", reference),
        held,
    }
}

fn held_by(reference: &'static str) -> Cause {
    by_target(reference, true)
}

#[test]
fn what_cascades_is_deleted_in_the_first_phase_of_its_target() {
    for phase in Phase::ALL {
        let step = decide_named(&live(vec![(cascade("a"), going("a", phase))]));
        assert_eq!(step, Step::Delete(held_by("a")));
    }
}

/// As if each of the two deleted it, or one of them kept its reference.
#[test]
fn a_holder_of_two_that_are_deleted_goes_once_and_releases_both() {
    let both = ["a", "b"].map(|name| going(name, Phase::Deleting));
    let edges = ["a", "b"].map(cascade);
    let (mut object, named) = live(edges.into_iter().zip(both).collect());
    let step = |object: &Object, left: &[&str]| {
        decide(&Input {
            named: named.clone(),
            targets: left.iter().map(|name| seen("Target", name)).collect(),
            ..input(object)
        })
    };
    assert_eq!(step(&object, &["a", "b"]), Step::Delete(held_by("a")));
    (object.state, object.phase) = (DeletionState::Deleting, Some(Phase::Finalizing));
    assert_eq!(step(&object, &["a", "b"]), Step::Release(seen("Target", "a")));
    assert_eq!(step(&object, &["b"]), Step::Release(seen("Target", "b")));
}

#[test]
fn what_is_owned_is_deleted_once_its_owner_drains() {
    let owned = || edge("a", true, OnDelete::Cascade);
    let step = |phase| decide_named(&live(vec![(owned(), going("a", phase))]));
    assert_eq!(step(Phase::Deleting), NOTHING);
    assert_eq!(step(Phase::Draining), Step::Delete(held_by("a")));
    assert_eq!(step(Phase::Finalizing), Step::Delete(held_by("a")));
}

#[test]
fn what_blocks_is_never_deleted() {
    for phase in Phase::ALL {
        let block = edge("a", false, OnDelete::Block);
        assert_eq!(decide_named(&live(vec![(block, going("a", phase))])), NOTHING);
    }
}

#[test]
fn nothing_follows_from_a_target_that_only_leaves_etcd_or_is_absent() {
    for owned in [false, true] {
        let edge = || edge("a", owned, OnDelete::Cascade);
        assert_eq!(
            decide_named(&live(vec![(edge(), present("a", true, true, None))])),
            NOTHING
        );
        for named in [Named::Absent, Named::Unknown] {
            let step = decide_named(&live(vec![(edge(), named)]));
            assert!(matches!(step, Step::Rest(_)), "{step:?}");
        }
    }
}

#[test]
fn a_holder_whose_reference_was_refused_is_deleted_with_the_target_it_names() {
    let late = present("a", false, true, Some(Phase::Deleting));
    let step = decide_named(&live(vec![(cascade("a"), late)]));
    assert_eq!(
        step,
        Step::Delete(by_target("a", false)),
        "it may be gone, and is read again"
    );
}

#[test]
fn the_deletion_of_what_is_immutable_says_that_it_is_one() {
    let (mut object, named) = live(vec![(cascade("a"), going("a", Phase::Deleting))]);
    object.immutable = true;
    assert_eq!(decide_named(&(object, named)), Step::Request(held_by("a")));
}

/// As if a new name in a field, set past the API, were enough to cascade, while the former target holds the object.
#[test]
fn a_holder_that_was_moved_to_what_is_being_deleted_stays_where_it_is_held() {
    for (owned, phase) in [
        (false, Phase::Deleting),
        (false, Phase::Finalizing),
        (true, Phase::Draining),
    ] {
        let edge = || edge("new", owned, OnDelete::Cascade);
        let step = |has_reference, has_former| {
            let (object, named) = live(vec![(edge(), present("new", has_reference, true, Some(phase)))]);
            decide(&Input {
                named,
                targets: vec![seen("Target", "old")],
                has_former,
                ..input(&object)
            })
        };
        let refused = Refused {
            reference: "new",
            target: key("Target", "new"),
            why: RefusalReason::Leaving,
        };
        assert_eq!(step(false, true), Step::Rest(vec![refused]), "{owned} {phase}");
        let without = Step::Delete(by_target("new", false));
        assert_eq!(step(false, false), without, "{owned} {phase}: nothing else holds it");
        assert_eq!(
            step(true, true),
            Step::Delete(held_by("new")),
            "{owned} {phase}: it is held"
        );
    }
}

/// Of two targets, the one that has the reference cascades to the object.
#[test]
fn a_former_target_excuses_only_from_what_does_not_bear_the_reference() {
    let (object, named) = live(vec![
        (cascade("new"), present("new", false, true, Some(Phase::Deleting))),
        (cascade("held"), going("held", Phase::Deleting)),
    ]);
    let step = decide(&Input {
        named,
        has_former: true,
        ..input(&object)
    });
    assert_eq!(step, Step::Delete(held_by("held")));
}

/// As if it waited for those that are not deleted with it: neither of the two would ever go on.
#[test]
fn what_is_being_deleted_does_not_wait_for_who_stays_with_a_former_target() {
    for (owned, phase) in [(false, Phase::Deleting), (true, Phase::Draining)] {
        let object = deleting(Some(phase));
        let step = |stays| {
            let holder = missing("h", owned, !owned);
            decide(&Input {
                missing: vec![MissingReference { stays, ..holder }],
                ..input(&object)
            })
        };
        assert!(matches!(step(false), Step::Wait(_)), "{owned}: it is deleted with it");
        assert_eq!(step(true), Step::Free { confirm: Vec::new() }, "{owned}");
    }
}

/// As if nothing but what is known could hold it: a restart would delete what was moved, past the API, before its
/// former target is known.
#[test]
fn what_does_not_hold_an_object_takes_it_along_only_once_all_are_known_that_may_hold_it() {
    for (owned, phase) in [(false, Phase::Deleting), (true, Phase::Draining)] {
        let step = |has_reference, unknown: &[&str]| {
            let named = present("new", has_reference, true, Some(phase));
            let (object, named) = live(vec![(edge("new", owned, OnDelete::Cascade), named)]);
            decide(&Input {
                named,
                targets_unknown: unknown.iter().map(ToString::to_string).collect(),
                ..input(&object)
            })
        };
        assert!(
            matches!(step(false, &["x"]), Step::Rest(_)),
            "{owned}: it may be held there"
        );
        assert_eq!(step(false, &[]), Step::Delete(by_target("new", false)), "{owned}");
        assert_eq!(
            step(true, &["x"]),
            Step::Delete(held_by("new")),
            "{owned}: it is held here"
        );
    }
}
