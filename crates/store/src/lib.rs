//! The storage contract: what the ingester and the readers ask of a SQL database.
//! The engines differ in `mysql`, `sqlite` and `dialect` alone; the same scenarios run over all of them.

pub mod pace;

pub mod progress;

pub mod backoff;

mod address;

mod dialect;

mod statement;

mod explained;

mod row;

mod plan;

mod driver;

mod calls;

mod outage;

mod sql;

mod select_sql;

mod condition_sql;

mod from_sql;

mod bookkeeping;

mod mysql;

mod sqlite;

mod schema;

mod history;

mod record;

mod rows;

mod page;

mod write;

mod connections;

mod catalogue;

mod sql_store;

mod replaced;

mod changes;

mod migration;

mod write_history;

mod past;

mod past_list;

mod lead;

mod reader;

mod queries;

mod collection;

mod direct;

mod maintenance;

pub mod database_gauges;

#[cfg(test)]
mod query_bounds;

#[cfg(test)]
mod typed_queries;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

pub use address::{Address, MySqlFields, PoolConfig, SqlitePlace, Tls, TlsMode};
pub use calls::{Calls, Stalled};
pub use catalogue::{LiveColumn, LiveKey, LiveTable};
pub use changes::{CHANGES_KEPT, Change, Changes, Position};
pub use collection::{Collected, DeleteCollection, Found};
pub use dialect::Dialect;
pub use direct::{Direct, DirectError};
pub use explained::{Access, Plan, PlanStep};
pub use maintenance::{Gone, GoneRow, Maintenance, Quarantined, RowImage, SideRow};
pub use migration::{
    AdoptOptions, Adopted, AdoptedKind, Applied, BrokenRows, BrokenTable, MigrateError, MigrateOptions, Migrated,
    MigrationStanding, Migrations, PendingStep, ScriptError, Unfit, Unfits,
};
pub use outage::Outage;
pub use past::{AsOf, History, Past};
pub use past_list::ListAt;
pub use queries::Queries;
pub use record::is_cut;
pub use row::{Arrival, RowState, RowWrite, Written};
pub use select_sql::ToSql;
pub use statement::Statement;

use kindex_model::kind::{Kind, Registry};
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_query::{MistypedColumn, Reader, Stored};
use sql_store::SqlStore;

/// An object that the database refused, as far as an ingester has to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineRecord {
    /// The object.
    pub uid: Uid,
    /// The version that was refused.
    pub version: ResourceVersion,
    /// Why.
    pub reason: String,
}

/// Which stored objects a list returns.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// One namespace, or all.
    pub namespace: Option<String>,
    /// Labels that an object must carry, with equal values.
    pub labels: Vec<(String, String)>,
    /// Deleted rows too.
    pub include_deleted: bool,
    /// Most rows a page; 0 means 500.
    pub limit: u32,
    /// The last row of the page before: rows come in order of uid.
    pub after: Option<Uid>,
}

/// Why a store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database is away or overloaded, or chose this transaction as a deadlock's
    /// victim: the same call may succeed later. Nothing was written, or the outcome is unknown.
    #[error("{kind}: the database cannot answer now ({cause}): {source}")]
    Retryable {
        /// The kind whose tables were used.
        kind: String,
        /// Short label for metrics, such as `deadlock`, `connection`, `read_only`.
        cause: &'static str,
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
    /// A named query cannot be asked so.
    #[error(transparent)]
    Template(#[from] kindex_query::TemplateError),
    /// An object cannot be changed in SQL alone.
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
    /// A collection is to be deleted, and nothing says which.
    #[error("{0}: no namespace, no selector: this would delete every object of the kind; say so if it is meant")]
    Everything(String),
}

impl StoreError {
    /// Whether the same call may succeed later without any change to the data.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Retryable { .. } | Self::Schema(_))
    }
}

