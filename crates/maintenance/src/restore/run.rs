//! Sends a manifest: creates the object, sets its status through the subresource, and updates the rows in SQL. An
//! interrupted restoration is recognized by its annotation and completed.

use jiff::Timestamp;
use kindex_decide::repair::{self, RestoreDecision};
use kindex_kube_client::{ClusterError, CreateApi, ObjectName};
use kindex_model::head::Head;
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::{Object, Uid};
use kindex_model::projection::Version;
use kindex_model::reference_name::ReferenceName;
use kindex_query::{Life, Revive};
use kindex_store::{RowWrite, StoreError};
use serde::Serialize;

use super::holds::Lookup;
use super::manifest::{Manifest, has_status, manifest};
use super::owners::{OmittedOwner, owners};
use crate::retries::{RetryBudget, with_retries};
use crate::sides::{RepairError, Sides};

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The object is created.
    Create,
    /// A dry run of the cluster.
    DryRun,
}

/// The result for one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", tag = "outcome")]
pub enum Outcome {
    /// It is in the cluster again.
    Restored {
        /// The uid that it has now.
        new_uid: String,
    },
    /// An earlier restoration created it.
    AlreadyRestored {
        /// The uid that it has now.
        new_uid: String,
    },
    /// The cluster would create it.
    WouldRestore,
    /// Another object has the name, or the object itself is still being deleted.
    Taken {
        /// The uid of that one.
        by_uid: String,
    },
    /// It is in the cluster again, without its status.
    WithoutStatus {
        /// The uid that it has now.
        new_uid: String,
        /// As the cluster says it.
        reason: String,
    },
    /// It cannot be restored.
    Refused {
        /// Why.
        reason: String,
    },
}

impl Outcome {
    /// The uid that the object has now.
    pub fn new_uid(&self) -> Option<&str> {
        match self {
            Self::Restored { new_uid } | Self::AlreadyRestored { new_uid } | Self::WithoutStatus { new_uid, .. } => {
                Some(new_uid)
            }
            Self::WouldRestore | Self::Taken { .. } | Self::Refused { .. } => None,
        }
    }

    /// Whether the restoration is complete.
    pub fn is_good(&self) -> bool {
        match self {
            Self::Restored { .. } | Self::AlreadyRestored { .. } | Self::WouldRestore => true,
            Self::Taken { .. } | Self::WithoutStatus { .. } | Self::Refused { .. } => false,
        }
    }
}

/// The result, with the owners that were left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreReport {
    /// The result.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Owners of the old object that the new one does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners_left_out: Vec<OmittedOwner>,
}

/// Why a restoration is incomplete. The same call completes it.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The cluster did not answer.
    #[error("{kind} {name}: the cluster: {source}")]
    Cluster {
        /// The kind.
        kind: &'static str,
        /// The object.
        name: ObjectName,
        /// As the cluster says it.
        #[source]
        source: ClusterError,
    },
    /// What it holds could not be looked up or stored. Nothing was created.
    #[error("what {kind} {name} holds: {source}")]
    Holds {
        /// The kind.
        kind: &'static str,
        /// The object.
        name: ObjectName,
        /// As the cluster or the database says it.
        #[source]
        source: RepairError,
    },
    /// The object is in the cluster, but its rows could not be written.
    #[error("{kind} {name} is in the cluster, but its rows could not be written: {source}")]
    Store {
        /// The kind.
        kind: &'static str,
        /// The object.
        name: ObjectName,
        /// As the database says it.
        #[source]
        source: StoreError,
    },
}

/// Creates objects again.
pub struct Restorer<'a> {
    /// Cluster and database.
    pub sides: &'a Sides,
    /// The same cluster, for creating objects.
    pub creator: &'a dyn CreateApi,
    /// The registry, for the lookup of owners.
    pub registry: &'a Registry,
    /// Whether anything is written.
    pub mode: Mode,
    /// The name of the new object; `None`: that of the old one.
    pub new_name: Option<&'a str>,
    /// How long failures in a row are retried.
    pub retry_budget: RetryBudget,
}

