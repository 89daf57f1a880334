//! The errors of a store. Knows no engine.

use jiff::Timestamp;
use kindex_model::object::ResourceVersion;
use kindex_query::MistypedColumn;

use crate::cause::{Cause, Retry};

/// An error of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot answer now: it is away or overloaded, or chose this transaction as the victim of a deadlock.
    /// Nothing was written, or the outcome is unknown. When the same call may succeed depends on the [`Cause`].
    #[error("{kind}: the database cannot answer now ({cause}): {source}")]
    Retryable {
        /// The kind whose tables were used.
        kind: String,
        /// Why.
        cause: Cause,
        /// As the driver says it.
        #[source]
        source: sqlx::Error,
    },
    /// The database refuses this data. Nothing of the batch was written.
    #[error("{kind}: the database refuses the write: {source}")]
    Refused {
        /// The kind.
        kind: String,
        /// As the driver says it.
        #[source]
        source: sqlx::Error,
    },
    /// The schema is absent or not the one this program writes.
    #[error("schema: {0}")]
    Schema(String),
    /// A stored row cannot be read back.
    #[error("{kind}: row {uid}: {message}")]
    Corrupt {
        /// The kind.
        kind: String,
        /// The row.
        uid: String,
        /// What is wrong with it.
        message: String,
    },
    /// The address of the database is wrong.
    #[error("database address: {0}")]
    Address(String),
    /// The kind keeps no history.
    #[error("{0}: keeps no history: `history = true` in crds.toml makes it keep one from then on")]
    NoHistory(String),
    /// A continue token cannot be used with this query.
    #[error("continue token: {0}")]
    Continue(String),
    /// A named query cannot run with these parameters.
    #[error(transparent)]
    Template(#[from] kindex_query::TemplateError),
    /// An archived object cannot be changed.
    #[error("{kind} {uid}: {source}")]
    Direct {
        /// The kind.
        kind: String,
        /// The object.
        uid: String,
        /// Why.
        #[source]
        source: DirectError,
    },
    /// A collection is to be deleted, and nothing limits it.
    #[error("{0}: without a namespace or selector, this deletes every object of the kind; confirm that explicitly")]
    UnlimitedDelete(String),
}

impl StoreError {
    /// When the same call may succeed. The ingester and the commands go by it, each in its way: see [`Retry`].
    pub fn retry(&self) -> Retry {
        match self {
            Self::Retryable { cause, .. } => cause.retry(),
            Self::Schema(_) | Self::Address(_) => Retry::AfterChange,
            Self::Refused { .. }
            | Self::Corrupt { .. }
            | Self::NoHistory(_)
            | Self::Continue(_)
            | Self::Template(_)
            | Self::Direct { .. }
            | Self::UnlimitedDelete(_) => Retry::Never,
        }
    }

    /// Whether the database is out of reach or does not answer, which the store tells the log once for all calls.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Retryable { cause, .. } if cause.is_outage())
    }
}

impl From<MistypedColumn> for StoreError {
    fn from(found: MistypedColumn) -> Self {
        Self::Corrupt {
            kind: found.kind.to_owned(),
            uid: "?".to_owned(),
            message: "a column holds a value that is not of its type".to_owned(),
        }
    }
}

/// Why a row was not changed past the cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectError {
    /// There is no row of the uid.
    #[error("is not stored")]
    Missing,
    /// The object was deleted.
    #[error("was deleted at {0}: what is deleted does not change")]
    Deleted(Timestamp),
    /// The object is being deleted, and references hold it.
    #[error("has been terminating since {0}: it takes no new references")]
    Deleting(Timestamp),
    /// The cluster has the object, and its next event would undo the change.
    #[error("lives in the cluster: change it there, and SQL follows")]
    Live,
    /// Somebody changed the object since it was read.
    #[error("is now at version {stored}, but the change is based on version {given}: read it again and retry")]
    Conflict {
        /// What the caller read.
        given: ResourceVersion,
        /// What the row has.
        stored: ResourceVersion,
    },
    /// A field that belongs to the object for life.
    #[error("{field} may not change: it is {stored}, not {given}")]
    Unchangeable {
        /// Its path.
        field: &'static str,
        /// What the row has.
        stored: String,
        /// What the caller gave.
        given: String,
    },
    /// There is no larger version.
    #[error("has version {0}, the last that SQL can give: delete the object and create it again")]
    Exhausted(ResourceVersion),
}
