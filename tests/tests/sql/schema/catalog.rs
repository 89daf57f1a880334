//! A table as an engine's catalog tells it, in one form for all engines, and the same of the model.

use kindex_codegen::dialect::{self, StorageType, Table};
use kindex_codegen::model::Model;

/// A table as it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Described {
    pub name: String,
    /// Name, type in the engine's own words, whether it is NOT NULL.
    pub columns: Vec<(String, String, bool)>,
    pub primary_key: Vec<String>,
    /// Sorted by name: engines list keys in an order of their own.
    pub keys: Vec<(String, Vec<String>)>,
}

/// What the model wants, with types as `spell` says the engine tells them.
pub fn wanted(model: &Model, spell: fn(StorageType) -> String) -> Vec<Described> {
    let sections = dialect::sections(model);
    let tables = sections.iter().flat_map(|section| &section.tables);
    let mut wanted: Vec<Described> = tables.map(|table| describe(table, spell)).collect();
    wanted.sort_by(|a, b| a.name.cmp(&b.name));
    wanted
}

/// Compares table by table, so that a failure shows the one that differs.
pub fn assert_same(found: &[Described], wanted: &[Described]) {
    for (found, wanted) in found.iter().zip(wanted) {
        assert_eq!(found, wanted);
    }
    let names = |tables: &[Described]| -> Vec<String> { tables.iter().map(|table| table.name.clone()).collect() };
    assert_eq!(names(found), names(wanted));
}

fn describe(table: &Table, spell: fn(StorageType) -> String) -> Described {
    let names = |columns: &[kindex_codegen::model::ColumnName]| columns.iter().map(ToString::to_string).collect();
    let mut keys: Vec<(String, Vec<String>)> = table
        .keys
        .iter()
        .map(|key| (key.name.to_string(), names(&key.columns)))
        .collect();
    keys.sort();
    Described {
        name: table.name.to_string(),
        columns: table
            .columns
            .iter()
            .map(|column| (column.name.to_string(), spell(column.ty), column.required))
            .collect(),
        primary_key: names(&table.primary_key),
        keys,
    }
}
