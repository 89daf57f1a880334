//! The path of one object through the parts: an observation becomes pending, is decided on and written, and its effect
//! follows. Passes values from one part to the next; has no state of its own.

use std::time::Duration;

use kindex_decide::ingest::FollowUp;
use kindex_decide::row::{Row, RowText};
use kindex_kube_client::{ClusterError, ObjectName, Target};
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_query::Life;

use super::commit::Commit;
use super::effects::{EffectQueue, Ended, InFlight, release_archived, set_finalizer};
use super::entry::{Entry, Observation, ObservedObject, Resume, State};
use super::environment::Environment;
use super::intake::Backlog;
use super::listing::Compared;
use super::pending::{Pending, is_plain};
use super::quarantine::{Quarantine, VERSION_MAX};
use super::reports::Reports;
use super::sweep::Orphan;
use super::watermark::Oldest;
use crate::message::{Effect, EffectDone};

mod batches;

pub(super) struct Objects {
    pub(super) pending: Pending,
    pub(super) commit: Commit,
    pub(super) effects: EffectQueue,
    pub(super) quarantine: Quarantine,
    reports: Reports,
}

impl Objects {
    pub(super) fn new(pending: Pending) -> Self {
        Self {
            pending,
            commit: Commit::default(),
            effects: EffectQueue::default(),
            quarantine: Quarantine::default(),
            reports: Reports::default(),
        }
    }

    pub(super) fn backlog(&self) -> Backlog {
        let unsettled = [self.pending.oldest_unsettled(), self.quarantine.oldest_releasing()];
        Backlog {
            active: self.pending.active(),
            in_flight: !self.commit.is_idle() || self.effects.is_acting(),
            is_asking: self.effects.is_asking(),
            oldest: Oldest {
                unsettled: unsettled.into_iter().flatten().min(),
                unrecorded: self.commit.records().oldest(),
            },
        }
    }

