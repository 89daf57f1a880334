//! The queue of effects: at most one in flight for an object, each conditional on the version that was decided on.
//! Reads the results of effects. After a failure the object is read and decided on again; no effect is repeated
//! blindly.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use kindex_decide::row::Row;
use kindex_kube_client::{ClusterError, Target};
use kindex_model::head::is_of_use;
use kindex_model::object::{Object, ResourceVersion, Uid};

use super::entry::Observation;
use super::environment::Environment;
use super::intake::Sent;
use crate::message::{Effect, EffectDone, Output, OwnedFailure, StoreFailure};

#[derive(Debug, Default)]
pub(super) struct EffectQueue {
    /// In order. An effect that was withdrawn is not in `queued`.
    queue: VecDeque<Uid>,
    queued: BTreeMap<Uid, Queued>,
    in_flight: BTreeMap<Uid, InFlight>,
    /// Objects that our effect removed, with the version that SQL holds. Effects are conditional on the version, so
    /// events up to that version are writes of others, and later ones are the echo of our effect.
    removed: BTreeMap<Uid, ResourceVersion>,
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

impl EffectQueue {
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Queues an effect. `doubted` is the row that a read is to confirm.
    pub(super) fn queue(&mut self, uid: &Uid, effect: Effect, doubted: Option<Row>) {
        self.queued.insert(uid.clone(), Queued { effect, doubted });
        self.queue.push_back(uid.clone());
    }

    /// Removes the effect of an object from the queue: the object was observed again.
    pub(super) fn withdraw(&mut self, uid: &Uid) {
        self.queued.remove(uid);
    }

    /// Sends the next effect, as long as more may be in flight. `newest` is the newest version that the cluster has
    /// reported.
    pub(super) fn send_next(&mut self, env: &mut Environment, newest: ResourceVersion) -> Option<Uid> {
        while self.in_flight.len() < env.settings.effects_max() {
            let uid = self.queue.pop_front()?;
            let Some(Queued { effect, doubted }) = self.queued.remove(&uid) else {
                continue;
            };
            let sent = effect.target().map(|target| Sent {
                replaces: target.resource_version,
                newest,
            });
            self.in_flight.insert(uid.clone(), InFlight { sent, doubted });
            env.emit(Output::Effect(uid.clone(), effect));
            return Some(uid);
        }
        None
    }

    /// Ends an effect that was answered.
    pub(super) fn end(&mut self, uid: &Uid) -> InFlight {
        self.in_flight.remove(uid).unwrap_or_default()
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
        self.queue.clear();
        self.queued.clear();
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
    finalizers.retain(|finalizer| finalizer != env.platform.finalizer && !is_of_use(finalizer, &env.platform));
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
