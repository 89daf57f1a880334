//! The storage contract: what the ingester and the readers ask of a SQL database.
//! The engines differ in `mysql`, `sqlite` and `dialect` alone; the same scenarios run over all of them.

pub mod pace;

pub mod progress;

pub mod backoff;

mod error;

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

mod cells;

mod page;

mod write;

mod connections;

mod catalogue;

mod sql_store;

mod database;

pub mod database_gauges;

mod replaced;

mod changes;

mod migration;

mod write_history;

mod rows;

mod rewind;

mod checkpoints;

mod quarantine;

mod objects;

mod past;

mod past_list;

mod lead;

mod reader;

mod queries;

mod collection;

mod direct;

mod maintenance;

#[cfg(test)]
mod query_bounds;

#[cfg(test)]
mod typed_queries;

use std::sync::Arc;

pub use address::{Address, MySqlFields, PoolConfig, SqlitePlace, Tls, TlsMode};
pub use calls::{Calls, Stalled};
pub use catalogue::{LiveColumn, LiveKey, LiveTable};
pub use changes::{CHANGES_KEPT, Change, Changes, Position};
pub use checkpoints::{Checkpoints, MARKS_FROM, Saving};
pub use collection::{Collected, DeleteCollection, Found};
pub use database::Database;
pub use dialect::Dialect;
pub use direct::Direct;
pub use driver::PoolUse;
pub use error::{DirectError, OUTAGES, StoreError};
pub use explained::{Access, Plan, PlanStep};
pub use maintenance::{Gone, GoneRow, Purge, RowImage, SideRow, Verification, WorkState};
pub use migration::{
    AdoptOptions, Adopted, AdoptedKind, Applied, BrokenRows, BrokenTable, MigrateError, MigrateOptions, Migrated,
    MigrationStanding, Migrations, PendingStep, Prepare, ScriptError, Unfit, Unfits,
};
pub use objects::{Counts, ListQuery, Objects, RowsOfName};
pub use outage::Outage;
pub use past::{AsOf, History, Past};
pub use past_list::ListAt;
pub use quarantine::{Quarantine, QuarantineRecord, QuarantineRecords, Quarantined};
pub use queries::Queries;
pub use record::is_cut;
pub use rewind::Rewind;
pub use row::{Arrival, RowState, RowWrite, Written};
pub use rows::Rows;
pub use select_sql::ToSql;
pub use statement::Statement;

use kindex_model::kind::Registry;
use kindex_query::Reader;
use sql_store::SqlStore;

/// All that an ingester asks of a database while it runs.
pub trait IngesterStorage: Prepare + Rows + Rewind + Checkpoints + Quarantine + RowsOfName {}

impl<S: Prepare + Rows + Rewind + Checkpoints + Quarantine + RowsOfName> IngesterStorage for S {}

/// The SQL store of all kinds, in all its roles: what [`open`] gives. Named after the interface of the same purpose
/// in Michelangelo. Who needs less takes less: a `&dyn MetadataStorage` is a `&dyn Objects`.
pub trait MetadataStorage:
    IngesterStorage
    + Database
    + Reader<Error = StoreError>
    + Objects
    + Queries
    + History
    + Changes
    + Direct
    + Migrations
    + Verification
    + Purge
    + QuarantineRecords
    + WorkState
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
