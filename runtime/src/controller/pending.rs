//! Pending objects: collapses observations by uid, and keeps queue and timers. Decides when an object is due and what
//! to do; does not carry it out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use kindex_decide::ingest::{Action, Context, Observed, OwnedObjects, decide};
use kindex_decide::row::Row;
use kindex_model::head::Head;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::uid_set::UidSet;

use super::entry::{Entry, Observation, ObservedObject, Resume, State, UnservedCount};
use super::environment::Environment;
use super::sweep::Orphan;
use super::watermark::Unsettled;
use crate::settings::Settings;

/// Everything that is not settled.
#[derive(Debug, Default)]
pub(super) struct Pending {
    entries: BTreeMap<Uid, Entry>,
    unsettled: Unsettled,
    queue: VecDeque<Uid>,
    queued_since: Duration,
    timers: BTreeSet<(Duration, Uid)>,
    /// The rows of all objects, if they are cached.
    rows: Option<BTreeMap<Uid, Row>>,
    unserved: UnservedCount,
}

impl Pending {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            rows: settings.version_cache.then(BTreeMap::new),
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Those that wait for a timer.
    pub(super) fn waiting(&self) -> usize {
        self.timers.len()
    }

    /// Those that wait only for us or the database.
    pub(super) fn active(&self) -> usize {
        self.entries.len() - self.timers.len()
    }

    /// Those that are held by finalizers of others and whose rows are up to date.
    pub(super) fn held(&self) -> usize {
        self.entries.values().filter(|entry| entry.is_held()).count()
    }

    /// Those whose last effect failed because the cluster does not serve the kind.
    pub(super) fn unserved(&self) -> usize {
        self.unserved.get()
    }

    /// Notes that the cluster does not serve the kind of an object which an effect is for. Returns whether no other
    /// object is known to wait for that.
    pub(super) fn note_unserved(&mut self, uid: &Uid) -> bool {
        let is_first = self.unserved.get() == 0;
        let mark = self.unserved.mark();
        self.entry_mut(uid).unserved = Some(mark);
        is_first
    }

    pub(super) fn oldest_unsettled(&self) -> Option<ResourceVersion> {
        self.unsettled.oldest()
    }

    /// When the oldest arrived of those that do not wait for a delay, nor for a CRD that is not installed.
    pub(super) fn oldest_arrival(&self, env: &Environment, is_unserved: bool) -> Option<Timestamp> {
        let late = self.entries.values();
        let late = late.filter(|entry| !(entry.is_delayed() || is_unserved && entry.unserved.is_some()));
        let age = env.now.elapsed.saturating_sub(late.map(|entry| entry.arrived).min()?);
        env.now.wall.checked_sub(age).ok()
    }

    pub(super) fn contains(&self, uid: &Uid) -> bool {
        self.entries.contains_key(uid)
    }

    /// # Panics
    /// If nothing is pending for the uid.
    pub(super) fn entry(&self, uid: &Uid) -> &Entry {
        &self.entries[uid]
    }

    /// # Panics
    /// As [`entry`](Self::entry).
    pub(super) fn entry_mut(&mut self, uid: &Uid) -> &mut Entry {
        self.entries.get_mut(uid).expect("an entry in hand is not settled")
    }

    /// Adds an entry.
    pub(super) fn insert(&mut self, uid: &Uid, entry: Entry) {
        self.unsettled.begin(entry.oldest, uid);
        self.entries.insert(uid.clone(), entry);
    }

    /// Takes an observation. Returns whether the object must be decided on now; one in flight or in the queue will be
    /// anyway.
    pub(super) fn observe(&mut self, env: &Environment, observed: ObservedObject) -> bool {
        let ObservedObject {
            uid,
            name,
            observation,
            at,
        } = observed;
        let Some(entry) = self.entries.get_mut(&uid) else {
            let cached = self.cached_row(&uid).filter(|_| !observation.is_going());
            let mut entry = Entry::new(observation, name, at, env.now.elapsed);
            entry.row = cached.map(Some);
            self.insert(&uid, entry);
            return true;
        };
        env.metrics.collapsed.inc();
        if !observation.supersedes(entry.newest()) {
            return false;
        }
        entry.replace(observation);
        self.wake(&uid)
    }

    /// Whether the cached row shows that nothing has to be done for an object.
    pub(super) fn is_stored(&self, env: &Environment, object: &Object) -> bool {
        let uid = &object.metadata.uid;
        self.cached_row(uid).is_some_and(|row| {
            !self.contains(uid)
                && row.is_current()
                && row.cluster_version() >= object.metadata.resource_version
                && is_plain(env, &env.head(object))
        })
    }