    /// Drops everything: the cluster was restored.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.commit.clear();
        self.effects.clear();
        self.quarantine.clear();
    }

    /// Takes an observation, unless it is already settled: an echo of our own effect, or a version that is known to be
    /// stored.
    pub(super) fn observe(&mut self, env: &mut Environment, observed: ObservedObject) {
        let ObservedObject { uid, observation, .. } = &observed;
        let uid = uid.clone();
        let removed = self.effects.removed(&uid);
        self.commit.records_mut().hold(env, &uid, observation, removed);
        if self.effects.is_echo(&uid, observation, self.pending.contains(&uid)) {
            return;
        }
        if let Observation::Present(object) = observation
            && !self.quarantine.contains(&uid)
            && self.pending.is_stored(env, object)
        {
            return;
        }
        if self.pending.observe(env, observed) {
            self.effects.withdraw(&uid);
            self.enqueue(env, &uid);
        }
    }

    /// Takes the objects of a page that differ from their rows. If a row up to the horizon is newer than its object,
    /// the object is read again, because then the cluster wins.
    pub(super) fn compare(&mut self, env: &mut Environment, page: Compared) {
        for (object, row) in page.objects {
            self.observe_listed(env, object, row, page.horizon);
        }
    }

    fn observe_listed(&mut self, env: &mut Environment, object: Object, row: Option<Row>, horizon: ResourceVersion) {
        let uid = object.metadata.uid.clone();
        let version = object.metadata.resource_version;
        if let Some(row) = row {
            self.pending.remember_row(&uid, row);
        }
        let current = row.is_some_and(|row| row.is_current() && row.cluster_version() == version);
        if self.pending.contains(&uid) {
            return self.observe(env, ObservedObject::present(object));
        }
        if current && !self.quarantine.contains(&uid) && is_plain(env, &env.head(&object)) {
            return;
        }
        let name = ObjectName::of(&object);
        let observation = Observation::Present(object);
        let removed = self.effects.removed(&uid);
        self.commit.records_mut().hold(env, &uid, &observation, removed);
        let mut entry = Entry::new(observation, name, version, env.now.elapsed);
        entry.row = Some(row);
        // A list is as good as a read of the object, but its row may have been closed since.
        entry.confirmed = row.filter(|row| row.text == RowText::Different && row.life == Life::Live);
        self.pending.insert(&uid, entry);
        if row.is_some_and(|row| row.cluster_version() > version && row.cluster_version() <= horizon) {
            self.ask(&uid, row);
        } else {
            self.enqueue(env, &uid);
        }
    }

    /// Looks up an object that was missing from a list. Returns it if an effect is in flight for it.
    pub(super) fn look_up_orphan(&mut self, env: &Environment, orphan: Orphan) -> Option<Orphan> {
        if !self.pending.contains(&orphan.uid) {
            let Orphan { uid, name, version } = orphan;
            let entry = Entry::new(Observation::Gone(None), name, version, env.now.elapsed);
            self.pending.insert(&uid, entry);
            self.ask(&uid, None);
            return None;
        }
        if !self.pending.wake(&orphan.uid) {
            return Some(orphan);
        }
        self.effects.withdraw(&orphan.uid);
        self.ask(&orphan.uid, None);
        None
    }

    /// Queues an entry, or carries out its decision at once if that needs neither a read nor a write.
    fn enqueue(&mut self, env: &mut Environment, uid: &Uid) {
        let entry = self.pending.entry_mut(uid);
        entry.state = State::Queued;
        if entry.row.is_some() {
            let action = self.pending.decide(env, uid);
            if action.write.is_none() && !env.stopping {
                return self.apply_then(env, uid, action.then);
            }
        }
        if self.quarantine.is_unrecorded(uid) {
            self.pending.entry_mut(uid).state = State::Grouped;
            self.commit.isolate(uid);
        } else {
            self.pending.queue(uid, env.now.elapsed);
        }
    }

    pub(super) fn fire_timers(&mut self, env: &mut Environment) {
        while !env.stopping
            && let Some((uid, resume)) = self.pending.due(env.now.elapsed)
        {
            match resume {
                Resume::Ask => self.ask(&uid, None),
                Resume::Decide => self.enqueue(env, &uid),
            }
        }
    }

    /// Quarantines an object. One without a text cannot be recorded. It waits for the removal of a former record that
    /// could remove the new one with it.
    fn quarantine(&mut self, env: &mut Environment, uid: &Uid, reason: &str) {
        let entry = self.pending.entry(uid);
        let version = entry.newest().version().unwrap_or_default();
        if self.quarantine.would_remove(uid, version) {
            return self.pending.retry(env, uid, "refused", Duration::ZERO, Resume::Decide);
        }
        self.quarantine.refuse(env, uid, entry, reason);
        match entry.newest().object().cloned() {
            Some(object) => {
                let reason = reason.to_owned();
                self.queue_effect(uid, Effect::Quarantine { object, reason }, None);
            }
            None => self.on_unrecorded(env, uid, "refused", reason),
        }
    }

    /// Carries out what follows the write, or a decision without a write.
    fn apply_then(&mut self, env: &mut Environment, uid: &Uid, then: FollowUp) {
        let entry = self.pending.entry(uid);
        // A question brings nothing into the row, and another decision follows it. A row that is to be confirmed may be
        // that of an object which has left.
        if !matches!(then, FollowUp::FindOwned | FollowUp::Confirm) {
            self.quarantine.release(env, uid, entry);
        }
        let present = || entry.newest().object().expect("effects are for present objects");
        let effect = match then {
            FollowUp::Nothing => return self.settle(uid),
            FollowUp::Wait(pause) => return self.pending.wait(env, uid, pause, false),
            FollowUp::WaitForOthers(pause) => return self.pending.wait(env, uid, pause, true),
            FollowUp::WaitForOwned => return self.pending.wait_for_owned(env, uid),
            FollowUp::FindOwned => Effect::FindOwned(entry.name.clone()),
            FollowUp::Confirm => {
                let row = entry.row.flatten();
                return self.ask(uid, row);
            }
            FollowUp::Rewind => {
                tracing::warn!(kind = env.kind.name, object = %entry.name, %uid,
                    "The cluster shows an older version than SQL holds; the cluster wins");
                self.pending.forget_row(uid);
                Effect::Rewind
            }
            FollowUp::AddFinalizer => set_finalizer(env, present(), true),
            FollowUp::Release => set_finalizer(env, present(), false),
            FollowUp::ReleaseArchived => release_archived(env, present()),
            FollowUp::Delete { release: _ } => Effect::Delete(Target::of(present())),
        };
        self.queue_effect(uid, effect, None);
    }

    /// Reads the object from the cluster; `doubted` is the row to confirm.
    fn ask(&mut self, uid: &Uid, doubted: Option<Row>) {
        let name = self.pending.entry(uid).name.clone();
        self.queue_effect(uid, Effect::Get(name), doubted);
    }

    fn queue_effect(&mut self, uid: &Uid, effect: Effect, doubted: Option<Row>) {
        self.pending.entry_mut(uid).state = State::EffectQueued;
        self.effects.queue(uid, effect, doubted);
    }

    /// Sends effects as long as more of their kind may be in flight. `newest` is the newest version that the cluster
    /// has reported.
    pub(super) fn begin_effects(&mut self, env: &mut Environment, newest: ResourceVersion) {
        while let Some(uid) = self.effects.send_next(env, newest) {
            self.pending.entry_mut(&uid).state = State::Effect;
        }
    }

    pub(super) fn on_effect(&mut self, env: &mut Environment, uid: &Uid, ended: InFlight, done: EffectDone) {
        let entry = self.pending.entry_mut(uid);
        if matches!(done, EffectDone::OwnedFound(Err(_))) {
            // Until that is asked again, another ingester may delete the object.
            entry.confirmed = None;
        }
        match Ended::read(env, uid, entry.newest(), done) {
            Ended::Removed => return self.leave(env, uid),
            Ended::Recorded => return self.on_quarantined(env, uid),
            Ended::Unrecorded(failure) => return self.on_unrecorded(env, uid, failure.cause, &failure.message),
            Ended::StoreFailed(failure) => {
                env.note_store_failure("effect on a row", &failure);
                let resume = Resume::Decide;
                return self.pending.retry(env, uid, failure.cause, Duration::ZERO, resume);
            }
            Ended::Failed {
                what,
                cause,
                at_least,
                error,
            } => {
                let is_unserved = matches!(error, ClusterError::Unserved { .. });
                let name = entry.name.clone();
                if !is_unserved {
                    entry.unserved = None;
                }
                if is_unserved && self.pending.note_unserved(uid) {
                    tracing::warn!(kind = env.kind.name, object = %name,
                        "{error}: what the cluster was asked for may be done or not, which is found out once it serves \
                         the kind");
                    env.last_error = Some(format!("{name}: {error}"));
                }
                if let Some(what) = what {
                    tracing::warn!(kind = env.kind.name, object = %name, "{what}: {error}");
                    env.last_error = Some(format!("{name}: {error}"));
                }
                return self.pending.retry(env, uid, cause, at_least, Resume::Ask);
            }
            Ended::Answered(answer) => entry.answer(answer, ended.doubted),
            Ended::Changed(object) => entry.change(object, env.now.elapsed),
            Ended::Leaving(object) => entry.leave_by_our_delete(object),
            Ended::OwnedFound(is_found) => entry.find_owned(is_found),
            Ended::Rewound => entry.row = None,
        }
        self.enqueue(env, uid);
    }

    /// The database has neither the object nor its quarantine record: it stays pending.
    fn on_unrecorded(&mut self, env: &mut Environment, uid: &Uid, cause: &'static str, message: &str) {
        let entry = self.pending.entry(uid);
        self.quarantine.on_unrecorded(env, uid, entry, message);
        self.pending.retry(env, uid, cause, Duration::ZERO, Resume::Decide);
    }

    fn on_quarantined(&mut self, env: &mut Environment, uid: &Uid) {
        self.quarantine.on_recorded(env, uid);
        let entry = self.pending.entry_mut(uid);
        match (entry.newest(), entry.overtaken) {
            (Observation::Present(_), false) => return self.settle(uid),
            // The last text of an object that is gone is recorded, so its row can be closed without it.
            (Observation::Gone(_), false) => entry.drop_last_text(),
            (Observation::Present(_) | Observation::Gone(_), true) => {}
        }
        self.enqueue(env, uid);
    }

    /// Our effect removed the object, and its row is up to date.
    fn leave(&mut self, env: &Environment, uid: &Uid) {
        let entry = self.pending.entry(uid);
        let row = entry.row.flatten();
        if row.is_some_and(|row| row.life == Life::Archived) {
            env.metrics.evictions.inc();
        }
        if matches!(entry.newest(), Observation::Present(_)) {
            let stored = row.map_or(VERSION_MAX, |row| row.cluster_version());
            self.effects.remember_removed(uid, stored);
        }
        self.settle(uid);
    }

    /// The object needs nothing more until it changes.
    fn settle(&mut self, uid: &Uid) {
        if let Some(entry) = self.pending.settle(uid) {
            self.quarantine.settle(uid);
            if matches!(entry.newest(), Observation::Gone(_)) {
                self.reports.forget(uid);
            }
        }
    }
}
