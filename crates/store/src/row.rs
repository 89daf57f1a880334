//! One row of a kind: its state, its writes and their results.

use std::sync::Arc;

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::projection::Version;
use kindex_model::row_version::RowVersion;
use kindex_query::{Life, Revive};

pub use kindex_query::{Arrival, RowState};

/// The version of a row with this number: that of a live row is always one of the cluster.
pub(super) fn row_version(life: Life, number: ResourceVersion) -> RowVersion {
    match life {
        Life::Live => RowVersion::Cluster(number),
        Life::Archived | Life::Deleted => RowVersion::unpack(number),
    }
}

/// One change to one row. `V` is the object as received, or its projection, which is what stores take.
#[derive(Clone, Debug)]
pub enum RowWrite<V = Arc<Version>> {
    /// Stores this version, unless the row already holds a newer one. The row's own version stored
    /// again changes what the write says: another text, another state of life. Only with `revive` it makes a row live
    /// that is archived in it.
    Store {
        /// The version.
        version: V,
        /// What the row says afterwards. Times of deletion and eviction keep their first value.
        life: Life,
        /// From which state the row may come back to life. Only where the cluster itself shows the uid alive.
        revive: Revive,
    },
    /// Marks a row deleted without a new version: the object is gone. Idempotent; no row, no effect.
    SoftDelete {
        /// The row.
        uid: Uid,
    },
    /// Keeps a version in the history, where the kind has one, and changes no row: it was replaced
    /// before it could be stored, or is late.
    Record {
        /// The version.
        object: Object,
        /// When it was seen.
        seen: Timestamp,
    },
}

/// What a write stores.
pub trait Content {
    /// The object.
    fn object(&self) -> &Object;
}

impl Content for Object {
    fn object(&self) -> &Object {
        self
    }
}

impl Content for Arc<Version> {
    fn object(&self) -> &Object {
        &self.object
    }
}

impl<V: Content> RowWrite<V> {
    /// The object that the write is about.
    pub fn uid(&self) -> &Uid {
        match self {
            Self::Store { version, .. } => &version.object().metadata.uid,
            Self::SoftDelete { uid } => uid,
            Self::Record { object, .. } => &object.metadata.uid,
        }
    }

    /// Whether the write may change a row.
    pub(super) fn is_of_a_row(&self) -> bool {
        match self {
            Self::Store { .. } | Self::SoftDelete { .. } => true,
            Self::Record { .. } => false,
        }
    }
}

impl RowWrite<Object> {
    /// The same with the projection of what it stores.
    pub fn project(self, kind: &Kind) -> RowWrite {
        match self {
            Self::Store { version, life, revive } => RowWrite::Store {
                version: Version::project(kind, version),
                life,
                revive,
            },
            Self::SoftDelete { uid } => RowWrite::SoftDelete { uid },
            Self::Record { object, seen } => RowWrite::Record { object, seen },
        }
    }
}

/// What became of one [`RowWrite`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A row was inserted.
    Inserted,
    /// The row was changed.
    Updated,
    /// The row was already up to date; nothing was written.
    Unchanged,
    /// The row holds a newer version, is deleted and may not be revived, or is archived in this version and may not be
    /// live again.
    Superseded,
    /// A row was inserted, or came back, and closed that of an archived object which had its name.
    Replacing,
}
