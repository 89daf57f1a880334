//! How connections of MySQL and MariaDB are opened, kept and closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions};
use sqlx::{ConnectOptions, Connection, Executor};

use crate::pool_config::PoolConfig;

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

/// What every connection has, wherever it leads.
pub(super) fn options(options: MySqlConnectOptions) -> MySqlConnectOptions {
    options
        .charset("utf8mb4")
        .collation("utf8mb4_bin")
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .timezone(None)
        .statement_cache_capacity(300)
        .disable_statement_logging()
}

pub(super) fn lazy_pool(options: &MySqlConnectOptions, config: &PoolConfig, itself: Weak<MySqlPool>) -> MySqlPool {
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
