//! Tables, columns and keys.

use super::types::column_type;
use crate::dialect::{StorageType, Table, TableColumn, TableKey};
use crate::model::{ColumnName, TableName};

/// One list has the names of tables and keys. <https://sqlite.org/schematab.html>
pub(super) const NAMES_KEYS_AMONG_TABLES: bool = true;

/// SQLite compares text by its bytes unless told otherwise; only the typing needs to be asked for.
const TABLE_OPTIONS: &str = "STRICT";

/// The statements that create a table with its keys, where it does not exist.
pub(super) fn create_table(table: &Table) -> String {
    let name = table.name.as_str();
    let mut lines: Vec<String> = table.columns.iter().map(column).collect();
    lines.extend(primary_key(&table.columns, &table.primary_key));
    let body = lines.join(",\n    ");
    let mut statements = vec![format!(
        "CREATE TABLE IF NOT EXISTS `{name}` (\n    {body}\n) {TABLE_OPTIONS};"
    )];
    statements.extend(table.keys.iter().map(|found| key(&table.name, found)));
    statements.join("\n")
}

/// A column in a table or in a change of one.
pub(super) fn column(column: &TableColumn) -> String {
    let name = &column.name;
    let ty = column_type(column.ty, column.required);
    let rest = match column.ty {
        StorageType::RowId => " PRIMARY KEY".to_owned(),
        StorageType::Json => format!(" CHECK (json_valid(`{name}`))"),
        StorageType::Sql(_) | StorageType::Version | StorageType::Bytes | StorageType::Hash => String::new(),
    };
    format!("`{name}` {ty}{rest}")
}

/// A row id must be declared as primary key on its column: only then does SQLite assign it.
/// <https://sqlite.org/lang_createtable.html#rowid>
fn primary_key(columns: &[TableColumn], key: &[ColumnName]) -> Option<String> {
    let assigned = columns
        .iter()
        .any(|column| column.ty == StorageType::RowId && key.contains(&column.name));
    (!assigned).then(|| format!("PRIMARY KEY ({})", quoted_list(key)))
}

/// The statement that creates a key beside its table.
pub(super) fn key(table: &TableName, key: &TableKey) -> String {
    let unique = if key.unique { "UNIQUE " } else { "" };
    format!(
        "CREATE {unique}INDEX IF NOT EXISTS `{}` ON `{table}` ({});",
        key.name,
        quoted_list(&key.columns)
    )
}

fn quoted_list(columns: &[ColumnName]) -> String {
    let quoted: Vec<String> = columns.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
