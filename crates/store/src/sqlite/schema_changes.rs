//! Changing tables of SQLite.

use crate::adoption::AdoptionSql;
use crate::dialect::SchemaChangeSql;
use crate::sqlite::notation::SqliteSpelling;

impl SchemaChangeSql for SqliteSpelling {
    fn take_lock(&self) -> Option<&'static str> {
        None
    }

    fn holds_lock(&self) -> &'static str {
        "SELECT 1"
    }

    fn limit_lock_wait(&self) -> Option<&'static str> {
        None
    }

    /// A SQLite database is Kindex's own.
    fn adoption(&self) -> Option<&'static dyn AdoptionSql> {
        None
    }
}
