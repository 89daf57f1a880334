//! Reads of the store: one object, a page of a list at a consistent resource version, the log from a resource
//! version on, dependents of an owner. Knows nothing of selectors and HTTP.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, Row, SqliteConnection, SqliteExecutor};

use super::hub::Feed;
use super::readers::Readers;
use super::record::{Change, ObjectKey, Revision};
use super::{FileStore, StoreError};

/// Stands for "no bound" where SQL wants a number.
const UNBOUNDED: i64 = -1;

/// Which part of a list is wanted.
#[derive(Debug, Clone, Default)]
pub struct PageRequest {
    /// The resource, `plural.group`.
    pub resource: String,
    /// One namespace, or all.
    pub namespace: Option<String>,
    /// One name of the namespace, or of the whole cluster where there are none; or all.
    pub name: Option<String>,
    /// Begin after this namespace and name.
    pub after: Option<(String, String)>,
    /// At most so many.
    pub limit: Option<u32>,
    /// As of this resource version; the newest where absent.
    pub at: Option<u64>,
}

/// A part of a list, all as of one resource version.
#[derive(Debug)]
pub struct Page {
    /// That version.
    pub rv: u64,
    /// In order of namespace and name; of the log in order of their versions.
    pub objects: Vec<Arc<Revision>>,
}

/// `(floor, newest)` of the log.
pub(super) async fn bounds(connection: &mut SqliteConnection) -> Result<(u64, u64), sqlx::Error> {
    let (floor, newest): (i64, i64) = sqlx::query_as("SELECT floor, newest FROM position WHERE id = 0")
        .fetch_one(connection)
        .await?;
    Ok((floor.cast_unsigned(), newest.cast_unsigned()))
}

/// The last resource version given out.
pub(super) async fn position(readers: &Readers) -> Result<u64, StoreError> {
    Ok(bounds(&mut readers.acquire().await?.connection).await?.1)
}

/// Whether an object names an owner.
pub(super) async fn owners_exist(readers: &Readers) -> Result<bool, StoreError> {
    let mut reader = readers.acquire().await?;
    let exist = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM owners)");
    Ok(exist.fetch_one(&mut *reader.connection).await?)
}

const COUNT_LIVE: &str = "SELECT COUNT(*) FROM live WHERE resource = ?1 AND (?2 IS NULL OR namespace = ?2) \
     AND (namespace, name) > (?3, ?4) AND rv <= ?5";
const COUNT_PAST: &str = "SELECT COUNT(*) FROM revisions r \
     WHERE r.resource = ?1 AND (?2 IS NULL OR r.namespace = ?2) AND (r.namespace, r.name) > (?3, ?4) AND r.change <> 2 \
     AND r.rv = (SELECT MAX(x.rv) FROM revisions x \
         WHERE x.resource = r.resource AND x.namespace = r.namespace AND x.name = r.name AND x.rv <= ?5)";

impl FileStore {
    /// The last committed resource version. Everything up to it is in the feeds.
    pub(crate) fn committed(&self) -> u64 {
        self.hub.committed()
    }

    /// Revisions of `resource` (or of everything) from now on.
    pub(crate) fn subscribe(&self, resource: Option<&str>) -> Feed {
        self.hub.subscribe(resource)
    }

    /// Ends the feeds of a resource that is gone.
    pub(crate) fn close_feed(&self, resource: &str) {
        self.hub.close(resource);
    }

    /// The live revision of one object.
    pub(crate) async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<Revision>>, StoreError> {
        if let Some(revision) = self.cache.get(key) {
            return Ok(Some(revision));
        }
        let mut reader = self.readers.acquire().await?;
        let row = sqlx::query(
            "SELECT r.rv, r.change, r.resource, r.namespace, r.name, r.object FROM live l JOIN revisions r ON r.rv = l.rv \
             WHERE l.resource = ?1 AND l.namespace = ?2 AND l.name = ?3",
        )
        .bind(&*key.resource)
        .bind(&key.namespace)
        .bind(&key.name)
        .fetch_optional(&mut *reader.connection)
        .await?;
        reader.keep();
        row.map(|row| revision(&row, None)).transpose()
    }

    /// Where the object with this uid lives, if anywhere.
    pub(crate) async fn find_uid(&self, uid: &str) -> Result<Option<ObjectKey>, StoreError> {
        let mut reader = self.readers.acquire().await?;
        let row: Option<(String, String, String)> =
            sqlx::query_as("SELECT resource, namespace, name FROM live WHERE uid = ?1")
                .bind(uid)
                .fetch_optional(&mut *reader.connection)
                .await?;
        reader.keep();
        Ok(row.map(|(resource, namespace, name)| ObjectKey::new(resource, namespace, name)))
    }

