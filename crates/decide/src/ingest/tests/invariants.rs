//! Checks the rules that every decision must keep, for all combinations of observation, row and context.

use kindex_model::row_version::RowVersion;

use crate::ingest::fixture::{at, context, row};
use crate::ingest::*;
use crate::row::RowText;

fn all_rows() -> Vec<Option<Row>> {
    let mut rows = vec![None];
    for version in [5, 6, 7] {
        for life in [Life::Live, Life::Archived, Life::Deleted] {
            for text in [RowText::Trusted, RowText::Foreign, RowText::Different] {
                rows.push(Some(Row {
                    text,
                    ..row(version, life)
                }));
            }
        }
    }
    rows
}

/// The confirmed row, and what the object owns: by its references, and by the fields of others, which are not looked at
/// where a reference says it.
fn what_is_known(row: Option<Row>) -> Vec<(Option<Row>, bool, OwnedObjects)> {
    let owned = [
        (false, OwnedObjects::Absent),
        (true, OwnedObjects::Absent),
        (false, OwnedObjects::Unknown),
        (false, OwnedObjects::Live),
    ];
    let confirmed = [None, row].into_iter();
    let known = confirmed.flat_map(|confirmed| owned.map(|(owns, owned_objects)| (confirmed, owns, owned_objects)));
    known.collect()
}

fn all_contexts(row: Option<Row>) -> Vec<Context> {
    let mut contexts = Vec::new();
    for own_delete in [
        OwnDelete::Unknown,
        OwnDelete::Accepted(at(5)),
        OwnDelete::Accepted(at(6)),
    ] {
        for (deletion_delay, finalizer_wait) in [(0, 0), (10, 0), (0, 10), (10, 10)] {
            for adopt_finalizers in [false, true] {
                for (confirmed, owns, owned_objects) in what_is_known(row) {
                    contexts.push(Context {
                        own_delete,
                        deletion_delay: Duration::from_secs(deletion_delay),
                        finalizer_wait: Duration::from_secs(finalizer_wait),
                        adopt_finalizers,
                        confirmed,
                        owns,
                        owned_objects,
                        ..context()
                    });
                }
            }
        }
    }
    contexts
}

fn all_heads() -> Vec<Head> {
    let mut heads = Vec::new();
    for bits in 0..128_u8 {
        let bit = |n: u8| bits & (1 << n) != 0;
        heads.push(Head {
            version: at(6),
            deletion_timestamp: bit(0).then(|| context().now),
            has_finalizer: bit(1),
            deleting: bit(2),
            immutable: bit(3),
            held: bit(4),
            has_references: bit(5),
            has_deletion_finalizer: bit(6),
        });
    }
    heads
}

fn for_all(mut check: impl FnMut(&Head, Option<Row>, &Context, Action)) {
    for head in all_heads() {
        for row in all_rows() {
            let contexts = all_contexts(row).into_iter();
            for context in contexts.filter(|context| head.has_references || !context.owns) {
                let action = decide(&Observed::Present(head), row.as_ref(), &context);
                check(&head, row, &context, action);
            }
        }
    }
}

/// The row after the action's write is committed.
fn after(head: &Head, row: Option<Row>, action: Action) -> Option<Row> {
    match action.write {
        None => row,
        Some(Write::Store { life, .. }) => Some(Row {
            version: RowVersion::Cluster(head.version),
            life,
            text: RowText::Trusted,
        }),
        Some(Write::SoftDelete) => row.map(|row| Row {
            life: Life::Deleted,
            ..row
        }),
    }
}

#[test]
fn nothing_leaves_before_sql_holds_its_final_version() {
    for_all(|head, row, context, action| {
        if !matches!(
            action.then,
            FollowUp::Release | FollowUp::ReleaseArchived | FollowUp::Delete { .. }
        ) {
            return;
        }
        let held = after(head, row, action).expect("a row before the object leaves");
        let own_delete = context.own_delete == OwnDelete::Accepted(head.version);
        assert!(
            held.cluster_version() >= head.version || own_delete,
            "{head:?} {row:?} {context:?} {action:?}"
        );
        // An object that we release after `finalizer_wait` stays, and so does one that is in use: its row follows it.
        let stays = match action.then {
            FollowUp::Release => head.held,
            FollowUp::Delete { .. } => head.in_use() && head.deleting,
            _ => false,
        };
        assert!(stays || held.life != Life::Live, "{head:?} {row:?} {action:?}");
    });
}

