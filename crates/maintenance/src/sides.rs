//! Cluster and database, between which a repair command stands, and how either may fail it.

use std::sync::Arc;
use std::time::Duration;

use kindex_kube_client::{ClusterApi, ClusterError};
use kindex_model::kind::{Kind, Platform};
use kindex_store::{IngesterStorage, MetadataStorage, StoreError};

/// Where both sides are, the rows in those roles that a command needs.
pub struct Sides<S: ?Sized = dyn MetadataStorage> {
    /// Of the platform.
    pub platform: Platform,
    /// One side.
    pub cluster: Arc<dyn ClusterApi>,
    /// The other.
    pub storage: Arc<S>,
}

impl Sides {
    /// The same, for who only reads and writes as an ingester does.
    pub(crate) fn as_ingester(&self) -> Sides<dyn IngesterStorage> {
        Sides {
            platform: self.platform,
            cluster: self.cluster.clone(),
            storage: self.storage.clone(),
        }
    }
}

/// Why a command that walks over a kind came to no end. What it did stays done; the next run goes on.
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
    /// Of a release alone: somebody stored in SQL what it did to its first object, or undid it.
    #[error("an ingester is running: it reacted within {settle:?} to the release of {kind} {object}")]
    Ingester {
        /// The kind.
        kind: &'static str,
        /// The object; it holds the finalizer again.
        object: String,
        /// How long was waited.
        settle: Duration,
    },
}

impl RepairError {
    /// Whether the cluster does not serve the kind: its CRD is not installed, or not in this version.
    pub fn is_unserved(&self) -> bool {
        matches!(
            self,
            Self::Cluster {
                source: ClusterError::NotFound(_),
                ..
            }
        )
    }

    /// What the cluster says where it no longer keeps the version of a list.
    pub(crate) fn expired(&self) -> Option<&str> {
        match self {
            Self::Cluster {
                source: ClusterError::Expired(reason),
                ..
            } => Some(reason),
            Self::Cluster { .. } | Self::Store(_) | Self::Ingester { .. } => None,
        }
    }

    pub(crate) fn cluster(kind: &Kind, source: ClusterError) -> Self {
        Self::Cluster {
            kind: kind.name,
            source,
        }
    }
}
