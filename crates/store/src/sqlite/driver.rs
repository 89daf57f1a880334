//! SQLite as a driver. Same order of methods as in `mysql`. Knows no table and no statement.

use std::time::Duration;

use futures::TryStreamExt as _;
use sqlx::Sqlite;
use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteRow};

use crate::calls::Reads;
use crate::dialect::Spelling;
use crate::driver::{Driver, Fault, Limits, Param, PoolUse, Pooled, Purpose, Statement, classify_common};
use crate::explained::PlanStep;
use crate::pool_config::PoolConfig;
use crate::sqlite::address::SqliteLocation;
use crate::sqlite::cells::bind;
use crate::sqlite::notation::SqliteSpelling;
use crate::sqlite::{address, faults, plan, pool};

pub(crate) struct SqliteDriver {
    place: SqliteLocation,
    /// One connection: writers wait for it in turn, instead of polling the file's lock.
    writer: SqlitePool,
    /// `None` for a database in memory, which is that of one connection.
    readers: Option<SqlitePool>,
    config: PoolConfig,
}

impl SqliteDriver {
    /// Opens no connection yet.
    pub(crate) fn new(place: &SqliteLocation, config: &PoolConfig) -> Self {
        if let SqliteLocation::File(path) = place {
            pool::make_private(path);
        }
        let options = pool::options(place, config);
        let writer = match place {
            SqliteLocation::Memory => pool::pool(1, config),
            SqliteLocation::File(_) => pool::optimizing(pool::pool(1, config)),
        };
        let writer = writer.connect_lazy_with(options.clone());
        let readers = match place {
            SqliteLocation::Memory => None,
            SqliteLocation::File(_) => Some(pool::pool(config.max_open.clamp(1, 8), config).connect_lazy_with(options)),
        };
        Self {
            place: place.clone(),
            writer,
            readers,
            config: config.clone(),
        }
    }
}

impl Driver for SqliteDriver {
    type Db = Sqlite;
    type Row = SqliteRow;

    const BEGIN: &'static str = "BEGIN IMMEDIATE";
    const READS: Reads = Reads::Here;

    fn spelling(&self) -> &'static dyn Spelling {
        &SqliteSpelling
    }

    async fn acquire(&self, purpose: Purpose) -> Result<Pooled<Self>, sqlx::Error> {
        match purpose {
            Purpose::Read => self.readers.as_ref().unwrap_or(&self.writer).acquire().await,
            Purpose::Write => self.writer.acquire().await,
        }
    }

    fn address(&self) -> String {
        address::shown(&self.place)
    }

    /// Whoever may open the file has the database.
    async fn connect(&self) -> Result<(), sqlx::Error> {
        Ok(())
    }

    /// The connection's thread ends its statement; the pool then rolls back.
    fn discard(connection: Pooled<Self>) {
        drop(connection);
    }

    /// All connections lead to the one file.
    fn discard_idle(&self) {}

    async fn limits(&self, _connection: &mut SqliteConnection) -> Result<Limits, sqlx::Error> {
        Ok(Limits {
            // SQLITE_MAX_LENGTH: <https://sqlite.org/limits.html>
            packet_bytes_max: 1_000_000_000,
            params_max: 32_766,
            is_node: false,
        })
    }

    async fn execute(
        connection: &mut SqliteConnection,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<u64, sqlx::Error> {
        let keep = statement.keep;
        sqlx::query_with(statement.text(&SqliteSpelling), bind(params)?)
            .persistent(keep)
            .execute(connection)
            .await
            .map(|done| done.rows_affected())
    }

    async fn query(
        connection: &mut SqliteConnection,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<SqliteRow>, sqlx::Error> {
        let keep = statement.keep;
        sqlx::query_with(statement.text(&SqliteSpelling), bind(params)?)
            .persistent(keep)
            .fetch_all(connection)
            .await
    }

    async fn query_until(
        connection: &mut SqliteConnection,
        statement: Statement,
        params: &[Param<'_>],
        mut is_enough: impl FnMut(&SqliteRow) -> Result<bool, sqlx::Error> + Send,
    ) -> Result<Vec<SqliteRow>, sqlx::Error> {
        let keep = statement.keep;
        let mut found = sqlx::query_with(statement.text(&SqliteSpelling), bind(params)?)
            .persistent(keep)
            .fetch(connection);
        let mut rows = Vec::new();
        while let Some(row) = found.try_next().await? {
            let is_last = is_enough(&row)?;
            rows.push(row);
            if is_last {
                break;
            }
        }
        Ok(rows)
    }

    fn plan_step(row: &SqliteRow) -> Result<PlanStep, sqlx::Error> {
        plan::step(row)
    }

    fn entries(row: &SqliteRow) -> Result<u64, sqlx::Error> {
        plan::entries(row)
    }

    /// A file is created by opening it.
    async fn create_database(&self) -> Result<(), sqlx::Error> {
        Ok(())
    }

    fn classify(error: &sqlx::Error) -> Fault {
        match error {
            sqlx::Error::Database(error) => faults::classify(&**error),
            error => classify_common(error),
        }
    }

    async fn close(&self) {
        if let Some(readers) = &self.readers {
            readers.close().await;
            if let Some(mut writer) = self.writer.try_acquire() {
                pool::optimize(&mut writer).await;
            }
        }
        self.writer.close().await;
    }

    fn call_timeout(&self) -> Duration {
        self.config.call_timeout
    }

    async fn mark(_transaction: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn commit_marked(_transaction: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn find_mark(_transaction: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn unmark(_connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        Ok(())
    }

    fn connections_max(&self) -> u32 {
        self.config.max_open
    }

    fn page_bytes(&self) -> usize {
        self.config.page_bytes
    }

    fn pool(&self) -> PoolUse {
        let writer = PoolUse::of(&self.writer);
        match &self.readers {
            Some(readers) => writer + PoolUse::of(readers),
            None => writer,
        }
    }
}
