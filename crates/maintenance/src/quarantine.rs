//! Another attempt at an object that the database refused: by whoever has found out why,
//! and without the ingester, which tries again only when the object changes.

use jiff::Timestamp;
use kindex_kube_client::{ClusterError, ObjectName};
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ObjectError, ResourceVersion, Uid};
use kindex_model::projection::Version;
use kindex_query::Life;
use kindex_store::{Quarantined, RowState, RowWrite, StoreError, Written, is_cut};
use serde::Serialize;

use crate::patience::{Patience, patiently};
use crate::verify::Sides;

/// What became of another attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Retried {
    /// The object is in the cluster, and SQL holds it.
    Stored,
    /// The object is gone, and SQL holds its last text.
    StoredAsGone,
    /// Its row held all of it already.
    Current,
    /// The database refuses it still.
    Refused {
        /// As the database says it.
        reason: String,
    },
    /// Its row says that it left while it is there: the ingester decides at its next full list.
    Left,
}

/// Why another attempt came to no end.
#[derive(Debug, thiserror::Error)]
pub enum RetryError {
    /// The cluster did not answer.
    #[error("the cluster: {0}")]
    Cluster(#[from] ClusterError),
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The recorded text is no object.
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

/// Tries to store an object of which there is a record, and removes the record where that succeeds.
///
/// # Guarantees
/// What the cluster shows goes over the recorded text. An object that is gone is stored as deleted
/// (as evicted where its row says so), for the record may hold the only copy of its last text.
/// An older text never replaces a newer one, and no row comes back to life.
pub async fn retry(
    sides: &Sides,
    kind: &'static Kind,
    record: &Quarantined,
    patience: Patience,
) -> Result<Retried, RetryError> {
    let (storage, uid) = (&sides.storage, &record.uid);
    let name = ObjectName {
        namespace: record.namespace.clone(),
        name: record.name.clone(),
    };
    let shown = patiently(patience, || sides.cluster.get(kind, &name)).await?;
    let shown = shown.filter(|object| object.metadata.uid == *uid);
    let states = patiently(patience, || storage.row_states(kind, std::slice::from_ref(uid))).await?;
    let row = states.first();
    let plan = match shown {
        Some(object) => plan_present(object.metadata.resource_version, row).map(|life| (object, life)),
        None => {
            let text = patiently(patience, || storage.quarantined_text(kind, uid)).await?;
            let text = text.ok_or(RetryError::Absent {
                kind: kind.name,
                uid: uid.clone(),
            })?;
            if is_cut(&text) {
                let (kind, uid) = (kind.name, uid.clone());
                return Err(RetryError::Cut { kind, uid });
            }
            let object = Object::parse_str(&text)?;
            plan_gone(object.metadata.resource_version, row).map(|life| (object, life))
        }
    };
    // A record that the ingester makes meanwhile, of a version beyond these, stays.
    let planned = plan.as_ref().ok().map(|(object, _)| object.metadata.resource_version);
    let held = row.map(RowState::cluster_version);
    let over = planned.max(held).unwrap_or_default().max(record.res_version);
    let retried = match plan {
        Err(outcome) => outcome,
        Ok((object, life)) => write(sides, kind, object, life, patience).await?,
    };
    match retried {
        Retried::Stored | Retried::StoredAsGone | Retried::Current => {
            patiently(patience, || storage.release_quarantine(kind, uid, over)).await?;
        }
        Retried::Refused { .. } | Retried::Left => {}
    }
    Ok(retried)
}

/// The life of the row of an object that is there, or what there is to say instead.
fn plan_present(version: ResourceVersion, row: Option<&RowState>) -> Result<Life, Retried> {
    match row.map(|row| (row.life, row.cluster_version())) {
        Some((Life::Live, stored)) if stored > version => Err(Retried::Current),
        None | Some((Life::Live, _)) => Ok(Life::Live),
        Some((Life::Evicted | Life::Deleted, _)) => Err(Retried::Left),
    }
}

/// The same of an object that is gone.
fn plan_gone(version: ResourceVersion, row: Option<&RowState>) -> Result<Life, Retried> {
    match row.map(|row| (row.life, row.cluster_version())) {
        Some((Life::Evicted | Life::Deleted, stored)) if stored >= version => Err(Retried::Current),
        Some((Life::Evicted, _)) => Ok(Life::Evicted),
        None | Some((Life::Live | Life::Deleted, _)) => Ok(Life::Deleted),
    }
}

async fn write(
    sides: &Sides,
    kind: &'static Kind,
    object: Object,
    life: Life,
    patience: Patience,
) -> Result<Retried, RetryError> {
    let storage = &sides.storage;
    let write = [RowWrite::Store {
        version: Version::project(kind, object.clone()),
        life,
        revive: false,
    }];
    match patiently(patience, || storage.write(kind, &write, Timestamp::now())).await {
        Ok(written) => Ok(match (written.first(), life) {
            (Some(Written::Superseded), _) => Retried::Current,
            (_, Life::Live) => Retried::Stored,
            (_, Life::Evicted | Life::Deleted) => Retried::StoredAsGone,
        }),
        Err(StoreError::Refused { source, .. }) => {
            let reason = source.to_string();
            patiently(patience, || {
                storage.quarantine(kind, &object, &reason, Timestamp::now())
            })
            .await?;
            Ok(Retried::Refused { reason })
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(version: u64, life: Life) -> RowState {
        RowState {
            arrival: kindex_store::Arrival(1),
            uid: Uid::from("u"),
            namespace: String::new(),
            name: "a".to_owned(),
            res_version: ResourceVersion(version),
            hash: None,
            life,
        }
    }

    #[test]
    fn an_object_that_is_there_is_stored_as_live_or_left_to_the_ingester() {
        let plan = |version, life| plan_present(ResourceVersion(5), Some(&row(version, life)));
        assert_eq!(plan_present(ResourceVersion(5), None), Ok(Life::Live));
        assert_eq!(plan(5, Life::Live), Ok(Life::Live));
        assert_eq!(plan(6, Life::Live), Err(Retried::Current));
        assert_eq!(plan(4, Life::Evicted), Err(Retried::Left));
        assert_eq!(plan(4, Life::Deleted), Err(Retried::Left));
    }

    #[test]
    fn the_last_text_of_a_gone_object_is_kept_and_the_row_is_never_live() {
        let plan = |version, life| plan_gone(ResourceVersion(5), Some(&row(version, life)));
        assert_eq!(plan_gone(ResourceVersion(5), None), Ok(Life::Deleted));
        assert_eq!(plan(4, Life::Live), Ok(Life::Deleted));
        assert_eq!(plan(4, Life::Evicted), Ok(Life::Evicted));
        assert_eq!(plan(4, Life::Deleted), Ok(Life::Deleted));
        assert_eq!(plan(5, Life::Deleted), Err(Retried::Current));
        assert_eq!(plan(5, Life::Evicted), Err(Retried::Current));
    }
}