impl Restorer<'_> {
    /// Restores an object from its stored text.
    ///
    /// # Guarantees
    /// Never touches an object that it did not create. A second call completes the first, and
    /// creates nothing. Afterwards SQL holds the new object as live and the row of the old uid as
    /// deleted, even if the old one has the higher version: in a rebuilt cluster, versions start again. The references
    /// on the old object are on the new one, and the new one holds what the old one held while it was archived. One
    /// that is being deleted in the archive is refused, and so is one that would lose a reference on an object of
    /// another service. Where the cluster refuses the new object, the old one goes on holding what its fields name.
    /// An ingester may run at the same time, and other restorations of the same object to the same name: one of them
    /// creates the new object, and those that are refused take nothing from it.
    ///
    /// # Assumptions
    /// The row of the text was chosen by [`choose`](super::choose). Nobody restores the same object to two names.
    ///
    /// # Errors
    /// If the cluster or the database does not answer within the retry budget.
    pub async fn restore(&self, kind: &'static Kind, object: &Object) -> Result<RestoreReport, RestoreError> {
        let name = ObjectName::of(object);
        let failed = |source| RestoreError::Cluster {
            kind: kind.name,
            name: name.clone(),
            source,
        };
        let unheld = |source| RestoreError::Holds {
            kind: kind.name,
            name: name.clone(),
            source,
        };
        // The text may be one of the past: what the object holds now is in its row.
        let (lookup, uid) = (self.lookup(), &object.metadata.uid);
        let archived = lookup.archived(kind, uid).await.map_err(unheld)?;
        if let Some(archived) = &archived
            && let Some(reason) = lookup.refusal(kind, archived, self.new_name).await.map_err(unheld)?
        {
            return Ok(RestoreReport {
                outcome: Outcome::Refused { reason },
                owners_left_out: Vec::new(),
            });
        }
        let owners = owners(&*self.sides.cluster, self.registry, object, self.retry_budget).await;
        let owners = owners.map_err(failed)?;
        let references = self.references(kind, object).await?;
        let outcome = match manifest(
            kind,
            &self.sides.platform,
            object,
            &owners.kept,
            &references,
            self.new_name,
        ) {
            Err(error) => {
                let reason = error.to_string();
                Outcome::Refused { reason }
            }
            Ok(manifest) => {
                // Whoever closes the row of the old object may do so as soon as the new one is there.
                if self.mode == Mode::Create
                    && let Some(archived) = &archived
                {
                    lookup.keep(kind, archived).await.map_err(unheld)?;
                }
                let sent = self.send(kind, &manifest).await.map_err(failed)?;
                if let Sent::There(object, _) = &sent {
                    self.update_rows(kind, &manifest, object).await?;
                    self.hand_over(kind, &manifest, &references, object).await?;
                }
                sent.outcome()
            }
        };
        Ok(RestoreReport {
            outcome,
            owners_left_out: owners.left_out,
        })
    }

    fn lookup(&self) -> Lookup<'_> {
        Lookup {
            sides: self.sides,
            registry: self.registry,
            retry_budget: self.retry_budget,
        }
    }

    /// The names of the references that SQL has on an object.
    async fn references(&self, kind: &'static Kind, object: &Object) -> Result<Vec<String>, RestoreError> {
        let uid = [object.metadata.uid.clone()];
        let found = with_retries(self.retry_budget, || self.sides.storage.references(kind, &uid)).await;
        let found = found.map_err(|source| RestoreError::Store {
            kind: kind.name,
            name: ObjectName::of(object),
            source,
        })?;
        Ok(found.into_iter().map(|reference| reference.name).collect())
    }

    /// The new object has these references: the old row has no part in them any more.
    async fn hand_over(
        &self,
        kind: &'static Kind,
        manifest: &Manifest,
        references: &[String],
        object: &Object,
    ) -> Result<(), RestoreError> {
        let has_reference = |name: &&String| object.metadata.finalizers.contains(name);
        let names = references
            .iter()
            .filter(has_reference)
            .filter_map(|name| name.parse::<ReferenceName>().ok());
        for name in names {
            let (storage, uid) = (&self.sides.storage, &manifest.old_uid);
            let release = || storage.release_reference(kind, uid, &name, Timestamp::now());
            let released = with_retries(self.retry_budget, release).await;
            released.map_err(|source| RestoreError::Store {
                kind: kind.name,
                name: manifest.name.clone(),
                source,
            })?;
        }
        Ok(())
    }

    async fn send(&self, kind: &'static Kind, manifest: &Manifest) -> Result<Sent, ClusterError> {
        let Manifest { name, text, .. } = manifest;
        let created = match self.mode {
            Mode::Create => with_retries(self.retry_budget, || self.creator.create(kind, name, text))
                .await
                .map(Some),
            Mode::DryRun => with_retries(self.retry_budget, || self.creator.rehearse(kind, name, text))
                .await
                .map(|()| None),
        };
        match created {
            Ok(None) => Ok(Sent::Not(Outcome::WouldRestore)),
            Ok(Some(object)) => {
                let new_uid = object.metadata.uid.to_string();
                self.complete(kind, manifest, object, Outcome::Restored { new_uid })
                    .await
            }
            Err(ClusterError::Conflict(reason)) => self.on_conflict(kind, manifest, reason).await,
            Err(
                ClusterError::Refused(reason)
                | ClusterError::NotFound(reason)
                | ClusterError::Unserved { message: reason, .. },
            ) => Ok(Sent::Not(Outcome::Refused { reason })),
            Err(error @ (ClusterError::Expired(_) | ClusterError::Retryable { .. })) => Err(error),
        }
    }

    async fn on_conflict(
        &self,
        kind: &'static Kind,
        manifest: &Manifest,
        reason: String,
    ) -> Result<Sent, ClusterError> {
        let there = with_retries(self.retry_budget, || self.sides.cluster.get(kind, &manifest.name)).await?;
        let Some(object) = there else {
            // The object that had the name has left in between.
            return Ok(Sent::Not(Outcome::Refused { reason }));
        };
        if !self.is_restored(&object, &manifest.old_uid) {
            let by_uid = object.metadata.uid.to_string();
            return Ok(Sent::Not(Outcome::Taken { by_uid }));
        }
        let new_uid = object.metadata.uid.to_string();
        let already = Outcome::AlreadyRestored { new_uid };
        match self.mode {
            Mode::Create => self.complete(kind, manifest, object, already).await,
            Mode::DryRun => Ok(Sent::Not(already)),
        }
    }

    fn is_restored(&self, object: &Object, old_uid: &Uid) -> bool {
        let from = object.metadata.annotations.get(self.sides.platform.restored_from);
        from.is_some_and(|uid| **uid == *old_uid.0)
    }

    /// Sets the status of the object, if it has none.
    async fn complete(
        &self,
        kind: &'static Kind,
        manifest: &Manifest,
        object: Object,
        done: Outcome,
    ) -> Result<Sent, ClusterError> {
        let Some(status) = manifest.status.as_deref().filter(|_| !has_status(&object)) else {
            return Ok(Sent::There(object, done));
        };
        let uid = &object.metadata.uid;
        let set = || self.creator.set_status(kind, &manifest.name, uid, status);
        match with_retries(self.retry_budget, set).await {
            Ok(object) => Ok(Sent::There(object, done)),
            Err(
                ClusterError::Refused(reason)
                | ClusterError::NotFound(reason)
                | ClusterError::Unserved { message: reason, .. }
                | ClusterError::Conflict(reason),
            ) => {
                let new_uid = uid.to_string();
                Ok(Sent::There(object, Outcome::WithoutStatus { new_uid, reason }))
            }
            Err(error @ (ClusterError::Expired(_) | ClusterError::Retryable { .. })) => Err(error),
        }
    }

    /// Closes the old row and stores the new one in one transaction: if both were open, the store would keep the one
    /// with the higher version, which may be the old one.
    async fn update_rows(&self, kind: &'static Kind, manifest: &Manifest, object: &Object) -> Result<(), RestoreError> {
        let mut writes = vec![RowWrite::SoftDelete {
            uid: manifest.old_uid.clone(),
        }];
        let head = Head::of(object, kind, &self.sides.platform);
        if repair::restored(&head) == RestoreDecision::Store {
            writes.push(RowWrite::Store {
                version: Version::project(kind, object.clone()),
                life: Life::Live,
                // The cluster has just returned it.
                revive: Revive::FromAny,
            });
        }
        let write = || self.sides.storage.write(kind, &writes, Timestamp::now());
        let written = with_retries(self.retry_budget, write).await;
        written.map(drop).map_err(|source| RestoreError::Store {
            kind: kind.name,
            name: manifest.name.clone(),
            source,
        })
    }
}

/// The result of sending a manifest.
enum Sent {
    /// The object is in the cluster, in this version.
    There(Object, Outcome),
    /// It is not.
    Not(Outcome),
}

impl Sent {
    fn outcome(self) -> Outcome {
        match self {
            Self::There(_, outcome) | Self::Not(outcome) => outcome,
        }
    }
}
