//! Tables without a dialect: columns, keys, and what a column holds. Which tables there are is not known here.

use crate::model::{ColumnName, KeyName, SqlType, TableName};

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: TableName,
    /// Its columns in order.
    pub columns: Vec<TableColumn>,
    /// The primary key, never empty.
    pub primary_key: Vec<ColumnName>,
    /// The other keys in order.
    pub keys: Vec<TableKey>,
}

/// A key beside the primary key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableKey {
    /// Its name.
    pub name: KeyName,
    /// The columns in key order, never empty.
    pub columns: Vec<ColumnName>,
    /// Whether no two rows may have the same values.
    pub unique: bool,
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name.
    pub name: ColumnName,
    /// What it holds.
    pub ty: StorageType,
    /// Whether it is NOT NULL.
    pub required: bool,
}

/// What a column of any table holds: the types that a person may choose for extracted columns, and those that only
/// Kindex's own columns have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageType {
    /// A type that extracted columns may have as well.
    Sql(SqlType),
    /// A resource version: an unsigned number of 64 bits, of which none uses the highest.
    Version,
    /// Any number of bytes.
    Bytes,
    /// 32 bytes.
    Hash,
    /// JSON text, kept to the byte and checked to be JSON.
    Json,
    /// A number that the engine assigns.
    RowId,
}

/// Tables that belong together, under one heading of the schema file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The kind's name, or what the tables are for.
    pub heading: String,
    /// One sentence or more; never empty.
    pub doc: String,
    /// The tables in order of creation.
    pub tables: Vec<Table>,
}

/// The `uid` of an object.
pub(super) const UID: StorageType = StorageType::Sql(SqlType::VarChar(64));
pub(super) const NAME: StorageType = StorageType::Sql(SqlType::VarChar(255));
pub(super) const RESOURCE_VERSION: StorageType = StorageType::Version;
pub(super) const TIME: StorageType = StorageType::Sql(SqlType::DateTime(6));

/// The name of a column that the storage contract has.
pub(super) fn fixed_name(name: &str) -> ColumnName {
    ColumnName::parse(name).expect("the storage contract's columns have valid names")
}