    /// Cancels the timer of an entry. Returns false if it was in flight or in the queue.
    pub(super) fn wake(&mut self, uid: &Uid) -> bool {
        let state = self.entries[uid].state;
        if let State::Waiting(until, _) = state {
            self.timers.remove(&(until, uid.clone()));
        }
        matches!(state, State::Waiting(..) | State::EffectQueued)
    }

    /// Decides on the newest state of an entry whose row is known.
    pub(super) fn decide(&mut self, env: &Environment, uid: &Uid) -> Action {
        let entry = self.entries.get_mut(uid).expect("decided entries exist");
        let observed = entry.observed(|object| env.head(object));
        let leaving = matches!(observed, Observed::Present(head) if head.is_leaving());
        let leaving_for = entry.begin_decision(leaving, env.now.elapsed);
        let owns = entry.newest().object().is_some_and(|object| env.owns(object));
        let row = entry.row.expect("the row of a decided entry is known");
        tracing::debug!(kind = env.kind.name, object = %entry.name, "Reconciling object");
        let context = Context {
            now: env.now.wall,
            leaving_for,
            deletion_delay: env.settings.deletion_delay,
            finalizer_wait: env.settings.finalizer_wait,
            adopt_finalizers: env.settings.adopt_finalizers,
            confirmed: entry.confirmed,
            own_delete: entry.own_delete,
            unsure: entry.write_unsure,
            owns,
            owned_objects: match env.may_own() {
                true => entry.owned_objects,
                false => OwnedObjects::Absent,
            },
        };
        if row.is_none() && entry.is_reported_gone() {
            env.metrics.lost.inc();
        }
        decide(&observed, row.as_ref(), &context)
    }

    /// Puts an entry at the end of the queue for a batch.
    pub(super) fn queue(&mut self, uid: &Uid, now: Duration) {
        if self.queue.is_empty() {
            self.queued_since = now;
        }
        self.queue.push_back(uid.clone());
    }

    /// Puts the entries of a batch that failed back to the head of the queue, in their order. What objects in the queue
    /// own is forgotten, because they may wait there for long.
    pub(super) fn requeue(&mut self, uids: Vec<Uid>) {
        for uid in uids.into_iter().rev() {
            self.entry_mut(&uid).state = State::Queued;
            self.queue.push_front(uid);
        }
        for uid in &self.queue {
            let entry = self.entries.get_mut(uid).expect("entries in the queue are not settled");
            entry.owned_objects = OwnedObjects::Unknown;
        }
    }

    pub(super) fn is_queue_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// When the queue is written although the batch is not full.
    pub(super) fn lingers_until(&self, settings: &Settings) -> Duration {
        self.queued_since + settings.linger
    }

    /// The next batch: at once if no other is in flight, else when it is full or has waited long enough.
    pub(super) fn next_batch(&mut self, env: &Environment, is_alone: bool) -> Vec<Uid> {
        let rows_max = env.settings.batch_rows_max;
        let lingered = self.lingers_until(&env.settings) <= env.now.elapsed;
        if !is_alone && self.queue.len() < rows_max && !lingered {
            return Vec::new();
        }
        self.queued_since = env.now.elapsed;
        self.queue.drain(..rows_max.min(self.queue.len())).collect()
    }

    /// Sets the timer of an entry.
    fn wait_for(&mut self, uid: &Uid, until: Duration, resume: Resume) {
        self.entry_mut(uid).state = State::Waiting(until, resume);
        self.timers.insert((until, uid.clone()));
    }

    /// Lets an entry wait without a failure, which ends its backoff. `held`: it waits for finalizers of others.
    pub(super) fn wait(&mut self, env: &Environment, uid: &Uid, pause: Duration, held: bool) {
        let entry = self.entry_mut(uid);
        entry.attempts = 0;
        entry.held = held;
        self.wait_for(uid, env.now.elapsed + pause, Resume::Decide);
    }

    /// Lets an entry wait until it is asked again what its object owns, longer each time.
    pub(super) fn wait_for_owned(&mut self, env: &mut Environment, uid: &Uid) {
        let entry = self.entry_mut(uid);
        // Another ingester may archive it meanwhile, once more in the same version, and then delete the object.
        entry.forget_rows();
        entry.confirmed = None;
        // Its row is up to date. How long it has waited already is no lag.
        entry.arrived = env.now.elapsed;
        let pause = env.backoff(entry.owned_found, "owned");
        tracing::debug!(kind = env.kind.name, object = %entry.name, "What it owns is not archived yet");
        self.wait(env, uid, pause, false);
    }

