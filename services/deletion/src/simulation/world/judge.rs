//! What the rules remember to judge by: in which order deletions were through, what the past excuses, and the first
//! rule that was broken. What is there now, they read in the rest of the world.

use std::collections::{BTreeMap, BTreeSet};

use kindex_model::deletion::Phase;

use super::declared::Services;
use super::history::History;
use super::{Stored, names};

/// Everything that is remembered for the rules.
#[derive(Debug, Default)]
pub(in super::super) struct Judge {
    /// Uids of holders that went without the chance to release: archived, or by force.
    pub(in super::super) vanished: BTreeSet<String>,
    /// Whether a holder may release its old target although its new one has just lost the reference: to somebody who
    /// took it off, or to another controller that had not seen the holder's new field.
    pub(in super::super) lenient: bool,
    /// By the uids of holder and target, references that somebody other than the holder's controller has placed, or of
    /// which it cannot know that they are to be released: they may be left behind.
    pub(in super::super) excused: BTreeSet<(String, String)>,
    /// By uid, as which one a deletion was through: from then on the object releases what it holds.
    pub(in super::super) ends: BTreeMap<String, usize>,
    pub(in super::super) history: History,
    /// The first rule that was broken.
    broken: Option<String>,
}

impl Judge {
    pub(in super::super) fn broken(&mut self, rule: String) {
        self.broken.get_or_insert(rule);
    }

    /// The first rule that was broken, if one was.
    pub(in super::super) fn verdict(&self) -> Result<(), String> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// Whether a reference may be left behind.
    pub(in super::super) fn is_excused(&self, holder: &str, target: &str) -> bool {
        self.excused.contains(&(holder.to_owned(), target.to_owned()))
    }

    /// An object is about to be stored.
    pub(super) fn note(&mut self, services: &Services, object: &Stored) {
        self.history.note(services, object);
        self.note_end(object);
    }

    /// Notes whether the deletion of an object is through with this.
    fn note_end(&mut self, object: &Stored) {
        let has_deletion_finalizer = object.has_finalizer(&names(&object.key.kind.group).finalizer);
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
