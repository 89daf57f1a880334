//! Carries out one output of a controller on a cluster and a database. Decides nothing and reads no clock; every
//! failure goes back to the controller. Each output is a span of a trace.

use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use jiff::Timestamp;
use kindex_kube_client::{ObjectApi, ObjectName};
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::{Object, Uid};
use kindex_store::{IngesterStorage, RowWrite, StoreError, Written};
use tracing::field::Empty;
use tracing::{Instrument, Span, debug_span};

use super::owned::Owner;
use crate::message::{Effect, EffectDone, Input, Outcome, Output, OwnedFailure, Saved, StoreFailure, Ticket};

/// Carries out the outputs of one kind.
#[derive(Clone)]
pub struct Executor {
    /// The kind whose objects these are.
    pub kind: &'static Kind,
    /// All kinds, which may own each other's objects.
    pub registry: Registry,
    /// Where the objects are.
    pub cluster: Arc<dyn ObjectApi>,
    /// Where their rows are.
    pub storage: Arc<dyn IngesterStorage>,
}

impl Executor {
    /// Carries out an output and returns its answer. `now` becomes the time of rows that change.
    ///
    /// # Assumptions
    /// The caller keeps the watch and sends notices, which have no answer: [`Output::Watch`], [`Output::StopWatch`] and
    /// [`Output::Notify`] never come here.
    pub async fn execute(self, output: Output, now: Timestamp) -> Input {
        let span = self.span(&output);
        self.perform(output, now).instrument(span).await
    }

    /// The span of an output in a trace.
    fn span(&self, output: &Output) -> Span {
        let kind = self.kind.name;
        match output {
            Output::List { continue_token, .. } => {
                let first = continue_token.is_none();
                debug_span!(
                    "list page",
                    kind,
                    first,
                    objects = Empty,
                    otel.status_code = Empty,
                    error = Empty
                )
            }
            Output::Write(_, writes) => {
                let rows = writes.len();
                debug_span!("batch", kind, rows, otel.status_code = Empty, error = Empty)
            }
            Output::ReadRows(_, uids) => debug_span!("read rows", kind, rows = uids.len()),
            Output::ReadPageRows(uids) => debug_span!("compare page", kind, rows = uids.len()),
            Output::Scan { .. } => debug_span!("scan rows", kind),
            Output::SetHistoryAside(_) => debug_span!("put history aside", kind),
            Output::Rewind(uids) => debug_span!("rewind rows", kind, rows = uids.len()),
            Output::Effect(uid, effect) => {
                let effect = effect.name();
                debug_span!("effect", kind, effect, %uid, otel.status_code = Empty, error = Empty)
            }
            Output::Load
            | Output::Probe
            | Output::Watch(_)
            | Output::StopWatch
            | Output::SaveCheckpoint { .. }
            | Output::ReleaseQuarantine(..)
            | Output::Notify(_) => Span::none(),
        }
    }

    async fn perform(self, output: Output, now: Timestamp) -> Input {
        let Self {
            kind, cluster, storage, ..
        } = &self;
        match output {
            Output::Load => Input::Loaded(self.load().await.map_err(StoreFailure::from)),
            Output::Probe => {
                let page = cluster.list(kind, 1, None).await;
                Input::Probed(page.map(|page| page.resource_version))
            }
            Output::List { continue_token, limit } => {
                let page = cluster.list(kind, limit, continue_token.as_deref()).await;
                match &page {
                    Ok(page) => drop(Span::current().record("objects", page.objects.len())),
                    Err(error) => mark_failed(error),
                }
                Input::Page(page)
            }
            Output::ReadPageRows(uids) => Input::PageRows(storage.row_states(kind, &uids).await.map_err(Into::into)),
            Output::Scan { after, limit } => {
                let rows = storage.scan(kind, after, limit).await;
                Input::Scanned(rows.map_err(Into::into))
            }
            Output::SetHistoryAside(beyond) => {
                Input::Rewound(storage.branch_off_beyond(kind, beyond, now).await.map_err(Into::into))
            }
            Output::Rewind(uids) => Input::Rewound(storage.rewind(kind, &uids, now).await.map_err(Into::into)),
            Output::ReadRows(ticket, uids) => {
                let rows = storage.row_states(kind, &uids).await;
                Input::Rows(ticket, rows.map_err(Into::into))
            }
            Output::Write(ticket, writes) => self.write(ticket, writes, now).await,
            Output::Effect(uid, effect) => {
                let done = self.effect(&uid, effect, now).await;
                if let Some(error) = done.error() {
                    mark_failed(&error);
                }
                Input::Effect(uid, done)
            }
            Output::SaveCheckpoint { checkpoint, known_mark } => {
                let saved = storage.save_checkpoint(kind, checkpoint, known_mark, now).await;
                Input::CheckpointSaved(saved.map_err(Into::into))
            }
            Output::ReleaseQuarantine(uid, stored) => {
                let released = storage.release_quarantine(kind, &uid, stored).await;
                Input::QuarantineReleased(uid, stored, released.map_err(Into::into))
            }
            Output::Watch(_) | Output::StopWatch | Output::Notify(_) => {
                unreachable!("the kind's task keeps its watch and sends its notices")
            }
        }
    }

