//! The decision of the ingester on one object: all of its rules, as one pure, total function.

use std::time::Duration;

use jiff::Timestamp;
use kindex_model::head::Head;
use kindex_model::object::ResourceVersion;
use kindex_query::Life;

use super::row::{Row, Standing};

#[cfg(test)]
mod invariants;
#[cfg(test)]
mod leaving;
#[cfg(test)]
mod tests;

/// What the cluster shows of one uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// The object is gone.
    Gone {
        /// Its last text, if known.
        last: Option<Head>,
        /// The newest version in which it was seen present. A delete event has a version of its own and the text of the
        /// version before; if the object was never seen, that event is the only source of the text.
        seen: Option<ResourceVersion>,
    },
    /// The object is present.
    Present(Head),
}

/// Whether a deletion that the cluster shows is our own, for an eviction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnDelete {
    /// Unknown, after a restart or a conflict: another ingester may have sent the delete. An immutable object whose row
    /// is archived, or was deleted since, counts as evicted, unless the Deleting annotation says that a user deleted
    /// it. A user's deletion without it, after the row was written, has the same result as if it had arrived during the
    /// eviction.
    #[default]
    Unknown,
    /// Our delete was accepted and produced this version of the object.
    Accepted(ResourceVersion),
}

/// Everything else that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Wall clock.
    pub now: Timestamp,
    /// How long the object has been seen leaving, by our own clock.
    pub leaving_for: Duration,
    /// How long a soft delete waits after the deletion was requested.
    pub deletion_delay: Duration,
    /// How long our finalizer stays on an object that is being deleted while others hold it, since the object was
    /// seen leaving.
    pub finalizer_wait: Duration,
    /// Whether objects without our finalizer are adopted.
    pub adopt_finalizers: bool,
    /// The row for which [`Then::Confirm`] read the object from the cluster. An event may be older than the row; what
    /// was read after the row is not.
    pub confirmed: Option<Row>,
    /// See [`OwnDelete`].
    pub own_delete: OwnDelete,
    /// Whether a write had an unknown outcome, so that a missing row may still appear.
    pub unsure: bool,
    /// Whether a reference on the object is of something in the cluster that it owns. The garbage collector would
    /// delete that as soon as its owner had left.
    pub owns: bool,
}

/// What happens to the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The observed text is stored, and the row gets this state.
    Store {
        /// The state of the row.
        life: Life,
        /// Whether a deleted row is revived.
        revive: bool,
    },
    /// The row is marked deleted, with its text unchanged.
    SoftDelete,
}

/// What happens after the write is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The object is settled until it changes.
    Nothing,
    /// Our finalizer is added.
    AddFinalizer,
    /// Our finalizer is removed.
    Release,
    /// Our finalizer is removed, and with it the references, which SQL holds with the archived row, or held until that
    /// was deleted.
    ReleaseArchived,
    /// The object is deleted if it still has this version, and released if it has our finalizer.
    Delete {
        /// Whether there is a finalizer to remove: ours, or references that SQL holds.
        release: bool,
    },
    /// Decide again after this long.
    Wait(Duration),
    /// Finalizers of others hold the object: decide again when it changes, or after this long.
    WaitForOthers(Duration),
    /// Read the object from the cluster, and decide again.
    Confirm,
    /// The cluster was restored and is older than SQL: rewind the row, and decide again.
    Rewind,
}

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The write, if there is anything to write.
    pub write: Option<Write>,
    /// What follows.
    pub then: Then,
}

impl Action {
    /// Nothing to do.
    pub const NOTHING: Self = Self {
        write: None,
        then: Then::Nothing,
    };
    const CONFIRM: Self = Self {
        write: None,
        then: Then::Confirm,
    };
    const REWIND: Self = Self {
        write: None,
        then: Then::Rewind,
    };
}

/// Decides what to do about one object.
///
/// # Guarantees
/// Total: every observation with every row has a decision. A decision that removes the object from the cluster
/// (`Release`, `Delete`) writes the observed version first, unless SQL holds it or a version that differs only by our
/// own delete. Our finalizer is removed last, unless finalizers of others hold the object for longer than
/// [`Context::finalizer_wait`]. An object that is in use is never released, and its row is live for as long, but for
/// one that we evict: it is archived with its references, or was deleted in the archive since. An object that owns
/// others in the cluster is not archived.
pub fn decide(observed: &Observed, row: Option<&Row>, context: &Context) -> Action {
    let head = match observed {
        Observed::Gone { last, seen } => return decide_gone(last.as_ref(), *seen, row, context),
        Observed::Present(head) => head,
    };
    if let Some(row) = row {
        match row.standing(head.version) {
            Standing::Ahead => return decide_older(head, row, context),
            Standing::Contradicting if context.confirmed != Some(*row) => return Action::CONFIRM,
            Standing::Contradicting | Standing::Behind | Standing::Current | Standing::Edited | Standing::Unproven => {}
        }
    }
    if let Some(time) = head.deletion_timestamp {
        if head.has_finalizer {
            decide_deletion(head, time, row, context)
        } else {
            decide_deletion_without_finalizer(head, row, context)
        }
    } else if head.deleting {
        decide_deleting_annotation(head, row, context)
    } else if head.immutable {
        decide_immutable(head, row, context)
    } else {
        decide_sync(head, row, context)
    }
}

