//! Rows of SQL as the objects of an API: what the embedded cluster's answers are about.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use kindex_cluster::{Change, Intent, Mutation, ObjectKey, Page, PageRequest, Revision, StorageBackend};
use kindex_cluster::{StoreError as ApiError, WriteError};
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion};
use kindex_query::{Life, Stored};
use kindex_store::{
    MetadataStorage, Position, SqlOnlyChange, SqlOnlyPage, SqlOnlyWrite, SqlOnlyWritten, StoreError, sql_only_version,
};

use super::as_of::{ChangesSince, Key, key_of};

/// Rows read at once.
const ROWS: u32 = 500;
/// Changes read at once.
const CHANGES: u32 = 500;

/// The rows of the kinds that no cluster has.
pub(super) struct Rows {
    kinds: Vec<&'static Kind>,
    store: Arc<dyn MetadataStorage>,
}

/// What is asked of a list.
struct Listed<'a> {
    kind: &'static Kind,
    request: &'a PageRequest,
    at: ResourceVersion,
}

impl Rows {
    pub(super) fn new(kinds: Vec<&'static Kind>, store: Arc<dyn MetadataStorage>) -> Self {
        Self { kinds, store }
    }

    /// The kind of a resource, which the API knows from its definition.
    fn kind(&self, resource: &str) -> Result<&'static Kind, ApiError> {
        let kind = self.kinds.iter().copied().find(|kind| kind.crd_name() == resource);
        kind.ok_or_else(|| ApiError::Elsewhere(format!("{resource} is not a kind without a cluster")))
    }

    async fn newest_of(&self, kind: &Kind) -> Result<ResourceVersion, ApiError> {
        let positions = self.store.positions().await.map_err(|error| refused(&error))?;
        Ok(sql_only_version(positions.get(kind.name).copied().unwrap_or_default()))
    }

    async fn listed<'a>(&self, request: &'a PageRequest) -> Result<Listed<'a>, ApiError> {
        let kind = self.kind(&request.resource)?;
        let at = match request.at {
            Some(at) => ResourceVersion(at),
            None => self.newest_of(kind).await?,
        };
        Ok(Listed { kind, request, at })
    }

    /// Reads what has changed in the meantime.
    async fn catch_up(&self, kind: &Kind, since: &mut ChangesSince) -> Result<(), ApiError> {
        loop {
            let changes = self.changes(kind, since.seen, CHANGES).await?;
            let is_last = changes.len() < CHANGES as usize;
            since.learn(changes);
            if is_last {
                return Ok(());
            }
        }
    }

    async fn changes(&self, kind: &Kind, after: ResourceVersion, limit: u32) -> Result<Vec<SqlOnlyChange>, ApiError> {
        let changes = self.store.sql_only_changes(kind, after, limit).await;
        match changes.map_err(|error| refused(&error))? {
            Some(changes) => Ok(changes),
            None => {
                let newest = self.newest_of(kind).await?.0;
                let floor = newest.saturating_sub(kindex_store::SQL_ONLY_CHANGES_KEPT);
                Err(ApiError::Compacted { rv: after.0, floor })
            }
        }
    }

    /// One object of a name, as it was.
    async fn one(&self, listed: &Listed<'_>, name: &str) -> Result<Vec<Object>, ApiError> {
        let namespace = listed.request.namespace.as_deref().unwrap_or_default();
        let key = (namespace.to_owned(), name.to_owned());
        if listed.request.after.as_ref().is_some_and(|after| *after >= key) {
            return Ok(Vec::new());
        }
        let found = self.store.get_by_name(listed.kind, namespace, name).await;
        let rows = found
            .map_err(|error| refused(&error))?
            .into_iter()
            .map(|row| row.object);
        let rows = rows.collect();
        let mut since = ChangesSince::new(listed.at);
        self.catch_up(listed.kind, &mut since).await?;
        let mut found = since.page(rows, &Key::default(), Some(&key), Some(namespace));
        found.retain(|object| key_of(object) == key);
        Ok(found)
    }

    async fn many(&self, listed: &Listed<'_>) -> Result<Vec<Object>, ApiError> {
        let Listed { kind, request, at } = listed;
        let limit = request.limit.map_or(usize::MAX, |limit| limit as usize);
        let mut after = request.after.clone().unwrap_or_default();
        let mut since = ChangesSince::new(*at);
        let mut objects = Vec::new();
        while objects.len() < limit {
            let page = SqlOnlyPage {
                namespace: request.namespace.as_deref(),
                after: (&after.0, &after.1),
                limit: request.limit.unwrap_or(ROWS).clamp(1, ROWS),
            };
            let rows = self.store.page_sql_only(kind, page).await;
            let rows: Vec<Object> = rows
                .map_err(|error| refused(&error))?
                .into_iter()
                .map(|row| row.object)
                .collect();
            // After the rows: what they show that is newer than the list is among it.
            self.catch_up(kind, &mut since).await?;
            let last = rows.last().filter(|_| rows.len() == page.limit as usize).map(key_of);
            objects.extend(since.page(rows, &after, last.as_ref(), request.namespace.as_deref()));
            let Some(last) = last else { break };
            after = last;
        }
        objects.truncate(limit);
        Ok(objects)
    }
}

