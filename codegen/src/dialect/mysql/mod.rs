//! The dialect that MySQL and MariaDB share. A statement in here runs on both, with the same meaning.

mod reserved;

mod types;

mod table;

pub mod online;

mod step;

mod review;

mod files;

mod limits;

use super::limits::Limits;
use super::spelling::{Dialect, InitScript, Lock, RowFormat, RowFormatsMax};
use super::step::{Step, Verb};
use super::table::{StorageType, Table};
use crate::model::SqlType;

/// The dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MySql;

impl Dialect for MySql {
    fn word(&self) -> &'static str {
        "mysql"
    }

    fn products(&self) -> &'static str {
        "MySQL, MariaDB"
    }

    fn limits(&self) -> Limits {
        limits::LIMITS
    }

    fn reserves(&self, word: &str) -> bool {
        reserved::WORDS.binary_search(&word).is_ok()
    }

    fn names_keys_among_tables(&self) -> bool {
        table::NAMES_KEYS_AMONG_TABLES
    }

    fn column_type(&self, ty: StorageType, required: bool) -> String {
        types::column_type(ty, required)
    }

    fn catalog_type(&self, ty: StorageType) -> String {
        types::catalog_type(ty)
    }

    fn parse_catalog_type(&self, catalog_type: &str) -> Option<SqlType> {
        types::parse_catalog_type(catalog_type)
    }

    fn collation(&self) -> Option<&'static str> {
        types::COLLATION
    }

    fn collate(&self, table: &str) -> Option<String> {
        types::collate(table)
    }

    fn create_table(&self, table: &Table) -> String {
        table::create_table(table)
    }

    fn expand(&self, step: Step) -> Vec<Step> {
        step::expand(step)
    }

    fn statement(&self, step: &Step) -> Option<String> {
        step::statement(step)
    }

    fn renaming_copies(&self) -> Vec<&'static str> {
        online::renaming_copies()
    }

    fn changing_copies(&self, types: Option<(SqlType, SqlType)>) -> Vec<&'static str> {
        online::changing_copies(types)
    }

    fn row_format(&self, verb: Verb, statement: &str) -> RowFormat {
        online::row_format(verb, statement)
    }

    fn row_formats_max(&self) -> Option<RowFormatsMax> {
        online::ROW_FORMATS_MAX
    }

    fn refused_by_rows(&self, verb: Verb, statement: &str) -> Option<&'static str> {
        review::refused_by_rows(verb, statement)
    }

    fn locks(&self, verb: Verb, statement: &str) -> Option<Lock> {
        review::locks(verb, statement)
    }

    fn schema_title(&self) -> &'static str {
        files::SCHEMA_TITLE
    }

    fn init_script(&self, database: &str) -> Option<InitScript> {
        files::init_script(database)
    }

    fn history_query(&self, table: &str) -> Option<String> {
        files::history_query(table)
    }
}
