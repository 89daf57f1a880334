//! Effects on the cluster, one at a time for an object, each on the condition that
//! the object is still the one that was decided on. Whatever fails is asked for and
//! decided anew; nothing is repeated blindly.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use kindex_kube_client::{ClusterError, Notice, Target};
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_query::Life;
use kindex_store::QuarantineRecord;

use super::super::decide::{Asked, Row};
use super::super::message::{Effect, EffectDone, Outcome, Output, StoreFailure};
use super::Controller;
use super::entry::{Observation, Resume, Sent, State};

/// Most uids whose reported problems are remembered; beyond it a report may repeat.
const REPORTED_MAX: usize = 10_000;
/// No column holds a later version.
const VERSION_MAX: ResourceVersion = ResourceVersion(i64::MAX.cast_unsigned());

impl Controller {
    pub(super) fn begin_effects(&mut self) {
        while !self.is_paused() && self.effects_under_way < self.settings.effects_max() {
            let Some(uid) = self.effects.pop_front() else {
                return;
            };
            let Some(entry) = self.entries.get_mut(&uid) else {
                continue;
            };
            // An entry that was observed anew in the meantime has left this queue.
            match std::mem::replace(&mut entry.state, State::Effect) {
                State::EffectQueued(effect) => {
                    entry.sent = effect.target().map(|target| Sent {
                        replaces: target.resource_version,
                        newest: self.newest,
                    });
                    self.effects_under_way += 1;
                    self.out.push(Output::Effect(uid, *effect));
                }
                other => entry.state = other,
            }
        }
    }

    fn queue_effect(&mut self, uid: &Uid, effect: Effect) {
        let entry = self.entries.get_mut(uid).expect("entries with effects exist");
        entry.state = State::EffectQueued(Box::new(effect));
        self.effects.push_back(uid.clone());
    }

    /// Asks the cluster; `row` is what made us doubt.
    pub(super) fn ask(&mut self, uid: &Uid, row: Option<Row>) {
        let entry = self.entries.get_mut(uid).expect("asked entries exist");
        entry.asking = row;
        let name = entry.name.clone();
        self.queue_effect(uid, Effect::Get(name));
    }

    pub(super) fn rewind(&mut self, uid: &Uid) {
        let name = &self.entries[uid].name;
        tracing::warn!(kind = self.kind.name, object = %name, %uid,
            "The cluster shows an older version than SQL holds; the cluster wins");
        self.forget_row(uid);
        self.queue_effect(uid, Effect::Rewind);
    }

    pub(super) fn set_finalizer(&mut self, uid: &Uid, wanted: bool) {
        let object = self.present(uid);
        let ours = self.platform.finalizer;
        let mut finalizers = object.metadata.finalizers.clone();
        finalizers.retain(|finalizer| finalizer != ours);
        if wanted {
            finalizers.push(ours.to_owned());
        }
        let target = Target::of(&object);
        self.queue_effect(uid, Effect::SetFinalizers { target, finalizers });
    }

    pub(super) fn delete(&mut self, uid: &Uid) {
        let target = Target::of(&self.present(uid));
        self.queue_effect(uid, Effect::Delete(target));
    }

    fn present(&self, uid: &Uid) -> Object {
        let object = self.entries[uid].newest().object();
        object.expect("effects are for present objects").clone()
    }

    /// Sets an object aside that the database refuses. What has no text cannot be recorded.
    pub(super) fn quarantine(&mut self, uid: &Uid, reason: &str) {
        let entry = &self.entries[uid];
        if !self.unrecorded.contains(uid) {
            tracing::error!(kind = self.kind.name, object = %entry.name, %uid, "quarantined: {reason}");
        }
        match entry.newest().object().cloned() {
            Some(object) => self.queue_effect(
                uid,
                Effect::Quarantine {
                    object,
                    reason: reason.to_owned(),
                },
            ),
            None => self.on_unrecorded(uid, "refused", reason),
        }
        let record = QuarantineRecord {
            uid: uid.clone(),
            version: self.entries[uid].newest().version().unwrap_or_default(),
            reason: reason.to_owned(),
        };
        self.quarantined.insert(uid.clone(), record);
    }

    /// Where the row holds what was refused, or something newer, the refusal is over. The record
    /// of an object that is gone stays, for it holds the only copy of the last text.
    pub(super) fn release_quarantine(&mut self, uid: &Uid) {
        let entry = &self.entries[uid];
        let (Observation::Present(object), Some(row)) = (entry.newest(), entry.row.flatten()) else {
            return;
        };
        // Versions of a cluster that is no more say nothing.
        let current = row.version >= object.metadata.resource_version;
        let stored = if current && self.checkpoints.marked() {
            VERSION_MAX
        } else {
            row.version
        };
        let over = self.quarantined.get(uid).is_some_and(|record| record.version <= stored);
        if over {
            self.quarantined.remove(uid);
            self.out.push(Output::ReleaseQuarantine(uid.clone(), stored));
        }
    }

