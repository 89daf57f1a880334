//! Connections for reads, kept from one to the next: a pool looks after a connection whenever it is given back, which
//! costs a turn of SQLite's thread.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Sqlite, SqlitePool};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// The longest wait for a connection.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The connections of a pool.
pub(super) struct Readers {
    pool: SqlitePool,
    /// As many as the pool has connections: nobody waits in the pool for one that is kept here.
    permits: Semaphore,
    kept: Mutex<Vec<PoolConnection<Sqlite>>>,
}

/// A connection for one read.
pub(super) struct Reader<'a> {
    readers: &'a Readers,
    pub(super) connection: PoolConnection<Sqlite>,
    _permit: SemaphorePermit<'a>,
}

impl Readers {
    /// Wraps a pool of `size` connections.
    pub(super) fn new(pool: SqlitePool, size: u32) -> Self {
        Self {
            pool,
            permits: Semaphore::new(size as usize),
            kept: Mutex::default(),
        }
    }

    /// A connection that nobody else uses.
    pub(super) async fn acquire(&self) -> Result<Reader<'_>, sqlx::Error> {
        let permit = timeout(WAIT_MAX, self.permits.acquire()).await;
        let permit = permit.map_err(|_| sqlx::Error::PoolTimedOut)?;
        let permit = permit.map_err(|_| sqlx::Error::PoolClosed)?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => self.pool.acquire().await?,
        };
        Ok(Reader {
            readers: self,
            connection,
            _permit: permit,
        })
    }
}

impl Drop for Readers {
    /// Closes the connections without the pool, which spawns a task for each that is given back. There may be no
    /// runtime any more.
    fn drop(&mut self) {
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        for connection in kept.drain(..) {
            drop(connection.leak());
        }
    }
}

impl Reader<'_> {
    /// Keeps the connection for the next read, after one that succeeded. Any other goes back to the pool.
    pub(super) fn keep(self) {
        let mut kept = self.readers.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(self.connection);
    }
}

#[cfg(test)]
mod tests {
    use sqlx::sqlite::SqlitePoolOptions;

    use super::*;

    /// As if who waits for the pool did not see that a connection has come free.
    #[tokio::test]
    async fn who_waits_gets_the_connection_that_is_kept() {
        let options = SqlitePoolOptions::new().max_connections(1);
        let readers = Readers::new(options.connect("sqlite::memory:").await.unwrap(), 1);
        let first = readers.acquire().await.unwrap();
        let (second, ()) = tokio::join!(readers.acquire(), async { first.keep() });
        second.unwrap().keep();
        assert_eq!(readers.kept.lock().unwrap().len(), 1);
    }

    /// As if the end of a program were a panic.
    #[test]
    fn a_kept_connection_is_closed_without_a_runtime() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let readers = runtime.block_on(async {
            let options = SqlitePoolOptions::new().max_connections(2);
            let readers = Readers::new(options.connect("sqlite::memory:").await.unwrap(), 2);
            let held = [readers.acquire().await.unwrap(), readers.acquire().await.unwrap()];
            for reader in held {
                reader.keep();
            }
            readers
        });
        drop(runtime);
        drop(readers);
    }
}
