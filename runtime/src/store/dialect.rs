//! Where the engines' SQL differs, one small method for each difference. Knows no
//! table and no driver.

use std::fmt::Write as _;

/// The differences between the engines, as far as text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL and MariaDB.
    MySql,
    /// SQLite.
    Sqlite,
}

impl Dialect {
    /// Selects a time so that [`super::driver::parse_time`] reads it.
    pub(super) fn time_text(self, column: &str) -> String {
        self.time_cell(&format!("`{column}`"))
    }

    /// As [`time_text`](Self::time_text), of a column that is already quoted.
    pub(super) fn time_cell(self, column: &str) -> String {
        match self {
            Self::MySql => format!("CAST({column} AS CHAR)"),
            Self::Sqlite => column.to_owned(),
        }
    }

    /// Ends a select whose rows no other writer may change before the transaction ends.
    /// A writing transaction of SQLite is alone from its start.
    pub(super) fn lock(self) -> &'static str {
        match self {
            Self::MySql => " FOR UPDATE",
            Self::Sqlite => "",
        }
    }

    /// A column has no value. Without statistics SQLite takes a key on a column that is NULL in nearly
    /// every row for a selective one; the sign keeps it from looking.
    /// <https://sqlite.org/optoverview.html>
    pub(super) fn is_null(self, column: &str) -> String {
        match self {
            Self::MySql => format!("`{column}` IS NULL"),
            Self::Sqlite => format!("+`{column}` IS NULL"),
        }
    }

    /// Names the key to walk. Without it InnoDB reads a small table from end to end, and
    /// waits for every row that another writer holds.
    pub(super) fn walk(self, key: &str) -> String {
        match self {
            Self::MySql => format!(" FORCE INDEX (`{key}`)"),
            Self::Sqlite => String::new(),
        }
    }

    /// Between an insert's rows and the assignments that replace a row with the same key.
    pub(super) fn on_conflict(self, key: &str) -> String {
        match self {
            Self::MySql => " ON DUPLICATE KEY UPDATE ".to_owned(),
            Self::Sqlite => format!(" ON CONFLICT ({key}) DO UPDATE SET "),
        }
    }

    /// Ends an insert that leaves rows as they are whose key is there already.
    pub(super) fn or_leave(self, column: &str, key: &str) -> String {
        match self {
            Self::MySql => format!(" ON DUPLICATE KEY UPDATE `{column}` = `{column}`"),
            Self::Sqlite => format!(" ON CONFLICT ({key}) DO NOTHING"),
        }
    }

    /// The value that the insert came with. MySQL prefers a row alias since 8.0.20, which
    /// MariaDB does not know; both know this.
    pub(super) fn inserted(self, column: &str) -> String {
        match self {
            Self::MySql => format!("VALUES(`{column}`)"),
            Self::Sqlite => format!("excluded.`{column}`"),
        }
    }

    /// `(a, b)` is one of so many pairs.
    pub(super) fn pair_in(self, a: &str, b: &str, pairs: usize) -> String {
        let values = marks("(?,?)", pairs);
        match self {
            Self::MySql => format!("(`{a}`, `{b}`) IN ({values})"),
            Self::Sqlite => format!("(`{a}`, `{b}`) IN (VALUES {values})"),
        }
    }

    /// Deletes by a key that is named, as [`Dialect::walk`] says.
    pub(super) fn delete_from(self, table: &str, key: &str) -> String {
        match self {
            Self::MySql => format!("DELETE `{table}` FROM `{table}`{}", self.walk(key)),
            Self::Sqlite => format!("DELETE FROM `{table}`"),
        }
    }
}

/// A mark so many times, with commas between.
pub(super) fn marks(mark: &str, times: usize) -> String {
    let mut text = String::with_capacity((mark.len() + 1) * times);
    for index in 0..times {
        let comma = if index == 0 { "" } else { "," };
        write!(text, "{comma}{mark}").expect("a string takes any text");
    }
    text
}
