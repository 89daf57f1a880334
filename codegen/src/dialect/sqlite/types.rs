//! The names of types, and how texts compare.

use crate::dialect::StorageType;
use crate::model::SqlType;

/// Texts compare by their bytes; tables have no say in it.
pub(super) const COLLATION: Option<&str> = None;

/// The type's name, and the constraint of a column that is never NULL.
pub(super) fn column_type(ty: StorageType, required: bool) -> String {
    let null = if required { " NOT NULL" } else { "" };
    format!("{}{null}", name(ty))
}

fn name(ty: StorageType) -> String {
    match ty {
        StorageType::Sql(sql) => sql_type(sql).to_owned(),
        StorageType::Bytes | StorageType::Hash => "BLOB".to_owned(),
        StorageType::Json => "TEXT".to_owned(),
        StorageType::RowId | StorageType::Version => "INTEGER".to_owned(),
    }
}

/// The type as the catalog spells it, in small letters.
pub(super) fn catalog_type(ty: StorageType) -> String {
    name(ty).to_lowercase()
}

/// `None`: a word of SQLite's stands for several types of crds.toml.
pub(super) fn parse_catalog_type(_catalog_type: &str) -> Option<SqlType> {
    None
}

/// No statement is needed.
pub(super) fn collate(_table: &str) -> Option<String> {
    None
}

/// STRICT tables know few types. Times are text that sorts as time; a decimal is kept as the number that comes. An
/// unsigned number that no INTEGER holds is kept as text, which sorts behind all numbers.
fn sql_type(sql: SqlType) -> &'static str {
    match sql {
        SqlType::VarChar(_) | SqlType::Text | SqlType::MediumText | SqlType::LongText => "TEXT",
        SqlType::DateTime(_) | SqlType::Date => "TEXT",
        SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::Boolean => "INTEGER",
        SqlType::BigInt => "INTEGER",
        SqlType::Double => "REAL",
        SqlType::BigIntUnsigned | SqlType::Decimal(_, _) => "ANY",
    }
}
