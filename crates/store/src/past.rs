//! Reading the past: the versions of an object, one of them by number, and what stood under
//! a name at a moment.

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_query::{Life, Page, Stored};

use super::connections::{Connections, failure};
use super::driver::{Cells, Driver, Param, Statement};
use super::history::packed;
use super::history::sql::HistorySql;
use super::objects::RowsOfName as _;
use super::sql_store::SqlStore;
use super::{ListAt, StoreError, past_list};

/// One version in the history of an object.
#[derive(Clone, Debug)]
pub struct Past {
    /// The version's exact text and metadata.
    pub object: Object,
    /// When Kindex first saw the version.
    pub seen: Timestamp,
    /// 0; negative for versions that the cluster lost when it was restored from a backup, the
    /// more so the longer ago that was.
    pub branch: i64,
}

/// What stood under a name at a moment.
#[derive(Clone, Debug)]
pub enum AsOf {
    /// This, with the life and the times of that moment.
    Stored(Stored),
    /// Nothing yet.
    NotYet {
        /// When the first version was seen that is kept of that name.
        first: Timestamp,
    },
    /// Nothing any more.
    Deleted {
        /// Since when.
        at: Timestamp,
        /// What stood there last.
        last: Stored,
    },
    /// Nothing of that name was ever stored.
    Unknown,
}

/// The SQL store as a memory of what was.
#[async_trait]
pub trait History: Send + Sync {
    /// The newest versions of an object, or those before one of them; the newest first.
    ///
    /// # Errors
    /// [`StoreError::NoHistory`], here and below.
    async fn history(&self, kind: &Kind, uid: &Uid, before: Option<&Past>, limit: u32)
    -> Result<Vec<Past>, StoreError>;

    /// A version of an object by its number. Of two, the one that the cluster did not lose.
    async fn version(&self, kind: &Kind, uid: &Uid, version: ResourceVersion) -> Result<Option<Past>, StoreError>;

    /// What stood under a name at a time: the last version that had been seen by then.
    async fn version_at(&self, kind: &Kind, namespace: &str, name: &str, time: Timestamp) -> Result<AsOf, StoreError>;

    /// A page of what stood under all names at a time and was not deleted, each object as it was then, in order
    /// of namespace and name. What changes meanwhile does not show.
    ///
    /// # Errors
    /// [`StoreError::Continue`] for a token of another list.
    async fn list_at(
        &self,
        kind: &'static Kind,
        wanted: &ListAt,
        continue_token: Option<&str>,
    ) -> Result<Page, StoreError>;
}

#[async_trait]
impl<D: Driver> History for SqlStore<D> {
    async fn history(
        &self,
        kind: &Kind,
        uid: &Uid,
        before: Option<&Past>,
        limit: u32,
    ) -> Result<Vec<Past>, StoreError> {
        self.reader(kind)?.page(uid, before, limit).await
    }

    async fn version(&self, kind: &Kind, uid: &Uid, version: ResourceVersion) -> Result<Option<Past>, StoreError> {
        self.reader(kind)?.version(uid, version).await
    }

    async fn version_at(&self, kind: &Kind, namespace: &str, name: &str, time: Timestamp) -> Result<AsOf, StoreError> {
        let reader = self.reader(kind)?;
        let rows = self.incarnations(kind, namespace, name).await?;
        reader.as_of(rows, time).await
    }

    async fn list_at(
        &self,
        kind: &'static Kind,
        wanted: &ListAt,
        continue_token: Option<&str>,
    ) -> Result<Page, StoreError> {
        past_list::list(self, &self.reader(kind)?, kind, wanted, continue_token).await
    }
}

impl<D: Driver> SqlStore<D> {
    fn reader<'a>(&'a self, kind: &'a Kind) -> Result<Reader<'a, D>, StoreError> {
        if !kind.history {
            return Err(StoreError::NoHistory(kind.name.to_owned()));
        }
        Ok(Reader {
            connections: &self.connections,
            kind,
            sql: self.history_sql(kind),
        })
    }
}

/// The history of one kind.
pub(super) struct Reader<'a, D> {
    connections: &'a Connections<D>,
    kind: &'a Kind,
    pub(super) sql: HistorySql,
}

