//! A test for each case of an object that leaves the cluster.

use crate::ingest::fixture::{
    DELAY, action, at, context, decided, head, immutable, marked, revived, row, stored, terminating,
};
use crate::ingest::*;

// deletionTimestamp, our finalizer there

#[test]
fn terminating_without_row_is_stored_as_deleted_and_released() {
    assert_eq!(
        decided(terminating(5), None),
        action(stored(Life::Deleted), FollowUp::Release)
    );
}

#[test]
fn terminating_with_live_row_stores_the_final_version_as_deleted_and_releases() {
    let expected = action(stored(Life::Deleted), FollowUp::Release);
    assert_eq!(decided(terminating(6), Some(row(5, Life::Live))), expected);
    assert_eq!(decided(terminating(5), Some(row(5, Life::Live))), expected);
}

#[test]
fn terminating_with_archived_row_is_released_if_we_deleted_it() {
    let archived = row(5, Life::Archived);
    let own_delete = |own_delete| Context {
        own_delete,
        ..context()
    };
    let observed = Observed::Present(terminating(6));
    assert_eq!(
        decide(&observed, Some(&archived), &own_delete(OwnDelete::Accepted(at(6)))),
        action(None, FollowUp::Release),
        "the row differs from our own delete's version by the timestamp alone"
    );
    assert_eq!(
        decide(&observed, Some(&archived), &own_delete(OwnDelete::Accepted(at(5)))),
        action(stored(Life::Archived), FollowUp::Release),
        "a write of others after our delete"
    );
    assert_eq!(
        decide(&observed, Some(&archived), &own_delete(OwnDelete::Unknown)),
        action(stored(Life::Deleted), FollowUp::Release)
    );
}

#[test]
fn after_a_restart_an_immutable_object_with_archived_row_counts_as_archived() {
    let archived = Some(row(5, Life::Archived));
    let immutable = Head {
        immutable: true,
        ..terminating(6)
    };
    assert_eq!(
        decided(immutable, archived),
        action(stored(Life::Archived), FollowUp::Release)
    );
    assert_eq!(
        decided(terminating(6), archived),
        action(stored(Life::Deleted), FollowUp::Release),
        "without the annotation it was deleted by a user"
    );
}

#[test]
fn terminating_with_deleted_row_is_released() {
    assert_eq!(
        decided(terminating(5), Some(row(5, Life::Deleted))),
        action(None, FollowUp::Release)
    );
    assert_eq!(
        decided(terminating(6), Some(row(5, Life::Deleted))),
        action(stored(Life::Deleted), FollowUp::Release),
        "a version that SQL lacks is stored before it leaves"
    );
}

#[test]
fn the_deletion_delay_counts_from_the_deletion_timestamp() {
    let waiting = |elapsed: i64| {
        let deleted_at = Timestamp::from_second(1_000_000 - elapsed).expect("in range");
        let head = Head {
            deletion_timestamp: Some(deleted_at),
            ..head(6)
        };
        let context = Context {
            deletion_delay: DELAY,
            ..context()
        };
        decide(&Observed::Present(head), Some(&row(5, Life::Live)), &context)
    };
    assert_eq!(
        waiting(4),
        action(stored(Life::Live), FollowUp::Wait(Duration::from_secs(6)))
    );
    assert_eq!(waiting(10), action(stored(Life::Deleted), FollowUp::Release));
    assert_eq!(
        waiting(-3600),
        action(stored(Life::Live), FollowUp::Wait(DELAY)),
        "a cluster clock in the future"
    );
}

#[test]
fn a_wrong_cluster_clock_never_prolongs_the_delay() {
    let context = Context {
        deletion_delay: DELAY,
        leaving_for: DELAY,
        ..context()
    };
    let future = Timestamp::from_second(2_000_000).expect("in range");
    let head = Head {
        deletion_timestamp: Some(future),
        ..head(6)
    };
    assert_eq!(
        decide(&Observed::Present(head), None, &context),
        action(stored(Life::Deleted), FollowUp::Release)
    );
}

// deletionTimestamp, our finalizer gone

#[test]
fn terminating_without_our_finalizer_only_the_text_is_stored() {
    let head = Head {
        has_finalizer: false,
        ..terminating(6)
    };
    assert_eq!(decided(head, None), action(stored(Life::Live), FollowUp::Nothing));
    for life in [Life::Live, Life::Archived, Life::Deleted] {
        assert_eq!(
            decided(head, Some(row(5, life))),
            action(stored(life), FollowUp::Nothing)
        );
        assert_eq!(decided(head, Some(row(6, life))), Action::NOTHING);
    }
}

// deletionTimestamp, our finalizer and others there

const WAIT: Duration = Duration::from_secs(600);

fn held(version: u64) -> Head {
    Head {
        held: true,
        ..terminating(version)
    }
}

