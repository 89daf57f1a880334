//! What the schema files and the reference page say in this dialect alone.

use crate::dialect::InitScript;

/// Of the tables alone.
pub(super) const SCHEMA_TITLE: &str = "Kindex's tables on SQLite.\n\
                                       Times are text in UTC with six digits of a second, such as \
                                       2026-01-31T12:00:00.000000Z.";

/// A database is a file.
pub(super) fn init_script(_database: &str) -> Option<InitScript> {
    None
}

/// Nothing in the engine unpacks a version.
pub(super) fn history_query(_table: &str) -> Option<String> {
    None
}
