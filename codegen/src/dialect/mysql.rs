//! The dialect that MySQL and MariaDB share. A statement in here runs on both, with the same meaning.

pub mod online;

use super::{Step, StorageType, Table, TableColumn, TableKey};
use crate::model::{ColumnName, SqlType};

/// Names, keys and values compare by code point: Kubernetes tells `a` from `A`, and an index over them must too.
const TABLE_OPTIONS: &str = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin";

/// How all texts compare.
pub const COLLATION: Option<&str> = Some("utf8mb4_bin");

/// The statements that create a table with its keys, where it does not exist.
pub fn create_table(table: &Table) -> String {
    let name = table.name.as_str();
    let mut lines: Vec<String> = table.columns.iter().map(column).collect();
    lines.push(primary_key(&table.primary_key));
    lines.extend(table.keys.iter().map(key));
    lines.extend(json_check(table));
    let body = lines.join(",\n    ");
    format!("CREATE TABLE IF NOT EXISTS `{name}` (\n    {body}\n) {TABLE_OPTIONS};")
}

/// The steps as this dialect takes them, one statement each at most.
pub fn expand(step: Step) -> Vec<Step> {
    vec![step]
}

/// The statement of a step; `None` for one that has none.
///
/// An algorithm is named where no server of the dialect has to copy the table, so that one which would copy all the
/// same refuses instead.
pub fn statement(step: &Step) -> Option<String> {
    let change = match step {
        Step::CreateTable(table) => return Some(create_table(table)),
        Step::DropTable(table) => return Some(format!("DROP TABLE IF EXISTS `{table}`;")),
        Step::Fill { .. } => return None,
        Step::DropKey { key, .. } => format!("DROP KEY `{key}`"),
        Step::DropColumn { column, .. } => format!("DROP COLUMN `{column}`"),
        Step::RenameColumn { from, to, .. } => format!("RENAME COLUMN `{from}` TO `{to}`"),
        Step::ChangeColumn { column, .. } => format!("MODIFY COLUMN {}", self::column(column)),
        Step::AddColumn { column, after, .. } => {
            let place = after
                .as_ref()
                .map_or("FIRST".to_owned(), |name| format!("AFTER `{name}`"));
            format!("ADD COLUMN {} {place}", self::column(column))
        }
        Step::RenameKey { from, key, .. } => format!("RENAME KEY `{from}` TO `{}`", key.name),
        Step::AddKey { key, .. } => format!("ADD {}", self::key(key)),
    };
    let clause = online::clause(step).map_or_else(String::new, |clause| format!(", {clause}"));
    Some(format!("ALTER TABLE `{}` {change}{clause};", step.table()))
}

fn column(column: &TableColumn) -> String {
    let name = &column.name;
    let ty = column_type(column.ty);
    let null = if column.required { " NOT NULL" } else { "" };
    let rest = match column.ty {
        StorageType::RowId => " AUTO_INCREMENT".to_owned(),
        StorageType::Json | StorageType::Sql(_) | StorageType::Bytes | StorageType::Hash => String::new(),
    };
    format!("`{name}` {ty}{null}{rest}")
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

fn primary_key(columns: &[ColumnName]) -> String {
    format!("PRIMARY KEY ({})", quoted_list(columns))
}

fn key(key: &TableKey) -> String {
    let unique = if key.unique { "UNIQUE " } else { "" };
    format!("{unique}KEY `{}` ({})", key.name, quoted_list(&key.columns))
}

/// The type's name.
pub fn column_type(ty: StorageType) -> String {
    match ty {
        StorageType::Sql(sql) => sql_type(sql),
        StorageType::Bytes => "LONGBLOB".to_owned(),
        StorageType::Hash => "BINARY(32)".to_owned(),
        // Not JSON: MySQL's JSON type re-orders keys and rounds numbers, and the text is kept to the byte.
        StorageType::Json => "LONGTEXT".to_owned(),
        StorageType::RowId => "BIGINT".to_owned(),
    }
}

/// The type as the servers' catalogue tells it, without display widths.
pub fn told(ty: StorageType) -> String {
    match ty {
        StorageType::Sql(SqlType::Boolean) => "tinyint(1)".to_owned(),
        other => column_type(other).to_lowercase().replace(", ", ","),
    }
}

/// The type that the catalogue tells of; `None` for one that crds.toml has no word for.
pub fn parse_told(told: &str) -> Option<SqlType> {
    match told {
        "tinyint(1)" => Some(SqlType::Boolean),
        other => SqlType::parse(other),
    }
}

/// The statement that makes all texts of a table compare as ours do.
pub fn collate(table: &str) -> Option<String> {
    COLLATION.map(|collation| format!("ALTER TABLE `{table}` CONVERT TO CHARACTER SET utf8mb4 COLLATE {collation};"))
}

/// The words of crds.toml are MySQL's own.
fn sql_type(sql: SqlType) -> String {
    sql.to_string()
}

fn quoted_list(columns: &[ColumnName]) -> String {
    let quoted: Vec<String> = columns.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
