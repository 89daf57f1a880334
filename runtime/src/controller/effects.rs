//! The queue of effects: at most one in flight for an object, each conditional on the version that was decided on.
//! Questions about what objects own may take long, and have slots of their own. Reads the results of effects. After a
//! failure the object is read and decided on again; no effect is repeated blindly.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use kindex_decide::row::Row;
use kindex_kube_client::{ClusterError, Target};
use kindex_model::head::is_graph_finalizer;
use kindex_model::object::{Object, ResourceVersion, Uid};

use super::entry::Observation;
use super::environment::Environment;
use super::intake::Sent;
use crate::message::{Effect, EffectDone, Output, OwnedFailure, StoreFailure};

#[derive(Debug, Default)]
pub(super) struct EffectQueue {
    /// What objects own: a cluster may look at all objects of a kind before it answers.
    questions: Lane,
    /// All other effects.
    others: Lane,
    /// Objects that our effect removed, with the version that SQL holds. Effects are conditional on the version, so
    /// events up to that version are writes of others, and later ones are the echo of our effect.
    removed: BTreeMap<Uid, ResourceVersion>,
}

/// Effects that wait for each other, and for no others.
#[derive(Debug, Default)]
struct Lane {
    /// In order, each object once.
    queue: VecDeque<Uid>,
    /// One for each object of the queue; `None` if it was withdrawn.
    queued: BTreeMap<Uid, Option<Queued>>,
    in_flight: BTreeMap<Uid, InFlight>,
}

#[derive(Debug)]
struct Queued {
    effect: Effect,
    doubted: Option<Row>,
}

/// An effect that was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InFlight {
    /// The write to the cluster, if it is one.
    pub(super) sent: Option<Sent>,
    /// The row that the effect is to confirm, if it is a read.
    pub(super) doubted: Option<Row>,
}

impl Lane {
    /// An object whose effect was withdrawn keeps its place, so that a busy one neither fills the queue nor waits for
    /// ever.
    fn queue(&mut self, uid: &Uid, queued: Queued) {
        if self.queued.insert(uid.clone(), Some(queued)).is_none() {
            self.queue.push_back(uid.clone());
        }
    }

    fn withdraw(&mut self, uid: &Uid) {
        if let Some(queued) = self.queued.get_mut(uid) {
            *queued = None;
        }
    }

    /// Takes the next effect out of the queue, while fewer than so many are in flight.
    fn next(&mut self, in_flight_max: usize) -> Option<(Uid, Queued)> {
        while self.in_flight.len() < in_flight_max {
            let uid = self.queue.pop_front()?;
            if let Some(queued) = self.queued.remove(&uid).flatten() {
                return Some((uid, queued));
            }
        }
        None
    }

    fn clear(&mut self) {
        self.queue.clear();
        self.queued.clear();
    }
}

impl EffectQueue {
    /// Whether effects are in flight that are no questions.
    pub(super) fn is_acting(&self) -> bool {
        !self.others.in_flight.is_empty()
    }

    /// Whether it was asked what an object owns, and there is no answer yet.
    pub(super) fn is_asking(&self) -> bool {
        !self.questions.in_flight.is_empty()
    }

    /// Queues an effect, in the place of the one that the object had. `doubted` is the row that a read is to confirm.
    pub(super) fn queue(&mut self, uid: &Uid, effect: Effect, doubted: Option<Row>) {
        self.withdraw(uid);
        let lane = match effect {
            Effect::FindOwned(_) => &mut self.questions,
            Effect::Get(_)
            | Effect::SetFinalizers { .. }
            | Effect::Delete(_)
            | Effect::Quarantine { .. }
            | Effect::Rewind => &mut self.others,
        };
        lane.queue(uid, Queued { effect, doubted });
    }

    /// Removes the effect of an object from the queue: the object was observed again.
    pub(super) fn withdraw(&mut self, uid: &Uid) {
        self.questions.withdraw(uid);
        self.others.withdraw(uid);
    }

    /// Sends the next effect, as long as more of its kind may be in flight. `newest` is the newest version that the
    /// cluster has reported.
    pub(super) fn send_next(&mut self, env: &mut Environment, newest: ResourceVersion) -> Option<Uid> {
        let lanes = [
            (&mut self.others, env.settings.effects_max()),
            (&mut self.questions, env.settings.questions_max()),
        ];
        for (lane, in_flight_max) in lanes {
            let Some((uid, Queued { effect, doubted })) = lane.next(in_flight_max) else {
                continue;
            };
            let sent = effect.target().map(|target| Sent {
                replaces: target.resource_version,
                newest,
            });
            lane.in_flight.insert(uid.clone(), InFlight { sent, doubted });
            env.emit(Output::Effect(uid.clone(), effect));
            return Some(uid);
        }
        None
    }

    /// Ends an effect that was answered.
    pub(super) fn end(&mut self, uid: &Uid) -> InFlight {
        let ended = self.others.in_flight.remove(uid);
        ended
            .or_else(|| self.questions.in_flight.remove(uid))
            .unwrap_or_default()
    }