    pub(super) fn on_quarantine_released(
        &mut self,
        uid: Uid,
        stored: ResourceVersion,
        answer: Result<(), StoreFailure>,
    ) {
        if let Err(failure) = answer {
            self.note_store_failure("release from quarantine", &failure);
            self.checkpoints.unreleased.push((uid, stored));
        }
    }

    pub(super) fn on_effect(&mut self, uid: &Uid, done: EffectDone) {
        self.effects_under_way -= 1;
        if let Some(object) = done.object() {
            let version = object.metadata.resource_version;
            self.look_for_restoration(uid, version);
            self.note_version(version);
        }
        match done {
            EffectDone::Got(Ok(Some(object))) if object.metadata.uid == *uid => {
                self.on_answer(uid, Observation::Present(object));
            }
            EffectDone::Got(Ok(_)) | EffectDone::Got(Err(ClusterError::NotFound(_))) => {
                self.on_answer(uid, Observation::Gone(None));
            }
            EffectDone::FinalizersSet(Ok(object)) => self.on_finalizers_set(uid, object),
            EffectDone::Deleted(Ok(left)) => self.on_deleted(uid, left),
            EffectDone::Deleted(Err(error)) => {
                self.on_effect_failed(uid, "Failed to delete from the cluster", &error);
            }
            EffectDone::Got(Err(error)) => self.on_effect_failed(uid, "Failed to read from the cluster", &error),
            EffectDone::FinalizersSet(Err(error)) => {
                let newest = self.entries[uid].newest().object();
                let what = match newest.is_some_and(|object| self.head(object).guarded) {
                    true => "Failed to remove finalizer",
                    false => "Failed to add finalizer",
                };
                self.on_effect_failed(uid, what, &error);
            }
            EffectDone::Rewound(Ok(())) => {
                let entry = self.entries.get_mut(uid).expect("entries with effects exist");
                entry.row = None;
                self.enqueue(uid);
            }
            EffectDone::Quarantined(Ok(())) => self.on_quarantined(uid),
            EffectDone::Quarantined(Err(failure)) if !failure.retryable => {
                self.on_unrecorded(uid, failure.cause, &failure.message);
            }
            EffectDone::Rewound(Err(failure)) | EffectDone::Quarantined(Err(failure)) => {
                self.note_store_failure("effect on a row", &failure);
                self.retry(uid, failure.cause, Duration::ZERO, Resume::Decide);
            }
        }
    }

    /// Nothing in the database tells of the object: it stays pending, and a position before it is never left behind.
    fn on_unrecorded(&mut self, uid: &Uid, cause: &'static str, message: &str) {
        let name = &self.entries[uid].name;
        if self.unrecorded.insert(uid.clone()) {
            let period = self.settings.requeue_period;
            tracing::error!(kind = self.kind.name, object = %name, %uid,
                "The database takes neither this object nor a record of it; trying again every {period:?} until it \
                 does, without another word: {message}");
        }
        self.last_error = Some(format!("{name}: neither stored nor recorded: {message}"));
        self.retry(uid, cause, Duration::ZERO, Resume::Decide);
    }

    /// The database has taken the object, or its record.
    pub(super) fn on_recorded(&mut self, uid: &Uid) {
        if self.unrecorded.remove(uid) {
            tracing::info!(kind = self.kind.name, %uid, "The database has taken the object, or its record");
        }
    }

    fn on_quarantined(&mut self, uid: &Uid) {
        self.on_recorded(uid);
        let entry = self.entries.get_mut(uid).expect("entries with effects exist");
        match (entry.newest(), entry.overtaken) {
            (_, true) => self.enqueue(uid),
            (Observation::Present(_), false) => self.settle(uid),
            // The last text of an object that is gone is safe; the row can be closed without it.
            (Observation::Gone(_), false) => {
                entry.drop_last_text();
                self.enqueue(uid);
            }
        }
    }

    /// The cluster's answer is the truth, unless the watch was faster with something newer.
    fn on_answer(&mut self, uid: &Uid, answer: Observation) {
        let entry = self.entries.get_mut(uid).expect("entries with effects exist");
        let asking = entry.asking.take();
        if !entry.overtaken || answer.supersedes(entry.newest()) {
            entry.learn(answer);
            entry.confirmed = asking;
        }
        entry.row = None;
        self.enqueue(uid);
    }

