//! Decisions on objects that leave the cluster or are gone: deletions by users, and evictions, which leave the row
//! archived.

use std::time::Duration;

use jiff::Timestamp;
use kindex_model::head::Head;
use kindex_model::object::ResourceVersion;
use kindex_query::Life;

use super::staying::{decide_live, decide_sync};
use super::write::{differs, needed, revive, store};
use super::{Action, Context, FollowUp, OwnDelete, OwnedObjects, Write};
use crate::row::Row;

/// The deletion of an object that has our finalizer. An eviction ends here too: our own delete was its deletion.
pub(super) fn decide_deletion(
    head: &Head,
    deletion_timestamp: Timestamp,
    row: Option<&Row>,
    context: &Context,
) -> Action {
    // A row that is already closed keeps its state; a live one is closed once there is nothing to wait for.
    let (settled, meanwhile) = match row.map(|row| row.life) {
        Some(Life::Deleted) => (Some(Life::Deleted), Life::Deleted),
        Some(Life::Archived) => (is_own_delete(head, context).then_some(Life::Archived), Life::Archived),
        Some(Life::Live) | None => (None, Life::Live),
    };
    if head.in_use() && (!is_held_by_sql(head, row, context) || context.owns) {
        return decide_live(head, row, context, FollowUp::Nothing);
    }
    let delay = settled.is_none().then(|| {
        let since = context.now.duration_since(deletion_timestamp);
        let waited = context.leaving_for.max(since.try_into().unwrap_or_default());
        remaining(waited, context.deletion_delay)
    });
    let others = head
        .held
        .then(|| remaining(context.leaving_for, context.finalizer_wait));
    let (life, then) = match (delay.flatten(), others) {
        (Some(wait), _) => (meanwhile, FollowUp::Wait(wait)),
        (None, Some(Some(wait))) => (meanwhile, FollowUp::WaitForOthers(wait)),
        // Others hold the object without our finalizer: a live row stays live.
        (None, Some(None)) if meanwhile == Life::Live => (Life::Live, FollowUp::Release),
        (None, Some(None) | None) if head.in_use() => (meanwhile, FollowUp::ReleaseArchived),
        (None, Some(None) | None) => (settled.unwrap_or(Life::Deleted), FollowUp::Release),
    };
    Action {
        write: needed(head, row, life, context),
        then,
    }
}

/// Finalizers of others hold the object and ours is removed: only the text can still change. References that SQL holds
/// are removed; others keep the row live.
pub(super) fn decide_deletion_without_finalizer(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    let life = row.map_or(Life::Live, |row| row.life);
    let write = needed(head, row, life, context);
    if head.in_use() && is_held_by_sql(head, row, context) && !context.owns {
        let then = FollowUp::ReleaseArchived;
        return Action { write, then };
    }
    if head.in_use() {
        return decide_live(head, row, context, FollowUp::Nothing);
    }
    Action {
        write: needed(head, row, life, context),
        then: FollowUp::Nothing,
    }
}

/// A deletion that a user asks for with the Deleting annotation, which we carry out.
pub(super) fn decide_deleting_annotation(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    if head.in_use() {
        // It gets its deletion timestamp, after which no references are added, and stays until they are gone.
        return decide_live(head, row, context, FollowUp::Delete { release: false });
    }
    let deleted = row.is_some_and(|row| row.life == Life::Deleted);
    match remaining(context.leaving_for, context.deletion_delay) {
        Some(wait) if !deleted => decide_live(head, row, context, FollowUp::Wait(wait)),
        Some(_) | None => Action {
            write: needed(head, row, Life::Deleted, context),
            then: FollowUp::Delete {
                release: head.has_finalizer,
            },
        },
    }
}

/// The eviction of an object that will not change any more: its row is archived before we delete it.
pub(super) fn decide_immutable(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    if context.owns {
        return decide_sync(head, row, context);
    }
    let brings_back = row.is_some_and(|row| row.life == Life::Deleted);
    if brings_back && context.confirmed.as_ref() != row {
        return Action::CONFIRM;
    }
    match context.owned_objects {
        OwnedObjects::Unknown => return Action::FIND_OWNED,
        OwnedObjects::Live => return decide_owner(head, row, context),
        OwnedObjects::Absent => {}
    }
    let write = differs(head, row, Life::Archived).then_some(Write::Store {
        life: Life::Archived,
        revive: revive(row, brings_back),
    });
    Action {
        write,
        then: FollowUp::Delete {
            release: head.has_finalizer || head.in_use(),
        },
    }
}

/// A final object that owns others stays like any other object, until these have left the cluster.
fn decide_owner(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    let action = decide_sync(head, row, context);
    let then = match action.then == FollowUp::Nothing {
        true => FollowUp::WaitForOwned,
        false => action.then,
    };
    Action { then, ..action }
}

/// The object is gone. A soft delete waits for an open transaction on the row, which a read would not see. A row that
/// is not live gets the last text if others wrote it, but not if the delete event is the echo of our own effect.
pub(super) fn decide_gone(
    last: Option<&Head>,
    seen: Option<ResourceVersion>,
    row: Option<&Row>,
    context: &Context,
) -> Action {
    let write = match row {
        None => context
            .unsure
            .then(|| last.map_or(Write::SoftDelete, |_| store(Life::Deleted))),
        Some(row) => {
            let stored = row.cluster_version();
            let newer = last.filter(|last| last.version > stored);
            let unstored = newer.filter(|_| seen.is_some_and(|seen| seen > stored));
            let new_last = newer.filter(|_| seen.is_none() && !row.version.is_direct());
            match row.life {
                Life::Live if newer.is_some() => Some(store(Life::Deleted)),
                Life::Live => Some(Write::SoftDelete),
                Life::Archived => unstored.or(new_last).map(|last| match is_own_delete(last, context) {
                    true => store(Life::Archived),
                    false => store(Life::Deleted),
                }),
                Life::Deleted => unstored.or(new_last).map(|_| store(Life::Deleted)),
            }
        }
    };
    Action {
        write,
        then: FollowUp::Nothing,
    }
}

/// Whether a deletion is our own. The Deleting annotation makes it the user's as long as the object shows who uses it:
/// once our delete was accepted, others place references on the archived row, and with our finalizer all references go
/// there. Then the row stays archived, and is deleted as an archived one.
fn is_own_delete(head: &Head, context: &Context) -> bool {
    let is_released = head.deletion_timestamp.is_some() && !head.has_finalizer && !head.in_use();
    match context.own_delete {
        OwnDelete::Accepted(_) => !(head.deleting && head.in_use()),
        OwnDelete::Unknown => head.immutable && (!head.deleting || is_released),
    }
}

/// Whether SQL alone knows who uses an object that we evict. References that SQL has released since may still be on the
/// object, as finalizers that nobody else takes off: if its row was deleted as an archived one, they hold nothing. A
/// rewound row does not say so: the cluster was restored, and shows who uses the object.
fn is_held_by_sql(head: &Head, row: Option<&Row>, context: &Context) -> bool {
    let is_closed = row.is_some_and(|row| match row.life {
        Life::Live => false,
        Life::Archived => true,
        Life::Deleted => row.cluster_version() > ResourceVersion(0),
    });
    is_closed && is_own_delete(head, context)
}

fn remaining(waited: Duration, whole: Duration) -> Option<Duration> {
    whole.checked_sub(waited).filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests;
