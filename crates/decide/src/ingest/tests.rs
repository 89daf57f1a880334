//! A test for each case of an object that stays or is gone.

mod invariants;

use super::fixture::{action, at, context, decided, head, immutable, marked, revived, row, stored, terminating};
use super::*;
use crate::row::RowText;

fn gone(last: Option<u64>, row: Option<Row>) -> Action {
    gone_since(last.map(head), None, row)
}

fn gone_since(last: Option<Head>, seen: Option<u64>, row: Option<Row>) -> Action {
    let seen = seen.map(at);
    decide(&Observed::Gone { last, seen }, row.as_ref(), &context())
}

// gone

#[test]
fn gone_without_row_is_nothing() {
    assert_eq!(gone(Some(7), None), Action::NOTHING);
}

#[test]
fn gone_without_row_is_soft_deleted_while_a_write_may_still_land() {
    let unsure = Context {
        unsure: true,
        ..context()
    };
    let written = |last| {
        let gone = Observed::Gone { last, seen: None };
        decide(&gone, None, &unsure).write
    };
    assert_eq!(written(None), Some(Write::SoftDelete));
    assert_eq!(written(Some(head(7))), stored(Life::Deleted), "with its last text");
}

#[test]
fn gone_with_live_row_is_soft_deleted() {
    let soft_delete = action(Some(Write::SoftDelete), FollowUp::Nothing);
    assert_eq!(gone(None, Some(row(5, Life::Live))), soft_delete);
    assert_eq!(gone(Some(5), Some(row(5, Life::Live))), soft_delete);
}

#[test]
fn gone_with_a_newer_last_text_stores_it_as_deleted() {
    assert_eq!(
        gone(Some(6), Some(row(5, Life::Live))),
        action(stored(Life::Deleted), FollowUp::Nothing)
    );
}

#[test]
fn gone_with_archived_or_deleted_row_is_nothing_where_the_row_holds_all_that_was_seen() {
    for life in [Life::Archived, Life::Deleted] {
        for seen in [Some(4), Some(5)] {
            let row = Some(row(5, life));
            assert_eq!(gone_since(None, seen, row), Action::NOTHING);
            assert_eq!(
                gone_since(Some(immutable(9)), seen, row),
                Action::NOTHING,
                "the delete event alone is not a newer text"
            );
        }
    }
}

#[test]
fn gone_with_archived_or_deleted_row_stores_the_last_text_of_an_object_that_was_never_seen() {
    for life in [Life::Archived, Life::Deleted] {
        let found = row(5, life);
        let reported = |version, row| gone_since(Some(immutable(version)), None, Some(row)).write;
        assert_eq!(reported(9, found), stored(life), "it left unseen");
        assert_eq!(reported(5, found), None);
        assert_eq!(gone(None, Some(found)), Action::NOTHING);
        let direct = Row {
            version: found.version.next_direct().expect("the first"),
            ..found
        };
        assert_eq!(reported(9, direct), None, "what SQL made of it stays");
    }
}

#[test]
fn gone_with_archived_or_deleted_row_stores_the_last_write_of_others() {
    let leaving = Head {
        has_finalizer: false,
        held: true,
        ..terminating(9)
    };
    let immutable = Head {
        immutable: true,
        ..leaving
    };
    let written = |last, life| gone_since(Some(last), Some(8), Some(row(5, life))).write;
    assert_eq!(written(leaving, Life::Deleted), stored(Life::Deleted));
    assert_eq!(written(immutable, Life::Archived), stored(Life::Archived));
    assert_eq!(
        written(leaving, Life::Archived),
        stored(Life::Deleted),
        "the annotation was removed, and a user deleted the object"
    );
    assert_eq!(gone_since(None, Some(8), Some(row(5, Life::Deleted))), Action::NOTHING);
}

// present

#[test]
fn present_without_row_is_inserted() {
    assert_eq!(decided(head(5), None), action(stored(Life::Live), FollowUp::Nothing));
}

#[test]
fn present_with_live_row_is_updated_if_newer() {
    assert_eq!(
        decided(head(6), Some(row(5, Life::Live))),
        action(stored(Life::Live), FollowUp::Nothing)
    );
    assert_eq!(decided(head(5), Some(row(5, Life::Live))), Action::NOTHING);
    assert_eq!(decided(head(4), Some(row(5, Life::Live))), Action::NOTHING);
}

#[test]
fn present_with_the_row_of_another_program_is_written_once_more() {
    let foreign = Row {
        text: RowText::Foreign,
        ..row(5, Life::Live)
    };
    assert_eq!(
        decided(head(5), Some(foreign)),
        action(stored(Life::Live), FollowUp::Nothing)
    );
}

