//! How connections of SQLite are opened, and the file looked after.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Executor};

use crate::pool_config::PoolConfig;
use crate::sqlite::address::SqliteLocation;

/// Rows that a connection's thread reads before they are taken: objects may be large.
const ROWS_AHEAD: usize = 8;
/// Looks at every table of which nothing is known, or whose size is another one by far, and no longer than it takes to
/// read a few hundred rows of each key. <https://sqlite.org/pragma.html#pragma_optimize>
const OPTIMIZE: &str = "PRAGMA optimize=0x10002";

/// Makes the file where there is none, for its owner alone: objects may hold secrets. SQLite gives the files beside it
/// the same mode. Where this fails, so does the first connection, which says why.
pub(super) fn make_private(path: &Path) {
    let _reported_later = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
}

/// A commit is on disk before it is reported: what SQL holds may leave etcd.
pub(super) fn options(place: &SqliteLocation, config: &PoolConfig) -> SqliteConnectOptions {
    let options = match place {
        SqliteLocation::Memory => SqliteConnectOptions::new().in_memory(true),
        SqliteLocation::File(path) => SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal),
    };
    options
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(config.lock_wait())
        .statement_cache_capacity(300)
        .row_buffer_size(ROWS_AHEAD)
        .pragma("cache_size", "-65536")
        .disable_statement_logging()
}

/// Connections live for ever: the last one to a database in memory takes it along.
pub(super) fn pool(connections: u32, config: &PoolConfig) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(config.acquire_timeout.max(config.call_timeout))
        .test_before_acquire(false)
}

/// Whoever reads the file by other programs relies on statistics. They follow what is written: early, and then now and
/// then.
pub(super) fn optimizing(pool: SqlitePoolOptions) -> SqlitePoolOptions {
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
pub(super) async fn optimize(connection: &mut SqliteConnection) {
    if let Err(error) = connection.execute(OPTIMIZE).await {
        tracing::debug!("No statistics: {error}");
    }
}
