//! The cleanups of archived objects, called beside the walk over tombstones: one that hangs keeps no other tombstone,
//! and however many hang, each of the others has its turn.

use std::collections::{BTreeMap, BTreeSet};

use kindex_kube_client::ClusterError;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cleanup_states::{ArchivedCleanupStates, CallOutcome};
use crate::cluster::Cluster;
use crate::decide::Step;
use crate::metrics::Metrics;
use crate::object::KindName;

/// Calls of a kind that are under way or wait for their turn. Others begin with a later walk.
const CALLS_MAX: usize = 1_024;

/// Whose cleanups of a kind are called: as many as there may be, and over several walks all of them in turn. Walks come
/// to tombstones in the order of their uids. One that begins with those for whom there was no room before calls none a
/// second time before each of the others was called.
#[derive(Debug, Default)]
struct Queue {
    /// Those whose call has not ended.
    called: BTreeSet<String>,
    /// The uid with which this walk begins to call.
    first: String,
    /// The first one for whom this walk had no room.
    rejected: Option<String>,
}

impl Queue {
    fn begin_walk(&mut self) {
        self.first = self.rejected.take().unwrap_or_default();
    }

    /// Whether a tombstone is called that this walk has come to.
    fn admits(&mut self, uid: &str) -> bool {
        if uid < self.first.as_str() || self.called.contains(uid) {
            return false;
        }
        if self.called.len() >= CALLS_MAX {
            self.rejected.get_or_insert_with(|| uid.to_owned());
            return false;
        }
        self.called.insert(uid.to_owned())
    }

    fn end(&mut self, uid: &str) {
        self.called.remove(uid);
    }
}

/// A call that has ended.
struct Called {
    kind: KindName,
    uid: String,
    /// Nothing where its time was over, or had not come.
    outcome: Result<Option<CallOutcome>, ClusterError>,
}

/// The calls for one cluster.
pub(super) struct ArchivedCleanups {
    cluster: Cluster,
    metrics: Metrics,
    states: ArchivedCleanupStates,
    queues: BTreeMap<KindName, Queue>,
    calls: JoinSet<Called>,
}

impl ArchivedCleanups {
    /// Nothing was called yet.
    pub(super) fn new(cluster: Cluster, metrics: Metrics) -> Self {
        Self {
            cluster,
            metrics,
            states: ArchivedCleanupStates::default(),
            queues: BTreeMap::new(),
            calls: JoinSet::new(),
        }
    }

    /// What is known so far.
    pub(super) fn states(&self) -> &ArchivedCleanupStates {
        &self.states
    }

    /// A walk over the tombstones of a kind begins.
    pub(super) fn begin_walk(&mut self, kind: &KindName) {
        if let Some(queue) = self.queues.get_mut(kind) {
            queue.begin_walk();
        }
    }

    /// Calls the cleanup of a tombstone, unless a call is under way or others come first.
    pub(super) fn call(&mut self, kind: &KindName, uid: &str) {
        if !self.queues.entry(kind.clone()).or_default().admits(uid) {
            return;
        }
        let (cluster, kind, uid) = (self.cluster.clone(), kind.clone(), uid.to_owned());
        self.calls.spawn(async move {
            let outcome = cluster.clean_up_archived(&kind, &uid).await;
            Called { kind, uid, outcome }
        });
    }

    /// Notes what has come of those that have ended.
    pub(super) fn take_ended(&mut self) {
        while let Some(ended) = self.calls.try_join_next() {
            self.note(ended.expect("a panic of a cleanup is caught"));
        }
    }

    fn note(&mut self, called: Called) {
        let Called { kind, uid, outcome } = called;
        if let Some(queue) = self.queues.get_mut(&kind) {
            queue.end(&uid);
        }
        match outcome {
            Ok(Some(outcome)) => {
                if let CallOutcome::Failed(why) = &outcome {
                    self.metrics.failed(&kind.kind);
                    tracing::warn!(%kind, uid, why, "The cleanup of an archived object is tried again");
                }
                self.metrics.carried_out(&kind.kind, &Step::CleanUp);
                self.metrics.cleanup_called(&kind.kind, &outcome);
                self.states.record(&uid, outcome, Instant::now());
            }
            // It is decided on again.
            Ok(None) => {}
            Err(error) => {
                self.metrics.failed(&kind.kind);
                tracing::warn!(%kind, uid, %error, "An archived object cannot be read for its cleanup");
            }
        }
    }

    /// The walk has come to this tombstone.
    pub(super) fn found(&mut self, uid: &str) {
        self.states.found(uid);
    }

    /// The walk has come to all that there are.
    pub(super) fn end_walk(&mut self) {
        self.states.end_walk();
    }

    /// Ends the calls that are under way: what has come of them is asked again.
    pub(super) async fn end(&mut self) {
        self.calls.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Calls that end between two walks.
    const ENDED: usize = 64;

    /// As if each walk gave what has become free to the first ones, which are to be called again by then.
    #[test]
    fn of_more_that_hang_than_there_is_room_for_each_is_called_as_often_as_any_other() {
        let uids: Vec<String> = (0..CALLS_MAX + 200).map(|number| format!("u{number:05}")).collect();
        let (mut queue, mut under_way) = (Queue::default(), VecDeque::new());
        let mut calls: BTreeMap<&str, u32> = BTreeMap::new();
        for walk in 0..100 {
            queue.begin_walk();
            for uid in uids.iter().filter(|uid| queue.admits(uid)) {
                under_way.push_back(uid);
                *calls.entry(uid).or_default() += 1;
            }
            assert!(under_way.len() <= CALLS_MAX, "{} in walk {walk}", under_way.len());
            // Their time is over, in the order in which they were called.
            for uid in under_way.drain(..ENDED) {
                queue.end(uid);
            }
        }
        assert_eq!(calls.len(), uids.len());
        let (least, most) = (calls.values().min(), calls.values().max());
        let (least, most) = least.zip(most).expect("some were called");
        assert!(*least >= 6 && most - least <= 1, "{least} to {most} calls");
    }

    #[test]
    fn a_walk_calls_everybody_again_once_those_who_came_first_are_gone() {
        let mut queue = Queue::default();
        let uids: Vec<String> = (0..=CALLS_MAX).map(|number| format!("u{number:05}")).collect();
        assert_eq!(uids.iter().filter(|uid| queue.admits(uid)).count(), CALLS_MAX);
        queue.end(&uids[0]);
        queue.begin_walk();
        assert!(!queue.admits(&uids[0]), "the last one comes first");
        // It is gone, and nobody else was rejected.
        queue.begin_walk();
        assert!(queue.admits(&uids[0]));
    }
}
