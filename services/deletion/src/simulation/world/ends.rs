//! In which order deletions are through: from then on, an object releases what it holds.

use kindex_model::deletion::Phase;

use super::{Stored, World, names};

impl World {
    /// An object is about to be stored.
    pub(super) fn note_end(&mut self, object: &Stored) {
        let has_deletion_finalizer = object.bears(&names(&object.key.kind.group).finalizer);
        let is_through = object.phase == Some(Phase::Finalizing) || !has_deletion_finalizer;
        if !object.asked || !object.terminating || !is_through {
            return;
        }
        // It was all but archived when it was deleted, and so releases nothing.
        if object.immutable && object.phase.is_none() && !self.ends.contains_key(&object.uid) {
            self.vanished.insert(object.uid.clone());
        }
        self.through(&object.uid);
    }

    /// The deletion of an object is through.
    pub(super) fn through(&mut self, uid: &str) {
        let next = self.ends.len();
        self.ends.entry(uid.to_owned()).or_insert(next);
    }
}