#[test]
fn present_with_archived_row_clears_the_eviction() {
    let expected = action(stored(Life::Live), FollowUp::Nothing);
    assert_eq!(decided(head(6), Some(row(5, Life::Archived))), expected);
}

/// As if an ingester that is late took an object for one in the cluster that another one has archived and deleted.
#[test]
fn present_with_a_row_that_is_archived_in_its_version_is_confirmed_and_then_live() {
    let archived = row(5, Life::Archived);
    assert_eq!(decided(head(5), Some(archived)), Action::CONFIRM);
    let confirmed = Context {
        confirmed: Some(archived),
        ..context()
    };
    let live = decide(&Observed::Present(head(5)), Some(&archived), &confirmed);
    assert_eq!(live, action(revived(Life::Archived, Life::Live), FollowUp::Nothing));
}

#[test]
fn present_with_deleted_row_is_confirmed_and_then_revived() {
    let deleted = row(5, Life::Deleted);
    assert_eq!(decided(head(5), Some(deleted)).then, FollowUp::Confirm);
    let confirmed = Context {
        confirmed: Some(deleted),
        ..context()
    };
    assert_eq!(
        decide(&Observed::Present(head(5)), Some(&deleted), &confirmed),
        action(revived(Life::Deleted, Life::Live), FollowUp::Nothing)
    );
}

#[test]
fn a_confirmation_of_another_row_does_not_count() {
    let deleted = row(5, Life::Deleted);
    let confirmed = Context {
        confirmed: Some(row(4, Life::Deleted)),
        ..context()
    };
    assert_eq!(
        decide(&Observed::Present(head(5)), Some(&deleted), &confirmed),
        Action::CONFIRM
    );
}

#[test]
fn present_without_our_finalizer_is_adopted_only_if_configured() {
    let bare = Head {
        has_finalizer: false,
        ..head(5)
    };
    assert_eq!(decided(bare, None), action(stored(Life::Live), FollowUp::Nothing));
    let adopting = Context {
        adopt_finalizers: true,
        ..context()
    };
    assert_eq!(
        decide(&Observed::Present(bare), None, &adopting),
        action(stored(Life::Live), FollowUp::AddFinalizer)
    );
}

// the order of the checks

#[test]
fn checks_run_in_order_deletion_then_deleting_then_immutable() {
    let both = Head {
        deleting: true,
        ..immutable(6)
    };
    assert_eq!(decided(both, None).write, stored(Life::Deleted));
    let all = Head {
        deletion_timestamp: Some(context().now),
        ..both
    };
    assert_eq!(decided(all, None).then, FollowUp::Release);
}

// final, and deleted by a user

fn marked_final(version: u64) -> Head {
    Head {
        deleting: true,
        immutable: true,
        ..terminating(version)
    }
}

/// Its row was archived just before it was marked.
#[test]
fn the_deletion_of_a_marked_final_object_is_no_eviction() {
    let archived = Some(row(5, Life::Archived));
    let deleted = action(stored(Life::Deleted), FollowUp::Release);
    assert_eq!(decided(marked_final(7), archived), deleted);
    let with_finalizer = Head {
        has_deletion_finalizer: true,
        ..marked_final(7)
    };
    let stripped = Head {
        has_finalizer: false,
        ..with_finalizer
    };
    for in_use in [with_finalizer, stripped] {
        assert_eq!(
            decided(in_use, archived),
            action(stored(Life::Live), FollowUp::Nothing),
            "first come its phases"
        );
    }
    assert_eq!(decided(marked_final(8), Some(row(7, Life::Live))), deleted);
    assert_eq!(
        gone_since(Some(marked_final(9)), Some(8), archived).write,
        stored(Life::Deleted)
    );
}

/// After our delete, others place references on the archived row, and our finalizer takes those on the object there.
#[test]
fn a_mark_that_follows_an_eviction_counts_while_the_object_is_in_use() {
    let archived = row(5, Life::Archived);
    let accepted = Context {
        own_delete: OwnDelete::Accepted(at(6)),
        ..context()
    };
    let decided_on = |head| decide(&Observed::Present(head), Some(&archived), &accepted);
    let in_use = Head {
        has_references: true,
        ..marked_final(7)
    };
    assert_eq!(decided_on(in_use), action(stored(Life::Live), FollowUp::Nothing));
    assert_eq!(
        decided_on(marked_final(7)),
        action(stored(Life::Archived), FollowUp::Release)
    );
    let released = Head {
        has_finalizer: false,
        held: true,
        ..marked_final(7)
    };
    assert_eq!(
        decided(released, Some(archived)),
        action(stored(Life::Archived), FollowUp::Nothing)
    );
    assert_eq!(
        gone_since(Some(released), Some(7), Some(archived)).write,
        stored(Life::Archived)
    );
}

