//! What the ingester does about one object: the whole table of its rules as one pure, total function.

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
    /// The object is not there any more.
    Gone {
        /// Its last text, where one is known.
        last: Option<Head>,
        /// The newest version in which it was seen while it was there. A delete event has a version of its own and the
        /// text of the version before; where nothing was seen, it is all that tells of that text.
        seen: Option<ResourceVersion>,
    },
    /// The object is there.
    Present(Head),
}

/// Whether a deletion that the cluster shows is the one with which we evict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// Nothing is known, as after a restart, or where a delete of ours met a conflict: another ingester may have sent
    /// the one that was faster. An object that says it is immutable and whose row is evicted is taken to be leaving on
    /// our word. Where somebody else deleted it after the row was written, that is what happens a moment later as well,
    /// when the object is on its way already.
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
    /// How long a soft delete waits after the deletion was asked for.
    pub deletion_delay: Duration,
    /// How long our finalizer stays on an object that is being deleted while others hold it, since the object was
    /// seen leaving.
    pub finalizer_wait: Duration,
    /// Whether objects that lack our finalizer are given it.
    pub adopt_finalizers: bool,
    /// Where the observation is the cluster's answer to [`Then::Confirm`]: the row that
    /// made us ask. An event may have been overtaken; an answer that is younger than
    /// the row has not.
    pub confirmed: Option<Row>,
    /// See [`Asked`].
    pub asked: Asked,
    /// A write of ours had an unknown outcome: a row that is not there may still appear.
    pub unsure: bool,
}

/// What happens to the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The observed text is stored, and the row is in this life afterwards.
    Store {
        /// The row's life.
        life: Life,
        /// Whether a deleted row comes back.
        revive: bool,
    },
    /// The row is marked deleted as it stands.
    SoftDelete,
}

/// What happens once the write is committed, and only then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The object is settled until it changes.
    Nothing,
    /// Our finalizer is added.
    AddFinalizer,
    /// Our finalizer is removed.
    Release,
    /// The object is deleted on the condition that it is still this version, and
    /// released where it holds our finalizer.
    Delete {
        /// Whether there is a finalizer of ours to remove.
        release: bool,
    },
    /// Decide again after this long.
    Wait(Duration),
    /// Others hold the object: decide again when it changes, or after this long.
    WaitForOthers(Duration),
    /// Ask the cluster for the object and decide again on its answer.
    Confirm,
    /// The cluster is older than SQL: forget the row's version and decide again.
    Rewind,
}

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// First this, where there is anything to write.
    pub write: Option<Write>,
    /// Then this.
    pub then: Then,
}

impl Action {
    /// Everything is as it should be.
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
/// Total: every observation with every row has an answer. An answer that lets the
/// object leave the cluster (`Release`, `Delete`) writes the observed version first,
/// unless SQL holds it or a version that differs only by our own delete. Our finalizer goes last, unless
/// others hold the object for longer than [`Context::finalizer_wait`].
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
        if head.guarded {
            decide_deletion(head, time, row, context)
        } else {
            decide_unguarded_deletion(head, row, context)
        }
    } else if head.deleting {
        decide_deleting_annotation(head, row, context)
    } else if head.immutable {
        decide_immutable(head, row, context)
    } else {
        decide_sync(head, row, context)
    }
}

