//! SQLite: how to open, bind, read and tell its errors apart. Same order of methods
//! as `mysql`. Knows no table and no statement.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use kindex_model::kind::ColumnType;
use kindex_model::value::Value;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteRow, SqliteSynchronous,
};
use sqlx::{Arguments, ConnectOptions, Executor, Row, Sqlite};

use super::dialect::Dialect;
use super::driver::{
    Cells, Driver, Fault, Limits, Param, Pooled, Purpose, Statement, classify_common, parse_time, time_text,
};
use super::explained::{Access, PlanStep};
use super::{Address, PoolConfig, PoolUse, SqlitePlace};

/// Looks at every table of which nothing is known, or whose size is another one by far, and no longer than it takes to
/// read a few hundred rows of each key. <https://sqlite.org/pragma.html#pragma_optimize>
const OPTIMIZE: &str = "PRAGMA optimize=0x10002";

pub(super) struct SqliteDriver {
    place: SqlitePlace,
    /// One connection: writers wait for it in turn, instead of polling the file's lock.
    writer: SqlitePool,
    /// `None` for a database in memory, which is that of one connection.
    readers: Option<SqlitePool>,
    config: PoolConfig,
}

impl SqliteDriver {
    /// Opens no connection yet.
    pub(super) fn new(place: &SqlitePlace, config: &PoolConfig) -> Self {
        if let SqlitePlace::File(path) = place {
            make_private(path);
        }
        let options = options(place, config);
        let writer = match place {
            SqlitePlace::Memory => pool(1, config),
            SqlitePlace::File(_) => optimizing(pool(1, config)),
        };
        let writer = writer.connect_lazy_with(options.clone());
        let readers = match place {
            SqlitePlace::Memory => None,
            SqlitePlace::File(_) => Some(pool(config.max_open.clamp(1, 8), config).connect_lazy_with(options)),
        };
        Self {
            place: place.clone(),
            writer,
            readers,
            config: config.clone(),
        }
    }
}

/// Makes the file where there is none, for its owner alone: objects may hold secrets. SQLite gives the files beside it
/// the same mode. Where this fails, so does the first connection, which says why.
fn make_private(path: &Path) {
    let _told_later = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
}

/// A commit is on disk before it is reported: what SQL holds may leave etcd.
fn options(place: &SqlitePlace, config: &PoolConfig) -> SqliteConnectOptions {
    let options = match place {
        SqlitePlace::Memory => SqliteConnectOptions::new().in_memory(true),
        SqlitePlace::File(path) => SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal),
    };
    options
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(config.lock_wait())
        .statement_cache_capacity(300)
        .pragma("cache_size", "-65536")
        .disable_statement_logging()
}

/// Connections live for ever: the last one to a database in memory takes it along.
fn pool(connections: u32, config: &PoolConfig) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(config.acquire_timeout.max(config.call_timeout))
        .test_before_acquire(false)
}

/// Whoever reads the file by other programs relies on statistics. They follow what is written: early, and then now and
/// then.
fn optimizing(pool: SqlitePoolOptions) -> SqlitePoolOptions {
    let writes = Arc::new(AtomicU64::new(0));
    pool.after_release(move |connection, _| {
        let write = writes.fetch_add(1, Ordering::Relaxed) + 1;
        Box::pin(async move {
            // Soon after the statements that made the tables, however many these were.
            if (write >= 8 && write.is_power_of_two()) || write.is_multiple_of(1_000) {
                optimize(connection).await;
            }
            Ok(true)
        })
    })
}

/// Where it fails nothing is lost but speed.
async fn optimize(connection: &mut SqliteConnection) {
    if let Err(error) = connection.execute(OPTIMIZE).await {
        tracing::debug!("No statistics: {error}");
    }
}

impl Driver for SqliteDriver {
    type Db = Sqlite;
    type Row = SqliteRow;

    const BEGIN: &'static str = "BEGIN IMMEDIATE";

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn acquire(&self, purpose: Purpose) -> Result<Pooled<Self>, sqlx::Error> {
        match purpose {
            Purpose::Read => self.readers.as_ref().unwrap_or(&self.writer).acquire().await,
            Purpose::Write => self.writer.acquire().await,
        }
    }