/// The row was deleted in SQL while others held the object in the cluster, where nobody takes off what SQL released.
#[test]
fn what_was_deleted_on_its_way_to_the_archive_takes_its_references_along() {
    let deleted = Some(row(6, Life::Deleted));
    let accepted = Context {
        own_delete: OwnDelete::Accepted(at(6)),
        ..context()
    };
    let archived = Head {
        immutable: true,
        ..terminating(7)
    };
    let held = [(true, false), (false, true)].map(|(has_references, has_deletion_finalizer)| Head {
        has_references,
        has_deletion_finalizer,
        ..archived
    });
    let stripped = held.map(|head| Head {
        has_finalizer: false,
        ..head
    });
    let expected = action(stored(Life::Deleted), FollowUp::ReleaseArchived);
    for head in held.into_iter().chain(stripped) {
        for known in [accepted, context()] {
            let decided_by = |owns| decide(&Observed::Present(head), deleted.as_ref(), &Context { owns, ..known });
            assert_eq!(decided_by(false), expected);
            assert_eq!(decided_by(true), Action::CONFIRM, "first goes what it owns");
        }
    }
}

/// A user marks what others use, or a restored cluster shows that they do.
#[test]
fn a_deleted_row_comes_back_where_the_cluster_knows_who_uses_the_object() {
    let in_use = Head {
        has_references: true,
        ..marked_final(7)
    };
    let unmarked = Head {
        deleting: false,
        ..in_use
    };
    for (head, version) in [(in_use, 6), (unmarked, 0)] {
        let closed = row(version, Life::Deleted);
        assert_eq!(decided(head, Some(closed)), Action::CONFIRM);
        let confirmed = Context {
            confirmed: Some(closed),
            ..context()
        };
        let decision = decide(&Observed::Present(head), Some(&closed), &confirmed);
        assert_eq!(decision, action(revived(Life::Deleted, Life::Live), FollowUp::Nothing));
    }
}

// final, and others may be owned

/// As if only a reference that is placed already said what an object owns.
#[test]
fn a_final_object_waits_for_what_sql_shows_that_it_owns() {
    let decided_by = |owned_objects, head, row: Option<Row>| {
        let context = Context {
            owned_objects,
            ..context()
        };
        decide(&Observed::Present(head), row.as_ref(), &context)
    };
    let (live, archived) = (row(6, Life::Live), row(6, Life::Archived));
    for found in [None, Some(live), Some(archived)] {
        assert_eq!(
            decided_by(OwnedObjects::Unknown, immutable(6), found),
            Action::FIND_OWNED
        );
        let delete = FollowUp::Delete { release: true };
        assert_eq!(decided_by(OwnedObjects::Absent, immutable(6), found).then, delete);
    }
    let waits = FollowUp::WaitForOwned;
    let stays = decided_by(OwnedObjects::Live, immutable(6), None);
    assert_eq!(stays, action(stored(Life::Live), waits));
    assert_eq!(
        decided_by(OwnedObjects::Live, immutable(6), Some(archived)),
        Action::CONFIRM
    );
    assert_eq!(
        decided_by(OwnedObjects::Live, immutable(6), Some(live)),
        action(None, waits)
    );
    let others = [(terminating(6), None), (marked(6), None), (head(6), None)];
    for (head, row) in others {
        let asked = decided_by(OwnedObjects::Unknown, head, row);
        assert_eq!(asked, decided(head, row), "only an eviction asks");
    }
}

// observations older than the row

#[test]
fn a_late_observation_with_an_effect_is_confirmed() {
    let newer = row(9, Life::Live);
    for late in [terminating(6), marked(6), immutable(6)] {
        assert_eq!(decided(late, Some(newer)), Action::CONFIRM);
    }
}

#[test]
fn a_cluster_that_confirms_an_older_version_wins() {
    let newer = row(9, Life::Live);
    let confirmed = Context {
        confirmed: Some(newer),
        ..context()
    };
    for observed in [head(6), terminating(6), immutable(6)] {
        assert_eq!(
            decide(&Observed::Present(observed), Some(&newer), &confirmed),
            Action::REWIND
        );
    }
}

#[test]
fn another_text_under_the_same_version_is_confirmed_and_the_cluster_wins() {
    let different = Row {
        text: RowText::Different,
        ..row(5, Life::Live)
    };
    assert_eq!(decided(head(5), Some(different)), Action::CONFIRM);
    let confirmed = Context {
        confirmed: Some(different),
        ..context()
    };
    assert_eq!(
        decide(&Observed::Present(head(5)), Some(&different), &confirmed),
        action(stored(Life::Live), FollowUp::Nothing)
    );
    assert_eq!(
        decided(head(6), Some(different)),
        action(stored(Life::Live), FollowUp::Nothing),
        "a newer version needs no confirmation"
    );
}
