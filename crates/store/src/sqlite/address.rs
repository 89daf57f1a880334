//! The addresses of SQLite: a file, or the memory of the process.

use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// What an address looks like.
pub(crate) const FORM: &str = "sqlite:PATH";

/// Where an embedded database keeps its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqliteLocation {
    /// In this process; gone when the store is closed.
    Memory,
    /// In a file, created when missing; its directory must exist.
    File(PathBuf),
}

/// Reads `sqlite:PATH` or `sqlite::memory:`. `None` where the address is another engine's.
pub(crate) fn parse(text: &str) -> Option<Result<SqliteLocation, StoreError>> {
    let place = text.strip_prefix("sqlite:")?;
    Some(match place.strip_prefix("//").unwrap_or(place) {
        "" => Err(StoreError::Address(
            "sqlite: names no file; write sqlite:PATH or sqlite::memory:".to_owned(),
        )),
        ":memory:" => Ok(SqliteLocation::Memory),
        path => Ok(SqliteLocation::File(path.into())),
    })
}

/// The file that holds the database.
pub(crate) fn file(place: &SqliteLocation) -> Option<&Path> {
    match place {
        SqliteLocation::File(path) => Some(path),
        SqliteLocation::Memory => None,
    }
}

pub(crate) fn shown(place: &SqliteLocation) -> String {
    match place {
        SqliteLocation::Memory => "sqlite::memory:".to_owned(),
        SqliteLocation::File(path) => format!("sqlite:{}", path.display()),
    }
}
