//! What of the work people are told: what waits for too long, what vanished, and what is refused no more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::cluster::outcome::{Task, Writes};
use crate::decide::{Seen, Step};
use crate::notice::Notice;
use crate::object::{Key, Object};
use crate::vanished::{Ended, Lost};

use super::Work;
use crate::service::waiting::{AGAIN_AFTER, Overdue};

impl Work {
    /// What a step is about to take off is not taken off by somebody else.
    pub(super) fn expect(&mut self, task: &Task, now: Instant) {
        let (object, all) = takes_off(task);
        for lost in all {
            self.vanished.expect(&object.uid, lost, now);
        }
    }

    /// A step is over, and what it has seen is known.
    pub(in super::super) fn settle(&mut self, task: &Task, writes: &Writes) {
        let (object, all) = takes_off(task);
        let versions = writes.made.iter().filter(|(uid, _)| *uid == object.uid);
        let versions: Vec<_> = versions.map(|(_, version)| *version).collect();
        let decided_on = task.target.as_ref().unwrap_or(&task.object).version;
        for lost in all {
            let is_released = match &lost {
                Lost::Reference(name) => writes.released.contains(&name.to_string()),
                Lost::DeletionFinalizer => false,
            };
            let ended = if writes.is_unclear {
                Ended::Unclear
            } else if is_released {
                Ended::Done
            } else if writes.is_overtaken {
                Ended::Overtaken(decided_on)
            } else {
                Ended::Known(&versions)
            };
            self.vanished.settle(&object.uid, &lost, ended);
        }
    }

    /// How many objects of a kind have waited for too long to go, and for how long one of them has at most.
    pub(in super::super) fn blocked(&self, kind: &str, now: Instant) -> (usize, Duration) {
        self.waiting.blocked(kind, now)
    }

    /// By kind, the objects with holders that the cluster refused to change when these were last looked at.
    pub(in super::super) fn refused(&self) -> BTreeMap<&str, usize> {
        self.knowledge.answers.refused()
    }

    /// The objects from which references vanished, or the holders of these, with what to tell.
    pub(in super::super) fn vanished(&mut self, now: Instant) -> Vec<(Object, Notice)> {
        self.vanished.judge(&self.graph, now)
    }

    /// The objects that have waited for too long since somebody was told, and those of which it is known by now that
    /// they are on a cycle, with what to tell.
    pub(in super::super) fn overdue(&mut self, now: Instant, today: Timestamp) -> Vec<Overdue> {
        self.waiting.overdue(&self.graph, &self.knowledge.holders, now, today)
    }

    /// An object of another service was seen. What it holds, or is held by, may be on a cycle by now if it is being
    /// deleted, and that or what it waits for is new: nobody here reports that object itself. Those that are archived
    /// are looked at by the walk over the archive.
    pub(super) fn look_again_if_leaving(&mut self, object: &Object, now: Instant) {
        let known = self.graph.get(&object.key).filter(|known| known.uid == object.uid);
        let as_known = |known: &Object| known.state == object.state && known.references == object.references;
        if !object.is_leaving() || known.is_some_and(as_known) {
            return;
        }
        // Each that releases its reference changes the object, and closes no cycle.
        let waits_as_before = |known: &Object| known.is_leaving() && object.references.is_subset(&known.references);
        if self.setup.archives && !known.is_some_and(waits_as_before) {
            self.archived_on_cycles.extend(self.graph.unknown_holders(object));
        }
        let held = self.graph.waiting_on(&Seen::of(object));
        let holders = object.references.iter().filter_map(|name| self.graph.find(name.uid()));
        self.waiting
            .look_again(held.iter().map(|held| &held.key).chain(holders), now);
    }

    /// The uids of objects that may be archived, and on a cycle since another service deletes one of its objects.
    pub(in super::super) fn archived_on_cycles(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.archived_on_cycles)
    }

    /// The archive has not said whether these are on a cycle: they are looked at again after a while.
    pub(in super::super) fn search_again<'k>(&mut self, keys: impl IntoIterator<Item = &'k Key>, now: Instant) {
        self.waiting.look_again(keys, now + AGAIN_AFTER);
    }

    /// Who waits for a holder, live or not, by its reference. Of other services, as they say.
    pub(in super::super) fn waiting_on(&self, holder: &Seen) -> Vec<Seen> {
        let mut waiting = self.graph.waiting_on(holder);
        let name = holder.reference_name();
        waiting.extend(name.iter().flat_map(|name| self.knowledge.holders.waiting_on(name)));
        waiting
    }

    /// A cycle was found. The objects on it that were reported without it, with what to tell.
    pub(in super::super) fn on_cycle(&mut self, path: &[Seen], today: Timestamp) -> Vec<Overdue> {
        self.waiting.on_cycle(&self.graph, path, today)
    }

    /// That nothing is refused to an object any more could not be written: it is tried again after a while.
    pub(in super::super) fn unwritten(&mut self, key: Key, now: Instant) {
        self.placed.failed(key, now);
    }

    /// The live objects to which nothing is refused any more.
    pub(in super::super) fn placed(&mut self) -> Vec<Object> {
        let placed = self.placed.take();
        let known = placed.iter().filter_map(|key| self.graph.get(key));
        known.cloned().collect()
    }
}

/// The object that a step takes something off, and what.
fn takes_off(task: &Task) -> (Seen, Vec<Lost>) {
    let own = Seen::of(&task.object);
    match &task.step {
        Step::Release(target) => {
            let names = task.objects().filter_map(Object::reference_name);
            (target.clone(), names.map(Lost::Reference).collect())
        }
        Step::Keep(names) => (own, names.iter().cloned().map(Lost::Reference).collect()),
        Step::Free { .. } => (own, vec![Lost::DeletionFinalizer]),
        Step::Adopt
        | Step::Place { .. }
        | Step::Hold { .. }
        | Step::Request(_)
        | Step::Delete(_)
        | Step::Record(..)
        | Step::Sweep
        | Step::CleanUp
        | Step::Wait(_)
        | Step::Rest(_) => (own, Vec::new()),
    }
}
