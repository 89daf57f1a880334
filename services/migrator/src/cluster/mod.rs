//! A Kubernetes cluster as the trigger and the migrator use it: any resource, by its metadata alone.

use kindex_kube_client::{DiscoveryQuery, Outcome, Served, look_up, outcome, served};
use kube::api::{Api, ListParams};
use kube::{Client, Resource};

use crate::wire::definition::{self, StoredDefinition};
use crate::wire::{GroupResource, StorageState, StorageVersionMigration};

pub mod discover;

pub mod install;

pub mod settings;

mod request;

mod objects;

mod prefetch;

mod preflight;

pub mod reconcile;

mod blame;

pub mod work;

pub mod in_tree;

pub mod survey;

pub mod manual;

pub mod prune;

/// The API servers of a cluster. Each is asked what it writes; the first reads and writes objects.
#[derive(Clone)]
pub struct Cluster {
    first: Client,
    others: Vec<Client>,
}

/// What went wrong in a round; the next one tries again.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Objects of this kind could not be listed.
    #[error("{what} cannot be listed")]
    List {
        /// Plural name.
        what: &'static str,
        /// Why.
        source: kube::Error,
    },
    /// An object could not be read.
    #[error("{what} \"{name}\" cannot be read")]
    Read {
        /// Singular name.
        what: &'static str,
        /// Of the object.
        name: String,
        /// Why.
        source: kube::Error,
    },
    /// It is not known what a resource is.
    #[error("not every API server says whether it serves {resource}")]
    Unknown {
        /// Its name.
        resource: String,
    },
    /// An object could not be written.
    #[error("{what} \"{name}\" cannot be written")]
    Write {
        /// Singular name.
        what: &'static str,
        /// Of the object.
        name: String,
        /// Why.
        source: kube::Error,
    },
    /// The end of a migration could not be waited for.
    #[error("storageversionmigration \"{name}\" cannot be watched")]
    Watch {
        /// Of the object.
        name: String,
        /// Why.
        source: kube::runtime::wait::Error,
    },
    /// The cluster has no migrator of its own.
    #[error(
        "the API server does not serve {group}: kube-apiserver and kube-controller-manager need the feature gate \
         StorageVersionMigrator, kube-apiserver also --runtime-config; or migrate without --in-tree"
    )]
    Unserved {
        /// Its API group.
        group: &'static str,
    },
}

impl ClusterError {
    /// Whether a list was asked for of which the API server knows nothing.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::List { source, .. } if outcome(source).is_some_and(Outcome::is_not_found))
    }
}

impl Cluster {
    /// A cluster by a client for each address of its API servers; where they share one, by that one alone.
    pub fn new(first: Client, others: Vec<Client>) -> Self {
        Self { first, others }
    }

    /// The API server that reads and writes objects.
    pub fn first(&self) -> &Client {
        &self.first
    }

    fn servers(&self) -> impl Iterator<Item = &Client> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn states(&self) -> Api<StorageState> {
        Api::all(self.first.clone())
    }

    pub(crate) fn migrations(&self) -> Api<StorageVersionMigration> {
        Api::all(self.first.clone())
    }

    /// A migration as it is now; `None` where it is not there, nor the definition of its kind.
    async fn migration(&self, name: &str) -> kube::Result<Option<StorageVersionMigration>> {
        match look_up(&self.migrations(), name).await {
            Err(error) => {
                let unserved = self.confirm_unserved::<StorageVersionMigration>(error).await;
                unserved.map(|()| None)
            }
            found => found,
        }
    }

    /// Confirms that a request for objects of a kind was refused because the cluster does not serve it. What stands
    /// before the cluster may answer 404, too, so its discovery counts.
    ///
    /// # Errors
    /// What the request ended with, if that is not the reason, or not known to be.
    async fn confirm_unserved<K: Resource<DynamicType = ()>>(&self, error: kube::Error) -> kube::Result<()> {
        if outcome(&error) != Some(Outcome::Unserved) {
            return Err(error);
        }
        let (group, version, plural) = (K::group(&()), K::version(&()), K::plural(&()));
        let query = DiscoveryQuery {
            group: &group,
            version: &version,
            plural: &plural,
            scope: None,
        };
        match served(&self.first, &query).await {
            Ok(Served::Nowhere) => Ok(()),
            Ok(Served::Here | Served::InOtherScope | Served::InOtherVersion | Served::Hidden | Served::Unknown)
            | Err(_) => Err(error),
        }
    }

    /// All definitions, without their schemas.
    ///
    /// # Errors
    /// Where they cannot be listed.
    pub async fn definitions(&self) -> Result<Vec<StoredDefinition>, ClusterError> {
        let api: Api<StoredDefinition> = Api::all_with(self.first.clone(), &definition::resource());
        let listed = api.list(&ListParams::default()).await;
        let list = |source| ClusterError::List {
            what: "customresourcedefinitions",
            source,
        };
        listed.map(|list| list.items).map_err(list)
    }

    async fn definition(&self, resource: &GroupResource) -> Result<Option<StoredDefinition>, kube::Error> {
        let api: Api<StoredDefinition> = Api::all_with(self.first.clone(), &definition::resource());
        look_up(&api, &resource.to_string()).await
    }
}
