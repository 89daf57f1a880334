//! One change of a database's tables, without a dialect: what the planner decides, a dialect spells and a migration
//! file names. Why it is wanted and whether it is wise is not known here.

use std::fmt;

use super::table::{StorageType, Table, TableColumn, TableKey};
use crate::model::{ColumnName, KeyName, TableName};

/// A change that a runner can find done or not done in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The table with its columns and keys is there.
    CreateTable(Table),
    /// The table is gone, and all that it held.
    DropTable(TableName),
    /// The key is gone.
    DropKey {
        /// Of this table.
        table: TableName,
        /// Its name.
        key: KeyName,
    },
    /// The column is gone.
    DropColumn {
        /// Of this table.
        table: TableName,
        /// Its name.
        column: ColumnName,
    },
    /// The column has another name, and its values.
    RenameColumn {
        /// Of this table.
        table: TableName,
        /// The name it had.
        from: ColumnName,
        /// The name it has.
        to: ColumnName,
    },
    /// The column has another type, and its values.
    ChangeColumn {
        /// Of this table.
        table: TableName,
        /// As it becomes.
        column: TableColumn,
        /// As it was.
        from: Form,
        /// The keys over it: a dialect that makes the column anew makes them anew too.
        keys: Vec<TableKey>,
    },
    /// The column is there, empty.
    AddColumn {
        /// Of this table.
        table: TableName,
        /// As it becomes.
        column: TableColumn,
        /// The column that it stands behind; `None` for the first one.
        after: Option<ColumnName>,
    },
    /// The key has another name.
    RenameKey {
        /// Of this table.
        table: TableName,
        /// The name it had.
        from: KeyName,
        /// As it becomes.
        key: TableKey,
    },
    /// The key is there.
    AddKey {
        /// Of this table.
        table: TableName,
        /// As it becomes.
        key: TableKey,
    },
    /// The columns of every row hold what the row's `json` says.
    Fill {
        /// Of this table.
        table: TableName,
        /// At least one.
        columns: Vec<Filled>,
    },
}

/// What a step does, in the word that a migration file has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Of a table.
    CreateTable,
    /// Of a table.
    DropTable,
    /// Of a key.
    DropKey,
    /// Of a column.
    DropColumn,
    /// Of a column.
    RenameColumn,
    /// Of a column's type.
    ChangeColumn,
    /// Of a column.
    AddColumn,
    /// Of a key.
    RenameKey,
    /// Of a key.
    AddKey,
    /// Of columns, from each row's object.
    Fill,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::CreateTable,
        Self::DropTable,
        Self::DropKey,
        Self::DropColumn,
        Self::RenameColumn,
        Self::ChangeColumn,
        Self::AddColumn,
        Self::RenameKey,
        Self::AddKey,
        Self::Fill,
    ];

    /// `add-column`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreateTable => "create-table",
            Self::DropTable => "drop-table",
            Self::DropKey => "drop-key",
            Self::DropColumn => "drop-column",
            Self::RenameColumn => "rename-column",
            Self::ChangeColumn => "change-column",
            Self::AddColumn => "add-column",
            Self::RenameKey => "rename-key",
            Self::AddKey => "add-key",
            Self::Fill => "fill",
        }
    }

    /// The verb with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == word)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A column that is filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    /// Its name.
    pub column: ColumnName,
    /// JSON path, dotted.
    pub path: String,
    /// The path that it was read from before, where that was another one.
    pub moved_from: Option<String>,
}

/// The type of a column that is there: one of ours, or one that a server tells of a table that others made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// A type of the storage contract.
    Ours(StorageType),
    /// The engine's own word for another one.
    Foreign(String),
}

impl Step {
    /// The table that changes.
    pub const fn table(&self) -> &TableName {
        match self {
            Self::CreateTable(table) => &table.name,
            Self::DropTable(table)
            | Self::DropKey { table, .. }
            | Self::DropColumn { table, .. }
            | Self::RenameColumn { table, .. }
            | Self::ChangeColumn { table, .. }
            | Self::AddColumn { table, .. }
            | Self::RenameKey { table, .. }
            | Self::AddKey { table, .. }
            | Self::Fill { table, .. } => table,
        }
    }

