//! One test's database on a server that all tests which run at a time share. The last
//! test to end stops the server.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kindex_harness::sql_server::SqlServer;
use kindex_harness::wait::WAIT_MAX;
use kindex_store::{Address, MySqlFields, PoolConfig};

/// Limits for tests that expect to be served: a machine that runs many tests at a time may need long for a connect,
/// and for a statement.
pub fn patient() -> PoolConfig {
    PoolConfig {
        acquire_timeout: WAIT_MAX,
        call_timeout: WAIT_MAX,
        ..PoolConfig::default()
    }
}

/// One test's database.
pub struct Database {
    /// Keeps the server running.
    pub server: Arc<SqlServer>,
    /// Unique on the server; created by whoever prepares it.
    pub name: String,
}

/// Where a server is found while any test uses it.
pub type Shared = Mutex<Weak<SqlServer>>;

impl Database {
    /// A database of a new name on the server that tests share, which `start` starts where none runs.
    pub fn on(shared: &Shared, start: impl FnOnce() -> SqlServer) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let server = shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(start());
            *shared = Arc::downgrade(&server);
            server
        });
        Self {
            server,
            name: format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// The address, field by field.
    pub fn fields(&self) -> MySqlFields {
        MySqlFields {
            host: "127.0.0.1".to_owned(),
            port: self.server.port,
            user: "root".to_owned(),
            database: self.name.clone(),
            ..MySqlFields::default()
        }
    }

    /// The address of the database.
    pub fn address(&self) -> Address {
        Address::mysql(&self.fields())
    }
}