/// A soft delete waits for an open transaction on the row, which a read would not see. A row that is not live gets the
/// last text if others wrote it, but not if the delete event is the echo of our own effect.
fn decide_gone(last: Option<&Head>, seen: Option<ResourceVersion>, row: Option<&Row>, context: &Context) -> Action {
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
        then: Then::Nothing,
    }
}

/// SQL holds a newer version. Usually the observation is late, and a newer event follows. If an effect would follow
/// from it, or the cluster confirms it, the object is read again.
fn decide_older(head: &Head, row: &Row, context: &Context) -> Action {
    if context.confirmed == Some(*row) {
        Action::REWIND
    } else if head.is_leaving() || head.immutable {
        Action::CONFIRM
    } else {
        Action::NOTHING
    }
}

fn decide_deletion(head: &Head, deletion_timestamp: Timestamp, row: Option<&Row>, context: &Context) -> Action {
    // A row that is already closed keeps its state; a live one is closed once there is nothing to wait for.
    let (settled, meanwhile) = match row.map(|row| row.life) {
        Some(Life::Deleted) => (Some(Life::Deleted), Life::Deleted),
        Some(Life::Archived) => (is_own_delete(head, context).then_some(Life::Archived), Life::Archived),
        Some(Life::Live) | None => (None, Life::Live),
    };
    if head.in_use() && (!is_held_by_sql(head, row, context) || context.owns) {
        return decide_live(head, row, context, Then::Nothing);
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
        (Some(wait), _) => (meanwhile, Then::Wait(wait)),
        (None, Some(Some(wait))) => (meanwhile, Then::WaitForOthers(wait)),
        // Others hold the object without our finalizer: a live row stays live.
        (None, Some(None)) if meanwhile == Life::Live => (Life::Live, Then::Release),
        (None, Some(None) | None) if head.in_use() => (meanwhile, Then::ReleaseArchived),
        (None, Some(None) | None) => (settled.unwrap_or(Life::Deleted), Then::Release),
    };
    Action {
        write: needed(head, row, life, context),
        then,
    }
}

/// Finalizers of others hold the object and ours is removed: only the text can still change. References that SQL holds
/// are removed; others keep the row live.
fn decide_deletion_without_finalizer(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    let life = row.map_or(Life::Live, |row| row.life);
    let write = needed(head, row, life, context);
    if head.in_use() && is_held_by_sql(head, row, context) && !context.owns {
        let then = Then::ReleaseArchived;
        return Action { write, then };
    }
    if head.in_use() {
        return decide_live(head, row, context, Then::Nothing);
    }
    Action {
        write: needed(head, row, life, context),
        then: Then::Nothing,
    }
}

fn decide_deleting_annotation(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    if head.in_use() {
        // It gets its deletion timestamp, after which no references are added, and stays until they are gone.
        return decide_live(head, row, context, Then::Delete { release: false });
    }
    let deleted = row.is_some_and(|row| row.life == Life::Deleted);
    match remaining(context.leaving_for, context.deletion_delay) {
        Some(wait) if !deleted => Action {
            write: needed(head, row, Life::Live, context),
            then: Then::Wait(wait),
        },
        Some(_) | None => Action {
            write: needed(head, row, Life::Deleted, context),
            then: Then::Delete {
                release: head.has_finalizer,
            },
        },
    }
}

fn decide_immutable(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    if context.owns {
        return decide_sync(head, row, context);
    }
    let revive = row.is_some_and(|row| row.life == Life::Deleted);
    if revive && context.confirmed.as_ref() != row {
        return Action::CONFIRM;
    }
    let write = differs(head, row, Life::Archived).then_some(Write::Store {
        life: Life::Archived,
        revive,
    });
    Action {
        write,
        then: Then::Delete {
            release: head.has_finalizer || head.in_use(),
        },
    }
}

fn decide_sync(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    let then = if context.adopt_finalizers && !head.has_finalizer {
        Then::AddFinalizer
    } else {
        Then::Nothing
    };
    decide_live(head, row, context, then)
}

/// The object is there and its row is live, whatever it was before.
fn decide_live(head: &Head, row: Option<&Row>, context: &Context, then: Then) -> Action {
    let revive = row.is_some_and(|row| row.life == Life::Deleted);
    if revive && context.confirmed.as_ref() != row {
        return Action::CONFIRM;
    }
    let write = differs(head, row, Life::Live).then_some(Write::Store {
        life: Life::Live,
        revive,
    });
    Action { write, then }
}

/// The write after which the row holds this version in this state. The version that our own delete made differs from
/// the stored one only by its deletionTimestamp; it is stored only if finalizers of others hold the object.
fn needed(head: &Head, row: Option<&Row>, life: Life, context: &Context) -> Option<Write> {
    let by_us = context.own_delete == OwnDelete::Accepted(head.version) && !head.held;
    let held = by_us && row.is_some_and(|row| row.life == life);
    (!held && differs(head, row, life)).then_some(store(life))
}

fn differs(head: &Head, row: Option<&Row>, life: Life) -> bool {
    row.is_none_or(|row| {
        let holds = matches!(row.standing(head.version), Standing::Current | Standing::Edited);
        !holds || row.life != life
    })
}

fn store(life: Life) -> Write {
    Write::Store { life, revive: false }
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