    /// Records that our effect removed an object, of which SQL holds this version.
    pub(super) fn remember_removed(&mut self, uid: &Uid, stored: ResourceVersion) {
        self.removed.insert(uid.clone(), stored);
    }

    /// The version that SQL holds of an object that our effect removed.
    pub(super) fn removed(&self, uid: &Uid) -> Option<ResourceVersion> {
        self.removed.get(uid).copied()
    }

    /// Whether an observation is the echo of our own effect. `pending`: the object will be decided on anyway.
    pub(super) fn is_echo(&mut self, uid: &Uid, observation: &Observation, pending: bool) -> bool {
        match observation {
            Observation::Present(_) => self.removed.contains_key(uid),
            Observation::Gone(_) => self.removed.remove(uid).is_some() && !pending,
        }
    }

    /// A list begins: none of its items is an echo.
    pub(super) fn forget_removed(&mut self) {
        self.removed.clear();
    }

    /// Drops everything: the cluster was restored.
    pub(super) fn clear(&mut self) {
        self.questions.clear();
        self.others.clear();
        self.removed.clear();
    }
}

/// The effect that adds our finalizer to an object, or removes it.
pub(super) fn set_finalizer(env: &Environment, object: &Object, wanted: bool) -> Effect {
    let ours = env.platform.finalizer;
    let mut finalizers = object.metadata.finalizers.clone();
    finalizers.retain(|finalizer| finalizer != ours);
    if wanted {
        finalizers.push(ours.to_owned());
    }
    let target = Target::of(object);
    Effect::SetFinalizers { target, finalizers }
}

/// The effect that removes our finalizer from an archived object, and with it the references that SQL holds.
pub(super) fn release_archived(env: &Environment, object: &Object) -> Effect {
    let mut finalizers = object.metadata.finalizers.clone();
    finalizers.retain(|finalizer| finalizer != env.platform.finalizer && !is_graph_finalizer(finalizer, &env.platform));
    let target = Target::of(object);
    Effect::SetFinalizers { target, finalizers }
}

/// The result of an effect.
#[derive(Debug)]
pub(super) enum Ended {
    /// The cluster returned the current state.
    Answered(Observation),
    /// Our effect removed the object, and its row is up to date.
    Removed,
    /// Our effect made this version.
    Changed(Object),
    /// Our delete made this version. Finalizers of others hold the object.
    Leaving(Object),
    /// SQL or the cluster has something live that the object owns, or neither has.
    OwnedFound(bool),
    /// The row was rewound.
    Rewound,
    /// The object was quarantined.
    Recorded,
    /// The database rejected the quarantine record.
    Unrecorded(StoreFailure),
    /// The database did not answer.
    StoreFailed(StoreFailure),
    /// The cluster did not carry it out. `what` is the message to log, if any.
    Failed {
        what: Option<&'static str>,
        cause: &'static str,
        at_least: Duration,
        error: ClusterError,
    },
}

impl Ended {
    /// Reads the answer to an effect on the object `uid`, whose newest observation is `newest`.
    pub(super) fn read(env: &Environment, uid: &Uid, newest: &Observation, done: EffectDone) -> Self {
        match done {
            EffectDone::Got(Ok(Some(object))) if object.metadata.uid == *uid => {
                Self::Answered(Observation::Present(object))
            }
            EffectDone::Got(Ok(_)) => Self::Answered(Observation::Gone(None)),
            EffectDone::Got(Err(error)) => Self::failed("Failed to read from the cluster", error),
            EffectDone::FinalizersSet(Ok(object)) => {
                let released = !env.head(&object).has_finalizer;
                if released && object.metadata.finalizers.is_empty() {
                    return Self::Removed;
                }
                Self::Changed(object)
            }
            EffectDone::FinalizersSet(Err(error)) => {
                let has_finalizer = newest.object().is_some_and(|object| env.head(object).has_finalizer);
                let what = match has_finalizer {
                    true => "Failed to remove finalizer",
                    false => "Failed to add finalizer",
                };
                Self::failed(what, error)
            }
            EffectDone::Deleted(Ok(left)) => left.map_or(Self::Removed, Self::Leaving),
            EffectDone::Deleted(Err(error)) => Self::failed("Failed to delete from the cluster", error),
            EffectDone::OwnedFound(Ok(is_found)) => Self::OwnedFound(is_found),
            EffectDone::OwnedFound(Err(OwnedFailure::Store(failure))) => Self::StoreFailed(failure),
            EffectDone::OwnedFound(Err(OwnedFailure::Cluster(error))) => {
                Self::failed("Failed to look in the cluster for what it owns", error)
            }
            EffectDone::Rewound(Ok(())) => Self::Rewound,
            EffectDone::Quarantined(Ok(())) => Self::Recorded,
            EffectDone::Quarantined(Err(failure)) if !failure.retryable => Self::Unrecorded(failure),
            EffectDone::Rewound(Err(failure)) | EffectDone::Quarantined(Err(failure)) => Self::StoreFailed(failure),
        }
    }

