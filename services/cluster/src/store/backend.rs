//! What may keep objects in place of a cluster's own file.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Mutation, ObjectKey, Page, PageRequest, Revision, StoreError, WriteError};

/// A place for the objects of some resources, which several servers may share.
///
/// # Guarantees
/// The resource versions of one resource come in the order of its commits: who has seen one finds all before it in the
/// log. Those of several resources have nothing to do with each other. A write is refused where its intent does not
/// hold, whoever else writes.
#[async_trait]
pub trait StorageBackend: Send + Sync {
    /// The last resource version of each resource.
    ///
    /// # Errors
    /// [`StoreError::Elsewhere`], as in all methods.
    async fn newest(&self) -> Result<HashMap<String, u64>, StoreError>;

    /// The live revision of one object.
    async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<Revision>>, StoreError>;

    /// One page of a list.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] where history is no longer complete at the version asked for.
    async fn list(&self, request: &PageRequest) -> Result<Page, StoreError>;

    /// How many objects come after `(namespace, name)` in a list, about.
    async fn count_after(&self, request: &PageRequest, namespace: &str, name: &str) -> Result<u64, StoreError>;

    /// The next `limit` revisions of a resource after `rv`, each with what it replaced.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] where some of them may have been forgotten.
    async fn log_after(&self, resource: &str, rv: u64, limit: u32) -> Result<Page, StoreError>;

    /// Makes one mutation, and gives it its resource version. Its preconditions are about clusters, and do not count.
    async fn write(&self, mutation: Mutation) -> Result<Arc<Revision>, WriteError>;
}
