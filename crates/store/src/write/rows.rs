//! The rows of a kind as the ingester reads them, without a lock, and writes them.

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;

use crate::cells::found_row;
use crate::connections::failure;
use crate::driver::{Driver, Param};
use crate::error::StoreError;
use crate::row::{Arrival, RowState, RowWrite, Written};
use crate::sql_store::SqlStore;
use crate::statements::{LIST_MAX, padded_list};
use crate::write::apply::Writes;
use crate::write::batch::Work;
use crate::write::versions::HistoryBatch;

/// Reading what rows say, and writing them in batches.
///
/// # Guarantees
/// A batch of writes is one transaction: all of it is stored or nothing. A write is checked by
/// (uid, res_version): an older version never overwrites a newer one, in any interleaving
/// with other writers. Labels and annotations are those of the stored version, one row per key.
/// A kind that keeps a history has every version of a batch in it, once, also one that is superseded,
/// and the version that a row held before the history began. Where a row is written anew under the
/// version that it has, the cluster lost what it told before: that goes to a branch of its own.
#[async_trait]
pub trait Rows: Send + Sync {
    /// The rows of these uids, in any order; absent rows are left out.
    async fn row_states(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<RowState>, StoreError>;

    /// A page of row states in order of arrival, in which they lie on disk, for comparing SQL with the cluster.
    async fn scan(&self, kind: &Kind, after: Option<Arrival>, limit: u32) -> Result<Vec<RowState>, StoreError>;

    /// Applies a batch in one transaction and says what became of each write, in order.
    /// A batch holds at most one write per row and any number of [`RowWrite::Record`]s, in any order.
    ///
    /// When a row appears as live or archived, or is revived, then of all rows of its namespace and
    /// name that are not deleted only the one with the highest version stays so. The others are closed,
    /// the appearing row itself where it is the late one: it is stored, and deleted.
    ///
    /// # Errors
    /// Conflicts with other writers are repeated inside and reported only when they do not end.
    /// `Refused` speaks of the batch as a whole: halve it to find the write that is to blame.
    async fn write(&self, kind: &Kind, batch: &[RowWrite], now: Timestamp) -> Result<Vec<Written>, StoreError>;
}

#[async_trait]
impl<D: Driver> Rows for SqlStore<D> {
    async fn row_states(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<RowState>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let texts = self.texts(kind);
        let names: Vec<&str> = uids.iter().map(|uid| &*uid.0).collect();
        let mut states = Vec::with_capacity(uids.len());
        for chunk in names.chunks(LIST_MAX) {
            let params = padded_list(chunk);
            let statement = texts.states(params.len(), false);
            for row in self.connections.query(statement, &params).await.map_err(failed)? {
                states.push(found_row(&row).map_err(failed)?.into());
            }
        }
        Ok(states)
    }

    async fn scan(&self, kind: &Kind, after: Option<Arrival>, limit: u32) -> Result<Vec<RowState>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let mut params: Vec<Param<'_>> = after.iter().map(|after| Param::Int(after.0)).collect();
        params.push(Param::Int(limit.into()));
        let statement = self.texts(kind).scan(after.is_none());
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        rows.iter()
            .map(|row| Ok(found_row(row).map_err(failed)?.into()))
            .collect()
    }

    async fn write(&self, kind: &Kind, batch: &[RowWrite], now: Timestamp) -> Result<Vec<Written>, StoreError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let work = Work {
            sql: &self.texts(kind),
            kind,
            now,
            platform: self.registry.platform,
            draw: self.draw,
            history: kind
                .history
                .then(|| HistoryBatch::new(self.history_sql(kind), batch, now)),
        };
        let writes = Writes {
            work: &work,
            writes: batch,
        };
        let written = self.connections.transact(&writes).await;
        written.map_err(|error| failure::<D>(kind.name, error))
    }
}
