//! SQLite's texts among those of the program.

use kindex_model::kind::{Migration, Registry};

use crate::dialect::{Dialect, Notation};

/// The SQL of SQLite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SqliteSpelling;

impl Notation for SqliteSpelling {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn schema(&self, registry: &Registry) -> &'static str {
        registry.sqlite_schema
    }

    fn migration(&self, migration: &Migration) -> &'static str {
        migration.sqlite
    }
}
