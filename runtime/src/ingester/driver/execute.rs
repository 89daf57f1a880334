//! Carrying out one output of a controller on the real cluster and database.
//! Decides nothing; every failure goes back to the controller.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use jiff::Timestamp;

use super::super::message::{Effect, EffectDone, Input, Outcome, Output, PlannedWrite, Saved, StoreFailure, Ticket};
use crate::cluster::{ClusterApi, Notice};
use crate::kind::Kind;
use crate::object::Uid;
use crate::projection::Version;
use crate::store::{MetadataStorage, RowWrite, StoreError};

/// Where outputs are carried out.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) kind: &'static Kind,
    pub(super) cluster: Arc<dyn ClusterApi>,
    pub(super) storage: Arc<dyn MetadataStorage>,
}

impl Place {
    /// Does what was asked and answers; `None` where nobody waits for an answer.
    pub(super) async fn execute(self, output: Output) -> Option<Input> {
        let Self { kind, cluster, storage } = &self;
        Some(match output {
            Output::Load => Input::Loaded(self.load().await.map_err(StoreFailure::from)),
            Output::Probe => {
                let page = cluster.list(kind, 1, None).await;
                Input::Probed(page.map(|page| page.resource_version))
            }
            Output::List { continue_token, limit } => {
                Input::Page(cluster.list(kind, limit, continue_token.as_deref()).await)
            }
            Output::ReadPageRows(uids) => Input::PageRows(storage.row_states(kind, &uids).await.map_err(Into::into)),
            Output::Scan { after, limit } => {
                let rows = storage.scan(kind, after.as_ref(), limit).await;
                Input::Scanned(rows.map_err(Into::into))
            }
            Output::ReadRows(ticket, uids) => {
                let rows = storage.row_states(kind, &uids).await;
                Input::Rows(ticket, rows.map_err(Into::into))
            }
            Output::Write(ticket, writes) => self.write(ticket, writes).await,
            Output::Effect(uid, effect) => {
                let done = self.effect(&uid, effect).await;
                Input::Effect(uid, done)
            }
            Output::SaveCheckpoint(version) => {
                let saved = storage.save_checkpoint(kind, version, Timestamp::now()).await;
                Input::CheckpointSaved(saved.map_err(Into::into))
            }
            Output::ReleaseQuarantine(uid) => {
                let released = storage.release_quarantine(kind, &uid).await;
                Input::QuarantineReleased(uid, released.map_err(Into::into))
            }
            Output::Notify(notice) => {
                self.notify(&notice).await;
                return None;
            }
            Output::Watch(_) | Output::StopWatch => unreachable!("the kind's task keeps its watch"),
        })
    }

    async fn load(&self) -> Result<Saved, StoreError> {
        Ok(Saved {
            position: self.storage.checkpoint(self.kind).await?,
            quarantined: self.storage.quarantined(self.kind).await?,
        })
    }

    /// Projects and writes a batch. A projection that panics is a property of the object:
    /// it is found by halving the batch, like any text that the database refuses.
    async fn write(&self, ticket: Ticket, writes: Vec<PlannedWrite>) -> Input {
        let attempt = AssertUnwindSafe(self.project_and_write(writes)).catch_unwind().await;
        let answer = attempt.unwrap_or_else(|panic| {
            let message = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "without a message".to_owned());
            Err(StoreFailure {
                retryable: false,
                cause: "panic",
                message: format!("panic: {message}"),
            })
        });
        Input::Written(ticket, answer)
    }

    async fn project_and_write(&self, writes: Vec<PlannedWrite>) -> Result<Vec<Outcome>, StoreFailure> {
        let mut problems = Vec::with_capacity(writes.len());
        let mut batch = Vec::with_capacity(writes.len());
        for write in writes {
            match write {
                PlannedWrite::Store { object, life, revive } => {
                    let version = Version::project(self.kind, object);
                    problems.push(version.problems.clone());
                    batch.push(RowWrite::Store { version, life, revive });
                }
                PlannedWrite::SoftDelete(uid) => {
                    problems.push(Vec::new());
                    batch.push(RowWrite::SoftDelete { uid });
                }
            }
        }
        let written = self.storage.write(self.kind, &batch, Timestamp::now()).await?;
        let outcomes = written.into_iter().zip(problems);
        Ok(outcomes
            .map(|(written, problems)| Outcome { written, problems })
            .collect())
    }

    async fn effect(&self, uid: &Uid, effect: Effect) -> EffectDone {
        let Self { kind, cluster, storage } = self;
        match effect {
            Effect::Get(name) => EffectDone::Got(cluster.get(kind, &name).await),
            Effect::SetFinalizers { target, finalizers } => {
                EffectDone::FinalizersSet(cluster.set_finalizers(kind, &target, &finalizers).await)
            }
            Effect::Delete(target) => EffectDone::Deleted(cluster.delete(kind, &target).await),
            Effect::Quarantine { object, reason } => {
                let now = Timestamp::now();
                let recorded = storage.quarantine(kind, &object, &reason, now).await;
                EffectDone::Quarantined(recorded.map_err(Into::into))
            }
            Effect::Rewind => {
                let rewound = storage.rewind(kind, std::slice::from_ref(uid)).await;
                EffectDone::Rewound(rewound.map_err(Into::into))
            }
        }
    }

    async fn notify(&self, notice: &Notice) {
        if let Err(error) = self.cluster.create_event(self.kind, notice).await {
            let object = &notice.about.name;
            tracing::warn!(kind = self.kind.name, %object, "The event was not recorded: {error}");
        }
    }
}
