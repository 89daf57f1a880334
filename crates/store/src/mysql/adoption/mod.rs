//! Tables of other programs in MySQL and MariaDB, and of older ones of ours: what they lack, and whether their values
//! fit. Text alone; `migration::adopt` asks and runs.

mod definition;

mod blocker;

mod alter;

mod questions;

mod checks;

use crate::adoption::{AdoptionBlocker, AdoptionSql, Change, ColumnDefinition, Definition, Renewal, ValueCheck};
use crate::live::{LiveColumn, LiveTable};
use crate::mysql::notation::MySqlSpelling;

impl AdoptionSql for MySqlSpelling {
    fn definitions<'a>(&self, schema: &'a str) -> Result<Vec<Definition<'a>>, String> {
        definition::definitions(schema)
    }

    fn is_of_kindex(&self, statement: &str) -> bool {
        definition::is_of_kindex(statement)
    }

    fn change(
        &self,
        live: Option<&LiveTable>,
        wanted: &Definition<'_>,
        extracted: &dyn Fn(&str) -> bool,
    ) -> Result<Option<Change>, Vec<AdoptionBlocker>> {
        alter::change(live, wanted, extracted)
    }

    fn other_spelling(&self, found: &str, wanted: &str) -> AdoptionBlocker {
        AdoptionBlocker::other_spelling(found, wanted)
    }

    fn value_checks(&self, table: &LiveTable, live: &LiveColumn, wanted: &ColumnDefinition<'_>) -> Vec<ValueCheck> {
        questions::value_checks(table, live, wanted)
    }

    fn twice(&self, table: &str) -> String {
        questions::twice(table)
    }

    fn found_twice(&self, table: &str, uid: &str, key: &str, rows: i64, pairs: i64) -> AdoptionBlocker {
        AdoptionBlocker::twice(table, uid, key, rows, pairs)
    }

    fn unsure_rows(&self, table: &str, goes_on: bool) -> String {
        questions::unsure_rows(table, goes_on)
    }

    fn no_object(&self, table: &str, uid: &str, why: &str, rows: usize) -> AdoptionBlocker {
        AdoptionBlocker::no_object(table, uid, why, rows)
    }

    fn show(&self, table: &str) -> String {
        checks::show(table)
    }

    fn renewal(&self, live: &str, wanted: &Definition<'_>) -> Option<Renewal> {
        checks::renewal(live, wanted)
    }

    fn breaking(&self, renewal: &Renewal) -> String {
        checks::breaking(renewal)
    }

    fn look_up(&self, table: &str) -> String {
        format!("SELECT * FROM `{table}` WHERE uid = '…'")
    }
}