    fn address(&self) -> String {
        Address::Sqlite(self.place.clone()).to_string()
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
        })
    }

    async fn execute(
        connection: &mut SqliteConnection,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<u64, sqlx::Error> {
        sqlx::query_with(statement.text, bind(params)?)
            .persistent(statement.keep)
            .execute(connection)
            .await
            .map(|done| done.rows_affected())
    }

    async fn query(
        connection: &mut SqliteConnection,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<SqliteRow>, sqlx::Error> {
        sqlx::query_with(statement.text, bind(params)?)
            .persistent(statement.keep)
            .fetch_all(connection)
            .await
    }

    /// As in `SEARCH t USING INDEX key (column=?)`, `SCAN t` and `USE TEMP B-TREE FOR ORDER BY`. A sort of the
    /// last terms alone puts those rows in order that are equal in the others, and `key` has in order.
    fn plan_step(row: &SqliteRow) -> Result<PlanStep, sqlx::Error> {
        let text: String = row.try_get_unchecked("detail")?;
        let words: Vec<&str> = text.split(' ').collect();
        let after = |word: &str| {
            let at = words.iter().position(|found| *found == word)?;
            words.get(at + 1).map(|name| (*name).to_owned())
        };
        let key = after("INDEX");
        Ok(PlanStep {
            access: match words.first() {
                Some(&"SEARCH") => Access::Search,
                Some(&"SCAN") if key.is_some() => Access::Walk,
                Some(&"SCAN") => Access::Scan,
                Some(_) | None => Access::Other,
            },
            table: after("SEARCH").or_else(|| after("SCAN")),
            key,
            rows: None,
            sorts: text == "USE TEMP B-TREE FOR ORDER BY",
            text,
        })
    }

    /// A file is created by opening it.
    async fn create_database(&self) -> Result<(), sqlx::Error> {
        Ok(())
    }

    fn classify(error: &sqlx::Error) -> Fault {
        let sqlx::Error::Database(database) = error else {
            return classify_common(error);
        };
        let code = database.code().and_then(|code| code.parse::<u32>().ok());
        match code {
            // SQLITE_ERROR is all that SQLite says about an unknown table or column.
            Some(1) if database.message().contains("no such table") => Fault::Schema,
            Some(1) if database.message().contains("no such column") => Fault::Schema,
            Some(1) if database.message().contains("has no column named") => Fault::Schema,
            Some(code) => classify_code(code),
            None => Fault::Refused,
        }
    }

    async fn close(&self) {
        if let Some(readers) = &self.readers {
            readers.close().await;
            if let Some(mut writer) = self.writer.try_acquire() {
                optimize(&mut writer).await;
            }
        }
        self.writer.close().await;
    }

    fn call_timeout(&self) -> Duration {
        self.config.call_timeout
    }

    fn connections_max(&self) -> u32 {
        self.config.max_open
    }

    fn pool(&self) -> PoolUse {
        let writer = PoolUse::of(&self.writer);
        match &self.readers {
            Some(readers) => writer + PoolUse::of(readers),
            None => writer,
        }
    }
}

/// The low byte is the class, the rest says more about it. <https://sqlite.org/rescode.html>
fn classify_code(code: u32) -> Fault {
    match code & 0xff {
        // SQLITE_BUSY and SQLITE_LOCKED: another process holds the file for long.
        5 | 6 => Fault::Retryable("lock_wait"),
        // SQLITE_NOMEM, SQLITE_FULL.
        7 | 13 => Fault::Retryable("resources"),
        // SQLITE_READONLY.
        8 => Fault::Retryable("read_only"),
        // SQLITE_INTERRUPT, SQLITE_PROTOCOL, SQLITE_SCHEMA.
        9 | 15 | 17 => Fault::Retryable("aborted"),
        // SQLITE_IOERR, SQLITE_CANTOPEN.
        10 | 14 => Fault::Retryable("disk"),
        // SQLITE_PERM, SQLITE_AUTH.
        3 | 23 => Fault::Retryable("access"),
        // SQLITE_CORRUPT, SQLITE_NOTADB: no data is to blame, and only a person can help.
        11 | 26 => Fault::Retryable("corrupt"),
        _ => Fault::Refused,
    }
}

fn bind(params: &[Param<'_>]) -> Result<SqliteArguments, sqlx::Error> {
    let mut arguments = SqliteArguments::default();
    arguments.reserve(params.len(), 0);
    for param in params {
        match *param {
            Param::Null => arguments.add(None::<i64>),
            Param::Bool(flag) => arguments.add(flag),
            Param::Int(number) => arguments.add(number),
            Param::Double(number) => arguments.add(number),
            Param::Text(text) => arguments.add(text),
            Param::Bytes(bytes) => arguments.add(bytes),
            Param::Time(time) => arguments.add(time_text(time, "%Y-%m-%dT%H:%M:%S%.6fZ")),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

impl Cells for SqliteRow {
    fn text(&self, index: usize) -> Result<String, sqlx::Error> {
        self.try_get_unchecked(index)
    }

    fn int(&self, index: usize) -> Result<i64, sqlx::Error> {
        self.try_get_unchecked(index)
    }

    fn int_or_null(&self, index: usize) -> Result<Option<i64>, sqlx::Error> {
        self.try_get_unchecked(index)
    }

    fn text_or_null(&self, index: usize) -> Result<Option<String>, sqlx::Error> {
        self.try_get_unchecked(index)
    }

    fn bytes(&self, index: usize) -> Result<Option<Vec<u8>>, sqlx::Error> {
        self.try_get_unchecked(index)
    }

    fn time(&self, index: usize) -> Result<Option<Timestamp>, sqlx::Error> {
        let text: Option<String> = self.try_get_unchecked(index)?;
        text.as_deref().map(parse_time).transpose()
    }

    fn value(&self, index: usize, ty: ColumnType) -> Result<Value, sqlx::Error> {
        let value = match ty {
            ColumnType::Text { .. } => self.try_get_unchecked::<Option<_>, _>(index)?.map(Value::Text),
            ColumnType::Int32 | ColumnType::Int64 | ColumnType::Bool => {
                self.try_get_unchecked::<Option<_>, _>(index)?.map(Value::Int)
            }
            ColumnType::Double => self.try_get_unchecked::<Option<_>, _>(index)?.map(Value::Double),
            ColumnType::Time => self.time(index)?.map(Value::Time),
        };
        Ok(value.unwrap_or(Value::Null))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sql::{KindSql, ListFilter};
    use super::*;
    use kindex_model::kind::{Encoded, Key, Kind, Scope};
    use sqlx::AssertSqlSafe;

    #[test]
    fn what_passes_by_itself_is_retried_and_what_does_not_is_refused() {
        // Plain and extended codes of busy, locked, full, read-only, I/O, cannot open.
        for code in [5, 517, 6, 262, 13, 8, 1032, 10, 778, 14, 7, 11, 26] {
            assert!(matches!(classify_code(code), Fault::Retryable(_)), "{code}");
        }
        // Constraint with its kinds, mismatch, too big, range.
        for code in [19, 275, 1299, 1555, 20, 18, 25] {
            assert_eq!(classify_code(code), Fault::Refused, "{code}");
        }
    }

    /// Nearly every row is one that is not deleted: the key of `delete_time` finds nothing.
    #[tokio::test]
    async fn no_read_of_rows_that_are_not_deleted_walks_the_key_of_delete_time() {
        const KEY: Key = Key {
            name: "thing_namespace_name",
            columns: &["namespace", "name"],
        };
        const TABLES: &str = "CREATE TABLE thing (seq INTEGER NOT NULL PRIMARY KEY, uid TEXT NOT NULL UNIQUE, namespace TEXT NOT NULL, \
             name TEXT NOT NULL, res_version INTEGER NOT NULL, json TEXT NOT NULL, update_time TEXT, \
             delete_time TEXT, evicted_time TEXT) STRICT; \
             CREATE INDEX thing_delete_time ON thing (delete_time, uid); \
             CREATE INDEX thing_namespace_name ON thing (namespace, name, uid)";
        let kind = Kind {
            name: "Thing",
            group: "test",
            version: "v1",
            plural: "things",
            singular: "thing",
            short_names: &[],
            scope: Scope::Namespaced,
            table: "thing",
            immutable: false,
            history: false,
            columns: &[],
            keys: &[KEY],
            printer_columns: &[],
            retention: None,
            manifest: "",
            decode: |_| Err(Vec::new()),
            encode: |_| Encoded::default(),
        };
        let memory = SqliteConnectOptions::new().in_memory(true);
        let mut connection = memory.connect().await.expect("an empty database");
        connection.execute(TABLES).await.expect("created");
        let sql = KindSql::new(Dialect::Sqlite, &kind);
        let filter = ListFilter {
            namespace: true,
            after: false,
            include_deleted: false,
            labels: 0,
        };
        for statement in [sql.list(filter), sql.by_name(), sql.namesakes(10)] {
            let explain = format!("EXPLAIN QUERY PLAN {}", statement.text.as_str());
            let plan = connection.fetch_all(AssertSqlSafe(explain)).await.expect("a plan");
            let plan: Vec<String> = plan.iter().map(|step| step.get("detail")).collect();
            let walked = plan.iter().find(|step| step.contains("thing"));
            let walked = walked.unwrap_or_else(|| panic!("{plan:?}"));
            assert!(walked.contains("INDEX thing_namespace_name (namespace=?"), "{plan:?}");
        }
    }
}
