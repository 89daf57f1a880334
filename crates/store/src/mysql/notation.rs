//! Names and parameters as MySQL writes them.

use kindex_model::kind::{Migration, Registry};

use crate::dialect::{Dialect, Notation};

/// The SQL of MySQL and MariaDB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MySqlSpelling;

impl Notation for MySqlSpelling {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn spell(&self, text: &str) -> String {
        text.replace(['[', ']'], "`")
    }

    fn schema(&self, registry: &Registry) -> &'static str {
        registry.mysql_schema
    }

    fn migration(&self, migration: &Migration) -> &'static str {
        migration.mysql
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_parameters_stay() {
        let spelt = MySqlSpelling.spell("SELECT t.[key] FROM [thing] AS t WHERE t.[uid] IN (?,?)");
        assert_eq!(spelt, "SELECT t.`key` FROM `thing` AS t WHERE t.`uid` IN (?,?)");
    }
}