/// The decision so many seconds after the object was first seen leaving.
fn held_for(seconds: u64, head: Head, row: Option<Row>, own_delete: OwnDelete) -> Action {
    let context = Context {
        finalizer_wait: WAIT,
        leaving_for: Duration::from_secs(seconds),
        own_delete,
        ..context()
    };
    decide(&Observed::Present(head), row.as_ref(), &context)
}

#[test]
fn our_finalizer_goes_last_and_the_row_follows() {
    let rest = FollowUp::WaitForOthers(Duration::from_secs(540));
    let own_delete = OwnDelete::Accepted(at(6));
    for life in [Life::Live, Life::Archived, Life::Deleted] {
        for version in [6, 7] {
            let row = Some(row(5, life));
            assert_eq!(held_for(60, held(version), row, own_delete), action(stored(life), rest));
        }
        let current = held_for(60, held(6), Some(row(6, life)), own_delete);
        assert_eq!(current, action(None, rest), "nothing is written that did not change");
    }
    assert_eq!(
        held_for(60, held(6), None, own_delete),
        action(stored(Life::Live), rest)
    );
}

#[test]
fn after_others_have_released_it_the_row_is_closed_and_the_object_released() {
    let last = |life, own_delete| held_for(60, terminating(7), Some(row(6, life)), own_delete);
    for life in [Life::Live, Life::Deleted] {
        let expected = action(stored(Life::Deleted), FollowUp::Release);
        assert_eq!(last(life, OwnDelete::Unknown), expected);
    }
    assert_eq!(
        last(Life::Archived, OwnDelete::Accepted(at(6))),
        action(stored(Life::Archived), FollowUp::Release)
    );
    assert_eq!(
        last(Life::Archived, OwnDelete::Unknown),
        action(stored(Life::Deleted), FollowUp::Release)
    );
}

#[test]
fn another_finalizer_is_waited_for_only_so_long() {
    let released = |life| held_for(600, held(6), Some(row(5, life)), OwnDelete::Accepted(at(6)));
    for life in [Life::Live, Life::Archived, Life::Deleted] {
        assert_eq!(
            released(life),
            action(stored(life), FollowUp::Release),
            "the object stays, and its row keeps its state"
        );
    }
}

#[test]
fn the_deletion_delay_comes_before_the_wait_for_others() {
    let context = Context {
        deletion_delay: DELAY,
        finalizer_wait: WAIT,
        ..context()
    };
    let then = |head, life| decide(&Observed::Present(head), Some(&row(6, life)), &context).then;
    assert_eq!(then(held(6), Life::Live), FollowUp::Wait(DELAY));
    assert_eq!(then(held(6), Life::Deleted), FollowUp::WaitForOthers(WAIT));
    assert_eq!(then(terminating(6), Life::Live), FollowUp::Wait(DELAY));
}

// in use: references, or the finalizer of Kindex's deletion

fn in_use(head: Head) -> Head {
    Head {
        has_references: true,
        ..head
    }
}

#[test]
fn a_deleted_object_that_is_in_use_is_live_until_nothing_uses_it() {
    let live = action(stored(Life::Live), FollowUp::Nothing);
    for head in [in_use(terminating(6)), in_use(held(6))] {
        for row in [None, Some(row(5, Life::Live)), Some(row(5, Life::Archived))] {
            assert_eq!(held_for(0, head, row, OwnDelete::Unknown), live);
            assert_eq!(
                held_for(86_400, head, row, OwnDelete::Unknown),
                live,
                "no wait cuts that short"
            );
        }
        let current = held_for(0, head, Some(row(6, Life::Live)), OwnDelete::Unknown);
        assert_eq!(current, Action::NOTHING);
    }
    let freed = decided(terminating(7), Some(row(6, Life::Live)));
    assert_eq!(freed, action(stored(Life::Deleted), FollowUp::Release));
}

#[test]
fn the_row_of_an_object_that_is_in_use_comes_back_to_life() {
    let deleted = row(5, Life::Deleted);
    let without_finalizer = Head {
        has_finalizer: false,
        ..in_use(terminating(6))
    };
    for head in [in_use(terminating(6)), in_use(marked(6)), without_finalizer] {
        assert_eq!(decided(head, Some(deleted)), Action::CONFIRM);
        let confirmed = Context {
            confirmed: Some(deleted),
            ..context()
        };
        let decision = decide(&Observed::Present(head), Some(&deleted), &confirmed);
        assert_eq!(decision.write, revived(Life::Deleted, Life::Live));
    }
}

#[test]
fn deleting_annotation_of_an_object_that_is_in_use_makes_it_a_tombstone() {
    let delete = FollowUp::Delete { release: false };
    for row in [None, Some(row(5, Life::Live))] {
        assert_eq!(decided(in_use(marked(6)), row), action(stored(Life::Live), delete));
    }
}