#[test]
fn our_finalizer_goes_last_while_we_wait() {
    for_all(|head, _, context, action| {
        let waits = head.held && context.leaving_for < context.finalizer_wait;
        assert!(
            !waits || action.then != FollowUp::Release,
            "{head:?} {context:?} {action:?}"
        );
        if let FollowUp::WaitForOthers(_) = action.then {
            assert!(head.has_finalizer && head.held && head.deletion_timestamp.is_some());
        }
    });
}

#[test]
fn what_is_in_use_is_released_only_out_of_the_archive_or_into_it() {
    for_all(|head, row, context, action| {
        let life = after(head, row, action).map(|row| row.life);
        match action.then {
            FollowUp::Release => assert!(!head.in_use(), "{head:?} {row:?} {context:?} {action:?}"),
            FollowUp::ReleaseArchived => {
                assert!(
                    head.in_use() && row.is_some_and(|row| row.life != Life::Live && life == Some(row.life)),
                    "{head:?} {row:?} {action:?}"
                );
            }
            _ => {}
        }
        let closed = matches!(
            action.write,
            Some(
                Write::Store {
                    life: Life::Deleted,
                    ..
                } | Write::SoftDelete
            )
        );
        // The row of what was deleted in the archive follows the object until that is gone.
        let was_closed = row.is_some_and(|row| row.life == Life::Deleted);
        let by_us = head.immutable || context.own_delete != OwnDelete::Unknown;
        let is_evicting = head.deletion_timestamp.is_some() && by_us && !head.deleting && !context.owns;
        let stays_live = head.in_use() && !(was_closed && is_evicting);
        assert!(!(stays_live && closed), "{head:?} {row:?} {context:?} {action:?}");
    });
}

#[test]
fn an_owner_is_not_archived_before_what_it_owns() {
    for_all(|head, row, context, action| {
        let archives = matches!(
            action.write,
            Some(Write::Store {
                life: Life::Archived,
                ..
            })
        );
        let evicts =
            action.then == FollowUp::ReleaseArchived || matches!(action.then, FollowUp::Delete { release: true });
        assert!(!(context.owns && (archives || evicts)), "{head:?} {row:?} {action:?}");
    });
}

#[test]
fn nothing_is_evicted_before_sql_has_said_that_it_owns_nothing() {
    for_all(|head, row, context, action| {
        let is_final = head.immutable && !head.is_leaving();
        let evicts = is_final && matches!(action.then, FollowUp::Delete { .. });
        assert!(
            !evicts || context.owned_objects == OwnedObjects::Absent,
            "{head:?} {row:?} {context:?} {action:?}"
        );
        match action.then {
            FollowUp::FindOwned => {
                assert!(is_final && context.owned_objects == OwnedObjects::Unknown && action.write.is_none());
            }
            FollowUp::WaitForOwned => {
                let life = after(head, row, action).map(|row| row.life);
                assert!(is_final && context.owned_objects == OwnedObjects::Live && life == Some(Life::Live));
            }
            _ => {}
        }
    });
}

#[test]
fn what_is_archived_was_final_before_it_was_deleted() {
    for_all(|head, row, _, action| {
        let archives = matches!(
            action.write,
            Some(Write::Store {
                life: Life::Archived,
                ..
            })
        );
        if archives && row.is_none_or(|row| row.life != Life::Archived) {
            assert!(
                head.deletion_timestamp.is_none(),
                "its references could be taken off already: {head:?}"
            );
        }
    });
}

#[test]
fn what_a_user_deletes_is_not_archived() {
    for_all(|head, row, context, action| {
        let life = after(head, row, action).map(|row| row.life);
        let archives = match action.then {
            FollowUp::ReleaseArchived => true,
            FollowUp::Release => context.own_delete == OwnDelete::Unknown && life == Some(Life::Archived),
            _ => false,
        };
        assert!(!(head.deleting && archives), "{head:?} {row:?} {context:?} {action:?}");
    });
}

