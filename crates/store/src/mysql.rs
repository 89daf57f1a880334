//! MySQL and MariaDB: how to connect, bind, read and tell their errors apart.
//! Same order of methods as `sqlite`. Knows no table and no statement.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use jiff::Timestamp;
use kindex_model::kind::ColumnType;
use kindex_model::value::Value;
use sqlx::mysql::{
    MySqlArguments, MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlPool, MySqlPoolOptions, MySqlRow,
};
use sqlx::{Arguments, ConnectOptions, Connection, Executor, MySql, Row, TypeInfo as _, ValueRef as _};

use super::bookkeeping;
use super::dialect::Dialect;
use super::driver::{
    Cells, Driver, Fault, Limits, Param, Pooled, Purpose, Statement, classify_common, parse_time, time_text,
};
use super::explained::{Access, PlanStep};
use super::{Address, PoolConfig, PoolUse, StoreError};

/// The session that all statements assume. Strict mode makes a value that does not fit an
/// error instead of a cut.
const SESSION: &str = "SET SESSION time_zone = '+00:00', \
     sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', \
     innodb_lock_wait_timeout = ?";
/// Repeatable read would take gap locks, which deadlock batches.
const ISOLATION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// How long connections beyond those to be kept may be idle. Closed as soon as they are given back, they would have to
/// be opened again for the next of many calls at once, which costs more than the call.
const SPARE_FOR: Duration = Duration::from_secs(2);

pub(super) struct MySqlDriver {
    pool: Arc<MySqlPool>,
    options: MySqlConnectOptions,
    config: PoolConfig,
    limits: OnceLock<Limits>,
}

impl MySqlDriver {
    /// Opens no connection yet.
    pub(super) fn new(options: MySqlConnectOptions, config: &PoolConfig) -> Result<Self, StoreError> {
        if options.get_database().is_none() {
            return Err(StoreError::Address(
                "no database is named; write mysql://user@host:3306/database".to_owned(),
            ));
        }
        let options = options
            .charset("utf8mb4")
            .collation("utf8mb4_bin")
            .pipes_as_concat(false)
            .no_engine_substitution(false)
            .timezone(None)
            .statement_cache_capacity(300)
            .disable_statement_logging();
        let pool = Arc::new_cyclic(|itself| lazy_pool(&options, config, itself.clone()));
        Ok(Self {
            pool,
            options,
            config: config.clone(),
            limits: OnceLock::new(),
        })
    }
}

impl MySqlDriver {
    /// Why no connection can be opened, as one more attempt says it.
    async fn connect_failure(&self) -> sqlx::Error {
        match self.connect_once(&self.options).await {
            Ok(_) => sqlx::Error::PoolTimedOut,
            Err(error) => error,
        }
    }

    async fn connect_once(&self, options: &MySqlConnectOptions) -> Result<MySqlConnection, sqlx::Error> {
        let limit = self.config.acquire_timeout;
        let connect = tokio::time::timeout(limit, options.connect());
        connect.await.unwrap_or_else(|_| {
            let late = format!("no connection within {limit:?}");
            Err(std::io::Error::new(std::io::ErrorKind::TimedOut, late).into())
        })
    }
}

fn lazy_pool(options: &MySqlConnectOptions, config: &PoolConfig, itself: Weak<MySqlPool>) -> MySqlPool {
    let max_idle = config.max_idle as usize;
    let is_trimming = Arc::new(AtomicBool::new(false));
    let lock_wait_s = i64::try_from(config.lock_wait().as_secs().max(1)).unwrap_or(i64::MAX);
    MySqlPoolOptions::new()
        .max_connections(config.max_open.max(1))
        .min_connections(0)
        .max_lifetime(Some(config.max_lifetime).filter(|time| !time.is_zero()))
        .acquire_timeout(config.acquire_timeout)
        // The first statement of a call finds a stale connection, and is repeated on another one.
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                sqlx::query(SESSION).bind(lock_wait_s).execute(&mut *connection).await?;
                connection.execute(ISOLATION).await?;
                Ok(())
            })
        })
        .after_release(move |_, _| {
            // The one that is given back is not among them yet.
            let is_spare = itself.upgrade().is_some_and(|pool| pool.num_idle() >= max_idle);
            if is_spare && !is_trimming.swap(true, Ordering::AcqRel) {
                tokio::spawn(trim(itself.clone(), max_idle, is_trimming.clone()));
            }
            Box::pin(async { Ok(true) })
        })
        .connect_lazy_with(options.clone())
}

