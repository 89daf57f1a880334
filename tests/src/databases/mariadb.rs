//! The MariaDB servers that tests share, in two flavors.

use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;

use super::database::{Database, Shared};

/// How a shared server is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// As Debian ships it.
    Plain,
    /// With `innodb_snapshot_isolation=ON`, the default of newer versions.
    SnapshotIsolation,
}

/// Whether tests with MariaDB run at all.
pub fn available() -> bool {
    require("mariadb", MariaDb::installed())
}

/// A database on the shared server of that flavor; `None` where MariaDB is absent and not required.
pub fn database(flavor: Flavor) -> Option<Database> {
    static PLAIN: Shared = Shared::new();
    static SNAPSHOT: Shared = Shared::new();
    let (shared, more) = match flavor {
        Flavor::Plain => (&PLAIN, "--innodb-snapshot-isolation=OFF"),
        Flavor::SnapshotIsolation => (&SNAPSHOT, "--innodb-snapshot-isolation=ON"),
    };
    // No test crashes this server: nothing has to reach the disk.
    let options = [
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-flush-method=nosync",
        "--innodb-doublewrite=OFF",
        "--innodb-buffer-pool-size=64M",
        more,
    ];
    available().then(|| Database::on(shared, || MariaDb::start(&options).into()))
}
