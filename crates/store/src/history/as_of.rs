//! Reading the past: the versions of an object, one of them by number, and what stood under
//! a name at a moment.

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::row_version::RowVersion;
use kindex_query::Stored;

use crate::cells::life;
use crate::connections::{Connections, failure};
use crate::driver::{Cells, Driver, Param, Statement};
use crate::error::StoreError;
use crate::packed;
use crate::statements::history::HistorySql;

/// One version in the history of an object.
#[derive(Clone, Debug)]
pub struct HistoryVersion {
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

/// The history of one kind.
pub(crate) struct Reader<'a, D> {
    pub(crate) connections: &'a Connections<D>,
    pub(crate) kind: &'a Kind,
    pub(crate) sql: HistorySql,
}

impl<D: Driver> Reader<'_, D> {
    /// The newest versions, or those before one of them.
    pub(crate) async fn page(
        &self,
        uid: &Uid,
        before: Option<&HistoryVersion>,
        limit: u32,
    ) -> Result<Vec<HistoryVersion>, StoreError> {
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

    pub(crate) async fn version(
        &self,
        uid: &Uid,
        version: ResourceVersion,
    ) -> Result<Option<HistoryVersion>, StoreError> {
        let params = [Param::Text(&uid.0), Param::Int(version.0.cast_signed())];
        self.read_one(self.sql.version(), &params).await
    }

    /// Decides among the rows that a name had, the newest first.
    pub(crate) async fn as_of(&self, rows: Vec<Stored>, time: Timestamp) -> Result<AsOf, StoreError> {
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

    async fn read_one(&self, statement: Statement, params: &[Param<'_>]) -> Result<Option<HistoryVersion>, StoreError> {
        Ok(self.read(statement, params).await?.pop())
    }

    pub(crate) async fn read(
        &self,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<HistoryVersion>, StoreError> {
        let rows = self.connections.query(statement, params).await;
        let rows = rows.map_err(|error| failure::<D>(self.kind.name, error))?;
        rows.iter().map(|row| past(self.kind, row)).collect()
    }
}

/// The newest version that a row can have stood for at a time. One that was archived stands for what it
/// holds, and not for what its way out of the cluster made of it.
pub(crate) fn newest_at(row: &Stored, time: Timestamp) -> i64 {
    match row.evicted_time {
        Some(archived) if archived <= time => {
            let version = RowVersion::unpack(row.object.metadata.resource_version);
            version.of_cluster().0.cast_signed()
        }
        Some(_) | None => i64::MAX,
    }
}

/// What a row stood for at a time, given the version that its object then had. A row whose version
/// is not kept, because the history began later, has it since its last change.
pub(crate) fn stood(row: &Stored, past: Option<HistoryVersion>, time: Timestamp) -> Option<Stored> {
    let reached = |then: Option<Timestamp>| then.filter(|then| *then <= time);
    let (object, since) = match (past, reached(row.update_time)) {
        (Some(past), _) => (past.object, past.seen),
        (None, Some(changed)) => (row.object.clone(), changed),
        (None, None) => return None,
    };
    let (delete_time, evicted_time) = (reached(row.delete_time), reached(row.evicted_time));
    Some(Stored {
        object,
        life: life(delete_time, evicted_time),
        update_time: Some(since),
        delete_time,
        evicted_time,
        replaced_by: row.replaced_by.clone().filter(|_| delete_time.is_some()),
    })
}

fn past(kind: &Kind, row: &impl Cells) -> Result<HistoryVersion, StoreError> {
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
    Ok(HistoryVersion { object, seen, branch })
}
