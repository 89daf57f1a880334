//! The cluster and the database of a repair command, and its errors.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kindex_kube_client::{ClusterError, ReadApi};
use kindex_model::kind::{Kind, Platform};
use kindex_store::{IngesterStorage, MetadataStorage, StoreError};

/// The cluster and the database, in the roles that a command needs.
pub struct Sides<S: ?Sized = dyn MetadataStorage> {
    /// The platform.
    pub platform: Platform,
    /// The cluster.
    pub cluster: Arc<dyn ReadApi>,
    /// The database.
    pub storage: Arc<S>,
}

impl Sides {
    /// The same, in the role of an ingester.
    pub(crate) fn as_ingester(&self) -> Sides<dyn IngesterStorage> {
        Sides {
            platform: self.platform,
            cluster: self.cluster.clone(),
            storage: self.storage.clone(),
        }
    }
}

/// Why a command stopped. What it did stays done, and the next run continues.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The cluster did not answer, or refuses.
    #[error("{kind}: the cluster: {source}")]
    Cluster {
        /// The kind.
        kind: &'static str,
        /// As the cluster says it.
        #[source]
        source: ClusterError,
    },
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Only for a release: a service put a finalizer of ours back on the first object, or stored its new version.
    #[error("{service} is running: it reacted within {settle:?} to the release of {kind} {object}")]
    Running {
        /// Which service.
        service: FinalizerOwner,
        /// The kind.
        kind: &'static str,
        /// The object. It has its finalizers again.
        object: String,
        /// How long was waited.
        settle: Duration,
    },
}

/// A service that puts a finalizer on objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalizerOwner {
    /// The ingester.
    Ingester,
    /// The service that deletes objects after those that refer to them.
    Deletion,
}

impl fmt::Display for FinalizerOwner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Ingester => "an ingester",
            Self::Deletion => "a deletion service",
        })
    }
}

impl RepairError {
    /// Whether the cluster does not serve the kind: its CRD is not installed, or not in this version.
    pub fn is_unserved(&self) -> bool {
        matches!(
            self,
            Self::Cluster {
                source: ClusterError::Unserved { .. },
                ..
            }
        )
    }

    /// The reason if a list expired.
    pub(crate) fn expired(&self) -> Option<&str> {
        match self {
            Self::Cluster {
                source: ClusterError::Expired(reason),
                ..
            } => Some(reason),
            Self::Cluster { .. } | Self::Store(_) | Self::Running { .. } => None,
        }
    }

    pub(crate) fn cluster(kind: &Kind, source: ClusterError) -> Self {
        Self::Cluster {
            kind: kind.name,
            source,
        }
    }
}
