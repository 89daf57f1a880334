//! Effects on the cluster, one at a time for an object, each on the condition that
//! the object is still the one that was decided on. Whatever fails is asked for and
//! decided anew; nothing is repeated blindly. Knows which effects are queued or in flight, and how to read what
//! became of one.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use kindex_decide::row::Row;
use kindex_kube_client::{ClusterError, Target};
use kindex_model::object::{Object, ResourceVersion, Uid};

use super::super::message::{Effect, EffectDone, Output, StoreFailure};
use super::entry::Observation;
use super::environment::Environment;
use super::intake::Sent;

#[derive(Debug, Default)]
pub(super) struct Departure {
    /// In their order; one that was withdrawn meanwhile is not in `queued`.
    queue: VecDeque<Uid>,
    queued: BTreeMap<Uid, Queued>,
    in_flight: BTreeMap<Uid, InFlight>,
    /// Objects that our last effect removed, with the version that SQL holds. Every effect is on the condition that
    /// nobody wrote since: what the watch still tells is others' up to that version, and after it the echo of our own.
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
    /// Where it writes to the cluster.
    pub(super) sent: Option<Sent>,
    /// The row that made us ask, where it is a question.
    pub(super) doubted: Option<Row>,
}

impl Departure {
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Queues an effect. A question is asked because of the row `doubted`, where there is one.
    pub(super) fn queue(&mut self, uid: &Uid, effect: Effect, doubted: Option<Row>) {
        self.queued.insert(uid.clone(), Queued { effect, doubted });
        self.queue.push_back(uid.clone());
    }

    /// Takes an effect out of the queue, where it is in it: the object was observed anew.
    pub(super) fn withdraw(&mut self, uid: &Uid) {
        self.queued.remove(uid);
    }

    /// Sends the next effect, as long as more may be in flight. `newest` is the newest version that the cluster has
    /// told.
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

    /// An effect was answered.
    pub(super) fn end(&mut self, uid: &Uid) -> InFlight {
        self.in_flight.remove(uid).unwrap_or_default()
    }

    /// Our last effect removed an object of which SQL holds this version.
    pub(super) fn remember_removed(&mut self, uid: &Uid, stored: ResourceVersion) {
        self.removed.insert(uid.clone(), stored);
    }

    /// The version that SQL holds of an object that our last effect removed.
    pub(super) fn removed(&self, uid: &Uid) -> Option<ResourceVersion> {
        self.removed.get(uid).copied()
    }

    /// Whether an observation is the echo of what we did ourselves. `pending` says that the object is decided on all
    /// the same.
    pub(super) fn is_echo(&mut self, uid: &Uid, observation: &Observation, pending: bool) -> bool {
        match observation {
            Observation::Present(_) => self.removed.contains_key(uid),
            Observation::Gone(_) => self.removed.remove(uid).is_some() && !pending,
        }
    }

    /// A list begins: nothing that it shows is an echo.
    pub(super) fn forget_removed(&mut self) {
        self.removed.clear();
    }

    /// What was queued belongs to a cluster that is no more.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.queued.clear();
        self.removed.clear();
    }
}

/// The effect that gives an object our finalizer, or takes it away.
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

/// What became of an effect, as far as the object goes on by it.
#[derive(Debug)]
pub(super) enum Ended {
    /// The cluster says what is there.
    Answered(Observation),
    /// We removed the object, as the row says it: nothing new follows.
    Removed,
    /// We made this version of it.
    Changed(Object),
    /// Our delete made this version of it; others keep it.
    Leaving(Object),
    /// The row has lost its version.
    Rewound,
    /// The database has the record of it.
    Recorded,
    /// The database takes no record of it.
    Unrecorded(StoreFailure),
    /// The database did not answer.
    StoreFailed(StoreFailure),
    /// The cluster did not do it. `what` says what failed, where people are to know.
    Failed {
        what: Option<&'static str>,
        cause: &'static str,
        at_least: Duration,
        error: ClusterError,
    },
}

impl Ended {
    /// Reads the answer to an effect on the object `uid`, of which `newest` is known.
    pub(super) fn read(env: &Environment, uid: &Uid, newest: &Observation, done: EffectDone) -> Self {
        match done {
            EffectDone::Got(Ok(Some(object))) if object.metadata.uid == *uid => {
                Self::Answered(Observation::Present(object))
            }
            EffectDone::Got(Ok(_)) => Self::Answered(Observation::Gone(None)),
            EffectDone::Got(Err(error)) => Self::failed("Failed to read from the cluster", error),
            EffectDone::FinalizersSet(Ok(object)) => {
                let released = !env.head(&object).guarded;
                if released && object.metadata.finalizers.is_empty() {
                    return Self::Removed;
                }
                Self::Changed(object)
            }
            EffectDone::FinalizersSet(Err(error)) => {
                let guarded = newest.object().is_some_and(|object| env.head(object).guarded);
                let what = match guarded {
                    true => "Failed to remove finalizer",
                    false => "Failed to add finalizer",
                };
                Self::failed(what, error)
            }
            EffectDone::Deleted(Ok(left)) => left.map_or(Self::Removed, Self::Leaving),
            EffectDone::Deleted(Err(error)) => Self::failed("Failed to delete from the cluster", error),
            EffectDone::Rewound(Ok(())) => Self::Rewound,
            EffectDone::Quarantined(Ok(())) => Self::Recorded,
            EffectDone::Quarantined(Err(failure)) if !failure.retryable => Self::Unrecorded(failure),
            EffectDone::Rewound(Err(failure)) | EffectDone::Quarantined(Err(failure)) => Self::StoreFailed(failure),
        }
    }

    fn failed(what: &'static str, error: ClusterError) -> Self {
        let (what, cause, at_least) = match &error {
            ClusterError::NotFound(_) => return Self::Answered(Observation::Gone(None)),
            ClusterError::Conflict(_) => (None, "conflict", Duration::ZERO),
            ClusterError::Retryable { cause, retry_after, .. } => (Some(what), *cause, retry_after.unwrap_or_default()),
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
