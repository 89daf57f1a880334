//! A stored object, and where it lives.

use jiff::Timestamp;
use kindex_model::object::{Object, Uid};

/// Where a stored object lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// In the cluster and in SQL.
    Live,
    /// In SQL only, by intent: `evicted_time` is set.
    Evicted,
    /// Deleted: `delete_time` is set.
    Deleted,
}

/// A stored object.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The object's exact text and metadata.
    pub object: Object,
    /// Where it lives.
    pub life: Life,
    /// Time of the last write that changed the row.
    pub update_time: Option<Timestamp>,
    /// When it was deleted.
    pub delete_time: Option<Timestamp>,
    /// When it was evicted.
    pub evicted_time: Option<Timestamp>,
    /// The object that took its name in the cluster while it was archived: it is no more there under its name, and
    /// nobody deleted it. Only `get_by_id` and
    /// `incarnations` say so.
    pub replaced_by: Option<Uid>,
}