    /// Lets an entry wait after a failure, with backoff up to `requeuePeriod`, and at least as long as the server
    /// requested.
    pub(super) fn retry(
        &mut self,
        env: &mut Environment,
        uid: &Uid,
        cause: &'static str,
        at_least: Duration,
        resume: Resume,
    ) {
        env.metrics.retry(cause);
        let entry = self.entry_mut(uid);
        entry.attempts = entry.attempts.saturating_add(1);
        entry.forget_rows();
        let pause = env.backoff(entry.attempts, cause);
        self.wait_for(uid, env.now.elapsed + pause.max(at_least), resume);
    }

    /// The next moment for which an entry waits.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Takes out an entry whose timer is due.
    pub(super) fn due(&mut self, now: Duration) -> Option<(Uid, Resume)> {
        self.timers.first().filter(|(at, _)| *at <= now)?;
        let (_, uid) = self.timers.pop_first()?;
        match self.entries[&uid].state {
            State::Waiting(_, resume) => Some((uid, resume)),
            State::Queued | State::Grouped | State::Batch | State::EffectQueued | State::Effect => {
                unreachable!("only waiting entries have timers")
            }
        }
    }

    /// The object needs nothing more until it changes.
    pub(super) fn settle(&mut self, uid: &Uid) -> Option<Entry> {
        let entry = self.entries.remove(uid)?;
        self.unsettled.settle(entry.oldest, uid);
        if matches!(entry.newest(), Observation::Gone(_)) {
            self.forget_row(uid);
        }
        Some(entry)
    }

    /// The objects that are present as far as known, but missing from a list.
    pub(super) fn not_in(&self, seen: &UidSet) -> Vec<Orphan> {
        let mut orphans = Vec::new();
        for (uid, entry) in &self.entries {
            let present = matches!(entry.newest(), Observation::Present(_));
            if present && !seen.contains(uid) {
                orphans.push(Orphan {
                    uid: uid.clone(),
                    name: entry.name.clone(),
                    version: entry.oldest,
                });
            }
        }
        orphans
    }

    fn cached_row(&self, uid: &Uid) -> Option<Row> {
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

    /// Drops everything: the cluster was restored.
    pub(super) fn clear(&mut self) {
        *self = Self {
            queued_since: self.queued_since,
            rows: self.rows.as_ref().map(|_| BTreeMap::new()),
            ..Self::default()
        };
    }
}

/// Whether nothing has to be done for an object with a current live row.
pub(super) fn is_plain(env: &Environment, head: &Head) -> bool {
    let adopted = head.has_finalizer || !env.settings.adopt_finalizers;
    head.is_staying() && adopted
}

#[cfg(test)]
mod tests {
    use kindex_kube_client::ObjectName;

    use super::*;

    /// An entry of this uid, of which nothing is known but that it is gone.
    fn insert(pending: &mut Pending, uid: &Uid) {
        let name = ObjectName {
            namespace: "default".to_owned(),
            name: uid.to_string(),
        };
        let entry = Entry::new(Observation::Gone(None), name, ResourceVersion(1), Duration::ZERO);
        pending.insert(uid, entry);
    }

    /// As if what has an answer, or is settled, counted among those that wait for the CRD, so that nobody were told of
    /// the next one.
    #[test]
    fn those_that_wait_for_a_crd_count_until_they_have_an_answer_or_are_settled() {
        let mut pending = Pending::default();
        let uids = ["a", "b", "c"].map(Uid::from);
        for uid in &uids {
            insert(&mut pending, uid);
        }
        let [a, b, c] = &uids;
        assert!(pending.note_unserved(a), "nobody waited before");
        assert!(!pending.note_unserved(a), "it has waited itself");
        assert!(!pending.note_unserved(b));
        assert_eq!(pending.unserved(), 2, "each counts once");
        pending.entry_mut(a).answer(Observation::Gone(None), None);
        assert_eq!(pending.unserved(), 1);
        assert!(!pending.note_unserved(c), "b waits still");
        pending.settle(b);
        pending.settle(c);
        assert_eq!(pending.unserved(), 0);
        assert!(pending.note_unserved(a), "nobody waits any more");
        pending.clear();
        assert_eq!(pending.unserved(), 0);
        insert(&mut pending, a);
        assert!(pending.note_unserved(a), "the former ones are dropped");
    }
}
