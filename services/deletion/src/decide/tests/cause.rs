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