    async fn load(&self) -> Result<Saved, StoreError> {
        Ok(Saved {
            checkpoint: self.storage.checkpoint(self.kind).await?,
            quarantined: self.storage.quarantined(self.kind).await?,
        })
    }

    /// Projects and writes a batch. A projection that panics is a property of the object:
    /// it is found by halving the batch, like any text that the database refuses.
    async fn write(&self, ticket: Ticket, writes: Vec<RowWrite<Object>>, now: Timestamp) -> Input {
        let attempt = AssertUnwindSafe(self.project_and_write(writes, now))
            .catch_unwind()
            .await;
        let answer = attempt.unwrap_or_else(|panic| {
            let message = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "without a message".to_owned());
            Err(StoreFailure {
                retryable: false,
                is_outage: false,
                cause: "panic",
                message: format!("panic: {message}"),
            })
        });
        if let Err(failure) = &answer {
            mark_failed(&failure.message);
        }
        Input::Written(ticket, answer)
    }

    async fn project_and_write(
        &self,
        writes: Vec<RowWrite<Object>>,
        now: Timestamp,
    ) -> Result<Vec<Outcome>, StoreFailure> {
        let project = || writes.into_iter().map(|write| write.project(self.kind)).collect();
        let batch: Vec<RowWrite> = debug_span!("projection").in_scope(project);
        let commit = self.storage.write(self.kind, &batch, now);
        let written = commit.instrument(debug_span!("commit")).await?;
        let mut outcomes = Vec::with_capacity(written.len());
        for (written, write) in written.into_iter().zip(&batch) {
            let (problems, replaced) = match write {
                RowWrite::Store { version, .. } => {
                    let replaced = match written {
                        Written::Replacing => self.replaced_by(&version.object).await,
                        Written::Inserted | Written::Updated | Written::Unchanged | Written::Superseded => Vec::new(),
                    };
                    (version.problems.clone(), replaced)
                }
                RowWrite::SoftDelete { .. } | RowWrite::Record { .. } => (Vec::new(), Vec::new()),
            };
            outcomes.push(Outcome {
                written,
                problems,
                replaced,
            });
        }
        Ok(outcomes)
    }

    /// The archived objects that this one replaced. Empty if they cannot be read: the rows are written already.
    async fn replaced_by(&self, object: &Object) -> Vec<Uid> {
        let metadata = &object.metadata;
        let rows = self
            .storage
            .rows_of_name(self.kind, &metadata.namespace, &metadata.name);
        let rows = rows.await.unwrap_or_else(|error| {
            tracing::warn!(kind = self.kind.name, uid = %metadata.uid,
                "The object replaced an archived one, which cannot be read now: {error}");
            Vec::new()
        });
        let replaced = rows
            .into_iter()
            .filter(|row| row.replaced_by.as_ref() == Some(&metadata.uid));
        replaced.map(|row| row.object.metadata.uid.clone()).collect()
    }

    async fn effect(&self, uid: &Uid, effect: Effect, now: Timestamp) -> EffectDone {
        let Self {
            kind, cluster, storage, ..
        } = self;
        match effect {
            Effect::Get(name) => EffectDone::Got(cluster.get(kind, &name).await),
            Effect::SetFinalizers { target, finalizers } => {
                EffectDone::FinalizersSet(cluster.set_finalizers(kind, &target, &finalizers).await)
            }
            Effect::Delete(target) => EffectDone::Deleted(cluster.delete(kind, &target).await),
            Effect::FindOwned(name) => EffectDone::OwnedFound(self.owns(&name, uid).await),
            Effect::Quarantine { object, reason } => {
                let recorded = storage.quarantine(kind, &object, &reason, now).await;
                EffectDone::Quarantined(recorded.map_err(Into::into))
            }
            Effect::Rewind => {
                let rewound = storage.rewind(kind, std::slice::from_ref(uid), now).await;
                EffectDone::Rewound(rewound.map_err(Into::into))
            }
        }
    }

    /// Whether an object owns others: first by what SQL has, which costs less, and then by what the cluster has.
    async fn owns(&self, name: &ObjectName, uid: &Uid) -> Result<bool, OwnedFailure> {
        let live_rows = self.storage.owns_live_rows(self.kind, &name.namespace, &name.name, uid);
        if live_rows.await.map_err(|error| OwnedFailure::Store(error.into()))? {
            return Ok(true);
        }
        let owner = Owner {
            registry: &self.registry,
            kind: self.kind,
            name,
            uid,
        };
        let found = owner.owns_in_cluster(&*self.cluster).await;
        found.map_err(OwnedFailure::Cluster)
    }
}

/// Records in the trace why the current span failed.
fn mark_failed(error: &dyn Display) {
    let span = Span::current();
    span.record("otel.status_code", "ERROR");
    span.record("error", tracing::field::display(error));
}
