//! What the commands that check and heal ask of a database, beside what the ingester
//! asks of it: whole rows as they stand, to be compared and never to be served.

mod images;
mod sql;

use async_trait::async_trait;
use jiff::Timestamp;

use super::driver::Driver;
use super::sql::Side;
use super::sql_store::SqlStore;
use super::{Life, StoreError};
use crate::kind::Kind;
use crate::object::Uid;
use crate::value::Value;

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
    /// Live, evicted or deleted.
    pub fn life(&self) -> Life {
        match (self.delete_time, self.evicted_time) {
            (Some(_), _) => Life::Deleted,
            (None, Some(_)) => Life::Evicted,
            (None, None) => Life::Live,
        }
    }
}

/// The SQL store as the commands that check and heal see it.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Everything that SQL holds of these uids, in any order; absent rows are left out.
    ///
    /// # Guarantees
    /// A cell with an unexpected value is no error. The three tables are read one after the
    /// other: a row that is being written may show sides of another version. Read again.
    async fn row_images(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<RowImage>, StoreError>;

    /// The uids that have labels or annotations in SQL, in order, from after the given one; at
    /// most `limit`. Whether there is a row of that uid is the caller's question.
    async fn side_owners(&self, kind: &Kind, after: Option<&Uid>, limit: u32) -> Result<Vec<Uid>, StoreError>;

    /// Of these uids, those that have labels or annotations, and no row. The writer writes all
    /// of an object in one transaction, so there are none.
    async fn strays(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<Uid>, StoreError>;

    /// Of these rows, those that are not deleted and share their name with another row that is not
    /// deleted. The writer closes all but the newest of a name, so there are none.
    async fn namesakes(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<Uid>, StoreError>;
}

#[async_trait]
impl<D: Driver> Maintenance for SqlStore<D> {
    async fn row_images(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<RowImage>, StoreError> {
        images::read(&self.connections, kind, uids).await
    }

    async fn side_owners(&self, kind: &Kind, after: Option<&Uid>, limit: u32) -> Result<Vec<Uid>, StoreError> {
        images::side_owners(&self.connections, kind, after, limit).await
    }

    async fn strays(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<Uid>, StoreError> {
        let mut strays = Vec::new();
        for side in [Side::Labels, Side::Annotations] {
            strays.extend(
                images::among(&self.connections, kind, uids, |kind, uids| {
                    sql::strays(kind, side, uids)
                })
                .await?,
            );
        }
        strays.sort_unstable();
        strays.dedup();
        Ok(strays)
    }

    async fn namesakes(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<Uid>, StoreError> {
        images::among(&self.connections, kind, uids, sql::namesakes).await
    }
}