/// The SQL store of all kinds. Named after the interface of the same purpose in Michelangelo.
///
/// # Guarantees
/// A batch of writes is one transaction: all of it is stored or nothing. A write is guarded by
/// (uid, res_version): an older version never overwrites a newer one, in any interleaving
/// with other writers. Labels and annotations are those of the stored version, one row per key.
/// A kind that keeps a history has every version of a batch in it, once, also one that is superseded,
/// and the version that a row held before the history began. Where a row is written anew under the
/// version that it has, the cluster lost what it told before: that goes to a branch of its own.
#[async_trait]
pub trait MetadataStorage:
    Reader<Error = StoreError> + Maintenance + History + Migrations + Queries + Direct + Changes
{
    /// Creates the database and the tables where they are missing, and checks that all columns that
    /// this program writes are there. Idempotent; nothing else creates anything.
    async fn prepare(&self) -> Result<(), StoreError>;

    /// The rows of these uids, in any order; absent rows are left out.
    async fn row_states(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<RowState>, StoreError>;

    /// Applies a batch in one transaction and says what became of each write, in order.
    /// A batch holds at most one write per row and any number of [`RowWrite::Record`]s, in any order.
    ///
    /// When a row appears as live or evicted, or is revived, then of all rows of its namespace and
    /// name that are not deleted only the one with the highest version stays so. The others are closed,
    /// the appearing row itself where it is the late one: it is stored, and deleted.
    ///
    /// # Errors
    /// Conflicts with other writers are repeated inside and reported only when they do not end.
    /// `Refused` speaks of the batch as a whole: halve it to find the write that is to blame.
    async fn write(&self, kind: &Kind, batch: &[RowWrite], now: Timestamp) -> Result<Vec<Written>, StoreError>;

    /// Sets `res_version` of these rows to 0, so that the cluster's version wins whatever it is.
    /// Only for a cluster that came back from a backup and shows older versions than SQL
    /// holds. Idempotent; absent rows are left out; nothing else of a row changes. What a history
    /// holds of them goes to a branch that was lost `now`.
    async fn rewind(&self, kind: &Kind, uids: &[Uid], now: Timestamp) -> Result<(), StoreError>;

    /// Puts every version beyond this one that a history holds, of all objects, on a branch that was
    /// lost `now`: the cluster came back from a backup of that version, and will use the numbers again.
    /// Idempotent; without an effect for a kind that keeps no history.
    async fn unsay(&self, kind: &Kind, beyond: ResourceVersion, now: Timestamp) -> Result<(), StoreError>;

    /// A page of row states in order of arrival, in which they lie on disk, for comparing SQL with the cluster.
    async fn scan(&self, kind: &Kind, after: Option<Arrival>, limit: u32) -> Result<Vec<RowState>, StoreError>;

    /// The newest stored object of this name that is not deleted.
    async fn get_by_name(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Stored>, StoreError>;

    /// The stored object of this uid, deleted or not.
    async fn get_by_id(&self, kind: &Kind, uid: &Uid) -> Result<Option<Stored>, StoreError>;

    /// A page of stored objects.
    async fn list(&self, kind: &Kind, query: &ListQuery) -> Result<Vec<Stored>, StoreError>;

    /// The SQL that this store speaks.
    fn dialect(&self) -> Dialect;

    /// How many rows are live, evicted and deleted.
    async fn count(&self, kind: &Kind) -> Result<Counts, StoreError>;

    /// The resource version up to which every event of the kind is stored.
    async fn checkpoint(&self, kind: &Kind) -> Result<Option<ResourceVersion>, StoreError>;

    /// Remembers such a version, but never in place of a mark, a version from [`MARKS_FROM`] on, other than the one
    /// that the caller knows: of two callers that save the same mark, one is refused. A caller that does not hear of
    /// its mark having been saved is refused as well when it comes again.
    async fn save_checkpoint(
        &self,
        kind: &Kind,
        version: ResourceVersion,
        known_mark: Option<ResourceVersion>,
        now: Timestamp,
    ) -> Result<Saving, StoreError>;

    /// Records an object that the database refuses, with the reason. An earlier record of the uid is
    /// replaced; it keeps its first time, and the attempts are counted.
    async fn quarantine(&self, kind: &Kind, object: &Object, reason: &str, now: Timestamp) -> Result<(), StoreError>;

    /// The objects of a kind that are recorded so, in order of uid.
    async fn quarantined(&self, kind: &Kind) -> Result<Vec<QuarantineRecord>, StoreError>;

    /// Removes the record, after the object was stored in this version. A record of a newer
    /// version stays: it may overtake the call.
    async fn release_quarantine(&self, kind: &Kind, uid: &Uid, stored: ResourceVersion) -> Result<(), StoreError>;

    /// Closes all connections; further calls fail.
    async fn close(&self);

    /// How many connections are open now, for a store that has any.
    fn pool(&self) -> Option<PoolUse> {
        None
    }

    /// The calls that wait for the database now, for a store that has one.
    fn calls(&self) -> Option<&Calls> {
        None
    }

    /// Whether the database can be reached, for a store that has one to reach.
    fn outage(&self) -> Option<&Outage> {
        None
    }
}

impl StoreError {
    /// Whether the database is out of reach or does not answer, which the store tells the log once for all calls.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Retryable { cause, .. } if OUTAGES.contains(cause))
    }
}

/// A saved version from here on is a mark, which is replaced only by who knows it.
pub const MARKS_FROM: ResourceVersion = ResourceVersion(1 << 62);

/// What became of a version that was to be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saving {
    /// It is saved.
    Done,
    /// This one was saved already, and stays: a mark that the caller did not know, unless it was replaced while the
    /// caller was being refused.
    Refused(ResourceVersion),
}

/// The causes of [`StoreError::Retryable`] that are an [`Outage`], or a call that is [`Stalled`].
pub const OUTAGES: [&str; 2] = ["connection", "timeout"];

/// The connections of a store at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// All that are open.
    pub open: u32,
    /// Those among them that nobody uses.
    pub idle: u32,
    /// Most that are opened.
    pub max: u32,
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

/// Opens the store at an address: `sqlite:PATH`, `sqlite::memory:` or
/// `mysql://user:password@host:port/database`. See [`Address`] for the whole form.
///
/// # Guarantees
/// No connection is opened: a database that is down is found by the first call, as a
/// retryable error, and the store heals by itself when the database is back.
///
/// # Assumptions
/// Runs inside a Tokio runtime.
///
/// # Errors
/// [`StoreError::Address`].
pub fn connect(address: &str, registry: Registry, pool: &PoolConfig) -> Result<Arc<dyn MetadataStorage>, StoreError> {
    open(&address.parse()?, registry, pool)
}

/// As [`connect`], with an address that is already typed.
///
/// # Errors
/// [`StoreError::Address`] where the address names no database.
pub fn open(address: &Address, registry: Registry, pool: &PoolConfig) -> Result<Arc<dyn MetadataStorage>, StoreError> {
    Ok(match address {
        Address::Sqlite(place) => {
            let driver = sqlite::SqliteDriver::new(place, pool);
            Arc::new(SqlStore::new(driver, registry, registry.sqlite_schema))
        }
        Address::MySql(options) => {
            let driver = mysql::MySqlDriver::new((**options).clone(), pool)?;
            Arc::new(SqlStore::new(driver, registry, registry.mysql_schema))
        }
    })
}

/// Rows of a kind by life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In the cluster and in SQL.
    pub live: u64,
    /// In SQL only.
    pub evicted: u64,
    /// Soft-deleted.
    pub deleted: u64,
}
