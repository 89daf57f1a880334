//! The names of types, and how texts compare.

use crate::dialect::StorageType;
use crate::model::SqlType;

/// Names, keys and values compare by code point: Kubernetes tells `a` from `A`, and an index over them must too.
pub(super) const COLLATION: Option<&str> = Some("utf8mb4_bin");

/// The type's name, and the constraint of a column that is never NULL.
pub(super) fn column_type(ty: StorageType, required: bool) -> String {
    let null = if required { " NOT NULL" } else { "" };
    format!("{}{null}", name(ty))
}

fn name(ty: StorageType) -> String {
    match ty {
        StorageType::Sql(sql) => sql_type(sql),
        StorageType::Version => sql_type(SqlType::BigIntUnsigned),
        StorageType::Bytes => "LONGBLOB".to_owned(),
        StorageType::Hash => "BINARY(32)".to_owned(),
        // Not JSON: MySQL's JSON type re-orders keys and rounds numbers, and the text is kept to the byte.
        StorageType::Json => "LONGTEXT".to_owned(),
        StorageType::RowId => "BIGINT".to_owned(),
    }
}

/// The type as the servers' catalog tells it, without display widths.
pub(super) fn catalog_type(ty: StorageType) -> String {
    match ty {
        StorageType::Sql(SqlType::Boolean) => "tinyint(1)".to_owned(),
        other => name(other).to_lowercase().replace(", ", ","),
    }
}

/// The type that the catalog tells of; `None` for one that crds.toml has no word for.
pub(super) fn parse_catalog_type(catalog_type: &str) -> Option<SqlType> {
    match catalog_type {
        "tinyint(1)" => Some(SqlType::Boolean),
        other => SqlType::parse(other),
    }
}

/// The statement that makes all texts of a table compare as ours do.
pub(super) fn collate(table: &str) -> Option<String> {
    COLLATION.map(|collation| format!("ALTER TABLE `{table}` CONVERT TO CHARACTER SET utf8mb4 COLLATE {collation};"))
}

/// The words of crds.toml are MySQL's own.
fn sql_type(sql: SqlType) -> String {
    sql.to_string()
}