    /// Whether an object names an owner, or did since the store was opened.
    pub(crate) fn has_owners(&self) -> bool {
        self.has_owners.load(Ordering::Acquire)
    }

    /// Objects that name `owner_uid` as an owner.
    pub(crate) async fn dependents(&self, owner_uid: &str) -> Result<Vec<ObjectKey>, StoreError> {
        let mut reader = self.readers.acquire().await?;
        let rows: Vec<(String, String, String)> =
            sqlx::query_as("SELECT resource, namespace, name FROM owners WHERE owner_uid = ?1 ORDER BY 1, 2, 3")
                .bind(owner_uid)
                .fetch_all(&mut *reader.connection)
                .await?;
        reader.keep();
        Ok(rows
            .into_iter()
            .map(|(resource, namespace, name)| ObjectKey::new(resource, namespace, name))
            .collect())
    }

    /// Whether no object is in the namespace.
    pub(crate) async fn is_namespace_empty(&self, namespace: &str) -> Result<bool, StoreError> {
        let mut reader = self.readers.acquire().await?;
        let empty = sqlx::query_scalar("SELECT NOT EXISTS (SELECT 1 FROM live WHERE namespace = ?1)");
        let empty = empty.bind(namespace).fetch_one(&mut *reader.connection).await?;
        reader.keep();
        Ok(empty)
    }

    /// Whether no object of the resource is left.
    pub(crate) async fn is_resource_empty(&self, resource: &str) -> Result<bool, StoreError> {
        let mut reader = self.readers.acquire().await?;
        let empty = sqlx::query_scalar("SELECT NOT EXISTS (SELECT 1 FROM live WHERE resource = ?1)");
        let empty = empty.bind(resource).fetch_one(&mut *reader.connection).await?;
        reader.keep();
        Ok(empty)
    }

    /// One page of a list.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when history is no longer complete at the version asked for.
    pub(crate) async fn list(&self, request: &PageRequest) -> Result<Page, StoreError> {
        let mut reader = self.readers.acquire().await?;
        let mut snapshot = reader.connection.begin().await?;
        let (floor, newest) = bounds(&mut snapshot).await?;
        let rv = request.at.unwrap_or(newest);
        if rv < floor {
            return Err(StoreError::Compacted { rv, floor });
        }
        let objects = if let Some(name) = &request.name {
            list_one(&mut *snapshot, request, name, rv).await?
        } else if rv < newest {
            list_past(&mut *snapshot, request, rv).await?
        } else {
            list_live(&mut *snapshot, request).await?
        };
        Ok(Page { rv, objects })
    }

    /// How many objects come after `(namespace, name)` in a list at the request's version.
    pub(crate) async fn count_after(
        &self,
        request: &PageRequest,
        namespace: &str,
        name: &str,
    ) -> Result<u64, StoreError> {
        let mut reader = self.readers.acquire().await?;
        let mut snapshot = reader.connection.begin().await?;
        let (_, newest) = bounds(&mut snapshot).await?;
        let rv = request.at.unwrap_or(newest);
        let count = sqlx::query_scalar(if rv < newest { COUNT_PAST } else { COUNT_LIVE });
        let count: i64 = count
            .bind(&request.resource)
            .bind(&request.namespace)
            .bind(namespace)
            .bind(name)
            .bind(rv.cast_signed())
            .fetch_one(&mut *snapshot)
            .await?;
        Ok(count.cast_unsigned())
    }

    /// The next `limit` revisions of `resource`, or of everything, after `rv`, each with what it replaced, as of the
    /// page's version.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when some of them may have been forgotten.
    pub(crate) async fn log_after(&self, resource: Option<&str>, rv: u64, limit: u32) -> Result<Page, StoreError> {
        let mut reader = self.readers.acquire().await?;
        let mut snapshot = reader.connection.begin().await?;
        let (floor, newest) = bounds(&mut snapshot).await?;
        if rv < floor {
            return Err(StoreError::Compacted { rv, floor });
        }
        let rows = sqlx::query(
            "SELECT r.rv, r.change, r.resource, r.namespace, r.name, r.object, p.rv AS before_rv, p.object AS before_object \
             FROM revisions r LEFT JOIN revisions p ON p.rv = r.previous \
             WHERE r.rv > ?1 AND (?2 IS NULL OR r.resource = ?2) ORDER BY r.rv LIMIT ?3",
        )
        .bind(rv.cast_signed())
        .bind(resource)
        .bind(limit)
        .fetch_all(&mut *snapshot)
        .await?;
        let objects = rows.iter().map(revision_with_before).collect::<Result<_, _>>()?;
        Ok(Page { rv: newest, objects })
    }
}

