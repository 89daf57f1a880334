//! The database of a scenario, as the ingester's configuration names it and as the test
//! reads it, past any proxy.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use kindex_model::kind::Registry;
use kindex_store::{Address, MetadataStorage, MySqlFields, PoolConfig, SqliteLocation, open};

/// The database's name on a server.
const NAME: &str = "kindex";

/// A MariaDB whose commits survive its death; `None` where it is absent and not required.
pub(crate) fn mariadb(options: &[&str]) -> Option<MariaDb> {
    let durable = ["--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=64M"];
    require("mariadb", MariaDb::installed()).then(|| MariaDb::start(&[&durable, options].concat()))
}

/// Where rows go.
#[derive(Clone, Debug)]
pub(crate) enum Database {
    /// A file in the scenario's directory.
    Sqlite,
    /// A server: the port that the ingester is told, and the one behind it.
    Server {
        /// As configured.
        reported: u16,
        /// As it is.
        direct: u16,
    },
}

impl Database {
    /// A server that the ingester reaches directly.
    pub(crate) fn server(port: u16) -> Self {
        Self::Server {
            reported: port,
            direct: port,
        }
    }

    /// The address of the database on the server at this port, for a command line.
    pub(crate) fn address(port: u16) -> String {
        format!("mysql://root@127.0.0.1:{port}/{NAME}")
    }

    /// Its stanza of the configuration file, as the ingester is told and as it is.
    pub(crate) fn stanzas(&self, directory: &Path) -> [String; 2] {
        match self {
            Self::Sqlite => [(); 2].map(|()| format!("sqlite:\n  path: {}\n", file(directory).display())),
            Self::Server { reported, direct } => [reported, direct]
                .map(|port| format!("mysql:\n  host: 127.0.0.1\n  port: {port}\n  user: root\n  database: {NAME}\n")),
        }
    }

    /// Opens it for the test itself.
    pub(crate) fn open(&self, directory: &Path, registry: Registry) -> Arc<dyn MetadataStorage> {
        let address = match self {
            Self::Sqlite => Address::Sqlite(SqliteLocation::File(file(directory))),
            Self::Server { direct, .. } => Address::mysql(&MySqlFields {
                host: "127.0.0.1".to_owned(),
                port: *direct,
                user: "root".to_owned(),
                database: NAME.to_owned(),
                ..MySqlFields::default()
            }),
        };
        open(&address, registry, &PoolConfig::default()).expect("the address names a database")
    }
}

/// The file of [`Database::Sqlite`].
pub(crate) fn file(directory: &Path) -> PathBuf {
    directory.join("rows.db")
}