/// Closes what is idle beyond `max_idle`, after a while.
async fn trim(pool: Weak<MySqlPool>, max_idle: usize, is_trimming: Arc<AtomicBool>) {
    tokio::time::sleep(SPARE_FOR).await;
    is_trimming.store(false, Ordering::Release);
    let Some(pool) = pool.upgrade() else { return };
    while pool.num_idle() > max_idle {
        let Some(spare) = pool.try_acquire() else { return };
        // Nobody waits for it, and a server that has gone away needs no goodbye.
        spare.detach().close().await.ok();
    }
}

impl Driver for MySqlDriver {
    type Db = MySql;
    type Row = MySqlRow;

    const BEGIN: &'static str = "START TRANSACTION";

    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    async fn acquire(&self, _purpose: Purpose) -> Result<Pooled<Self>, sqlx::Error> {
        match self.pool.acquire().await {
            // The pool repeats refused connects until its time is over, and then forgets why.
            Err(sqlx::Error::PoolTimedOut) if self.pool.size() < self.config.max_open.max(1) => {
                Err(self.connect_failure().await)
            }
            acquired => acquired,
        }
    }

    fn address(&self) -> String {
        Address::MySql(Box::new(self.options.clone())).to_string()
    }

    async fn connect(&self) -> Result<(), sqlx::Error> {
        self.connect_once(&self.options).await?.close().await
    }

    /// Dropping the socket is all that can be done about a server that hangs.
    fn discard(connection: Pooled<Self>) {
        drop(connection.detach());
    }

    fn discard_idle(&self) {
        while let Some(connection) = self.pool.try_acquire() {
            Self::discard(connection);
        }
    }

    async fn limits(&self, connection: &mut MySqlConnection) -> Result<Limits, sqlx::Error> {
        if let Some(limits) = self.limits.get() {
            return Ok(*limits);
        }
        let row = connection
            .fetch_one("SELECT CAST(@@max_allowed_packet AS SIGNED)")
            .await?;
        let bytes = usize::try_from(row.int(0)?).unwrap_or(usize::MAX);
        Ok(*self.limits.get_or_init(|| Limits {
            packet_bytes_max: bytes,
            params_max: 65_535,
        }))
    }

