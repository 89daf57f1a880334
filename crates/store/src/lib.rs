//! The storage contract: what the ingester and the readers need of a SQL database.
//! The engines differ in `mysql`, `sqlite` and `dialect` alone; the same scenarios run over all of them.

pub mod pace;

pub mod progress;

pub mod backoff;

mod cause;

mod error;

mod pool_config;

mod statement;

mod explained;

mod live;

mod adoption;

mod schema;

mod row;

mod outage;

mod calls;

mod dialect;

mod driver;

mod mysql;

mod sqlite;

mod engines;

mod statements;

mod packed;

mod cells;

mod occupied;

mod connections;

mod catalog;

mod sql_store;

mod database;

pub mod database_gauges;

mod write;

mod read;

mod history;

mod changes;

mod outbox;

mod references;

mod archived_holders;

mod direct;

mod sql_only;

mod migration;

mod conversion;

mod maintenance;

mod version_counts;

use std::sync::Arc;

pub use adoption::{AdoptionBlocker, BrokenRows, BrokenTable};
pub use archived_holders::{ArchivedHolders, DeletionResults, HolderRow, ReadVersion};
pub use calls::{Calls, Stalled};
pub use cause::{Cause, Retry};
pub use changes::{Change, Changes};
pub use conversion::{
    DroppedTexts, KeptText, OtherVersionPage, OtherVersionRow, PROGRESS as CONVERT_PROGRESS, RowConversion,
    RowConverted, VersionConversion,
};
pub use database::Database;
pub use dialect::Dialect;
pub use direct::{BatchOutcome, DeleteCollection, Deletion, Direct, Found};
pub use driver::PoolUse;
pub use engines::Address;
pub use error::{DirectError, StoreError};
pub use explained::{Access, Plan, PlanStep};
pub use history::{AsOf, History, HistoryVersion, ListAt};
pub use live::{LiveColumn, LiveKey, LiveTable};
pub use maintenance::{
    BACKFILL_PROGRESS, ClusterBinding, Gone, GoneRow, Purge, RowImage, SideRow, Verification, WorkState,
};
pub use migration::{
    AdoptOptions, Adopted, AdoptedKind, AdoptionBlockers, Applied, MigrateError, MigrateOptions, Migrated,
    MigrationState, Migrations, PendingStep, Prepare, ScriptError,
};
pub use mysql::{MySqlFields, Tls, TlsMode};
pub use outage::Outage;
pub use outbox::{Mark, Outbox, OutboxEntry};
pub use pool_config::PoolConfig;
pub use read::{Counts, ListQuery, Objects, Owners, Queries, RowsOfName, select_naming};
pub use references::{Placed, Reference, References, Released, Tombstone};
pub use row::{Arrival, Content, RowState, RowWrite, Written};
pub use sql_only::{SqlOnly, SqlOnlyChange, SqlOnlyPage, SqlOnlyWrite, SqlOnlyWritten, sql_only_version};
pub use sqlite::SqliteLocation;
pub use statement::Statement;
pub use statements::select::ToSql;
pub use version_counts::{VersionCounts, VersionRows};
pub use write::{
    CHANGES_KEPT, CheckpointOutcome, Checkpoints, Position, Quarantine, QuarantineRecord, QuarantineRecords,
    Quarantined, Rewind, Rows, SQL_ONLY_CHANGES_KEPT, TOMBSTONES_KEPT, is_cut,
};

use kindex_model::kind::Registry;
use kindex_query::Reader;
use sql_store::SqlStore;

/// All that an ingester asks of a database while it runs.
pub trait IngesterStorage: Prepare + Rows + Rewind + Checkpoints + Quarantine + RowsOfName + Owners {}

impl<S: Prepare + Rows + Rewind + Checkpoints + Quarantine + RowsOfName + Owners> IngesterStorage for S {}

/// The SQL store of all kinds, in all its roles: what [`open`] gives. Named after the interface of the same purpose
/// in Michelangelo. Callers that need fewer roles take a narrower trait: a `&dyn MetadataStorage` is a `&dyn Objects`.
pub trait MetadataStorage:
    IngesterStorage
    + Database
    + Reader<Error = StoreError>
    + Objects
    + Queries
    + History
    + Changes
    + Outbox
    + References
    + ArchivedHolders
    + Direct
    + SqlOnly
    + Migrations
    + Verification
    + VersionCounts
    + Purge
    + QuarantineRecords
    + WorkState
    + ClusterBinding
    + VersionConversion
{
}

impl<D: driver::Driver> MetadataStorage for SqlStore<D> {}

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
        Address::Sqlite(place) => Arc::new(SqlStore::new(
            sqlite::SqliteDriver::new(place, pool),
            registry,
            rand::random,
        )),
        Address::MySql(options) => {
            let driver = mysql::MySqlDriver::new((**options).clone(), pool)?;
            Arc::new(SqlStore::new(driver, registry, rand::random))
        }
    })
}
