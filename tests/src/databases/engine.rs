//! New databases on every engine that there is a dialect for, so that tests with a list of engines leave none out.

use kindex_codegen::dialect::ALL;
use kindex_store::Address;
use tempfile::TempDir;

use super::database::Database;
use super::mariadb::{self, Flavor};
use super::{mysql, sqlite};

/// A new database of an engine, which others than its store can open too.
pub struct Engine {
    /// What tests call the engine, in a form that may be part of the names of objects.
    pub name: &'static str,
    /// Where the database is.
    pub address: Address,
    /// The database, where it is a server's.
    pub database: Option<Database>,
    /// What is removed with the database, where it is a file.
    pub directory: Option<TempDir>,
}

impl Engine {
    /// In a file.
    ///
    /// # Panics
    /// When no temporary directory can be created.
    pub fn sqlite() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self {
            name: "sqlite",
            address: sqlite::file(directory.path().join("kindex.db")),
            database: None,
            directory: Some(directory),
        }
    }

    /// `None` where MariaDB is absent and not required.
    pub fn mariadb(flavor: Flavor) -> Option<Self> {
        let name = match flavor {
            Flavor::Plain => "mariadb",
            Flavor::SnapshotIsolation => "mariadb-with-snapshot-isolation",
        };
        mariadb::database(flavor).map(|database| Self::on_server(name, database))
    }

    /// `None` where MySQL is absent and not required.
    pub fn mysql() -> Option<Self> {
        mysql::database().map(|database| Self::on_server("mysql", database))
    }

    fn on_server(name: &'static str, database: Database) -> Self {
        Self {
            name,
            address: database.address(),
            database: Some(database),
            directory: None,
        }
    }
}

/// One on each engine, MariaDB in each of these flavors, but for those that are absent and not required.
///
/// # Panics
/// When there is a dialect for which the tests have no engine.
pub fn engines(flavors: &[Flavor]) -> Vec<Engine> {
    let words = ALL.map(|dialect| dialect.word()).into_iter();
    words.flat_map(|word| with_dialect(word, flavors)).collect()
}

fn with_dialect(word: &str, flavors: &[Flavor]) -> Vec<Engine> {
    match word {
        "mysql" => {
            let flavors = flavors.iter().filter_map(|flavor| Engine::mariadb(*flavor));
            flavors.chain(Engine::mysql()).collect()
        }
        "sqlite" => vec![Engine::sqlite()],
        other => panic!("the tests have no engine with the dialect {other}"),
    }
}
