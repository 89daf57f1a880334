//! The interface of a dialect: how tables, steps and types are spelled, how the catalog of its engines shows types, and
//! what a step costs.

use std::fmt;

use super::limits::Limits;
use super::step::{Form, Step, Verb};
use super::table::{StorageType, Table};
use crate::model::SqlType;

/// A dialect that schemas and migrations are written in.
pub trait Dialect: fmt::Debug + Sync {
    /// Its word in the names of files, and before its texts in what is emitted.
    fn word(&self) -> &'static str;

    /// The products that support it, for a heading.
    fn products(&self) -> &'static str;

    /// What the engine has room for.
    fn limits(&self) -> Limits;

    /// Whether the word names a column in quotes alone.
    fn reserves(&self, word: &str) -> bool;

    /// Whether no key may be called like a table, or like a key of another table.
    fn names_keys_among_tables(&self) -> bool;

    /// The type of a column, and whether it is NOT NULL.
    fn column_type(&self, ty: StorageType, required: bool) -> String;

    /// A column's type as the engine's catalog shows it: in lower case, without display widths.
    fn catalog_type(&self, ty: StorageType) -> String;

    /// The type that the catalog shows; `None` for one that crds.toml has no word for, or several.
    fn parse_catalog_type(&self, catalog_type: &str) -> Option<SqlType>;

    /// The collation of all tables, if tables have one.
    fn collation(&self) -> Option<&'static str>;

    /// The statement that sets the collation of a table; `None` if tables have none.
    fn collate(&self, table: &str) -> Option<String>;

    /// The statements that create a table with its keys, where it does not exist.
    fn create_table(&self, table: &Table) -> String;

    /// A step as this dialect supports it, in steps of at most one statement each.
    fn expand(&self, step: Step) -> Vec<Step>;

    /// The statement of a step that [`Dialect::expand`] returned; `None` for one that has none.
    fn statement(&self, step: &Step) -> Option<String>;

    /// The products that copy a table when a column gets another name.
    fn renaming_copies(&self) -> Vec<&'static str>;

    /// The products that copy a table when a column gets another type; without the two types, those of the worst case.
    fn changing_copies(&self, types: Option<(SqlType, SqlType)>) -> Vec<&'static str>;

    /// How a statement changes the row format.
    fn row_format(&self, verb: Verb, statement: &str) -> RowFormat;

    /// Most row formats that a table may have at once; `None` if there is no limit.
    fn row_formats_max(&self) -> Option<RowFormatsMax>;

    /// The words in a statement that make it fail if a row violates them. A planned statement has none.
    fn refused_by_rows(&self, verb: Verb, statement: &str) -> Option<&'static str>;

    /// Why nobody may be able to write while the statement runs. Nothing is to be said of a planned one.
    fn locks(&self, verb: Verb, statement: &str) -> Option<Lock>;

    /// What the schema file holds, for its first line.
    fn schema_title(&self) -> &'static str;

    /// The script that creates the database too; `None` where a database is a file.
    fn init_script(&self, database: &str) -> Option<InitScript>;

    /// A query of the versions in a kind's history as text; `None` where the engine cannot unpack them.
    fn history_query(&self, table: &str) -> Option<String>;

    /// What is known of a type that the engine's catalog tells, where `wanted` is what ours would be.
    fn form(&self, catalog_type: &str, wanted: Option<StorageType>) -> Form {
        match wanted.filter(|wanted| self.catalog_type(*wanted) == catalog_type) {
            Some(wanted) => Form::Ours(wanted),
            None => self.parse_catalog_type(catalog_type).map_or_else(
                || Form::Foreign(catalog_type.to_owned()),
                |sql| Form::Ours(StorageType::Sql(sql)),
            ),
        }
    }

    /// The steps as this dialect takes them, each with its statement; a fill has none.
    fn spell(&self, steps: &[Step]) -> Vec<(Step, Option<String>)> {
        let taken = steps.iter().cloned().flat_map(|step| self.expand(step));
        let spelled = taken.map(|step| {
            let statement = self.statement(&step);
            (step, statement)
        });
        spelled.collect()
    }
}

impl PartialEq for dyn Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.word() == other.word()
    }
}

impl Eq for dyn Dialect {}

/// How a server remembers under which form of the table each row was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// Rows keep the form that they have, and there is one more.
    Another,
    /// Every row is written anew, in one form.
    Anew,
    /// The form stays.
    Kept,
}

/// The most row formats that a server remembers for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowFormatsMax {
    /// The product that refuses one more.
    pub engine: &'static str,
    /// How many there are room for.
    pub count: u32,
}

/// Why a statement may keep others from writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// This clause asks for it.
    Asked(&'static str),
    /// No clause rules it out.
    NotRuledOut,
}

/// A script that creates a database and its tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitScript {
    /// What it does, for its first line.
    pub title: &'static str,
    /// The statements in front of those of the tables.
    pub create_database: String,
    /// Where it lies: the file that counts, and its copies.
    pub paths: &'static [&'static str],
    /// The shell script that runs it on a server, without its first line.
    pub runner: &'static str,
}
