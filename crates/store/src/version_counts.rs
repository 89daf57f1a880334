//! Which versions the rows of a kind have their objects in. Reads `group_ver` as it stands, without the objects.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kindex_model::kind::Kind;

use crate::connections::failure;
use crate::driver::{Cells, Driver, Param};
use crate::error::StoreError;
use crate::sql_store::SqlStore;
use crate::statements::version_counts as sql;

/// Rows that one statement counts: few enough for its time limit, whatever the size of the objects beside them.
const PAGE_ROWS: i64 = 20_000;
/// Rows at each end of a table that are looked at when a program starts.
const OUTERMOST_ROWS: i64 = 1_000;

/// Rows whose objects are in one version, by what became of their objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionRows {
    /// Objects that the cluster has.
    pub live: u64,
    /// Archived objects.
    pub archived: u64,
    /// Objects that were deleted.
    pub deleted: u64,
}

impl VersionRows {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.live + self.archived + self.deleted
    }
}

/// Counting rows by version.
#[async_trait]
pub trait VersionCounts: Send + Sync {
    /// The rows of a kind by `group_ver`, such as `michelangelo.api/v2`.
    ///
    /// # Guarantees
    /// Reads the whole table, a page a statement. Rows that are written meanwhile count as before or as after.
    async fn version_counts(&self, kind: &Kind) -> Result<BTreeMap<String, VersionRows>, StoreError>;

    /// Whatever `group_ver` the first 1,000 rows of a kind and the last 1,000 have, in order of arrival: what a program
    /// can afford to ask whenever it starts. A version between the two is found by
    /// [`version_counts`](Self::version_counts) alone.
    async fn outermost_versions(&self, kind: &Kind) -> Result<Vec<String>, StoreError>;

    /// How many versions of objects the history of a kind has, whatever `apiVersion` they say; 0 without one.
    async fn history_entries(&self, kind: &Kind) -> Result<u64, StoreError>;
}

#[async_trait]
impl<D: Driver> VersionCounts for SqlStore<D> {
    async fn version_counts(&self, kind: &Kind) -> Result<BTreeMap<String, VersionRows>, StoreError> {
        let mut counts: BTreeMap<String, VersionRows> = BTreeMap::new();
        let mut after = i64::MIN;
        loop {
            let page = self.page(kind, after).await?;
            let counted: i64 = page.iter().map(|part| part.rows).sum();
            for part in &page {
                let rows = counts.entry(part.version.clone()).or_default();
                rows.deleted += part.deleted.unsigned_abs();
                rows.archived += part.archived.unsigned_abs();
                rows.live += (part.rows - part.deleted - part.archived).unsigned_abs();
                after = after.max(part.last);
            }
            if counted < PAGE_ROWS {
                return Ok(counts);
            }
        }
    }

    async fn outermost_versions(&self, kind: &Kind) -> Result<Vec<String>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let most = [Param::Int(OUTERMOST_ROWS), Param::Int(OUTERMOST_ROWS)];
        let rows = self.connections.query(sql::outermost(kind), &most).await;
        let rows = rows.map_err(failed)?;
        rows.iter()
            .map(|row| row.text(0))
            .collect::<Result<_, _>>()
            .map_err(failed)
    }

    async fn history_entries(&self, kind: &Kind) -> Result<u64, StoreError> {
        if !kind.history {
            return Ok(0);
        }
        let failed = |error| failure::<D>(kind.name, error);
        let statement = sql::history_entries(&kind.tables().history());
        let rows = self.connections.query(statement, &[]).await.map_err(failed)?;
        let count = rows.first().map_or(Ok(0), |row| row.int(0)).map_err(failed)?;
        Ok(count.unsigned_abs())
    }
}

/// The rows of one version in a page.
struct Part {
    version: String,
    rows: i64,
    deleted: i64,
    archived: i64,
    last: i64,
}

impl<D: Driver> SqlStore<D> {
    async fn page(&self, kind: &Kind, after: i64) -> Result<Vec<Part>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let params = [Param::Int(after), Param::Int(PAGE_ROWS)];
        let rows = self.connections.query(sql::next_counts(kind), &params).await;
        let part = |row: &D::Row| {
            Ok(Part {
                version: row.text(0)?,
                rows: row.int(1)?,
                deleted: row.int(2)?,
                archived: row.int(3)?,
                last: row.int(4)?,
            })
        };
        let rows = rows.map_err(failed)?;
        rows.iter()
            .map(part)
            .collect::<Result<_, sqlx::Error>>()
            .map_err(failed)
    }
}