#[test]
fn an_object_that_is_there_has_its_text_in_sql() {
    for_all(|head, row, context, action| {
        if matches!(action.then, FollowUp::Confirm | FollowUp::FindOwned | FollowUp::Rewind) {
            return;
        }
        let held = after(head, row, action).expect("every object that is there has a row");
        let own_delete = context.own_delete == OwnDelete::Accepted(head.version) && !head.held;
        assert!(
            held.cluster_version() >= head.version || own_delete,
            "{head:?} {row:?} {context:?} {action:?}"
        );
    });
}

#[test]
fn a_row_never_goes_backwards() {
    for_all(|head, row, _, action| {
        if let (Some(row), Some(Write::Store { .. })) = (row, action.write) {
            assert!(
                head.version >= row.cluster_version(),
                "{head:?} over {row:?}: {action:?}"
            );
        }
    });
}

#[test]
fn only_a_confirmed_observation_revives_or_rewinds() {
    for_all(|head, row, context, action| {
        let back = row.is_some_and(|row| match action.write {
            Some(Write::Store { life: Life::Live, .. }) => {
                row.life == Life::Deleted || row.is_archived_in(head.version)
            }
            Some(Write::Store { life, .. }) => life == Life::Archived && row.life == Life::Deleted,
            Some(Write::SoftDelete) | None => false,
        });
        let revive = match action.write {
            Some(Write::Store { revive, .. }) => revive,
            Some(Write::SoftDelete) | None => Revive::Never,
        };
        let expected = row.filter(|_| back).map_or(Revive::Never, |row| Revive::From(row.life));
        assert_eq!(revive, expected, "{head:?} {row:?} {action:?}");
        if back || action.then == FollowUp::Rewind {
            assert_eq!(context.confirmed, row, "{head:?} {row:?} {action:?}");
        }
    });
}

#[test]
fn only_our_own_finalizer_is_released_and_only_from_a_leaving_object() {
    for_all(|head, _, context, action| match action.then {
        FollowUp::Release => assert!(head.has_finalizer && head.deletion_timestamp.is_some()),
        FollowUp::ReleaseArchived => assert!(head.in_use() && head.deletion_timestamp.is_some()),
        FollowUp::Delete { release } => {
            assert!(head.deletion_timestamp.is_none());
            assert!(head.deleting || head.immutable);
            let own = head.has_finalizer || (head.in_use() && !head.deleting);
            assert_eq!(release, own && !(head.in_use() && head.deleting));
        }
        FollowUp::AddFinalizer => {
            let owns = context.owns || context.owned_objects == OwnedObjects::Live;
            assert!(!head.has_finalizer && !head.is_leaving() && (!head.immutable || owns));
        }
        FollowUp::Nothing
        | FollowUp::Wait(_)
        | FollowUp::WaitForOthers(_)
        | FollowUp::WaitForOwned
        | FollowUp::FindOwned
        | FollowUp::Confirm
        | FollowUp::Rewind => {}
    });
}

#[test]
fn a_second_decision_on_the_result_writes_nothing() {
    for_all(|head, row, context, action| {
        let Some(Write::Store { .. }) = action.write else {
            return;
        };
        let stored = after(head, row, action);
        let again = decide(&Observed::Present(*head), stored.as_ref(), context);
        assert_eq!(
            again.write, None,
            "{head:?} {row:?} {context:?}: {action:?} then {again:?}"
        );
    });
}

#[test]
fn an_object_that_waits_for_its_deletion_is_live() {
    for_all(|head, row, _, action| {
        if matches!(action.then, FollowUp::Wait(_)) {
            let life = after(head, row, action).map(|row| row.life);
            let terminating = head.deletion_timestamp.is_some();
            let kept = row.filter(|_| terminating).map(|row| row.life);
            assert_eq!(life, Some(kept.unwrap_or(Life::Live)));
        }
    });
}
