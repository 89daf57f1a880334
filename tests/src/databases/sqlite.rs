//! SQLite databases of single tests.

use std::path::PathBuf;

use kindex_store::{Address, SqliteLocation};

/// One in memory, which nobody but its store can open.
pub fn memory() -> Address {
    Address::Sqlite(SqliteLocation::Memory)
}

/// One in this file.
pub fn file(path: PathBuf) -> Address {
    Address::Sqlite(SqliteLocation::File(path))
}
