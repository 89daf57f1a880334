//! Tables, columns and keys.

use super::types::column_type;
use crate::dialect::{StorageType, Table, TableColumn, TableKey};
use crate::model::ColumnName;

const TABLE_OPTIONS: &str = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin";

/// Each table has a list of its own with the names of its keys.
pub(super) const NAMES_KEYS_AMONG_TABLES: bool = false;

/// The statement that creates a table with its keys, where it does not exist.
pub(super) fn create_table(table: &Table) -> String {
    let name = table.name.as_str();
    let mut lines: Vec<String> = table.columns.iter().map(column).collect();
    lines.push(primary_key(&table.primary_key));
    lines.extend(table.keys.iter().map(key));
    lines.extend(json_check(table));
    let body = lines.join(",\n    ");
    format!("CREATE TABLE IF NOT EXISTS `{name}` (\n    {body}\n) {TABLE_OPTIONS};")
}

/// A column in a table or in a change of one.
pub(super) fn column(column: &TableColumn) -> String {
    let name = &column.name;
    let ty = column_type(column.ty, column.required);
    let rest = match column.ty {
        StorageType::RowId => " AUTO_INCREMENT",
        StorageType::Json | StorageType::Sql(_) | StorageType::Version | StorageType::Bytes | StorageType::Hash => "",
    };
    format!("`{name}` {ty}{rest}")
}

fn primary_key(columns: &[ColumnName]) -> String {
    format!("PRIMARY KEY ({})", quoted_list(columns))
}

/// A key in a table or in a change of one.
pub(super) fn key(key: &TableKey) -> String {
    let unique = if key.unique { "UNIQUE " } else { "" };
    format!("{unique}KEY `{}` ({})", key.name, quoted_list(&key.columns))
}

/// Holds for the text that the row's hash is of, which whoever computes it has read as JSON, and for every other text
/// that the server reads as JSON. MariaDB calls objects of 32 levels invalid, and MySQL fails at 101, so the hash comes
/// first: the cluster's objects may be deeper. <https://mariadb.com/kb/en/json_valid/>
///
/// A constraint of the table, as MySQL wants it of one on two columns.
fn json_check(table: &Table) -> Option<String> {
    let of_type = |ty| table.columns.iter().find(|column| column.ty == ty);
    let json = &of_type(StorageType::Json)?.name;
    let hash = &of_type(StorageType::Hash)?.name;
    let is_hashed = format!("LEFT(`{hash}`, 16) <=> UNHEX(LEFT(SHA2(`{json}`, 256), 32))");
    let name = &table.name;
    Some(format!(
        "CONSTRAINT `{name}_json` CHECK ({is_hashed} OR JSON_VALID(`{json}`))"
    ))
}

fn quoted_list(columns: &[ColumnName]) -> String {
    let quoted: Vec<String> = columns.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
