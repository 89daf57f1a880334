//! The store of a server, wherever its objects are.

use std::path::Path;
use std::sync::Arc;

use super::{
    Feed, FileStore, FollowedBackend, Mutation, ObjectKey, Page, PageRequest, Revision, StoreError, StoreOptions,
    WriteError,
};

/// A handle to the store; clones share it.
#[derive(Clone)]
pub(crate) enum Store {
    /// In a cluster's own file.
    File(FileStore),
    /// Elsewhere: of some custom resources alone.
    Elsewhere(FollowedBackend),
}

impl Store {
    /// Opens or creates the database at `path` and starts its writer.
    pub(crate) async fn open(path: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        FileStore::open(path, options).await.map(Self::File)
    }

    /// The last committed resource version, of a resource or of everything. Everything up to it is in the feeds.
    /// Nothing where that is not known yet.
    pub(crate) fn committed(&self, resource: Option<&str>) -> Option<u64> {
        match self {
            Self::File(file) => Some(file.committed()),
            Self::Elsewhere(followed) => followed.committed(resource?),
        }
    }

    /// Revisions of `resource` (or of everything) from now on.
    pub(crate) fn subscribe(&self, resource: Option<&str>) -> Feed {
        match self {
            Self::File(file) => file.subscribe(resource),
            Self::Elsewhere(followed) => followed.hub.subscribe(resource),
        }
    }

    /// Ends the feeds of a resource that is gone.
    pub(crate) fn close_feed(&self, resource: &str) {
        match self {
            Self::File(file) => file.close_feed(resource),
            Self::Elsewhere(followed) => followed.hub.close(resource),
        }
    }

    /// The live revision of one object.
    pub(crate) async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<Revision>>, StoreError> {
        match self {
            Self::File(file) => file.get(key).await,
            Self::Elsewhere(followed) => followed.backend.get(key).await,
        }
    }

    /// Where the object with this uid lives, if anywhere.
    pub(crate) async fn find_uid(&self, uid: &str) -> Result<Option<ObjectKey>, StoreError> {
        match self {
            Self::File(file) => file.find_uid(uid).await,
            Self::Elsewhere(_) => Ok(None),
        }
    }

    /// Whether an object may name an owner that somebody looks after.
    pub(crate) fn has_owners(&self) -> bool {
        match self {
            Self::File(file) => file.has_owners(),
            Self::Elsewhere(_) => false,
        }
    }

    /// Objects that name `owner_uid` as an owner; elsewhere nobody collects them.
    pub(crate) async fn dependents(&self, owner_uid: &str) -> Result<Vec<ObjectKey>, StoreError> {
        match self {
            Self::File(file) => file.dependents(owner_uid).await,
            Self::Elsewhere(_) => Ok(Vec::new()),
        }
    }

    /// Whether no object is in the namespace. Elsewhere a namespace is no container.
    pub(crate) async fn is_namespace_empty(&self, namespace: &str) -> Result<bool, StoreError> {
        match self {
            Self::File(file) => file.is_namespace_empty(namespace).await,
            Self::Elsewhere(_) => Ok(true),
        }
    }

    /// Whether no object of the resource is left. Elsewhere a resource never goes.
    pub(crate) async fn is_resource_empty(&self, resource: &str) -> Result<bool, StoreError> {
        match self {
            Self::File(file) => file.is_resource_empty(resource).await,
            Self::Elsewhere(_) => Ok(true),
        }
    }

    /// One page of a list.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when history is no longer complete at the version asked for.
    pub(crate) async fn list(&self, request: &PageRequest) -> Result<Page, StoreError> {
        match self {
            Self::File(file) => file.list(request).await,
            Self::Elsewhere(followed) => followed.backend.list(request).await,
        }
    }

    /// How many objects come after `(namespace, name)` in a list at the request's version.
    pub(crate) async fn count_after(
        &self,
        request: &PageRequest,
        namespace: &str,
        name: &str,
    ) -> Result<u64, StoreError> {
        match self {
            Self::File(file) => file.count_after(request, namespace, name).await,
            Self::Elsewhere(followed) => followed.backend.count_after(request, namespace, name).await,
        }
    }

    /// The next `limit` revisions of `resource`, or of everything, after `rv`, each with what it replaced, as of the
    /// page's version.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when some of them may have been forgotten.
    pub(crate) async fn log_after(&self, resource: Option<&str>, rv: u64, limit: u32) -> Result<Page, StoreError> {
        match (self, resource) {
            (Self::File(file), _) => file.log_after(resource, rv, limit).await,
            (Self::Elsewhere(followed), Some(resource)) => followed.backend.log_after(resource, rv, limit).await,
            // Nobody looks after all resources at once there.
            (Self::Elsewhere(_), None) => Ok(Page {
                rv,
                objects: Vec::new(),
            }),
        }
    }

    /// Makes one mutation. Its revision is durable against a crash, observed and published when this returns.
    ///
    /// Dropping the future does not undo a mutation that is under way.
    pub(crate) async fn write(&self, mutation: Mutation) -> Result<Arc<Revision>, WriteError> {
        match self {
            Self::File(file) => file.write(mutation).await,
            Self::Elsewhere(followed) => followed.write(mutation).await,
        }
    }
}
