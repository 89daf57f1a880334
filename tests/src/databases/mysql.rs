//! The MySQL server that tests share.

use kindex_harness::mysql::MySql;
use kindex_harness::require::require;

use super::database::{Database, Shared};

/// Whether tests with MySQL run at all.
pub fn available() -> bool {
    require("mysql", MySql::installed())
}

/// A database on the shared server; `None` where MySQL is absent and not required.
pub fn database() -> Option<Database> {
    static SHARED: Shared = Shared::new();
    // No test crashes this server: nothing has to reach the disk.
    let options = [
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-flush-method=nosync",
        "--innodb-doublewrite=OFF",
        "--innodb-buffer-pool-size=64M",
    ];
    available().then(|| Database::on(&SHARED, || MySql::start(&options).into()))
}
