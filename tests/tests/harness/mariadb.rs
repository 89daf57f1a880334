//! MariaDB servers shared by all tests that run at a time, and a database of its own
//! for each test. The last test to end stops the server.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kindex_runtime::store::{Address, MySqlFields};
use kindex_tests::mariadb::MariaDb;

use super::require::require;

/// How a shared server is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// As Debian ships it.
    Plain,
    /// With `innodb_snapshot_isolation=ON`, the default of newer versions.
    SnapshotIsolation,
}

/// One test's database.
pub(crate) struct Database {
    /// Keeps the server running.
    pub(crate) server: Arc<MariaDb>,
    /// Unique on the server; created by whoever prepares it.
    pub(crate) name: String,
}

/// Whether tests with MariaDB run at all.
pub(crate) fn available() -> bool {
    require("mariadb", MariaDb::installed())
}

/// A database on the shared server of that flavour; `None` where MariaDB is absent and not required.
pub(crate) fn database(flavour: Flavour) -> Option<Database> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    available().then(|| Database {
        server: shared(flavour),
        name: format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed)),
    })
}

impl Database {
    /// The address in the words of the configuration.
    pub(crate) fn fields(&self) -> MySqlFields {
        MySqlFields {
            host: "127.0.0.1".to_owned(),
            port: self.server.port,
            user: "root".to_owned(),
            database: self.name.clone(),
            ..MySqlFields::default()
        }
    }

    /// The address of the database.
    pub(crate) fn address(&self) -> Address {
        Address::mysql(&self.fields())
    }
}

fn shared(flavour: Flavour) -> Arc<MariaDb> {
    static PLAIN: Mutex<Weak<MariaDb>> = Mutex::new(Weak::new());
    static SNAPSHOT: Mutex<Weak<MariaDb>> = Mutex::new(Weak::new());
    let (slot, more) = match flavour {
        Flavour::Plain => (&PLAIN, "--innodb-snapshot-isolation=OFF"),
        Flavour::SnapshotIsolation => (&SNAPSHOT, "--innodb-snapshot-isolation=ON"),
    };
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    slot.upgrade().unwrap_or_else(|| {
        // Tests crash this server on purpose at most by ending; its commits need no disk.
        let server = Arc::new(MariaDb::start(&[
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=64M",
            more,
        ]));
        *slot = Arc::downgrade(&server);
        server
    })
}
