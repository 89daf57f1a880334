//! One test's database on a server that the tests of a program share.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kindex_harness::sql_server::SqlServer;
use kindex_harness::wait::WAIT_MAX;
use kindex_store::{Address, MySqlFields, PoolConfig};
use sqlx::mysql::MySqlConnectOptions;

/// Limits for tests that expect to be served: a machine that runs many tests at a time may need long for a connect,
/// and for a statement.
pub fn patient() -> PoolConfig {
    PoolConfig {
        acquire_timeout: WAIT_MAX,
        call_timeout: WAIT_MAX,
        ..PoolConfig::default()
    }
}

/// A server, as a connection beside the store takes it.
pub fn server_options(fields: &MySqlFields) -> MySqlConnectOptions {
    match Address::mysql(fields) {
        Address::MySql(options) => *options,
        Address::Sqlite(_) => unreachable!("the fields are a server's"),
    }
}

/// One test's database.
pub struct Database {
    /// Keeps the server running.
    pub server: Arc<SqlServer>,
    /// Unique on the server; created by whoever prepares it.
    pub name: String,
}

/// How many databases a server has. A server with all databases of a program would fill the memory that it may be in.
const DATABASES_MAX: u32 = 150;

/// A server that tests share, from the first that wants one to the end of the program: to start one takes longer than
/// many a test.
#[derive(Default)]
pub struct Shared(Mutex<Option<Server>>);

struct Server {
    running: Arc<SqlServer>,
    databases: u32,
}

impl Shared {
    /// None runs yet.
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn server(&self, start: impl FnOnce() -> SqlServer) -> Arc<SqlServer> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A former one ends with the last test that uses it.
        let mut server = shared
            .take()
            .filter(|server| server.databases < DATABASES_MAX && server.running.answers())
            .unwrap_or_else(|| Server {
                running: Arc::new(start().removed_with_program()),
                databases: 0,
            });
        server.databases += 1;
        Arc::clone(&shared.insert(server).running)
    }
}

impl Database {
    /// A database of a new name on the server that tests share, which `start` starts where none runs.
    pub fn on(shared: &Shared, start: impl FnOnce() -> SqlServer) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self {
            server: shared.server(start),
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
