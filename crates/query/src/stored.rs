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

/// Which state of a row a write may bring it back from. One that is archived is brought back where it becomes live in
/// the version in which it was archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revive {
    /// None: a late write never revives a row.
    Never,
    /// The state that the row had when the cluster was asked, and showed the object alive. If the row has left that
    /// state since, somebody else knows more.
    From(Life),
    /// Any: whatever became of the row, the cluster has just created or shown its object.
    FromAny,
}

impl Revive {
    /// Whether a row may be brought back from this state.
    pub fn is_from(self, life: Life) -> bool {
        match self {
            Self::Never => false,
            Self::From(seen) => seen == life,
            Self::FromAny => true,
        }
    }
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