async fn list_live(executor: impl SqliteExecutor<'_>, request: &PageRequest) -> Result<Vec<Arc<Revision>>, StoreError> {
    let (after_namespace, after_name) = request.after.clone().unwrap_or_default();
    let rows = sqlx::query(
        "SELECT r.rv, r.change, r.resource, r.namespace, r.name, r.object FROM live l JOIN revisions r ON r.rv = l.rv \
         WHERE l.resource = ?1 AND (?2 IS NULL OR l.namespace = ?2) AND (l.namespace, l.name) > (?3, ?4) \
         ORDER BY l.namespace, l.name LIMIT ?5",
    )
    .bind(&request.resource)
    .bind(&request.namespace)
    .bind(after_namespace)
    .bind(after_name)
    .bind(request.limit.map_or(UNBOUNDED, i64::from))
    .fetch_all(executor)
    .await?;
    rows.iter().map(|row| revision(row, None)).collect()
}

async fn list_past(
    executor: impl SqliteExecutor<'_>,
    request: &PageRequest,
    rv: u64,
) -> Result<Vec<Arc<Revision>>, StoreError> {
    let (after_namespace, after_name) = request.after.clone().unwrap_or_default();
    let rows = sqlx::query(
        "SELECT r.rv, r.change, r.resource, r.namespace, r.name, r.object FROM revisions r \
         WHERE r.resource = ?1 AND (?2 IS NULL OR r.namespace = ?2) AND (r.namespace, r.name) > (?3, ?4) \
         AND r.change <> 2 AND r.rv = (SELECT MAX(x.rv) FROM revisions x \
             WHERE x.resource = r.resource AND x.namespace = r.namespace AND x.name = r.name AND x.rv <= ?6) \
         ORDER BY r.namespace, r.name LIMIT ?5",
    )
    .bind(&request.resource)
    .bind(&request.namespace)
    .bind(after_namespace)
    .bind(after_name)
    .bind(request.limit.map_or(UNBOUNDED, i64::from))
    .bind(rv.cast_signed())
    .fetch_all(executor)
    .await?;
    rows.iter().map(|row| revision(row, None)).collect()
}

/// A list of one name reads its newest revision by then, and no other object.
async fn list_one(
    executor: impl SqliteExecutor<'_>,
    request: &PageRequest,
    name: &str,
    rv: u64,
) -> Result<Vec<Arc<Revision>>, StoreError> {
    let namespace = request.namespace.as_deref().unwrap_or_default();
    if request
        .after
        .as_ref()
        .is_some_and(|after| (after.0.as_str(), after.1.as_str()) >= (namespace, name))
    {
        return Ok(Vec::new());
    }
    let row = sqlx::query(
        "SELECT r.rv, r.change, r.resource, r.namespace, r.name, r.object FROM revisions r \
         WHERE r.resource = ?1 AND r.namespace = ?2 AND r.name = ?3 AND r.rv <= ?4 ORDER BY r.rv DESC LIMIT 1",
    )
    .bind(&request.resource)
    .bind(namespace)
    .bind(name)
    .bind(rv.cast_signed())
    .fetch_optional(executor)
    .await?;
    let found = row.map(|row| revision(&row, None)).transpose()?;
    Ok(found
        .into_iter()
        .filter(|found| found.change != Change::Deleted)
        .collect())
}

fn revision(row: &SqliteRow, before: Option<Arc<Revision>>) -> Result<Arc<Revision>, StoreError> {
    let rv: i64 = row.try_get("rv")?;
    let key = ObjectKey::new(
        row.try_get::<String, _>("resource")?,
        row.try_get::<String, _>("namespace")?,
        row.try_get::<String, _>("name")?,
    );
    let text: String = row.try_get("object")?;
    let change = Change::from_code(row.try_get("change")?);
    Ok(Arc::new(Revision::new(
        rv.cast_unsigned(),
        change,
        key,
        Bytes::from(text),
        before,
    )))
}

fn revision_with_before(row: &SqliteRow) -> Result<Arc<Revision>, StoreError> {
    let before_rv: Option<i64> = row.try_get("before_rv")?;
    let before = match before_rv {
        None => None,
        Some(rv) => {
            let text: String = row.try_get("before_object")?;
            let key = ObjectKey::new(
                row.try_get::<String, _>("resource")?,
                row.try_get::<String, _>("namespace")?,
                row.try_get::<String, _>("name")?,
            );
            Some(Arc::new(Revision::new(
                rv.cast_unsigned(),
                Change::Modified,
                key,
                Bytes::from(text),
                None,
            )))
        }
    };
    revision(row, before)
}