    /// What is done.
    pub const fn verb(&self) -> Verb {
        match self {
            Self::CreateTable(_) => Verb::CreateTable,
            Self::DropTable(_) => Verb::DropTable,
            Self::DropKey { .. } => Verb::DropKey,
            Self::DropColumn { .. } => Verb::DropColumn,
            Self::RenameColumn { .. } => Verb::RenameColumn,
            Self::ChangeColumn { .. } => Verb::ChangeColumn,
            Self::AddColumn { .. } => Verb::AddColumn,
            Self::RenameKey { .. } => Verb::RenameKey,
            Self::AddKey { .. } => Verb::AddKey,
            Self::Fill { .. } => Verb::Fill,
        }
    }

    /// What of the table it is done to, in the words of a migration file: `budget`, `budget limit`, `budget,owner`.
    pub fn object(&self) -> String {
        match self {
            Self::CreateTable(_) | Self::DropTable(_) => String::new(),
            Self::DropKey { key, .. } => key.to_string(),
            Self::DropColumn { column, .. } => column.to_string(),
            Self::RenameColumn { from, to, .. } => format!("{from} {to}"),
            Self::ChangeColumn { column, .. } | Self::AddColumn { column, .. } => column.name.to_string(),
            Self::RenameKey { from, key, .. } => format!("{from} {}", key.name),
            Self::AddKey { key, .. } => key.name.to_string(),
            Self::Fill { columns, .. } => {
                let columns: Vec<&str> = columns.iter().map(|filled| filled.column.as_str()).collect();
                columns.join(",")
            }
        }
    }

    /// What a person wants to know of it besides: types as a dialect spells them, columns, paths.
    pub fn detail(&self, spell: impl Fn(StorageType, bool) -> String) -> String {
        match self {
            Self::CreateTable(table) => {
                let count = |count: usize, what: &str| match count {
                    1 => format!("1 {what}"),
                    count => format!("{count} {what}s"),
                };
                let (columns, keys) = (table.columns.len(), table.keys.len());
                format!("{}, {}", count(columns, "column"), count(keys, "key"))
            }
            Self::DropTable(_)
            | Self::DropKey { .. }
            | Self::DropColumn { .. }
            | Self::RenameColumn { .. }
            | Self::RenameKey { .. } => String::new(),
            Self::ChangeColumn { column, from, .. } => {
                let from = match from {
                    Form::Ours(ty) => spell(*ty, false),
                    Form::Foreign(word) => word.clone(),
                };
                match spell(column.ty, column.required) {
                    to if to == from => format!("{to}, for numbers from 2^63 on"),
                    to => format!("{from} → {to}"),
                }
            }
            Self::AddColumn { column, after, .. } => {
                let after = after
                    .as_ref()
                    .map_or("first".to_owned(), |after| format!("after {after}"));
                format!("{}, {after}", spell(column.ty, false))
            }
            Self::AddKey { key, .. } => {
                let columns: Vec<&str> = key.columns.iter().map(ColumnName::as_str).collect();
                format!("on {}", columns.join(", "))
            }
            Self::Fill { columns, .. } => {
                let columns: Vec<String> = columns.iter().map(Filled::to_string).collect();
                columns.join("; ")
            }
        }
    }

    /// Whether programs that do not know the step go on writing what is right: they name no table, column or key that
    /// is gone, and put nothing into a column that means something else now.
    pub fn is_additive(&self) -> bool {
        match self {
            Self::CreateTable(_)
            | Self::DropKey { .. }
            | Self::ChangeColumn { .. }
            | Self::AddColumn { .. }
            | Self::RenameKey { .. }
            | Self::AddKey { .. } => true,
            Self::Fill { columns, .. } => columns.iter().all(|filled| filled.moved_from.is_none()),
            Self::DropTable(_) | Self::DropColumn { .. } | Self::RenameColumn { .. } => false,
        }
    }
}

impl fmt::Display for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.moved_from {
            Some(before) => write!(f, "{}, before {before}", self.path),
            None => f.write_str(&self.path),
        }
    }
}

impl fmt::Display for Step {
    /// The words of a migration file: `add-column model budget`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb(), self.table())?;
        match self.object().as_str() {
            "" => Ok(()),
            object => write!(f, " {object}"),
        }
    }
}