    fn failed(what: &'static str, error: ClusterError) -> Self {
        let (what, cause, at_least) = match &error {
            ClusterError::NotFound(_) => return Self::Answered(Observation::Gone(None)),
            // Another API server may know the CRD already. The list that follows its installation says what is there.
            ClusterError::Unserved { .. } => (None, "not_found", Duration::ZERO),
            ClusterError::Conflict(_) => (None, "conflict", Duration::ZERO),
            ClusterError::Retryable { cause, retry_after, .. } => {
                (Some(what), cause.label(), retry_after.unwrap_or_default())
            }
            ClusterError::Expired(_) | ClusterError::Refused(_) => (Some(what), "refused_by_cluster", Duration::ZERO),
        };
        Self::Failed {
            what,
            cause,
            at_least,
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kindex_kube_client::ObjectName;
    use kindex_model::kind::{Kind, Platform};

    use super::*;
    use crate::metrics::KindMetrics;
    use crate::settings::Settings;

    static KIND: Kind = Kind::EMPTY;

    fn environment() -> Environment {
        let metrics = Arc::new(KindMetrics::default());
        Environment::new(&KIND, Platform::EMPTY, Vec::new(), Settings::default(), metrics, 0)
    }

    fn name() -> ObjectName {
        ObjectName {
            namespace: "n".to_owned(),
            name: "a".to_owned(),
        }
    }

    fn question() -> Effect {
        Effect::FindOwned(name())
    }

    fn delete(uid: &Uid) -> Effect {
        Effect::Delete(Target {
            name: name(),
            uid: uid.clone(),
            resource_version: ResourceVersion(1),
        })
    }

    fn uids(of: &str, count: usize) -> Vec<Uid> {
        (0..count)
            .map(|number| Uid::from(format!("{of}{number}").as_str()))
            .collect()
    }

    /// Sends what may be sent now.
    fn sent(queue: &mut EffectQueue, env: &mut Environment) -> Vec<Uid> {
        std::iter::from_fn(|| queue.send_next(env, ResourceVersion(1))).collect()
    }

    /// As if a burst of final owners kept all others in the cluster while lists of what these own are slow, or a burst
    /// of deletes the owners.
    #[test]
    fn questions_and_other_effects_do_not_wait_for_each_other() {
        let (mut queue, mut env) = (EffectQueue::default(), environment());
        let (asked_max, acted_max) = (env.settings.questions_max(), env.settings.effects_max());
        let (owners, leaving) = (uids("owner", asked_max + 1), uids("leaving", acted_max + 1));
        for uid in &owners {
            queue.queue(uid, question(), None);
        }
        assert_eq!(sent(&mut queue, &mut env), owners[..asked_max]);
        assert!(queue.is_asking() && !queue.is_acting());
        for uid in &leaving {
            queue.queue(uid, delete(uid), None);
        }
        assert_eq!(sent(&mut queue, &mut env), leaving[..acted_max]);
        assert!(queue.is_acting());

        assert!(queue.end(&owners[0]).sent.is_none(), "a question writes nothing");
        assert_eq!(sent(&mut queue, &mut env), owners[asked_max..]);
        assert!(queue.end(&leaving[0]).sent.is_some());
        assert_eq!(sent(&mut queue, &mut env), leaving[acted_max..]);
    }

    /// As if the question about an object could take the place of its delete, or come after it.
    #[test]
    fn an_effect_that_was_withdrawn_is_not_sent_whatever_follows_it() {
        let (mut queue, mut env, uid) = (EffectQueue::default(), environment(), Uid::from("a"));
        queue.queue(&uid, question(), None);
        queue.withdraw(&uid);
        queue.queue(&uid, delete(&uid), None);
        assert_eq!(sent(&mut queue, &mut env), std::slice::from_ref(&uid));
        assert!(queue.end(&uid).sent.is_some(), "it was the delete");
        assert!(!queue.is_acting() && !queue.is_asking());
    }

    /// As if an owner that changes all the time were put behind all others each time, or filled the queue.
    #[test]
    fn an_object_whose_effect_is_withdrawn_keeps_its_place() {
        let (mut queue, mut env) = (EffectQueue::default(), environment());
        let busy = uids("owner", env.settings.questions_max() + 2);
        for uid in &busy {
            queue.queue(uid, question(), None);
        }
        let first = sent(&mut queue, &mut env);
        let waiting = &busy[first.len()..];
        for _ in 0..3 {
            queue.withdraw(&waiting[0]);
            queue.queue(&waiting[0], question(), None);
        }
        assert_eq!(queue.questions.queue, waiting);
        queue.end(&first[0]);
        assert_eq!(sent(&mut queue, &mut env), waiting[..1]);
    }
}
