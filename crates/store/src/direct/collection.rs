//! Deleting what a query finds, one bounded batch at a time. Only rows of archived objects are
//! touched, and the query is asked once more under their locks. Knows no dialect.

use jiff::Timestamp;
use kindex_model::kind::ColumnType;
use kindex_model::object::Uid;
use kindex_model::row_version::RowVersion;
use kindex_model::value::Value;
use kindex_query::Life;
use kindex_query::select::Select;

use crate::cells::{FoundRow, life, param, res_version};
use crate::connections::{InTransaction, failure};
use crate::dialect::Spelling;
use crate::driver::{Cells, Driver, Limits, Param, Raw};
use crate::error::StoreError;
use crate::read::page;
use crate::row::row_version;
use crate::sql_store::SqlStore;
use crate::statements::select::page_of;
use crate::statements::writer::Lead;
use crate::statements::{LIST_MAX, once};
use crate::write::{Batch, DeletionMode, Work};

/// What is read of a row.
const NAMES: [(&str, ColumnType); 5] = [
    ("uid", ColumnType::Text { chars: 64 }),
    ("namespace", ColumnType::Text { chars: 255 }),
    ("name", ColumnType::Text { chars: 255 }),
    ("res_version", ColumnType::Int64),
    ("evicted_time", ColumnType::Time),
];

/// Which objects are to be deleted, and how many at once.
#[derive(Clone, Debug)]
pub struct DeleteCollection {
    /// Finds them. Its order and limit do not matter, and rows that are deleted already are passed over.
    pub select: Select,
    /// Whether a query without a namespace, a label or any other condition is meant so.
    pub everything: bool,
    /// Whether all of them get tombstones, also those without references.
    pub needs_tombstones: bool,
    /// At most this many rows a batch: 1 to 500.
    pub rows: u32,
}

/// What became of one batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchOutcome {
    /// These were archived, and are deleted now.
    pub deleted: Vec<Found>,
    /// These are archived and have tombstones: each is deleted later.
    pub held: Vec<Found>,
    /// These live in the cluster, and are as they were.
    pub live: Vec<Found>,
    /// Goes on with the next batch; `None` where this was the last.
    pub continue_token: Option<String>,
}

/// An object that a query found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its uid.
    pub uid: Uid,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Version of the stored text.
    pub res_version: RowVersion,
}

/// What a query of [`NAMES`] found, by whether it is archived.
#[derive(Default)]
struct Names {
    archived: Vec<Found>,
    live: Vec<Found>,
}

/// What became of rows once they were locked.
#[derive(Default)]
struct Locked {
    deleted: Vec<Found>,
    held: Vec<Found>,
    live: Vec<Found>,
}

pub(crate) async fn delete<D: Driver>(
    store: &SqlStore<D>,
    request: &DeleteCollection,
    continue_token: Option<&str>,
    now: Timestamp,
) -> Result<BatchOutcome, StoreError> {
    let kind = request.select.kind();
    if request.select.is_everything() && !request.everything {
        return Err(StoreError::UnlimitedDelete(kind.name.to_owned()));
    }
    let failed = |error| failure::<D>(kind.name, error);
    let select = request.select.undeleted_by_uid();
    let after = continue_token.map(|token| page::read(token, &select)).transpose()?;
    let rows = request.rows.clamp(1, LIST_MAX as u32);

    let query = page_of(
        &select,
        &NAMES,
        store.connections.driver.spelling(),
        Lead::Engine,
        after.as_deref(),
        i64::from(rows) + 1,
    );
    let params: Vec<Param<'_>> = query.values.iter().map(param).collect();
    let mut found = store
        .connections
        .query(once(query.sql), &params)
        .await
        .map_err(failed)?;
    let more = found.len() > rows as usize;
    found.truncate(rows as usize);
    let last = found.last().filter(|_| more).map(|row| row.text(0));
    let last = last.transpose().map_err(failed)?;
    let names = names::<D>(&found).map_err(failed)?;

    let sql = store.texts(kind);
    let work = Work {
        sql: &sql,
        kind,
        now,
        platform: store.registry.platform,
        draw: store.draw,
        history: None,
    };
    let mode = match request.needs_tombstones {
        true => DeletionMode::Tombstone,
        false => DeletionMode::Unheld,
    };
    let locked = delete_archived(store, &work, &select, &names.archived, mode).await?;
    Ok(BatchOutcome {
        deleted: locked.deleted,
        held: locked.held,
        live: names.live.into_iter().chain(locked.live).collect(),
        continue_token: last.map(|uid| page::token_after(&select, vec![Value::Text(uid)])),
    })
}

fn names<D: Driver>(rows: &[D::Row]) -> Result<Names, sqlx::Error> {
    let mut names = Names::default();
    for row in rows {
        let life = life(None, row.time(4)?);
        let found = Found {
            uid: Uid::from(row.text(0)?.as_str()),
            namespace: row.text(1)?,
            name: row.text(2)?,
            res_version: row_version(life, res_version(row, 3)?),
        };
        match life {
            Life::Archived | Life::Deleted => names.archived.push(found),
            Life::Live => names.live.push(found),
        }
    }
    Ok(names)
}

/// In one transaction. Gives back what the query found once the rows were locked: of these the archived ones are
/// deleted, or have tombstones.
async fn delete_archived<D: Driver>(
    store: &SqlStore<D>,
    work: &Work<'_>,
    select: &Select,
    archived: &[Found],
    mode: DeletionMode,
) -> Result<Locked, StoreError> {
    if archived.is_empty() {
        return Ok(Locked::default());
    }
    let uids: Vec<&str> = archived.iter().map(|found| &*found.uid.0).collect();
    let delete = DeleteArchived {
        spelling: store.connections.driver.spelling(),
        work,
        select,
        uids: &uids,
        mode,
    };
    let deleted = store.connections.transact(&delete).await;
    deleted.map_err(|error| failure::<D>(work.kind.name, error))
}

struct DeleteArchived<'a> {
    spelling: &'static dyn Spelling,
    work: &'a Work<'a>,
    select: &'a Select,
    uids: &'a [&'a str],
    mode: DeletionMode,
}

impl<D: Driver> InTransaction<D> for DeleteArchived<'_> {
    type Done = Locked;

    fn kind(&self) -> &'static str {
        self.work.kind.name
    }

    async fn run(&self, connection: &mut Raw<D>, limits: Limits) -> Result<Locked, sqlx::Error> {
        let mut batch = Batch::<D> {
            connection,
            limits,
            work: self.work,
        };
        // Every writer locks the row before its labels: what is read after that stays as it is.
        let locked = batch.lock_rows(self.uids).await?;
        let among = self.select.among(self.uids);
        let query = page_of(&among, &NAMES, self.spelling, Lead::Engine, None, LIST_MAX as i64);
        let params: Vec<Param<'_>> = query.values.iter().map(param).collect();
        let rows = D::query(batch.connection, once(query.sql), &params).await?;
        let names = names::<D>(&rows)?;
        let found: Vec<&FoundRow> = names
            .archived
            .iter()
            .filter_map(|found| locked.get(&found.uid))
            .collect();
        let deletions = batch.delete_archived(&found, self.mode).await?;
        let is_held = |found: &Found| deletions.held.contains(&&*found.uid.0);
        let held: Vec<Found> = names.archived.iter().filter(|found| is_held(found)).cloned().collect();
        let deleted: Vec<Found> = names.archived.iter().filter(|found| !is_held(found)).cloned().collect();
        Ok(Locked {
            deleted,
            held,
            live: names.live,
        })
    }
}
