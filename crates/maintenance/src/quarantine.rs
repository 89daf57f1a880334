//! Retries a quarantined object, for someone who has fixed the cause. The ingester retries only when the object
//! changes.

use jiff::Timestamp;
use kindex_decide::repair::{self, RetryDecision};
use kindex_decide::row::Row;
use kindex_kube_client::{ClusterError, ObjectName};
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ObjectError, Uid};
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_store::{Quarantined, RowState, RowWrite, StoreError, Written, is_cut};
use serde::Serialize;

use crate::retries::{RetryBudget, with_retries};
use crate::sides::Sides;

/// The result of a retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Retried {
    /// The object is in the cluster, and SQL holds it.
    Stored,
    /// The object is gone, and SQL holds its last text.
    StoredAsGone,
    /// Its row already held it.
    Current,
    /// The database still rejects it.
    Refused {
        /// As the database says it.
        reason: String,
    },
    /// It is present, but its row is not live: the ingester decides at its next relist.
    Left,
}

/// Why a retry failed.
#[derive(Debug, thiserror::Error)]
pub enum RetryError {
    /// The cluster did not answer.
    #[error("the cluster: {0}")]
    Cluster(#[from] ClusterError),
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The recorded text is not a valid object.
    #[error("the recorded text: {0}")]
    Text(#[from] ObjectError),
    /// Only its beginning is recorded.
    #[error("{kind} {uid}: the object is gone, and only the beginning of its last text is recorded")]
    Cut {
        /// The kind.
        kind: &'static str,
        /// The uid.
        uid: Uid,
    },
    /// There is no record.
    #[error("{kind} {uid} is not in quarantine")]
    Absent {
        /// The kind.
        kind: &'static str,
        /// The uid.
        uid: Uid,
    },
}

/// Tries to store a quarantined object, and removes its record if that succeeds.
///
/// # Guarantees
/// The text in the cluster takes precedence over the recorded one. An object that is gone is stored as deleted, or as
/// archived if its row is, because the record may be the only copy of its last text. An older text never replaces a
/// newer one, and no row is revived.
pub async fn retry(
    sides: &Sides,
    kind: &'static Kind,
    record: &Quarantined,
    retry_budget: RetryBudget,
) -> Result<Retried, RetryError> {
    let (storage, uid) = (&sides.storage, &record.uid);
    let name = ObjectName {
        namespace: record.namespace.clone(),
        name: record.name.clone(),
    };
    let shown = with_retries(retry_budget, || sides.cluster.find(kind, &name)).await?;
    let shown = shown.filter(|object| object.metadata.uid == *uid);
    let states = with_retries(retry_budget, || storage.row_states(kind, std::slice::from_ref(uid))).await?;
    let (object, decided) = match shown {
        Some(object) => {
            let row = states.first().map(|state| Row::beside(state, Some(&object)));
            let decided = repair::retry_present(object.metadata.resource_version, row.as_ref());
            (object, decided)
        }
        None => {
            let text = with_retries(retry_budget, || storage.quarantined_text(kind, uid)).await?;
            let text = text.ok_or(RetryError::Absent {
                kind: kind.name,
                uid: uid.clone(),
            })?;
            if is_cut(&text) {
                let (kind, uid) = (kind.name, uid.clone());
                return Err(RetryError::Cut { kind, uid });
            }
            let object = Object::parse_str(&text)?;
            let row = states.first().map(|state| Row::beside(state, Some(&object)));
            let decided = repair::retry_gone(object.metadata.resource_version, row.as_ref());
            (object, decided)
        }
    };
    // A record that the ingester makes in between, of a later version, stays.
    let stored = matches!(decided, RetryDecision::Store(_)).then_some(object.metadata.resource_version);
    let held = states.first().map(RowState::cluster_version);
    let over = stored.max(held).unwrap_or_default().max(record.res_version);
    let retried = match decided {
        RetryDecision::Store(life) => write(sides, kind, object, life, retry_budget).await?,
        RetryDecision::Current => Retried::Current,
        RetryDecision::Left => Retried::Left,
    };
    match retried {
        Retried::Stored | Retried::StoredAsGone | Retried::Current => {
            with_retries(retry_budget, || storage.release_quarantine(kind, uid, over)).await?;
        }
        Retried::Refused { .. } | Retried::Left => {}
    }
    Ok(retried)
}

async fn write(
    sides: &Sides,
    kind: &'static Kind,
    object: Object,
    life: Life,
    retry_budget: RetryBudget,
) -> Result<Retried, RetryError> {
    let storage = &sides.storage;
    let write = [RowWrite::Store {
        version: Version::project(kind, object.clone()),
        life,
        revive: Revive::Never,
    }];
    match with_retries(retry_budget, || storage.write(kind, &write, Timestamp::now())).await {
        Ok(written) => Ok(match (written.first(), life) {
            (Some(Written::Superseded), _) => Retried::Current,
            (_, Life::Live) => Retried::Stored,
            (_, Life::Archived | Life::Deleted) => Retried::StoredAsGone,
        }),
        Err(StoreError::Refused { source, .. }) => {
            let reason = source.to_string();
            with_retries(retry_budget, || {
                storage.quarantine(kind, &object, &reason, Timestamp::now())
            })
            .await?;
            Ok(Retried::Refused { reason })
        }
        Err(error) => Err(error.into()),
    }
}
