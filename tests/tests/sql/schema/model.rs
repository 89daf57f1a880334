//! The shipped model against what operators know, before any engine is asked.

use std::collections::BTreeSet;

use kindex_codegen::dialect::{self, Dialect as _, MySql, StorageType};
use kindex_codegen::model::Kind;

use super::expected::{self, Table};
use super::shipped_model;

/// Keys that every main table has, without the table's name.
const COMMON_KEYS: [(&str, &[&str]); 3] = [
    ("namespace_name", &["namespace", "name"]),
    ("create_time", &["create_time"]),
    ("delete_time", &["delete_time"]),
];

#[test]
fn thirteen_kinds_have_thirty_nine_tables_and_fifty_two_extracted_columns() {
    let model = shipped_model();
    let sections = dialect::sections(&model);
    let tables: Vec<&str> = sections
        .iter()
        .flat_map(|section| &section.tables)
        .map(|table| table.name.as_str())
        .filter(|name| !name.starts_with("kindex_"))
        .collect();
    let (histories, tables): (Vec<&str>, Vec<&str>) = tables.into_iter().partition(|name| name.ends_with("_history"));
    assert_eq!(tables.len(), 39);
    assert_eq!(
        histories,
        ["model_history", "deployment_history"],
        "beside what operators know"
    );
    let columns: usize = model.kinds.iter().map(|kind| kind.columns.len()).sum();
    assert_eq!(columns, 52);
    let known: BTreeSet<&str> = expected::TABLES.iter().map(|table| table.name).collect();
    let declared: BTreeSet<&str> = model.kinds.iter().map(|kind| kind.table.as_str()).collect();
    assert_eq!(declared, known);
}

#[test]
fn every_table_has_the_columns_and_keys_that_operators_know() {
    let model = shipped_model();
    for known in &expected::TABLES {
        let kind = model.kinds.iter().find(|kind| kind.table == *known.name);
        let kind = kind.unwrap_or_else(|| panic!("no kind has the table {}", known.name));
        assert_eq!(columns(kind), known_columns(known), "{}", known.name);
        assert_eq!(keys(kind), known_keys(known), "{}", known.name);
    }
}

fn columns(kind: &Kind) -> Vec<(String, String)> {
    let column = |column: &kindex_codegen::model::Column| {
        let ty = MySql.column_type(StorageType::Sql(column.sql), false).to_lowercase();
        let ty = if ty == "boolean" { "tinyint(1)".to_owned() } else { ty };
        (column.name.to_string(), ty)
    };
    kind.columns.iter().map(column).collect()
}

fn known_columns(known: &Table) -> Vec<(String, String)> {
    let owned = |&(name, ty): &(&str, &str)| (name.to_owned(), ty.to_owned());
    known.columns.iter().map(owned).collect()
}

fn keys(kind: &Kind) -> Vec<(String, Vec<String>)> {
    let key = |key: &kindex_codegen::model::Key| {
        let columns = key.columns.iter().map(ToString::to_string).collect();
        (key.name.to_string(), columns)
    };
    kind.keys.iter().map(key).collect()
}

fn known_keys(known: &Table) -> Vec<(String, Vec<String>)> {
    let common = COMMON_KEYS
        .iter()
        .map(|(suffix, columns)| (format!("{}_{suffix}", known.name), *columns));
    let own = known.keys.iter().map(|(name, columns)| ((*name).to_owned(), *columns));
    common
        .chain(own)
        .map(|(name, columns)| (name, columns.iter().map(|&name| name.to_owned()).collect()))
        .collect()
}
