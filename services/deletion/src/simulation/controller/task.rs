//! A step that is being carried out, request by request.

use std::collections::BTreeSet;

use kindex_model::deletion::Phase;

use crate::archive::{Holder, HolderState, PlacementOutcome};
use crate::decide::Step;
use crate::object::{Key, Object};

/// A step that was decided, with the object that it was decided on.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) version: u64,
    pub(super) reference: String,
    pub(super) step: Step,
    /// Requests that were answered.
    pub(super) done: usize,
    /// Whether the object was leaving the cluster.
    pub(super) leaves: bool,
    /// Others whose references the same write places or releases.
    pub(super) others: Vec<Member>,
    /// The version in which the target is known that loses the reference, or in which an object of another service was
    /// read before a holder was written that was moved from there.
    pub(super) read: Option<u64>,
    /// Where the holders are whose references are to be rows.
    pub(super) places: Vec<HolderState>,
    /// What came of its reference on what is archived.
    pub(super) held: Option<PlacementOutcome>,
    /// The phase of the object, read again before its holders in the archive are, these, and those that are deleted.
    pub(super) phase: Option<Phase>,
    pub(super) holders: Vec<Holder>,
    pub(super) gone: BTreeSet<String>,
    /// Archived holders that were moved from the object. Of one of another service, they are without a version once
    /// they are written, and without a reference once that is released.
    pub(super) moved: Vec<Holder>,
    /// How far the release at another service is whose holder has left the cluster.
    pub(super) peer_release: PeerRelease,
}

/// A release at another service, whose holder has left the cluster and may be archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerRelease {
    /// The holder is in the cluster, as far as is known.
    Unused,
    /// Nothing is known of the target.
    Begun,
    /// The target was read in this version, if it has one.
    Read(Option<u64>),
    /// After that, the archive was asked whether the holder names it: the reference is released in this version, or in
    /// whatever version.
    Asked(Option<u64>),
}

/// An object whose step it is.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) reference: String,
}

impl Member {
    fn of(object: &Object) -> Self {
        Self {
            key: object.key.clone(),
            uid: object.uid.clone(),
            reference: object.reference_name().expect("a name").to_string(),
        }
    }
}

impl Task {
    pub(super) fn new(object: &Object, step: Step, others: &[Object], read: Option<u64>) -> Self {
        let Member { key, uid, reference } = Member::of(object);
        Self {
            key,
            uid,
            reference,
            version: object.version.0,
            step,
            done: 0,
            leaves: object.is_leaving(),
            others: others.iter().map(Member::of).collect(),
            read,
            places: Vec::new(),
            held: None,
            phase: object.phase,
            holders: Vec::new(),
            gone: BTreeSet::new(),
            moved: Vec::new(),
            peer_release: PeerRelease::Unused,
        }
    }

    /// All objects whose step it is.
    pub(super) fn members(&self) -> Vec<Member> {
        let own = Member {
            key: self.key.clone(),
            uid: self.uid.clone(),
            reference: self.reference.clone(),
        };
        std::iter::once(own).chain(self.others.iter().cloned()).collect()
    }

    pub(super) fn is_of(&self, key: &Key) -> bool {
        self.key == *key || self.others.iter().any(|other| other.key == *key)
    }
}
