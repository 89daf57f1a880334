//! Carrying out one output of a controller on the simulated cluster and database,
//! or failing to.

use jiff::Timestamp;
use kindex_runtime::cluster::{ClusterError, WatchEvent};
use kindex_runtime::ingester::message::{Effect, EffectDone, Input, Output, PlannedWrite};
use kindex_runtime::object::ResourceVersion;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::THING;
use super::cluster::SimCluster;
use super::database::{SimDatabase, away};

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// It never arrives.
    Before,
    /// It succeeds and the answer is lost.
    After,
    /// The caller gives up, and then it arrives.
    Late,
}

pub fn timeout() -> ClusterError {
    ClusterError::Retryable {
        cause: "timeout",
        retry_after: None,
        message: "simulated".to_owned(),
    }
}

pub fn bookmark(version: ResourceVersion) -> WatchEvent {
    WatchEvent::Bookmark(version)
}

pub fn version_of(event: &WatchEvent) -> u64 {
    match event {
        WatchEvent::Applied(object) | WatchEvent::Deleted(object) => object.metadata.resource_version.0,
        WatchEvent::Bookmark(version) => version.0,
        WatchEvent::Unreadable(_) => unreachable!("the simulated cluster is readable"),
    }
}

/// Does what was asked and answers.
pub fn perform(output: &Output, cluster: &mut SimCluster, database: &mut SimDatabase, wall: Timestamp) -> Input {
    match output {
        Output::Load => Input::Loaded(Ok(database.load())),
        Output::Probe => Input::Probed(Ok(ResourceVersion(cluster.version))),
        Output::List { continue_token, limit } => Input::Page(cluster.list(*limit as usize, continue_token.as_deref())),
        Output::ReadPageRows(uids) => Input::PageRows(Ok(database.row_states(uids))),
        Output::Scan { after, limit } => Input::Scanned(Ok(database.scan(after.as_ref(), *limit as usize))),
        Output::ReadRows(ticket, uids) => Input::Rows(*ticket, Ok(database.row_states(uids))),
        Output::Write(ticket, writes) => Input::Written(*ticket, database.write(&THING, writes)),
        Output::SaveCheckpoint(version) => {
            database.checkpoint = Some(*version);
            Input::CheckpointSaved(Ok(()))
        }
        Output::ReleaseQuarantine(uid) => {
            database.quarantine.remove(uid);
            Input::QuarantineReleased(uid.clone(), Ok(()))
        }
        Output::Effect(uid, effect) => {
            let done = match effect {
                Effect::Get(name) => EffectDone::Got(Ok(cluster.get(&name.name))),
                Effect::SetFinalizers { target, finalizers } => {
                    EffectDone::FinalizersSet(cluster.set_finalizers(target, finalizers))
                }
                Effect::Delete(target) => EffectDone::Deleted(cluster.delete_if(target, wall)),
                Effect::Quarantine { reason, .. } => {
                    database.quarantine.insert(uid.clone(), reason.clone());
                    EffectDone::Quarantined(Ok(()))
                }
                Effect::Rewind => {
                    database.rewind(uid);
                    EffectDone::Rewound(Ok(()))
                }
            };
            Input::Effect(uid.clone(), done)
        }
        Output::Watch(_) | Output::StopWatch | Output::Notify(_) => {
            unreachable!("not requests with an answer")
        }
    }
}

/// The answer to a request that failed in a way that may pass.
pub fn failure(output: &Output, rng: &mut StdRng) -> Input {
    let cause = *["timeout", "too_many_requests", "internal"]
        .choose(rng)
        .expect("causes");
    let cluster = ClusterError::Retryable {
        cause,
        retry_after: None,
        message: "simulated".to_owned(),
    };
    let store = away(["connection", "deadlock", "disk_full"].choose(rng).expect("causes"));
    match output {
        Output::Load => Input::Loaded(Err(store)),
        Output::Probe => Input::Probed(Err(cluster)),
        Output::List { .. } => Input::Page(Err(cluster)),
        Output::ReadPageRows(_) => Input::PageRows(Err(store)),
        Output::Scan { .. } => Input::Scanned(Err(store)),
        Output::ReadRows(ticket, _) => Input::Rows(*ticket, Err(store)),
        Output::Write(ticket, _) => Input::Written(*ticket, Err(store)),
        Output::SaveCheckpoint(_) => Input::CheckpointSaved(Err(store)),
        Output::ReleaseQuarantine(uid) => Input::QuarantineReleased(uid.clone(), Err(store)),
        Output::Effect(uid, effect) => {
            let done = match effect {
                Effect::Get(_) => EffectDone::Got(Err(cluster)),
                Effect::SetFinalizers { .. } => EffectDone::FinalizersSet(Err(cluster)),
                Effect::Delete(_) => EffectDone::Deleted(Err(cluster)),
                Effect::Quarantine { .. } => EffectDone::Quarantined(Err(store)),
                Effect::Rewind => EffectDone::Rewound(Err(store)),
            };
            Input::Effect(uid.clone(), done)
        }
        Output::Watch(_) | Output::StopWatch | Output::Notify(_) => {
            unreachable!("not requests with an answer")
        }
    }
}

/// One line of the story.
pub fn summary(output: &Output) -> String {
    match output {
        Output::Write(ticket, writes) => {
            let writes: Vec<String> = writes
                .iter()
                .map(|write| match write {
                    PlannedWrite::Store { object, life, revive } => {
                        format!("{object:?} {life:?}{}", if *revive { " revive" } else { "" })
                    }
                    PlannedWrite::SoftDelete(uid) => format!("soft-delete {uid}"),
                    PlannedWrite::Record { object, .. } => format!("record {object:?}"),
                })
                .collect();
            format!("write #{ticket}: {}", writes.join(", "))
        }
        Output::Effect(uid, Effect::SetFinalizers { target, finalizers }) => {
            format!("finalizers of {uid} @{}: {finalizers:?}", target.resource_version)
        }
        Output::Effect(uid, Effect::Delete(target)) => {
            format!("delete {uid} @{}", target.resource_version)
        }
        Output::Effect(uid, Effect::Get(name)) => format!("get {name} for {uid}"),
        Output::Effect(uid, Effect::Quarantine { .. }) => format!("quarantine {uid}"),
        other => format!("{other:?}"),
    }
}
