//! What is known of an object and of those around it, on which a decision depends.

use std::collections::BTreeSet;

use kindex_model::deletion::Phase;
use kindex_model::reference_name::ReferenceName;

use crate::object::{Key, Object};

/// An object as it was seen. A write on it depends on uid and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Where it is.
    pub key: Key,
    /// Who it is.
    pub uid: String,
}

impl Seen {
    /// This object.
    pub fn of(object: &Object) -> Self {
        Self {
            key: object.key.clone(),
            uid: object.uid.clone(),
        }
    }

    /// Where these are, in their order.
    pub fn keys(all: &[Self]) -> Vec<Key> {
        all.iter().map(|seen| seen.key.clone()).collect()
    }

    /// The name by which it holds others; `None` where its kind or uid makes no reference.
    pub fn reference_name(&self) -> Option<ReferenceName> {
        ReferenceName::new(&self.key.kind.kind, &self.key.kind.group, &self.uid).ok()
    }
}

/// What is known of the object that an edge names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// Not all objects of its kind were read yet.
    Unknown,
    /// There is none of that name. That is no deletion: nothing follows from it.
    Absent,
    /// There is none of that name in the cluster, and the archive has not been asked.
    Unasked,
    /// It is archived.
    Archived {
        /// Whether it is being deleted, so that no reference can be placed on it; else it has this one.
        leaving: bool,
    },
    /// The object itself.
    Itself,
    /// It is there.
    Present {
        /// Which one.
        seen: Seen,
        /// Whether it has the reference.
        has_reference: bool,
        /// Whether it is leaving, so that no reference can be placed on it.
        leaving: bool,
        /// The phase that is recorded on it. None where its service is not to be trusted.
        phase: Option<Phase>,
    },
}

/// A holder of another service, as that says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundHolder {
    /// Where it is.
    pub key: Key,
    /// Whether it is being deleted.
    pub is_leaving: bool,
    /// The references that it waits for then, as far as their holders may be leaving the cluster.
    pub held_by: BTreeSet<ReferenceName>,
}

/// A reference on the object, and where its holder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldReference {
    /// Whose it is.
    pub name: ReferenceName,
    /// Where that holder is.
    pub at: HolderLocation,
    /// Whether the object owns that holder.
    pub owned: bool,
}

/// Where the holder of a reference is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HolderLocation {
    /// It was seen there.
    Seen(Key),
    /// Not all objects of its kind were read, its kind is of another service, or nobody is sure.
    Unknown,
    /// All objects of its kind were read, and it is none of them: it is worth asking whether it is archived.
    Absent,
    /// Whoever can know of it was asked twice, and it is nowhere. That releases nothing.
    NotFound,
}

/// What is known of the holders that are not in the cluster: they are archived, and hold by rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Archived {
    /// There is no archive.
    #[default]
    Off,
    /// Nobody has asked since the object has lost a holder in the cluster.
    Unasked,
    /// Those that are left, as people know them; some of them, where they are many.
    Remaining {
        /// They hold it in its first phase.
        plain: Vec<String>,
        /// They hold it while it drains, since it owns them.
        owned: Vec<String>,
    },
}

/// An object whose field names this one, which does not have its reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingReference {
    /// Where it is.
    pub holder: Key,
    /// Whether this object owns it.
    pub owned: bool,
    /// Whether it is deleted as soon as this one is.
    pub cascades: bool,
    /// Whether it stays all the same, because it has a former target: see [`Input::has_former`].
    pub stays: bool,
}

/// The cleanup of what an object has outside of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CleanupState {
    /// Nothing is there, or nothing any more: a read from outside has confirmed it.
    #[default]
    Gone,
    /// Something may be there, and it is time to ask. That includes a cleanup whose outcome is open.
    Unconfirmed,
    /// Something may be there, and it is not yet time to ask again.
    Remaining(Remaining),
}

/// What is left, as the last call of the cleanup has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remaining {
    /// What it waits for.
    Pending(String),
    /// Why it failed.
    Failed(String),
}

/// Everything that a decision depends on.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The object.
    pub object: &'a Object,
    /// What each of its edges names, in their order.
    pub named: Vec<Named>,
    /// The objects that have its reference, whether a field names them or not. As long as it stays, those alone that
    /// its fields may name: other references were placed by others, in its name.
    pub targets: Vec<Seen>,
    /// Whether one of these is named by no field and is not being deleted: the object was moved from there. One whose
    /// service is not to be trusted counts as one that stays. So does an archived one, of which the archive is asked
    /// right before the object would be deleted.
    pub has_former: bool,
    /// The references on it.
    pub references: Vec<HeldReference>,
    /// Once it is leaving the cluster, those who name it without one.
    pub missing: Vec<MissingReference>,
    /// Of the kinds that may refer to it, those that were not read yet.
    pub holders_unknown: Vec<String>,
    /// Of the kinds that it may refer to, those that were not read yet, or whose service does not answer.
    pub targets_unknown: Vec<String>,
    /// The cleanup of what it has outside.
    pub cleanup: CleanupState,
    /// Who holds it out of the archive.
    pub archived: Archived,
}
