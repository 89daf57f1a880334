//! The steps that there are, and why an object goes, waits or is refused.

use kindex_model::deletion::Phase;
use kindex_model::reference_name::ReferenceName;

use super::known::{HeldReference, Remaining, Seen};
use crate::object::Key;

/// Why an object is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its Deleting annotation asks for it.
    Requested,
    /// An object is deleted that it refers to, or that owns it. If it does not hold that one, or that one is of another
    /// service, that one is read again before: it has to be this very object with a phase, and be leaving the cluster.
    Target {
        /// Name of the reference.
        reference: &'static str,
        /// That object.
        target: Seen,
        /// Whether it has the reference. As long as it does, it cannot have gone, and another one have its name. Only
        /// a service that was restored may say otherwise.
        held: bool,
    },
}

/// Why a reference cannot be placed. Nothing changes until its target or the field does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Name of the reference.
    pub reference: &'static str,
    /// What the field names.
    pub target: Key,
    /// What stands against it.
    pub why: RefusalReason,
}

/// What stands against a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The target is leaving the cluster.
    Leaving,
    /// There is no such object.
    Absent,
    /// It is not known whether there is one.
    Unknown,
    /// It is the object itself.
    Itself,
}

/// What an object that is leaving the cluster waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// References, and those who name it and are about to go.
    Holders(Vec<HeldReference>, Vec<Key>),
    /// What it owns.
    Owned(Vec<HeldReference>, Vec<Key>),
    /// Holders that are archived.
    Archived(Vec<String>),
    /// The cleanup by controllers that have finalizers on it.
    Finalizers(Vec<String>),
    /// The cleanup of what it has outside.
    Cleanup(Remaining),
    /// Kinds that were not read yet, or services that do not answer.
    Unknown(Vec<String>),
}

/// One step. Those that write depend on the version of the object that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The finalizer of the graph is added.
    Adopt,
    /// Its reference is placed on another object, unless that one is leaving by then.
    Place {
        /// Name of the reference.
        reference: &'static str,
        /// On which one.
        target: Seen,
    },
    /// Its reference is placed on an archived object, as a row, if there is one of that name.
    Hold {
        /// Name of the reference.
        reference: &'static str,
        /// What the field names.
        target: Key,
    },
    /// Its reference is taken off another object. That this one is gone, or does not have it, is success.
    Release(Seen),
    /// The Deleting annotation is set, because without it the deletion would look like an eviction.
    Request(Cause),
    /// It is deleted: it gets a deletion timestamp, and stays until its phases are through.
    Delete(Cause),
    /// The phase is recorded; with the first one, the references in the cluster that it waits for.
    Record(Phase, Vec<ReferenceName>),
    /// These references become rows, where their holders are archived, and are then taken off.
    Keep(Vec<ReferenceName>),
    /// Those of its holders that are archived are read, and deleted where they go with it in this phase.
    Sweep,
    /// What it has outside is cleaned up.
    CleanUp,
    /// The finalizer of the graph is removed, the last step. What a field names is read again before, unless it leaves
    /// and takes no reference any more: nothing may be left behind on it.
    Free {
        /// To be read again.
        confirm: Vec<Key>,
    },
    /// Nothing, until what it waits for changes.
    Wait(Wait),
    /// Nothing, until something changes.
    Rest(Vec<Refused>),
}
