//! MySQL's texts among those of the program.

use kindex_model::kind::{Migration, Registry};

use crate::dialect::{Dialect, Notation};

/// The SQL of MySQL and MariaDB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MySqlSpelling;

impl Notation for MySqlSpelling {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn schema(&self, registry: &Registry) -> &'static str {
        registry.mysql_schema
    }

    fn migration(&self, migration: &Migration) -> &'static str {
        migration.mysql
    }
}