    fn on_finalizers_set(&mut self, uid: &Uid, object: Object) {
        let released = !self.head(&object).guarded;
        if released && object.metadata.finalizers.is_empty() {
            return self.leave(uid);
        }
        let entry = self.entries.get_mut(uid).expect("entries with effects exist");
        let changed = Observation::Present(object);
        if changed.supersedes(entry.newest()) {
            entry.replace(changed);
            entry.arrived = self.now.elapsed;
        }
        self.enqueue(uid);
    }

    fn on_deleted(&mut self, uid: &Uid, left: Option<Object>) {
        let Some(object) = left else {
            return self.leave(uid);
        };
        let entry = self.entries.get_mut(uid).expect("entries with effects exist");
        entry.asked = Asked::Accepted(object.metadata.resource_version);
        let left = Observation::Present(object);
        if left.supersedes(entry.newest()) {
            // It goes on our word: nobody else's is in the row.
            let row = entry.row;
            entry.replace(left);
            entry.row = row;
        }
        self.enqueue(uid);
    }

    /// Our effect removed the object, as the row says it: nothing new follows.
    fn leave(&mut self, uid: &Uid) {
        let entry = &self.entries[uid];
        let row = entry.row.flatten();
        if row.is_some_and(|row| row.life == Life::Evicted) {
            self.metrics.evicted.inc();
        }
        if matches!(entry.newest(), Observation::Present(_)) {
            let stored = row.map_or(VERSION_MAX, |row| row.version);
            self.removed.insert(uid.clone(), stored);
        }
        self.settle(uid);
    }

    fn on_effect_failed(&mut self, uid: &Uid, what: &str, error: &ClusterError) {
        match error {
            ClusterError::NotFound(_) => self.on_answer(uid, Observation::Gone(None)),
            ClusterError::Conflict(_) => {
                self.retry(uid, "conflict", Duration::ZERO, Resume::Ask);
            }
            ClusterError::Retryable { cause, retry_after, .. } => {
                self.note_cluster_failure(uid, what, error);
                self.retry(uid, cause, retry_after.unwrap_or_default(), Resume::Ask);
            }
            ClusterError::Expired(_) | ClusterError::Refused(_) => {
                self.note_cluster_failure(uid, what, error);
                self.retry(uid, "refused_by_cluster", Duration::ZERO, Resume::Ask);
            }
        }
    }

    fn note_cluster_failure(&mut self, uid: &Uid, what: &str, error: &ClusterError) {
        let name = &self.entries[uid].name;
        tracing::warn!(kind = self.kind.name, object = %name, "{what}: {error}");
        self.last_error = Some(format!("{name}: {error}"));
    }

    /// A warning event for each archived object whose name this one took in the cluster.
    pub(super) fn report_replaced(&mut self, uid: &Uid, replaced: &[Uid]) {
        let entry = &self.entries[uid];
        for old in replaced {
            let kind = self.kind;
            tracing::warn!(kind = kind.name, object = %entry.name, %uid, archived = %old,
                "The name of an archived object was taken in the cluster: the archived object is replaced");
            let Some(object) = entry.newest().object() else {
                continue;
            };
            self.out.push(Output::Notify(Notice {
                about: Target::of(object),
                warning: true,
                reason: "ArchivedObjectReplaced",
                message: format!(
                    "took the name of the archived object {old}, which stays stored without it: `kindex restore {} \
                     --uid {old} --as NEW-NAME` creates it again under another name",
                    kind.singular
                ),
            }));
        }
    }

    /// One warning event for what an object's projection could not read, until it differs.
    pub(super) fn report_problems(&mut self, uid: &Uid, outcome: Outcome) {
        if outcome.problems.is_empty() {
            self.reported.remove(uid);
            return;
        }
        self.metrics.problems.inc();
        let lines: Vec<String> = outcome
            .problems
            .iter()
            .map(|problem| match problem.path.as_str() {
                "" => problem.message.clone(),
                path => format!("{path}: {}", problem.message),
            })
            .collect();
        let mut hasher = DefaultHasher::new();
        lines.hash(&mut hasher);
        let hash = hasher.finish();
        if self.reported.insert(uid.clone(), hash) == Some(hash) {
            return;
        }
        if self.reported.len() > REPORTED_MAX {
            self.reported.pop_first();
        }
        let Some(object) = self.entries[uid].newest().object() else {
            return;
        };
        self.out.push(Output::Notify(Notice {
            about: Target::of(object),
            warning: true,
            reason: "ProjectionIncomplete",
            message: format!("stored whole, but not every column: {}", lines.join("; ")),
        }));
    }
}
