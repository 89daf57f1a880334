//! A stored object and its state.

use jiff::Timestamp;
use kindex_model::object::{Object, Uid};

/// The state of a stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// In the cluster and in SQL.
    Live,
    /// Archived: it left the cluster and lives in SQL. `evicted_time` is set.
    Archived,
    /// Deleted: `delete_time` is set.
    Deleted,
}

/// A stored object.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The object's exact text and metadata.
    pub object: Object,
    /// Its state.
    pub life: Life,
    /// Time of the last write that changed the row.
    pub update_time: Option<Timestamp>,
    /// When it was deleted.
    pub delete_time: Option<Timestamp>,
    /// When it was archived.
    pub evicted_time: Option<Timestamp>,
    /// The object that replaced it while it was archived: one of the same name was created in the cluster. Only set by
    /// `get_by_id` and `rows_of_name`.
    pub replaced_by: Option<Uid>,
}
