//! What clusters have outside: removed some time after somebody has asked for it.

use kindex_model::deletion::Phase;

use super::{FOREIGN, Stored, World};
use crate::object::Key;

/// Whether objects of a kind may have something outside.
pub(in super::super) fn has_cleanup(kind: &str) -> bool {
    kind == "Cluster"
}

impl World {
    /// A controller asks for the removal, and whether something is left.
    pub(in super::super) fn clean_up(&mut self, key: &Key, uid: &str) -> bool {
        if let Some(object) = self
            .servers
            .objects
            .get(key)
            .filter(|object| object.uid == uid)
            .cloned()
        {
            self.judge_cleanup(&object);
        }
        self.remove_what_is_outside(uid)
    }

    /// The same of a tombstone.
    pub(in super::super) fn clean_up_archived(&mut self, uid: &str) -> bool {
        if let Some(object) = self.tombstone(uid).cloned()
            && (object.phase < Some(Phase::Draining) || self.archives.is_held(uid))
        {
            self.judge
                .broken(format!("{} is cleaned up in the archive before its time", object.key));
        }
        self.remove_what_is_outside(uid)
    }

    /// Whether something is left.
    fn remove_what_is_outside(&mut self, uid: &str) -> bool {
        let Some(is_asked_for) = self.outside.get_mut(uid) else {
            return false;
        };
        *is_asked_for = true;
        self.servers.version += 1;
        true
    }

    /// An object releases what it holds, or goes.
    pub(super) fn judge_outside(&mut self, object: &Stored) {
        if self.outside.contains_key(&object.uid) {
            self.judge.broken(format!(
                "{} is through, and something of it is left outside",
                object.key
            ));
        }
    }

    /// What was asked for happens.
    pub(in super::super) fn remove_outside(&mut self) {
        let before = self.outside.len();
        self.outside.retain(|_, is_asked_for| !*is_asked_for);
        self.servers.version += u64::from(self.outside.len() < before);
    }

    /// A controller calls the cleanup of an object that is still there.
    fn judge_cleanup(&mut self, object: &Stored) {
        let drains = object.terminating && object.asked && object.phase >= Some(Phase::Draining);
        if !drains || object.has_finalizer(FOREIGN) || object.references().next().is_some() {
            self.judge
                .broken(format!("{} is cleaned up before its time", object.key));
        }
    }
}
