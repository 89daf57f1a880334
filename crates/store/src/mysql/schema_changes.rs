//! Changing tables of MySQL.

use crate::adoption::AdoptionSql;
use crate::dialect::SchemaChangeSql;
use crate::mysql::notation::MySqlSpelling;

impl SchemaChangeSql for MySqlSpelling {
    fn take_lock(&self) -> Option<&'static str> {
        Some("SELECT GET_LOCK(SHA2(CONCAT('kindex migrate ', DATABASE()), 224), ?)")
    }

    fn holds_lock(&self) -> &'static str {
        "SELECT COALESCE(IS_USED_LOCK(SHA2(CONCAT('kindex migrate ', DATABASE()), 224)) = CONNECTION_ID(), 0)"
    }

    fn limit_lock_wait(&self) -> Option<&'static str> {
        Some("SET SESSION lock_wait_timeout = 5")
    }

    fn adoption(&self) -> Option<&'static dyn AdoptionSql> {
        Some(&MySqlSpelling)
    }
}
