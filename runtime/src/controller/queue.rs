//! What is pending: observations collapse by uid, wait, and settle. Knows when an
//! object is to be looked at, not what is done with it.

use std::time::Duration;

use kindex_kube_client::ObjectName;
use kindex_model::head::Head;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_store::backoff;

use super::super::decide::Row;
use super::Controller;
use super::entry::{Entry, Observation, Resume, State};

impl Controller {
    /// Takes up what the cluster shows of a uid, from a stream at this position.
    pub(super) fn observe(&mut self, uid: &Uid, name: ObjectName, observation: Observation, at: ResourceVersion) {
        self.sight(uid, &observation);
        if self.is_settled_already(uid, &observation) {
            return;
        }
        let Some(entry) = self.entries.get_mut(uid) else {
            let cached = self.cached_row(uid).filter(|_| !observation.is_going());
            let mut entry = Entry::new(observation, name, at, self.now.elapsed);
            entry.row = cached.map(Some);
            self.position.begin(at, uid);
            self.entries.insert(uid.clone(), entry);
            self.enqueue(uid);
            return;
        };
        self.metrics.collapsed.inc();
        if !observation.supersedes(entry.newest()) {
            return;
        }
        entry.replace(observation);
        match entry.state {
            State::Queued | State::Grouped | State::Batch | State::Effect => {}
            State::Waiting(..) | State::EffectQueued(_) => {
                self.unschedule(uid);
                self.enqueue(uid);
            }
        }
    }

    /// Echoes of what we did ourselves, and versions that the cache knows to be stored.
    fn is_settled_already(&mut self, uid: &Uid, observation: &Observation) -> bool {
        let removed = self.removed.contains_key(uid);
        let Observation::Present(object) = observation else {
            self.removed.remove(uid);
            return removed && !self.entries.contains_key(uid);
        };
        if removed {
            return true;
        }
        let Some(row) = self.cached_row(uid) else {
            return false;
        };
        !self.entries.contains_key(uid)
            && !self.quarantined.contains_key(uid)
            && row.is_current()
            && row.version >= object.metadata.resource_version
            && self.is_plain(&self.head(object))
    }

    /// Whether an object with a current live row leaves nothing to do.
    pub(super) fn is_plain(&self, head: &Head) -> bool {
        let adopted = head.guarded || !self.settings.adopt_finalizers;
        !head.is_leaving() && !head.immutable && adopted
    }

    /// Puts an entry into the queue, or carries out its decision at once where that
    /// needs neither a read nor a write.
    pub(super) fn enqueue(&mut self, uid: &Uid) {
        let entry = self.entries.get_mut(uid).expect("enqueued entries exist");
        entry.state = State::Queued;
        if entry.row.is_some() {
            let action = self.decide(uid);
            if action.write.is_none() && !self.stopping {
                return self.apply_then(uid, action.then);
            }
        }
        if self.unrecorded.contains(uid) {
            // Beside others it would make the database refuse them too.
            let entry = self.entries.get_mut(uid).expect("enqueued entries exist");
            entry.state = State::Grouped;
            return self.groups.push_back(vec![uid.clone()]);
        }
        if self.queue.is_empty() {
            self.queue_since = self.now.elapsed;
        }
        self.queue.push_back(uid.clone());
    }

    /// Lets an entry wait before it is looked at again.
    pub(super) fn wait(&mut self, uid: &Uid, pause: Duration, resume: Resume) {
        let until = self.now.elapsed + pause;
        let entry = self.entries.get_mut(uid).expect("waiting entries exist");
        entry.state = State::Waiting(until, resume);
        self.timers.insert((until, uid.clone()));
    }

    /// Lets an entry wait where nothing failed: whatever did before is over.
    pub(super) fn wait_as_it_should(&mut self, uid: &Uid, pause: Duration, held: bool) {
        let entry = self.entries.get_mut(uid).expect("waiting entries exist");
        entry.attempts = 0;
        entry.held = held;
        self.wait(uid, pause, Resume::Decide);
    }

    /// Lets an entry wait after a failure: longer each time, at least as long as the
    /// server asked for, up to `requeuePeriod`.
    pub(super) fn retry(&mut self, uid: &Uid, cause: &'static str, at_least: Duration, resume: Resume) {
        self.metrics.retry(cause);
        let entry = self.entries.get_mut(uid).expect("retried entries exist");
        entry.attempts = entry.attempts.saturating_add(1);
        entry.row = None;
        let attempts = entry.attempts;
        let pause = backoff::pause(
            attempts,
            backoff::base(cause),
            self.settings.requeue_period,
            &mut self.rng,
        );
        self.wait(uid, pause.max(at_least), resume);
    }

    pub(super) fn unschedule(&mut self, uid: &Uid) {
        if let Some(State::Waiting(until, _)) = self.entries.get(uid).map(|e| e.state.clone()) {
            self.timers.remove(&(until, uid.clone()));
        }
    }

    pub(super) fn fire_timers(&mut self) {
        while let Some((at, uid)) = self.timers.first().cloned() {
            if at > self.now.elapsed || self.stopping {
                return;
            }
            self.timers.pop_first();
            let entry = &self.entries[&uid];
            match entry.state {
                State::Waiting(_, Resume::Ask) => self.ask(&uid, None),
                State::Waiting(_, Resume::Decide) => self.enqueue(&uid),
                State::Queued | State::Grouped | State::Batch | State::EffectQueued(_) | State::Effect => {
                    unreachable!("only waiting entries have timers")
                }
            }
        }
    }

    /// The object needs nothing more until it changes.
    pub(super) fn settle(&mut self, uid: &Uid) {
        if let Some(entry) = self.entries.remove(uid) {
            self.position.settle(entry.oldest, uid);
            self.unrecorded.remove(uid);
            if matches!(entry.newest(), Observation::Gone(_)) {
                self.forget_row(uid);
                self.reported.remove(uid);
            }
        }
    }

    pub(super) fn cached_row(&self, uid: &Uid) -> Option<Row> {
        self.rows.as_ref()?.get(uid).copied()
    }

    pub(super) fn remember_row(&mut self, uid: &Uid, row: Row) {
        if let Some(rows) = &mut self.rows {
            rows.insert(uid.clone(), row);
        }
    }

    pub(super) fn forget_row(&mut self, uid: &Uid) {
        if let Some(rows) = &mut self.rows {
            rows.remove(uid);
        }
    }

    pub(super) fn observe_present(&mut self, object: Object, at: ResourceVersion) {
        let uid = object.metadata.uid.clone();
        let name = ObjectName::of(&object);
        self.observe(&uid, name, Observation::Present(object), at);
    }
}
