//! Revisions of all objects. In a cluster's own file, SQLite: each mutation is one row, an object's JSON is written
//! exactly once, and the rows since the compaction floor are the log from which watches resume. Knows keys, revisions
//! and JSON text, but no resources, schemas or HTTP. Or wherever a [`StorageBackend`] keeps them.

mod compact;

mod record;

mod cache;

mod hub;

mod readers;

mod read;

mod write;

mod backend;

mod followed;

mod handle;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tokio::sync::mpsc;

use crate::private;

pub use backend::StorageBackend;
pub(crate) use followed::FollowedBackend;
pub(crate) use handle::Store;
pub(crate) use hub::{Feed, FeedError};
pub use read::{Page, PageRequest};
pub use record::{Change, ObjectKey, Revision};
pub(crate) use write::Observer;
pub use write::{Intent, Mutation, Precondition, WriteError};

/// Parallel readers; SQLite in WAL mode serves them beside the one writer.
const READERS_MAX: u32 = 4;
/// Mutations that may wait for the writer before callers are slowed down.
const WRITE_QUEUE_MAX: usize = 1024;
/// How long a connection waits for a lock that another process holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

const LAYOUT: &str = include_str!("layout.sql");

/// What can go wrong between the store and its file.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened or its tables cannot be created.
    #[error("cannot open the cluster database {path}")]
    Open {
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: sqlx::Error,
    },
    /// A statement failed.
    #[error("the cluster database failed")]
    Statement(#[from] sqlx::Error),
    /// A stored object is not the JSON it was when it was written.
    #[error("the stored object at resource version {rv} is damaged")]
    Damaged {
        /// The resource version of the damaged row.
        rv: u64,
        /// What the JSON parser said.
        #[source]
        source: serde_json::Error,
    },
    /// The resource version asked for has been compacted.
    #[error("resource version {rv} is older than {floor}, the oldest that is kept")]
    Compacted {
        /// What was asked for.
        rv: u64,
        /// The oldest resource version from which history is complete.
        floor: u64,
    },
    /// What keeps the objects elsewhere does not answer, or not with objects.
    #[error("{0}")]
    Elsewhere(String),
}

/// How a store is opened.
pub(crate) struct StoreOptions {
    /// The newest events that are kept for watches to resume from.
    pub(crate) history_max: u64,
    /// Whether a power failure may lose the last transactions; a crash of the process never does.
    pub(crate) synchronous: SqliteSynchronous,
    /// Called for each committed revision, in order, before its writer gets the answer.
    pub(crate) observer: Observer,
}

/// A handle to the store in a file; clones share the writer.
#[derive(Clone)]
pub(crate) struct FileStore {
    readers: Arc<readers::Readers>,
    writer: mpsc::Sender<write::Job>,
    hub: Arc<hub::Hub>,
    cache: Arc<cache::RevisionCache>,
    has_owners: Arc<AtomicBool>,
}

impl FileStore {
    /// Opens or creates the database at `path` and starts its writer.
    pub(crate) async fn open(path: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let refused = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        private::make_file(path).map_err(|error| refused(sqlx::Error::Io(error)))?;
        let connect = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(options.synchronous)
            .busy_timeout(BUSY_TIMEOUT)
            .pragma("cache_size", "-16384");
        let writers = SqlitePoolOptions::new()
            .max_connections(1)
            .test_before_acquire(false)
            .connect_with(connect.clone())
            .await
            .map_err(refused)?;
        sqlx::raw_sql(LAYOUT).execute(&writers).await.map_err(refused)?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS_MAX)
            // A file does not go away; the question whether it has costs as much as a read.
            .test_before_acquire(false)
            .connect_with(connect)
            .await
            .map_err(refused)?;
        let readers = readers::Readers::new(readers, READERS_MAX);
        let position = read::position(&readers).await?;
        let has_owners = read::owners_exist(&readers).await?;
        let (writer, jobs) = mpsc::channel(WRITE_QUEUE_MAX);
        let store = Self {
            readers: Arc::new(readers),
            writer,
            hub: Arc::new(hub::Hub::new(position)),
            cache: Arc::default(),
            has_owners: Arc::new(AtomicBool::new(has_owners)),
        };
        let state = write::Writer::new(writers, &store, options.observer, options.history_max);
        tokio::spawn(state.run(jobs));
        Ok(store)
    }
}

#[cfg(test)]
mod tests;
