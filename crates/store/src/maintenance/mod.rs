//! What the repair commands need of a database, beside what the ingester
//! asks of it: whole rows as they stand, to be compared and never to be served.

mod sql;

mod images;

mod sql_gone;

mod gone;

mod state;

mod cluster_binding;

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::row_version::RowVersion;
use kindex_model::tables::Side;
use kindex_model::value::Value;
use kindex_query::Life;

use crate::archived_holders::ReadVersion;
use crate::driver::Driver;
use crate::error::StoreError;
use crate::row::Arrival;
use crate::sql_store::SqlStore;
use crate::write::OutboxWork;

pub use cluster_binding::{BACKFILL_PROGRESS, ClusterBinding};

/// Everything that SQL holds of one object, cell by cell.
///
/// A cell that cannot be read has its type's empty value, and a line in
/// [`RowImage::unreadable`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowImage {
    /// `uid`.
    pub uid: String,
    /// `group_ver`.
    pub group_ver: String,
    /// `namespace`.
    pub namespace: String,
    /// `name`.
    pub name: String,
    /// `res_version`.
    pub res_version: i64,
    /// `create_time`.
    pub create_time: Option<Timestamp>,
    /// `update_time`.
    pub update_time: Option<Timestamp>,
    /// `delete_time`.
    pub delete_time: Option<Timestamp>,
    /// `evicted_time`.
    pub evicted_time: Option<Timestamp>,
    /// `proto`.
    pub proto: Option<Vec<u8>>,
    /// `json`.
    pub text: String,
    /// The extracted columns, in table order.
    pub columns: Vec<Value>,
    /// `content_hash`; `None` in rows that another program wrote.
    pub content_hash: Option<Vec<u8>>,
    /// Rows of the labels' table, in order of key; a NULL value is `None`.
    pub labels: Vec<SideRow>,
    /// Rows of the annotations' table.
    pub annotations: Vec<SideRow>,
    /// Columns that could not be read, with what the driver says.
    pub unreadable: Vec<(&'static str, String)>,
}

/// Key and value of one row of a side table.
pub type SideRow = (String, Option<String>);

impl RowImage {
    /// Live, archived or deleted.
    pub fn life(&self) -> Life {
        match (self.delete_time, self.evicted_time) {
            (Some(_), _) => Life::Deleted,
            (None, Some(_)) => Life::Archived,
            (None, None) => Life::Live,
        }
    }
}