/// A soft delete waits for a transaction that still holds the row, where a read does not. A row that is not live any
/// more gets the last text where others wrote it, and not where the delete event is the echo of our own effect.
fn decide_gone(last: Option<&Head>, seen: Option<ResourceVersion>, row: Option<&Row>, context: &Context) -> Action {
    let write = match row {
        None => context
            .unsure
            .then(|| last.map_or(Write::SoftDelete, |_| store(Life::Deleted))),
        Some(row) => {
            let stored = row.cluster_version();
            let newer = last.filter(|last| last.version > stored);
            let unstored = newer.filter(|_| seen.is_some_and(|seen| seen > stored));
            let told_last = newer.filter(|_| seen.is_none() && !row.version.is_direct());
            match row.life {
                Life::Live if newer.is_some() => Some(store(Life::Deleted)),
                Life::Live => Some(Write::SoftDelete),
                Life::Evicted => unstored.or(told_last).map(|last| match asked_by_us(last, context) {
                    true => store(Life::Evicted),
                    false => store(Life::Deleted),
                }),
                Life::Deleted => unstored.or(told_last).map(|_| store(Life::Deleted)),
            }
        }
    };
    Action {
        write,
        then: Then::Nothing,
    }
}

/// SQL holds a newer version. Mostly the observation is late and its successor is on
/// the way; where it asks for an effect, or the cluster itself insists, that is found out.
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
    // What a row says that has come to its end; another one is closed once nothing is waited for.
    let (settled, meanwhile) = match row.map(|row| row.life) {
        Some(Life::Deleted) => (Some(Life::Deleted), Life::Deleted),
        Some(Life::Evicted) => (asked_by_us(head, context).then_some(Life::Evicted), Life::Evicted),
        Some(Life::Live) | None => (None, Life::Live),
    };
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
        // The object stays without us, and so does a live row.
        (None, Some(None)) if meanwhile == Life::Live => (Life::Live, Then::Release),
        (None, Some(None) | None) => (settled.unwrap_or(Life::Deleted), Then::Release),
    };
    Action {
        write: needed(head, row, life, context),
        then,
    }
}

/// Another finalizer holds the object and ours is gone: only the text can still change.
fn decide_unguarded_deletion(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    let life = row.map_or(Life::Live, |row| row.life);
    Action {
        write: needed(head, row, life, context),
        then: Then::Nothing,
    }
}

fn decide_deleting_annotation(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    let deleted = row.is_some_and(|row| row.life == Life::Deleted);
    match remaining(context.leaving_for, context.deletion_delay) {
        Some(wait) if !deleted => Action {
            write: needed(head, row, Life::Live, context),
            then: Then::Wait(wait),
        },
        Some(_) | None => Action {
            write: needed(head, row, Life::Deleted, context),
            then: Then::Delete { release: head.guarded },
        },
    }
}

fn decide_immutable(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    let revive = row.is_some_and(|row| row.life == Life::Deleted);
    if revive && context.confirmed.as_ref() != row {
        return Action::CONFIRM;
    }
    let write = differs(head, row, Life::Evicted).then_some(Write::Store {
        life: Life::Evicted,
        revive,
    });
    Action {
        write,
        then: Then::Delete { release: head.guarded },
    }
}

fn decide_sync(head: &Head, row: Option<&Row>, context: &Context) -> Action {
    let revive = row.is_some_and(|row| row.life == Life::Deleted);
    if revive && context.confirmed.as_ref() != row {
        return Action::CONFIRM;
    }
    let write = differs(head, row, Life::Live).then_some(Write::Store {
        life: Life::Live,
        revive,
    });
    let then = if context.adopt_finalizers && !head.guarded {
        Then::AddFinalizer
    } else {
        Then::Nothing
    };
    Action { write, then }
}

/// The write that makes the row hold this version in this life. The version that our own delete produced differs
/// from the stored one by its deletionTimestamp alone: it is stored where others keep it in the cluster.
fn needed(head: &Head, row: Option<&Row>, life: Life, context: &Context) -> Option<Write> {
    let by_us = context.asked == Asked::Accepted(head.version) && !head.held;
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

fn asked_by_us(head: &Head, context: &Context) -> bool {
    match context.asked {
        Asked::Accepted(_) => true,
        Asked::Unknown => head.immutable,
    }
}

fn remaining(waited: Duration, whole: Duration) -> Option<Duration> {
    whole.checked_sub(waited).filter(|wait| !wait.is_zero())
}
