//! Connections for reads, kept from one to the next: a pool looks after a connection whenever it is given back, which
//! costs a turn of SQLite's thread.

use std::sync::{Mutex, PoisonError};

use sqlx::pool::PoolConnection;
use sqlx::{Sqlite, SqlitePool};
use tokio::sync::{Semaphore, SemaphorePermit};

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
    /// Those of a pool of this size.
    pub(super) fn new(pool: SqlitePool, size: u32) -> Self {
        Self {
            pool,
            permits: Semaphore::new(size as usize),
            kept: Mutex::default(),
        }
    }

    /// A connection that nobody else uses.
    pub(super) async fn acquire(&self) -> Result<Reader<'_>, sqlx::Error> {
        let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
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

impl Reader<'_> {
    /// Keeps the connection for the next read, after one that was read to its end. Any other goes back to the pool.
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
}