#[test]
fn an_archived_object_takes_its_references_along() {
    let archived = Some(row(5, Life::Archived));
    let head = in_use(terminating(6));
    let release = |then| action(None, then);
    assert_eq!(
        held_for(0, head, archived, OwnDelete::Accepted(at(6))),
        release(FollowUp::ReleaseArchived)
    );
    let without_finalizer = Head {
        has_finalizer: false,
        ..head
    };
    assert_eq!(
        held_for(0, without_finalizer, archived, OwnDelete::Accepted(at(6))),
        release(FollowUp::ReleaseArchived)
    );
    let others = held_for(
        0,
        in_use(held(6)),
        Some(row(6, Life::Archived)),
        OwnDelete::Accepted(at(6)),
    );
    assert_eq!(
        others,
        action(None, FollowUp::WaitForOthers(WAIT)),
        "ours and the references go last"
    );
    let bare = Head {
        has_finalizer: false,
        ..in_use(immutable(6))
    };
    let first = decided(bare, None);
    assert_eq!(
        first,
        action(stored(Life::Archived), FollowUp::Delete { release: true })
    );
}

#[test]
fn a_final_object_that_owns_others_is_archived_once_they_have_left() {
    let owning = Context {
        owns: true,
        ..context()
    };
    let head = in_use(immutable(6));
    let decided_on = |head, row| decide(&Observed::Present(head), row, &owning);
    assert_eq!(decided_on(head, None), action(stored(Life::Live), FollowUp::Nothing));
    let live = row(6, Life::Live);
    assert_eq!(decided_on(head, Some(&live)), Action::NOTHING);
    let archived = row(5, Life::Archived);
    let came_first = decided_on(head, Some(&archived));
    assert_eq!(
        came_first,
        action(stored(Life::Live), FollowUp::Nothing),
        "the reference came first"
    );
    let freed = decided(immutable(7), Some(live));
    assert_eq!(
        freed,
        action(stored(Life::Archived), FollowUp::Delete { release: true })
    );
}

// Deleting annotation

#[test]
fn deleting_annotation_stores_as_deleted_then_deletes_and_releases() {
    let delete = FollowUp::Delete { release: true };
    for found in [
        None,
        Some(row(5, Life::Live)),
        Some(row(6, Life::Live)),
        Some(row(5, Life::Archived)),
    ] {
        assert_eq!(decided(marked(6), found), action(stored(Life::Deleted), delete));
    }
    assert_eq!(decided(marked(6), Some(row(6, Life::Deleted))), action(None, delete));
}

#[test]
fn deleting_annotation_without_our_finalizer_has_nothing_to_release() {
    let bare = Head {
        has_finalizer: false,
        ..marked(6)
    };
    assert_eq!(decided(bare, None).then, FollowUp::Delete { release: false });
}

#[test]
fn the_deletion_delay_counts_from_first_sight_of_the_annotation() {
    let waiting = |seen: u64, found: Option<Row>| {
        let context = Context {
            deletion_delay: DELAY,
            leaving_for: Duration::from_secs(seen),
            ..context()
        };
        decide(&Observed::Present(marked(6)), found.as_ref(), &context)
    };
    assert_eq!(
        waiting(3, None),
        action(stored(Life::Live), FollowUp::Wait(Duration::from_secs(7)))
    );
    assert_eq!(
        waiting(10, Some(row(6, Life::Live))),
        action(stored(Life::Deleted), FollowUp::Delete { release: true })
    );
    assert_eq!(
        waiting(0, Some(row(6, Life::Deleted))).then,
        FollowUp::Delete { release: true },
        "an object that is already deleted does not wait"
    );
}

// Immutable annotation, or kind declared immutable

#[test]
fn immutable_is_stored_as_archived_then_deleted_and_released() {
    let delete = FollowUp::Delete { release: true };
    for found in [
        None,
        Some(row(5, Life::Live)),
        Some(row(6, Life::Live)),
        Some(row(5, Life::Archived)),
    ] {
        assert_eq!(decided(immutable(6), found), action(stored(Life::Archived), delete));
    }
    assert_eq!(
        decided(immutable(6), Some(row(6, Life::Archived))),
        action(None, delete)
    );
}

#[test]
fn immutable_with_deleted_row_is_confirmed_and_revived_into_eviction() {
    let deleted = row(6, Life::Deleted);
    assert_eq!(decided(immutable(6), Some(deleted)), Action::CONFIRM);
    let confirmed = Context {
        confirmed: Some(deleted),
        ..context()
    };
    assert_eq!(
        decide(&Observed::Present(immutable(6)), Some(&deleted), &confirmed),
        action(
            revived(Life::Deleted, Life::Archived),
            FollowUp::Delete { release: true }
        )
    );
}
