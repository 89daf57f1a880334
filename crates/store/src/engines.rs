//! The engines by the names of their dialects.

use crate::dialect::{Dialect, Spelling};
use crate::mysql::MySqlSpelling;
use crate::sqlite::SqliteSpelling;

/// How an engine spells SQL, for who asks without a connection.
pub(super) fn spelling(dialect: Dialect) -> &'static dyn Spelling {
    match dialect {
        Dialect::MySql => &MySqlSpelling,
        Dialect::Sqlite => &SqliteSpelling,
    }
}

/// In which the identity of a query is written, for all engines and always the same: tokens are under way for long.
pub(super) fn of_tokens() -> &'static dyn Spelling {
    &SqliteSpelling
}
