//! What the ingester asks of a Kubernetes API: lists, watches, and the few writes
//! with which objects leave the cluster. Knows no kind and no client library.

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};

mod cause;
mod classify;
mod connect;
mod discovery;
mod look_up;
mod namespace;
mod wire;

pub mod event;

mod notice;

pub mod kube_cluster;

mod create;
pub mod identity;
mod patch;

pub mod peer;

pub use cause::ClusterCause;
pub use classify::{classify, outcome, outcome_of};
pub use connect::connect;
pub use create::CreateApi;
pub use discovery::{DiscoveryQuery, Served, served};
pub use identity::Identity;
pub use kindex_kube_api::status::{Outcome, RefusedBy};
pub use look_up::look_up;

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Empty for cluster-wide kinds.
    pub namespace: String,
    /// Name within the namespace.
    pub name: String,
}

impl ObjectName {
    /// The name of this object.
    pub fn of(object: &Object) -> Self {
        Self {
            namespace: object.metadata.namespace.clone(),
            name: object.metadata.name.clone(),
        }
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// A text from the cluster that is not an object which SQL can hold: without an
/// identity, or with a version beyond the column's range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its uid, where it has one.
    pub uid: Option<Uid>,
    /// Its name, as far as it has one.
    pub name: ObjectName,
    /// What is wrong with it.
    pub reason: String,
}

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The objects, in the cluster's order.
    pub objects: Vec<Object>,
    /// Items that are no objects.
    pub unreadable: Vec<Unreadable>,
    /// Version of the whole list, the same on all its pages.
    pub resource_version: ResourceVersion,
    /// Where the next page begins; `None` on the last.
    pub continue_token: Option<String>,
    /// How many objects the pages after this one have, where the cluster says.
    pub remaining: Option<u64>,
}

impl Page {
    /// How many items the page has, objects or not.
    pub fn len(&self) -> usize {
        self.objects.len() + self.unreadable.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// Added or modified: the object is there in this version.
    Applied(Object),
    /// The object is gone; its last text, whose version is that of the deletion.
    Deleted(Object),
    /// Nothing up to this version is still to come.
    Bookmark(ResourceVersion),
    /// An event whose object is none.
    Unreadable(Unreadable),
}

/// Events in order of version. Ends when the server closes the watch, and after an error.
pub type WatchStream = BoxStream<'static, Result<WatchEvent, ClusterError>>;

/// An object that a write is meant for, in the version on which the write was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where it is.
    pub name: ObjectName,
    /// Who it is.
    pub uid: Uid,
    /// The version that the write depends on.
    pub resource_version: ResourceVersion,
}

impl Target {
    /// This version of this object.
    pub fn of(object: &Object) -> Self {
        Self {
            name: ObjectName::of(object),
            uid: object.metadata.uid.clone(),
            resource_version: object.metadata.resource_version,
        }
    }
}

/// A Kubernetes event about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub about: Target,
    /// Whether something is wrong.
    pub warning: bool,
    /// A word in CamelCase, such as `ProjectionIncomplete`.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// Why the cluster did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// 404: the object, or its namespace, by its name.
    #[error("not found: {0}")]
    NotFound(String),
    /// The cluster does not serve the kind, as its discovery confirms: there is no CRD, or none with this version. Of a
    /// list, also where nobody may read the discovery.
    #[error("{message}")]
    Unserved {
        /// Whether it serves other versions of the kind, or may do so, so that there may be objects.
        in_other_version: bool,
        /// What it does not serve, in a sentence.
        message: String,
    },
    /// 409: the object is not in the state that the write depends on.
    #[error("conflict: {0}")]
    Conflict(String),
    /// 410: the requested version or list is no longer kept.
    #[error("expired: {0}")]
    Expired(String),
    /// The same call may succeed later; whether this one had an effect is unknown.
    #[error("{cause}: {message}")]
    Retryable {
        /// Why.
        cause: ClusterCause,
        /// How long the server asks us to wait.
        retry_after: Option<Duration>,
        /// As the server or the connection says it.
        message: String,
    },
    /// The cluster rejected the request, or its answer could not be read.
    #[error("refused: {0}")]
    Refused(String),
}

impl ClusterError {
    /// Whether the cluster has no such object: it says so of the object, or serves its kind in no version.
    pub fn is_absence(&self) -> bool {
        match self {
            Self::NotFound(_) => true,
            Self::Unserved { in_other_version, .. } => !in_other_version,
            Self::Conflict(_) | Self::Expired(_) | Self::Retryable { .. } | Self::Refused(_) => false,
        }
    }