impl<D: Driver> Reader<'_, D> {
    /// The newest versions, or those before one of them.
    async fn page(&self, uid: &Uid, before: Option<&Past>, limit: u32) -> Result<Vec<Past>, StoreError> {
        let mut params = vec![Param::Text(&uid.0)];
        let statement = match before {
            Some(past) => {
                let version = past.object.metadata.resource_version.0.cast_signed();
                params.extend([past.branch, past.branch, version].map(Param::Int));
                self.sql.before()
            }
            None => self.sql.newest(),
        };
        params.push(Param::Int(limit.into()));
        self.read(statement, &params).await
    }

    async fn version(&self, uid: &Uid, version: ResourceVersion) -> Result<Option<Past>, StoreError> {
        let params = [Param::Text(&uid.0), Param::Int(version.0.cast_signed())];
        self.read_one(self.sql.version(), &params).await
    }

    /// Decides among the rows that a name had, the newest first.
    async fn as_of(&self, rows: Vec<Stored>, time: Timestamp) -> Result<AsOf, StoreError> {
        let mut deleted = None;
        let mut first: Option<Timestamp> = None;
        for row in rows {
            let uid = &row.object.metadata.uid;
            let params = [
                Param::Text(&uid.0),
                Param::Time(time),
                Param::Int(newest_at(&row, time)),
            ];
            let Some(stored) = stood(&row, self.read_one(self.sql.at(), &params).await?, time) else {
                let began = self.first_seen(&row).await?;
                first = began.into_iter().chain(first).min();
                continue;
            };
            match stored.delete_time {
                None => return Ok(AsOf::Stored(stored)),
                Some(at) if deleted.is_none() => deleted = Some(AsOf::Deleted { at, last: stored }),
                Some(_) => {}
            }
        }
        Ok(match (deleted, first) {
            (Some(deleted), _) => deleted,
            (None, Some(first)) => AsOf::NotYet { first },
            (None, None) => AsOf::Unknown,
        })
    }

    async fn first_seen(&self, row: &Stored) -> Result<Option<Timestamp>, StoreError> {
        let params = [Param::Text(&row.object.metadata.uid.0)];
        let first = self.read_one(self.sql.first(), &params).await?;
        Ok(first.map(|past| past.seen).or(row.update_time))
    }

    async fn read_one(&self, statement: Statement, params: &[Param<'_>]) -> Result<Option<Past>, StoreError> {
        Ok(self.read(statement, params).await?.pop())
    }

    pub(super) async fn read(&self, statement: Statement, params: &[Param<'_>]) -> Result<Vec<Past>, StoreError> {
        let rows = self.connections.query(statement, params).await;
        let rows = rows.map_err(|error| failure::<D>(self.kind.name, error))?;
        rows.iter().map(|row| past(self.kind, row)).collect()
    }
}

/// The newest version that a row can have stood for at a time. One that was evicted stands for what it
/// holds, and not for what its way out of the cluster made of it.
pub(super) fn newest_at(row: &Stored, time: Timestamp) -> i64 {
    match row.evicted_time {
        Some(evicted) if evicted <= time => row.object.metadata.resource_version.of_cluster().0.cast_signed(),
        Some(_) | None => i64::MAX,
    }
}

/// What a row stood for at a time, given the version that its object then had. A row whose version
/// is not kept, because the history began later, has it since its last change.
pub(super) fn stood(row: &Stored, past: Option<Past>, time: Timestamp) -> Option<Stored> {
    let reached = |then: Option<Timestamp>| then.filter(|then| *then <= time);
    let (object, since) = match (past, reached(row.update_time)) {
        (Some(past), _) => (past.object, past.seen),
        (None, Some(changed)) => (row.object.clone(), changed),
        (None, None) => return None,
    };
    let (delete_time, evicted_time) = (reached(row.delete_time), reached(row.evicted_time));
    Some(Stored {
        object,
        life: match (delete_time, evicted_time) {
            (Some(_), _) => Life::Deleted,
            (None, Some(_)) => Life::Evicted,
            (None, None) => Life::Live,
        },
        update_time: Some(since),
        delete_time,
        evicted_time,
        replaced_by: row.replaced_by.clone().filter(|_| delete_time.is_some()),
    })
}

fn past(kind: &Kind, row: &impl Cells) -> Result<Past, StoreError> {
    let corrupt = |uid: &str, message: String| StoreError::Corrupt {
        kind: kind.name.to_owned(),
        uid: uid.to_owned(),
        message: format!("history: {message}"),
    };
    let uid = row.text(0).map_err(|error| corrupt("?", error.to_string()))?;
    let cells = || {
        let seen = row.time(3)?.ok_or(sqlx::Error::RowNotFound)?;
        let payload = row.bytes(5)?.unwrap_or_default();
        Ok((row.int(1)?, seen, row.int(4)?, payload))
    };
    let (branch, seen, encoding, payload) = cells().map_err(|error: sqlx::Error| corrupt(&uid, error.to_string()))?;
    let text = packed::unpack(encoding, &payload).map_err(|message| corrupt(&uid, message))?;
    let object = Object::parse_str(&text).map_err(|error| corrupt(&uid, error.to_string()))?;
    Ok(Past { object, seen, branch })
}