#[async_trait]
impl StorageBackend for Rows {
    async fn newest(&self) -> Result<HashMap<String, u64>, ApiError> {
        let positions = self.store.positions().await.map_err(|error| refused(&error))?;
        let newest = |kind: &&Kind| {
            let position: Position = positions.get(kind.name).copied().unwrap_or_default();
            (kind.crd_name(), sql_only_version(position).0)
        };
        Ok(self.kinds.iter().map(newest).collect())
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<Revision>>, ApiError> {
        let kind = self.kind(&key.resource)?;
        let found = self.store.get_by_name(kind, &key.namespace, &key.name).await;
        let found = found.map_err(|error| refused(&error))?;
        let found = found.filter(|row: &Stored| row.life == Life::Live);
        Ok(found.map(|row| Arc::new(revision(&key.resource, Change::Modified, &row.object, None))))
    }

    async fn list(&self, request: &PageRequest) -> Result<Page, ApiError> {
        let listed = self.listed(request).await?;
        let objects = match &request.name {
            Some(name) => self.one(&listed, name).await?,
            None => self.many(&listed).await?,
        };
        let resource: Arc<str> = request.resource.as_str().into();
        let shown = |object: &Object| Arc::new(revision(&resource, Change::Modified, object, None));
        Ok(Page {
            rv: listed.at.0,
            objects: objects.iter().map(shown).collect(),
        })
    }

    async fn count_after(&self, request: &PageRequest, namespace: &str, name: &str) -> Result<u64, ApiError> {
        let Listed { kind, at, .. } = self.listed(request).await?;
        let page = SqlOnlyPage {
            namespace: request.namespace.as_deref(),
            after: (namespace, name),
            limit: 0,
        };
        let now = self.store.count_sql_only(kind, page).await;
        let now = now.map_err(|error| refused(&error))?;
        let mut since = ChangesSince::new(at);
        self.catch_up(kind, &mut since).await?;
        let after = (namespace.to_owned(), name.to_owned());
        Ok(since.count(now, &after, request.namespace.as_deref()))
    }

    async fn log_after(&self, resource: &str, rv: u64, limit: u32) -> Result<Page, ApiError> {
        let kind = self.kind(resource)?;
        let changes = self.changes(kind, ResourceVersion(rv), limit).await?;
        let resource: Arc<str> = resource.into();
        let objects = changes
            .into_iter()
            .map(|change| Arc::new(change_of(&resource, &change)));
        let objects: Vec<Arc<Revision>> = objects.collect();
        Ok(Page {
            rv: objects.last().map_or(rv, |last| last.rv),
            objects,
        })
    }

    async fn write(&self, mutation: Mutation) -> Result<Arc<Revision>, WriteError> {
        let Mutation {
            key,
            intent,
            mut object,
            ..
        } = mutation;
        let kind = self.kind(&key.resource);
        let kind = kind.map_err(|error| WriteError::Database(error.to_string()))?;
        // Its own version comes with the write.
        object["metadata"]["resourceVersion"] = "0".into();
        let object = Object::parse_str(&object.to_string());
        let object = object.map_err(|error| WriteError::Database(error.to_string()))?;
        let (write, change, before) = match intent {
            Intent::Create => (SqlOnlyWrite::Create, Change::Added, None),
            Intent::Replace(before) => {
                let read = ResourceVersion(before.rv);
                (SqlOnlyWrite::Replace { read }, Change::Modified, Some(before))
            }
            Intent::Remove(before) => {
                let read = ResourceVersion(before.rv);
                (SqlOnlyWrite::Remove { read }, Change::Deleted, Some(before))
            }
        };
        let written = self.store.write_sql_only(kind, &object, write, Timestamp::now()).await;
        match written.map_err(|error| not_written(&error))? {
            SqlOnlyWritten::Done(object) => Ok(Arc::new(revision(&key.resource, change, &object, before))),
            SqlOnlyWritten::Exists => Err(WriteError::Exists),
            SqlOnlyWritten::Changed => Err(WriteError::Changed),
        }
    }
}

fn revision(resource: &Arc<str>, change: Change, object: &Object, before: Option<Arc<Revision>>) -> Revision {
    let (namespace, name) = key_of(object);
    let key = ObjectKey::new(resource.clone(), namespace, name);
    let text = Bytes::copy_from_slice(object.text().as_bytes());
    // A chain of every revision ever would never be freed: only the last step is kept.
    let before = before.map(|it| Arc::new(Revision::new(it.rv, it.change, it.key.clone(), it.text.clone(), None)));
    Revision::new(object.metadata.resource_version.0, change, key, text, before)
}

fn change_of(resource: &Arc<str>, change: &SqlOnlyChange) -> Revision {
    let before = change.before.as_ref();
    let before = before.map(|before| Arc::new(revision(resource, Change::Modified, before, None)));
    let what = match (change.deleted, &before) {
        (true, _) => Change::Deleted,
        (false, None) => Change::Added,
        (false, Some(_)) => Change::Modified,
    };
    revision(resource, what, &change.object, before)
}

/// What a database error means for a reader.
fn refused(error: &StoreError) -> ApiError {
    ApiError::Elsewhere(message(error))
}

/// What it means for a writer.
fn not_written(error: &StoreError) -> WriteError {
    match error {
        StoreError::Retryable { .. } | StoreError::Schema(_) => WriteError::Elsewhere(message(error)),
        _ => WriteError::Database(message(error)),
    }
}

/// Its text may name tables, and goes to the log.
fn message(error: &StoreError) -> String {
    match error {
        StoreError::Retryable { .. } | StoreError::Schema(_) => {
            tracing::debug!(%error, "The database cannot answer");
            "the database does not answer; try again".to_owned()
        }
        _ => {
            tracing::error!(%error, "The database answers with an error");
            "the database refused a statement; see the log of the server".to_owned()
        }
    }
}
