//! Names and parameters as SQLite takes them.

use kindex_model::kind::{Migration, Registry};

use crate::dialect::{Dialect, Notation};

/// The SQL of SQLite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SqliteSpelling;

impl Notation for SqliteSpelling {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn spell(&self, text: &str) -> String {
        text.replace(['[', ']'], "`")
    }

    fn schema(&self, registry: &Registry) -> &'static str {
        registry.sqlite_schema
    }

    fn migration(&self, migration: &Migration) -> &'static str {
        migration.sqlite
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_parameters_stay() {
        let spelt = SqliteSpelling.spell("SELECT t.[key] FROM [thing] AS t WHERE t.[uid] IN (?,?)");
        assert_eq!(spelt, "SELECT t.`key` FROM `thing` AS t WHERE t.`uid` IN (?,?)");
    }
}
