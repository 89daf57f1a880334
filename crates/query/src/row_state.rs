//! What a row says of its object, without the object itself.

use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::projection::ContentHash;
use kindex_model::row_version::RowVersion;

use crate::stored::Life;

/// The place of a row in the order in which rows came: rows that follow each other lie side by side on disk. Nothing
/// else is meant by it, and rows that are written at the same time may come in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival(pub i64);

/// What a row says about its object; enough to decide what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowState {
    /// Primary key.
    pub arrival: Arrival,
    /// The object.
    pub uid: Uid,
    /// Namespace and name, by which a recreated object is recognized.
    pub namespace: String,
    /// See `namespace`.
    pub name: String,
    /// Version of the stored text.
    pub res_version: RowVersion,
    /// `None` in rows that another program wrote.
    pub hash: Option<ContentHash>,
    /// From `delete_time` and `evicted_time`; a deleted row is deleted whether or not it was evicted.
    pub life: Life,
}

impl RowState {
    /// The version of the cluster that the row has, or followed when it was changed in SQL: what the
    /// cluster's versions are compared with.
    pub fn cluster_version(&self) -> ResourceVersion {
        self.res_version.of_cluster()
    }
}