    /// Whether whoever was asked is away or overloaded, does not know who asks, or has no such path, so that nothing
    /// else will be answered at this moment either. A refusal says something of the one object that was asked about.
    pub fn is_silence(&self) -> bool {
        match self {
            Self::Retryable { cause, .. } => *cause != ClusterCause::Unclear,
            Self::NotFound(_) | Self::Unserved { .. } | Self::Conflict(_) | Self::Expired(_) | Self::Refused(_) => {
                false
            }
        }
    }
}

/// Reads objects.
///
/// # Guarantees
/// Objects keep their exact text.
#[async_trait]
pub trait ReadApi: Send + Sync {
    /// One page of all objects of a kind, of at most `limit` objects, from the start or from
    /// where a page before said. Consistent: no older than the moment of the first call.
    async fn list(&self, kind: &Kind, limit: u32, continue_token: Option<&str>) -> Result<Page, ClusterError>;

    /// The object of this name, as it is now; `None` where the cluster says that there is none.
    ///
    /// # Errors
    /// [`ClusterError::Unserved`] where it does not serve the kind. Other API servers of the cluster may know the CRD
    /// already.
    async fn get(&self, kind: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError>;

    /// The same for those who know that the CRD is none of the last moment: a kind that the cluster serves in no
    /// version has no objects.
    ///
    /// # Errors
    /// [`ClusterError::Unserved`] where it serves the kind in other versions alone.
    async fn find(&self, kind: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        match self.get(kind, name).await {
            Err(ClusterError::Unserved {
                in_other_version: false,
                ..
            }) => Ok(None),
            found => found,
        }
    }
}

/// A page of the objects that a field selector selects.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    /// Where the objects are; `None` for all namespaces.
    pub namespace: Option<&'a str>,
    /// The field selector.
    pub fields: &'a str,
    /// Most objects of the page.
    pub limit: u32,
    /// Where the page begins, as the one before said; `None` for the first one.
    pub continue_token: Option<&'a str>,
}

/// Selects objects by their fields.
///
/// # Guarantees
/// Objects keep their exact text.
#[async_trait]
pub trait SelectApi: Send + Sync {
    /// One page of the selected objects of a kind. Consistent: no older than the moment of the first call. `None` where
    /// the cluster does not select by these fields. Any page, however small, may take as long as the server needs to
    /// look at all objects of the kind.
    ///
    /// # Errors
    /// [`ClusterError::Unserved`] where the cluster does not serve the kind, and [`ClusterError::Expired`] where the
    /// list that a page belongs to is no longer kept.
    async fn select(&self, kind: &Kind, selection: Selection<'_>) -> Result<Option<Page>, ClusterError>;
}

/// Watches objects.
///
/// # Guarantees
/// Objects keep their exact text.
#[async_trait]
pub trait WatchApi: Send + Sync {
    /// Everything that changes after this version.
    async fn watch(&self, kind: &Kind, from: ResourceVersion) -> Result<WatchStream, ClusterError>;
}

/// Changes objects as they were read.
///
/// # Guarantees
/// A write names the version that it depends on, and fails with [`ClusterError::Conflict`] when the object is another
/// one by then.
#[async_trait]
pub trait WriteApi: ReadApi {
    /// Deletes on the condition that uid and version are these. Gives back the object where
    /// finalizers still hold it, `None` where it is gone.
    async fn delete(&self, kind: &Kind, target: &Target) -> Result<Option<Object>, ClusterError>;

    /// Replaces the finalizers on the condition that the version is this one. Gives back
    /// the object as it is afterwards, or as it was when the change made it go.
    async fn set_finalizers(&self, kind: &Kind, target: &Target, finalizers: &[String])
    -> Result<Object, ClusterError>;
}

/// Creates Kubernetes events, which depend on no version.
#[async_trait]
pub trait EventApi: Send + Sync {
    /// Records an event about an object.
    async fn create_event(&self, kind: &Kind, notice: &Notice) -> Result<(), ClusterError>;
}

/// What an ingester does to individual objects.
pub trait ObjectApi: WriteApi + SelectApi {}

impl<C: WriteApi + SelectApi> ObjectApi for C {}

/// The Kubernetes API of all kinds, in all roles of an ingester. Callers that need fewer roles take a narrower trait: a
/// `&dyn ClusterApi` is a `&dyn ReadApi`.
pub trait ClusterApi: ObjectApi + WatchApi + EventApi {}

impl<C: ObjectApi + WatchApi + EventApi> ClusterApi for C {}
