//! The two sides of a plan: what a database looks like, and what a declaration wants it to look like. Where the first
//! was read, from the lock or from a server, is not known here.

use std::collections::BTreeMap;

use crate::dialect::{self, Form, StorageType, Table, TableKey};
use crate::lock::Structure;
use crate::model::{ColumnName, ColumnType, Key, KeyName, Kind, SqlType, TableName};

/// Tables as they are. Only what can change is in here: no order of columns, no primary keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// By name.
    pub tables: BTreeMap<TableName, Existing>,
}

/// A table that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Existing {
    /// By name.
    pub columns: BTreeMap<ColumnName, ExistingColumn>,
    /// By name, without the primary key.
    pub keys: BTreeMap<KeyName, ExistingKey>,
}

/// A key that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingKey {
    /// In key order.
    pub columns: Vec<ColumnName>,
    /// Whether no two rows may have the same values.
    pub unique: bool,
}

/// A column that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingColumn {
    /// Its type.
    pub form: Form,
    /// Whether it is NOT NULL.
    pub required: bool,
    /// The JSON path that its values were read from, where that is known: a server does not tell.
    pub path: Option<String>,
    /// Whether it has NULL for unsigned numbers from 2^63 on, as columns of earlier releases have.
    pub is_narrow: bool,
}

/// The tables that a schema is to have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DesiredSchema {
    /// In order of creation.
    pub tables: Vec<Table>,
    /// What is known of extracted columns besides, by table.
    pub extracted: BTreeMap<TableName, BTreeMap<ColumnName, Extracted>>,
}

/// Where an extracted column comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// JSON path, dotted.
    pub path: String,
    /// The name that the column had before, as declared.
    pub was: Option<ColumnName>,
    /// Whether its values are unsigned numbers up to 2^64 - 1.
    pub is_unsigned: bool,
}

impl Schema {
    /// What the migrations planned so far lead to.
    pub fn of(structure: &Structure) -> Self {
        let mut schema = Self::default();
        for locked in structure.kinds.values() {
            let main = &locked.table;
            let columns = structure.columns.get(main).into_iter().flatten();
            let extracted = columns.clone().map(|(name, column)| (name.clone(), column.sql));
            let keys = structure.keys.get(main).into_iter().flatten();
            let keys = keys.map(|(name, columns)| Key {
                name: name.clone(),
                columns: columns.clone(),
            });
            let history = structure.histories.contains(main);
            for table in dialect::tables(main, extracted, keys.collect(), history) {
                schema.tables.insert(table.name.clone(), Existing::of(table));
            }
            let main = schema.tables.get_mut(main).expect("inserted above");
            for (name, column) in columns {
                let existing = main.columns.get_mut(name).expect("an extracted column of the table");
                existing.path = Some(column.path.clone());
                existing.is_narrow = !structure.unsigned.contains(&(locked.table.clone(), name.clone()));
                if existing.is_narrow && column.sql == SqlType::BigIntUnsigned {
                    // It was made in the type that resource versions have.
                    existing.form = Form::Ours(StorageType::Version);
                }
            }
        }
        schema
    }
}

impl Existing {
    /// A table that was made as wanted.
    pub fn of(table: Table) -> Self {
        let columns = table.columns.into_iter().map(|column| {
            let existing = ExistingColumn {
                form: Form::Ours(column.ty),
                required: column.required,
                path: None,
                is_narrow: false,
            };
            (column.name, existing)
        });
        Self {
            columns: columns.collect(),
            keys: table.keys.into_iter().map(ExistingKey::named).collect(),
        }
    }
}

impl ExistingKey {
    fn named(key: TableKey) -> (KeyName, Self) {
        let TableKey { name, columns, unique } = key;
        (name, Self { columns, unique })
    }
}

impl DesiredSchema {
    /// What these kinds want. Kindex's own tables are not among them: they are the program's, which creates them.
    pub fn of(kinds: &[Kind]) -> Self {
        let mut desired = Self::default();
        for kind in kinds {
            desired.tables.extend(dialect::kind_tables(kind));
            let extracted = kind.columns.iter().map(|column| {
                let extracted = Extracted {
                    path: column.path.json_dotted(),
                    was: column.was.clone(),
                    is_unsigned: column.ty == ColumnType::UInt64,
                };
                (column.name.clone(), extracted)
            });
            desired.extracted.insert(kind.table.clone(), extracted.collect());
        }
        desired
    }

    /// Where the column comes from, if it is an extracted one.
    pub fn extracted(&self, table: &TableName, column: &ColumnName) -> Option<&Extracted> {
        self.extracted.get(table)?.get(column)
    }
}
