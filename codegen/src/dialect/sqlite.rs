//! The dialect of SQLite. Tables are STRICT: SQLite then refuses a value of the wrong type as MySQL does.
//! <https://sqlite.org/stricttables.html>

use super::{Step, StorageType, Table, TableColumn, TableKey};
use crate::model::{ColumnName, SqlType, TableName};

/// SQLite compares text by its bytes unless told otherwise; only the typing needs to be asked for.
const TABLE_OPTIONS: &str = "STRICT";

/// Texts compare by their bytes; tables have no say in it.
pub const COLLATION: Option<&str> = None;

/// The statements that create a table with its keys, where it does not exist.
pub fn create_table(table: &Table) -> String {
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

/// The steps as this dialect takes them, one statement each at most: keys are created beside their table and cannot be
/// renamed, and a type that widens is the same word here.
pub fn expand(step: Step) -> Vec<Step> {
    match step {
        Step::CreateTable(mut table) => {
            let keys = std::mem::take(&mut table.keys);
            let name = table.name.clone();
            let add = |key| Step::AddKey {
                table: name.clone(),
                key,
            };
            let keys: Vec<Step> = keys.into_iter().map(add).collect();
            [Step::CreateTable(table)].into_iter().chain(keys).collect()
        }
        Step::ChangeColumn { .. } => Vec::new(),
        Step::RenameKey { table, from, key } => {
            let drop = Step::DropKey {
                table: table.clone(),
                key: from,
            };
            vec![drop, Step::AddKey { table, key }]
        }
        Step::DropTable(_)
        | Step::DropKey { .. }
        | Step::DropColumn { .. }
        | Step::RenameColumn { .. }
        | Step::AddColumn { .. }
        | Step::AddKey { .. }
        | Step::Fill { .. } => vec![step],
    }
}

/// The statement of a step; `None` for one that has none.
///
/// # Panics
/// If the step is one that [`expand`] takes apart.
pub fn statement(step: &Step) -> Option<String> {
    let table = step.table();
    let change = match step {
        Step::CreateTable(table) => return Some(create_table(table)),
        Step::DropTable(table) => return Some(format!("DROP TABLE IF EXISTS `{table}`;")),
        Step::DropKey { key, .. } => return Some(format!("DROP INDEX IF EXISTS `{key}`;")),
        Step::AddKey { key, .. } => return Some(self::key(table, key)),
        Step::Fill { .. } => return None,
        Step::DropColumn { column, .. } => format!("DROP COLUMN `{column}`"),
        Step::RenameColumn { from, to, .. } => format!("RENAME COLUMN `{from}` TO `{to}`"),
        Step::AddColumn { column, .. } => format!("ADD COLUMN {}", self::column(column)),
        Step::ChangeColumn { .. } | Step::RenameKey { .. } => unreachable!("`expand` leaves none"),
    };
    Some(format!("ALTER TABLE `{table}` {change};"))
}

fn column(column: &TableColumn) -> String {
    let name = &column.name;
    let ty = column_type(column.ty);
    let null = if column.required { " NOT NULL" } else { "" };
    let rest = match column.ty {
        StorageType::RowId => " PRIMARY KEY".to_owned(),
        StorageType::Json => format!(" CHECK (json_valid(`{name}`))"),
        StorageType::Sql(_) | StorageType::Bytes | StorageType::Hash => String::new(),
    };
    format!("`{name}` {ty}{null}{rest}")
}

/// A row id must be declared as primary key on its column: only then does SQLite assign it.
/// <https://sqlite.org/lang_createtable.html#rowid>
fn primary_key(columns: &[TableColumn], key: &[ColumnName]) -> Option<String> {
    let assigned = columns
        .iter()
        .any(|column| column.ty == StorageType::RowId && key.contains(&column.name));
    (!assigned).then(|| format!("PRIMARY KEY ({})", quoted_list(key)))
}

fn key(table: &TableName, key: &TableKey) -> String {
    let unique = if key.unique { "UNIQUE " } else { "" };
    format!(
        "CREATE {unique}INDEX IF NOT EXISTS `{}` ON `{table}` ({});",
        key.name,
        quoted_list(&key.columns)
    )
}

/// The type's name.
pub fn column_type(ty: StorageType) -> String {
    match ty {
        StorageType::Sql(sql) => sql_type(sql).to_owned(),
        StorageType::Bytes | StorageType::Hash => "BLOB".to_owned(),
        StorageType::Json => "TEXT".to_owned(),
        StorageType::RowId => "INTEGER".to_owned(),
    }
}

/// The type as the catalogue tells it, in small letters.
pub fn told(ty: StorageType) -> String {
    column_type(ty).to_lowercase()
}

/// `None`: a word of SQLite's stands for several types of crds.toml.
pub fn parse_told(_told: &str) -> Option<SqlType> {
    None
}

/// No statement is needed.
pub fn collate(_table: &str) -> Option<String> {
    None
}

/// STRICT tables know few types. Times are text that sorts as time; a decimal is kept as the number that comes.
fn sql_type(sql: SqlType) -> &'static str {
    match sql {
        SqlType::VarChar(_) | SqlType::Text | SqlType::MediumText | SqlType::LongText => "TEXT",
        SqlType::DateTime(_) | SqlType::Date => "TEXT",
        SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::Boolean => "INTEGER",
        SqlType::BigInt | SqlType::BigIntUnsigned => "INTEGER",
        SqlType::Double => "REAL",
        SqlType::Decimal(_, _) => "ANY",
    }
}

fn quoted_list(columns: &[ColumnName]) -> String {
    let quoted: Vec<String> = columns.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
