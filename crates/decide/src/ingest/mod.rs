//! The decision of the ingester on one object: all of its rules, as one pure, total function.

mod write;

mod staying;

mod leaving;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use kindex_model::head::Head;
use kindex_model::object::ResourceVersion;
use kindex_query::{Life, Revive};

use super::row::{Row, TextComparison};
use leaving::{
    decide_deleting_annotation, decide_deletion, decide_deletion_without_finalizer, decide_gone, decide_immutable,
};
use staying::decide_sync;

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
    /// Unknown, after a restart or a conflict: another ingester may have sent the delete. The delete of an immutable
    /// object whose row is archived, or was deleted since, counts as an eviction, unless the Deleting annotation says
    /// that a user deleted it. A user's deletion without it, after the row was written, has the same result as if it
    /// had arrived during the eviction.
    #[default]
    Unknown,
    /// Our delete was accepted and produced this version of the object.
    Accepted(ResourceVersion),
}

/// What SQL and the cluster say of the objects that an object owns, whether they have placed references on it or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnedObjects {
    /// Neither has been asked since the object was last observed.
    Unknown,
    /// No live row and no object in the cluster names the object as its owner, or objects of its kind own none.
    Absent,
    /// A live row or an object in the cluster does.
    Live,
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
    /// The row for which [`FollowUp::Confirm`] read the object from the cluster. An event may be older than the row;
    /// what was read after the row is not.
    pub confirmed: Option<Row>,
    /// See [`OwnDelete`].
    pub own_delete: OwnDelete,
    /// Whether a write had an unknown outcome, so that a missing row may still appear.
    pub unsure: bool,
    /// Whether a reference on the object is of something in the cluster that it owns. The garbage collector would
    /// delete that as soon as its owner had left.
    pub owns: bool,
    /// The same by the fields of others: an object that was created a moment ago has not placed its reference yet.
    pub owned_objects: OwnedObjects,
}

/// What happens to the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The observed text is stored, and the row gets this state.
    Store {
        /// The state of the row.
        life: Life,
        /// Whether a deleted row is revived, or one that was archived in this version, and from which of the two.
        revive: Revive,
    },
    /// The row is marked deleted, with its text unchanged.
    SoftDelete,
}

/// What happens after the write is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowUp {
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
    /// What the object owns is still in the cluster: decide again after a while. Nothing changes the object when that
    /// leaves.
    WaitForOwned,
    /// Ask SQL and the cluster for what the object owns, and decide again.
    FindOwned,
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
    pub then: FollowUp,
}

impl Action {
    /// Nothing to do.
    pub const NOTHING: Self = Self {
        write: None,
        then: FollowUp::Nothing,
    };
    const CONFIRM: Self = Self {
        write: None,
        then: FollowUp::Confirm,
    };
    const FIND_OWNED: Self = Self {
        write: None,
        then: FollowUp::FindOwned,
    };
    const REWIND: Self = Self {
        write: None,
        then: FollowUp::Rewind,
    };

    /// Whether its write brings the row back.
    pub fn revives(&self) -> bool {
        match self.write {
            Some(Write::Store { revive, .. }) => revive != Revive::Never,
            Some(Write::SoftDelete) | None => false,
        }
    }
}

/// Decides what to do about one object.
///
/// # Guarantees
/// Total: every observation with every row has a decision. A decision that removes the object from the cluster
/// (`Release`, `Delete`) writes the observed version first, unless SQL holds it or a version that differs only by our
/// own delete. Our finalizer is removed last, unless finalizers of others hold the object for longer than
/// [`Context::finalizer_wait`]. An object that is in use is never released, and its row is live for as long, but for
/// one that we evict: it is archived with its references, or was deleted in the archive since. An object that owns
/// others in the cluster is not archived, nor is any before SQL was asked for what it owns.
pub fn decide(observed: &Observed, row: Option<&Row>, context: &Context) -> Action {
    let head = match observed {
        Observed::Gone { last, seen } => return decide_gone(last.as_ref(), *seen, row, context),
        Observed::Present(head) => head,
    };
    if let Some(row) = row {
        match row.compare_text(head.version) {
            TextComparison::Ahead => return decide_older(head, row, context),
            TextComparison::Contradicting if context.confirmed != Some(*row) => return Action::CONFIRM,
            TextComparison::Contradicting
            | TextComparison::Behind
            | TextComparison::Current
            | TextComparison::Edited
            | TextComparison::Unproven => {}
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