/// Comparing rows cell by cell, and finding those that no writer leaves.
#[async_trait]
pub trait Verification: Send + Sync {
    /// Everything that SQL holds of these uids, in any order; absent rows are left out.
    ///
    /// # Guarantees
    /// A cell with an unexpected value is no error. The three tables are read one after the
    /// other: a row that is being written may show sides of another version. Read again.
    async fn row_images(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<RowImage>, StoreError>;

    /// The uids that have labels or annotations in SQL, in order, from after the given one; at
    /// most `limit`. Does not check whether there is a row of that uid.
    async fn side_owners(&self, kind: &Kind, after: Option<&Uid>, limit: u32) -> Result<Vec<Uid>, StoreError>;

    /// Those of these uids that have labels or annotations but no row. The writer writes all of an object in one
    /// transaction, so there should be none.
    async fn orphaned_sides(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<Uid>, StoreError>;

    /// Of these rows, those that are not deleted and share their name with another row that is not
    /// deleted. The writer closes all but the newest of a name, so there are none.
    async fn namesakes(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<Uid>, StoreError>;
}

/// Removing the rows of objects that are no longer in the cluster.
#[async_trait]
pub trait Purge: Send + Sync {
    /// A page of rows whose objects are no longer in the cluster, and which no reference holds, in order of arrival.
    async fn gone_rows(
        &self,
        kind: &'static Kind,
        gone: &Gone,
        after: Option<Arrival>,
        limit: u32,
    ) -> Result<Vec<GoneRow>, StoreError>;

    /// Of the rows that the filter finds, in each namespace the one in this place, counted from 1
    /// for the row whose object went last; namespaces with fewer rows have none.
    async fn nth_newest_gone(&self, kind: &'static Kind, gone: &Gone, place: u32) -> Result<Vec<GoneRow>, StoreError>;

    /// Removes rows for good with all their parts, those among `uids` that the filter still finds
    /// when they are locked. Gives back which. The objects of archived rows of a kind with events go at this time.
    ///
    /// # Guarantees
    /// Never removes a live row, nor one that references hold. All parts of a row go in one transaction.
    async fn remove(
        &self,
        kind: &'static Kind,
        gone: &Gone,
        uids: &[Uid],
        now: Timestamp,
    ) -> Result<Vec<Uid>, StoreError>;

    /// Requests the deletion of archived objects whose rows have the versions that were read: they get tombstones, and
    /// whoever ends the deletions of these goes on. Gives back which have one.
    ///
    /// # Guarantees
    /// An object that references hold when its row is locked is left alone, and so is one whose text cannot be read.
    async fn request_deletions(
        &self,
        kind: &'static Kind,
        objects: &[ReadVersion],
        now: Timestamp,
    ) -> Result<Vec<Uid>, StoreError>;

    /// What time it is in the database.
    async fn clock(&self) -> Result<Timestamp, StoreError>;
}

/// What a long work remembers, and where an ingester goes on from after it.
#[async_trait]
pub trait WorkState: Send + Sync {
    /// Saves a checkpoint where the kind has none: everything up to this version is stored, and an
    /// ingester that starts goes on from there. Leaves a checkpoint alone that is there.
    async fn save_first_checkpoint(
        &self,
        kind: &Kind,
        version: ResourceVersion,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// What was last saved under this name for this kind.
    async fn state(&self, kind: &Kind, name: &str) -> Result<Option<String>, StoreError>;

    /// Remembers something for this kind beyond the life of this process; replaces what was there.
    async fn save_state(&self, kind: &Kind, name: &str, value: &str, now: Timestamp) -> Result<(), StoreError>;

    /// Forgets it.
    async fn forget_state(&self, kind: &Kind, name: &str) -> Result<(), StoreError>;
}

/// Which rows of objects that are no longer in the cluster. A row is found where all of it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// Rows of deleted objects.
    pub deleted: bool,
    /// Rows of archived objects that were not deleted since.
    pub archived: bool,
    /// Only of this namespace.
    pub namespace: Option<String>,
    /// Only of this name.
    pub name: Option<String>,
    /// Only of objects that went then or later.
    pub since: Option<Timestamp>,
    /// Only of objects that went before.
    pub before: Option<Timestamp>,
    /// Only where this column holds one of these values.
    pub states: Option<(&'static str, &'static [&'static str])>,
}

/// The row of an object that is no longer in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoneRow {
    /// The row's primary key.
    pub arrival: Arrival,
    /// The object's uid.
    pub uid: Uid,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Version of the row: that of the stored text, or 0 once it was rewound.
    pub res_version: RowVersion,
    /// Archived or deleted.
    pub life: Life,
    /// When it was deleted, or else archived.
    pub gone_time: Timestamp,
}

#[async_trait]
impl<D: Driver> Verification for SqlStore<D> {
    async fn row_images(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<RowImage>, StoreError> {
        images::read(&self.connections, kind, uids).await
    }

    async fn side_owners(&self, kind: &Kind, after: Option<&Uid>, limit: u32) -> Result<Vec<Uid>, StoreError> {
        images::side_owners(&self.connections, kind, after, limit).await
    }

    async fn orphaned_sides(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<Uid>, StoreError> {
        let spelling = self.connections.driver.spelling();
        let mut orphaned_sides = Vec::new();
        for side in [Side::Labels, Side::Annotations] {
            orphaned_sides.extend(
                images::among(&self.connections, kind, uids, |kind, uids| {
                    sql::orphaned_sides(spelling, kind, side, uids)
                })
                .await?,
            );
        }
        orphaned_sides.sort_unstable();
        orphaned_sides.dedup();
        Ok(orphaned_sides)
    }

    async fn namesakes(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<Uid>, StoreError> {
        let spelling = self.connections.driver.spelling();
        images::among(&self.connections, kind, uids, |kind, uids| {
            sql::namesakes(spelling, kind, uids)
        })
        .await
    }
}

#[async_trait]
impl<D: Driver> Purge for SqlStore<D> {
    async fn gone_rows(
        &self,
        kind: &'static Kind,
        gone: &Gone,
        after: Option<Arrival>,
        limit: u32,
    ) -> Result<Vec<GoneRow>, StoreError> {
        gone::page(&self.connections, kind, gone, after, limit).await
    }

    async fn nth_newest_gone(&self, kind: &'static Kind, gone: &Gone, place: u32) -> Result<Vec<GoneRow>, StoreError> {
        gone::nth_newest(&self.connections, kind, gone, place).await
    }

    async fn remove(
        &self,
        kind: &'static Kind,
        gone: &Gone,
        uids: &[Uid],
        now: Timestamp,
    ) -> Result<Vec<Uid>, StoreError> {
        let work = OutboxWork {
            kind,
            spelling: self.connections.driver.spelling(),
            now,
            draw: self.draw,
        };
        gone::remove(&self.connections, &work, gone, uids).await
    }

    async fn request_deletions(
        &self,
        kind: &'static Kind,
        objects: &[ReadVersion],
        now: Timestamp,
    ) -> Result<Vec<Uid>, StoreError> {
        self.make_unheld_tombstones(kind, objects, now).await
    }

    async fn clock(&self) -> Result<Timestamp, StoreError> {
        state::clock(&self.connections).await
    }
}

#[async_trait]
impl<D: Driver> WorkState for SqlStore<D> {
    async fn save_first_checkpoint(
        &self,
        kind: &Kind,
        version: ResourceVersion,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        state::save_first_checkpoint(&self.connections, kind, version, now).await
    }

    async fn state(&self, kind: &Kind, name: &str) -> Result<Option<String>, StoreError> {
        state::state(&self.connections, kind, name).await
    }

    async fn save_state(&self, kind: &Kind, name: &str, value: &str, now: Timestamp) -> Result<(), StoreError> {
        state::save_state(&self.connections, kind, name, value, now).await
    }

    async fn forget_state(&self, kind: &Kind, name: &str) -> Result<(), StoreError> {
        state::forget_state(&self.connections, kind, name).await
    }
}
