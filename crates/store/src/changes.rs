//! The feed of changes of archived objects, which no watch of the cluster reports. The changes of a kind are numbered
//! in the order of their commits, so that a reader at a position has missed nothing. The oldest are dropped as new ones
//! are added. Knows no dialect.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};

use crate::connections::failure;
use crate::driver::{Cells, Driver, Param};
use crate::error::StoreError;
use crate::sql_store::{BOOKKEEPING, SqlStore};
use crate::statements::fixed;
use crate::write::{Position, number, position};

/// One change of an archived object. Its current state is in its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its place in the order.
    pub position: Position,
    /// The object.
    pub uid: Uid,
    /// Its labels before it was updated; none where it was deleted.
    pub labels: Option<BTreeMap<String, String>>,
}

/// A position in the feed of changes of archived objects.
///
/// # Guarantees
/// A change is in here as soon as the row has changed, in the same transaction. Positions are committed in order,
/// without gaps: once one is seen, all before it are.
#[async_trait]
pub trait Changes: Send + Sync {
    /// How far each kind has come, by its name; kinds without any change are left out.
    async fn positions(&self) -> Result<HashMap<String, Position>, StoreError>;

    /// The changes after a position, in order; `None` where some of these were dropped.
    async fn changes(&self, kind: &Kind, after: Position, limit: u32) -> Result<Option<Vec<Change>>, StoreError>;

    /// Records that the cluster had this version after everybody who follows had seen this change. The first version
    /// that is recorded for a change stays.
    async fn record_watermark(
        &self,
        kind: &Kind,
        position: Position,
        version: ResourceVersion,
    ) -> Result<(), StoreError>;

    /// The last change for which a version before this one is recorded: who has seen the cluster's version has seen
    /// the changes up to it.
    async fn watermark_before(&self, kind: &Kind, version: ResourceVersion) -> Result<Option<Position>, StoreError>;
}

#[async_trait]
impl<D: Driver> Changes for SqlStore<D> {
    async fn positions(&self) -> Result<HashMap<String, Position>, StoreError> {
        let failed = |error| failure::<D>(BOOKKEEPING, error);
        let statement = fixed("SELECT [kind], [position] FROM [kindex_feed]");
        let rows = self.connections.query(statement, &[]).await.map_err(failed)?;
        let read = |row: &D::Row| Ok((row.text(0)?, position(row, 1)?));
        rows.iter().map(read).collect::<Result<_, _>>().map_err(failed)
    }

    async fn changes(&self, kind: &Kind, after: Position, limit: u32) -> Result<Option<Vec<Change>>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let statement = fixed(
            "SELECT [position], [uid], [labels] FROM [kindex_changes] WHERE [kind] = ? AND [position] > ? \
             ORDER BY [position] LIMIT ?",
        );
        let params = [Param::Text(kind.name), number(after.0), Param::Int(limit.into())];
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        let found: Result<Vec<Change>, _> = rows.iter().map(change::<D>).collect();
        let found = found.map_err(failed)?;
        let is_next = found.first().is_none_or(|first| first.position.0 == after.0 + 1);
        Ok(is_next.then_some(found))
    }

    async fn record_watermark(
        &self,
        kind: &Kind,
        position: Position,
        version: ResourceVersion,
    ) -> Result<(), StoreError> {
        let statement = fixed(
            "UPDATE [kindex_changes] SET [cluster_version] = ? \
             WHERE [kind] = ? AND [position] = ? AND [cluster_version] IS NULL",
        );
        let params = [number(version.0), Param::Text(kind.name), number(position.0)];
        let recorded = self.connections.execute(statement, &params).await;
        recorded.map(drop).map_err(|error| failure::<D>(kind.name, error))
    }

    async fn watermark_before(&self, kind: &Kind, version: ResourceVersion) -> Result<Option<Position>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let statement = fixed(
            "SELECT [position] FROM [kindex_changes] WHERE [kind] = ? AND [cluster_version] < ? \
             ORDER BY [position] DESC LIMIT 1",
        );
        let params = [Param::Text(kind.name), number(version.0)];
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        rows.first().map(|row| position(row, 0)).transpose().map_err(failed)
    }
}

fn change<D: Driver>(row: &D::Row) -> Result<Change, sqlx::Error> {
    let labels = row.text_or_null(2)?;
    let labels = labels.map(|text| serde_json::from_str(&text)).transpose();
    Ok(Change {
        position: position(row, 0)?,
        uid: Uid::from(row.text(1)?.as_str()),
        labels: labels.map_err(|error| sqlx::Error::Decode(error.into()))?,
    })
}