    async fn execute(
        connection: &mut MySqlConnection,
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
        connection: &mut MySqlConnection,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<MySqlRow>, sqlx::Error> {
        sqlx::query_with(statement.text, bind(params)?)
            .persistent(statement.keep)
            .fetch_all(connection)
            .await
    }

    fn plan_step(row: &MySqlRow) -> Result<PlanStep, sqlx::Error> {
        let cell = |name: &str| row.try_get_unchecked::<Option<String>, _>(name);
        let (table, kind, key, extra) = (cell("table")?, cell("type")?, cell("key")?, cell("Extra")?);
        let rows: Option<u64> = row.try_get_unchecked("rows")?;
        let words = [
            table.clone(),
            kind.clone(),
            key.as_ref().map(|key| format!("key {key}")),
            rows.map(|rows| format!("about {rows} rows")),
            extra.clone().filter(|extra| !extra.is_empty()),
        ];
        Ok(PlanStep {
            access: match kind.as_deref() {
                Some("ALL") => Access::Scan,
                Some("index") => Access::Walk,
                Some("system") | None => Access::Other,
                Some(_) => Access::Search,
            },
            table,
            key,
            rows,
            sorts: extra.is_some_and(|extra| extra.contains("filesort")),
            text: words.into_iter().flatten().collect::<Vec<_>>().join(", "),
        })
    }

    async fn create_database(&self) -> Result<(), sqlx::Error> {
        match self.connect_once(&self.options).await {
            Ok(connection) => return connection.close().await,
            Err(error) if Self::classify(&error) == Fault::Schema => {}
            Err(error) => return Err(error),
        }
        let name = self.options.get_database().unwrap_or_default();
        // The option cannot be unset; this schema is on every server.
        let elsewhere = self.options.clone().database("information_schema");
        let mut connection = self.connect_once(&elsewhere).await?;
        let statement = bookkeeping::create_database(name);
        connection.execute(statement.text).await?;
        connection.close().await
    }

    fn classify(error: &sqlx::Error) -> Fault {
        let sqlx::Error::Database(error) = error else {
            return classify_common(error);
        };
        error
            .try_downcast_ref::<MySqlDatabaseError>()
            .map_or(Fault::Refused, |error| classify_number(error.number()))
    }

    async fn close(&self) {
        self.pool.close().await;
    }

    fn call_timeout(&self) -> Duration {
        self.config.call_timeout
    }

    fn connections_max(&self) -> u32 {
        self.config.max_open
    }

    fn pool(&self) -> PoolUse {
        PoolUse::of(&self.pool)
    }
}

/// Numbers of both servers.
/// <https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html>
/// <https://mariadb.com/kb/en/mariadb-error-code-reference/>
fn classify_number(number: u16) -> Fault {
    match number {
        // A row changed since the snapshot (MariaDB), deadlock, a new row was inserted by another writer.
        1020 => Fault::Conflict("snapshot"),
        1213 => Fault::Conflict("deadlock"),
        1062 => Fault::Conflict("duplicate"),
        // Shutting down, killed, gone, lost, aborted.
        1053 | 1927 | 3169 | 2006 | 2013 | 4031 | 1152 | 1158..=1161 => Fault::Connection("connection"),
        1040 | 1203 | 1226 => Fault::Retryable("too_many_connections"),
        1205 => Fault::Retryable("lock_wait"),
        1290 | 1792 | 1836 | 3989 => Fault::Elsewhere("read_only"),
        // A Galera node without its cluster, or not synchronized.
        1047 => Fault::Elsewhere("not_ready"),
        // A commit that the cluster or the log turned down, a cancelled or too long statement.
        1180 | 1181 | 1637 | 1317 | 1969 | 3024 | 3101 => Fault::Retryable("aborted"),
        // Disk, temporary space, memory, lock table.
        3 | 1021 | 1026 | 1030 | 1037 | 1038 | 1041 | 1114 | 1197 | 1206 | 1297 => Fault::Retryable("resources"),
        // Access may be granted, a host unblocked, a password rotated.
        1044 | 1045 | 1129 | 1130 | 1142 | 1143 | 1698 => Fault::Retryable("access"),
        // Being altered or rebuilt.
        1412 | 1615 => Fault::Retryable("schema_change"),
        1049 | 1054 | 1146 | 1176 => Fault::Schema,
        _ => Fault::Refused,
    }
}

fn bind(params: &[Param<'_>]) -> Result<MySqlArguments, sqlx::Error> {
    let mut arguments = MySqlArguments::default();
    let bytes = params.iter().map(Param::wire_bytes).sum();
    arguments.reserve(params.len(), bytes);
    for param in params {
        match *param {
            Param::Null => arguments.add(None::<i64>),
            Param::Bool(flag) => arguments.add(flag),
            Param::Int(number) => arguments.add(number),
            Param::Double(number) => arguments.add(number),
            Param::Text(text) => arguments.add(text),
            Param::Bytes(bytes) => arguments.add(bytes),
            Param::Time(time) => arguments.add(time_text(time, "%Y-%m-%d %H:%M:%S%.6f")),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

fn decimal_number<T: FromStr>(text: &str) -> Result<T, sqlx::Error> {
    // `DECIMAL(20, 2)` may hold whole numbers, and says `5.00`.
    let whole = text
        .split_once('.')
        .filter(|(_, zeros)| zeros.bytes().all(|digit| digit == b'0'));
    let text = whole.map_or(text, |(whole, _)| whole);
    text.parse()
        .map_err(|_| sqlx::Error::Decode(format!("number {text:?}").into()))
}

impl Cells for MySqlRow {
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
        let raw = self.try_get_raw(index)?;
        if raw.is_null() {
            return Ok(Value::Null);
        }
        // The server sends a decimal as text, which the driver would take for the bytes of a number.
        let decimal = raw.type_info().name() == "DECIMAL";
        Ok(match ty {
            ColumnType::Text { .. } => Value::Text(self.text(index)?),
            ColumnType::Int32 | ColumnType::Int64 if decimal => Value::Int(decimal_number(&self.text(index)?)?),
            ColumnType::Int32 | ColumnType::Int64 | ColumnType::Bool => Value::Int(self.int(index)?),
            ColumnType::Double if decimal => Value::Double(decimal_number(&self.text(index)?)?),
            ColumnType::Double => Value::Double(self.try_get_unchecked(index)?),
            ColumnType::Time => self.time(index)?.map_or(Value::Null, Value::Time),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_retried_and_what_does_not_is_refused() {
        for number in [1020, 1213, 1062] {
            assert!(matches!(classify_number(number), Fault::Conflict(_)), "{number}");
        }
        for number in [1053, 2006, 2013, 1927] {
            assert!(matches!(classify_number(number), Fault::Connection(_)), "{number}");
        }
        for number in [1290, 1047, 1836] {
            assert!(matches!(classify_number(number), Fault::Elsewhere(_)), "{number}");
        }
        for number in [1040, 1203, 1205, 1180, 1181, 1021, 1114, 1045] {
            assert!(matches!(classify_number(number), Fault::Retryable(_)), "{number}");
        }
        for number in [1049, 1054, 1146] {
            assert_eq!(classify_number(number), Fault::Schema, "{number}");
        }
        // Too long, out of range, wrong value, packet too large, check failed (both servers).
        for number in [1406, 1264, 1366, 1292, 1048, 1153, 4025, 3819] {
            assert_eq!(classify_number(number), Fault::Refused, "{number}");
        }
    }
}
