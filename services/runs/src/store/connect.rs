//! How the file is opened: one connection that writes, some that only read, and a lock on the folder, so that one
//! process has it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, SqliteConnection, SqlitePool};

use super::error::StoreError;
use super::settings::Durability;

/// The file within the folder.
const FILE: &str = "runs.db";
/// Parallel readers.
const READERS_MAX: u32 = 4;
/// Bodies of batches and chunks are read whole: larger pages mean fewer of them.
pub(super) const PAGE_BYTES: u32 = 8192;
/// How long a connection waits for a lock of another process, such as one that looks at the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The file of runs in a folder.
pub(super) fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// What was written and is not in the file yet.
pub(super) fn log(folder: &Path) -> PathBuf {
    file(folder).with_extension("db-wal")
}

/// Makes the folder, for its owner alone, and takes it for this process.
pub(super) fn claim(folder: &Path) -> Result<File, StoreError> {
    let failed = |source| StoreError::Folder {
        path: folder.to_owned(),
        source,
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(failed)?;
    let private = |path: PathBuf| OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    private(file(folder)).map_err(failed)?;
    let lock = private(folder.join("lock")).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse {
            path: folder.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Checkpoints are made by the maintenance task, out of the way of answers.
pub(super) fn writer_options(folder: &Path, durability: Durability) -> SqliteConnectOptions {
    let synchronous = match durability {
        Durability::Normal => SqliteSynchronous::Normal,
        Durability::Full => SqliteSynchronous::Full,
    };
    SqliteConnectOptions::new()
        .filename(file(folder))
        .page_size(PAGE_BYTES)
        // Of a new file; one of before keeps its free pages for what comes.
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .foreign_keys(false)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(300)
        .pragma("wal_autocheckpoint", "0")
        // So that the size of the log says how much of it is to be written back.
        .pragma("journal_size_limit", "1048576")
        .pragma("cache_size", "-16384")
        .disable_statement_logging()
}

/// Opens the connection that writes.
pub(super) async fn writer(options: &SqliteConnectOptions) -> Result<SqliteConnection, StoreError> {
    Ok(options.connect().await?)
}

/// Connections that only read the file of a folder, also while a service works on it; each transaction sees the file as
/// of its first statement.
///
/// # Errors
///
/// Where there is no file, or it cannot be read.
pub async fn readers(folder: &Path) -> Result<SqlitePool, StoreError> {
    let options = SqliteConnectOptions::new()
        .filename(file(folder))
        .read_only(true)
        .foreign_keys(false)
        .busy_timeout(BUSY_TIMEOUT)
        .pragma("cache_size", "-4096")
        .disable_statement_logging();
    let pool = SqlitePoolOptions::new()
        .max_connections(READERS_MAX)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false);
    Ok(pool.connect_with(options).await?)
}
