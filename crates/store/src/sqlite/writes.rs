//! Writing rows as SQLite wants it.

use kindex_model::kind::Column;

use crate::dialect::{WalkedKey, WriteSql, marks};
use crate::sqlite::notation::SqliteSpelling;

impl WriteSql for SqliteSpelling {
    fn on_conflict(&self, key: &str) -> String {
        format!(" ON CONFLICT ({key}) DO UPDATE SET ")
    }

    fn on_any_conflict(&self) -> &'static str {
        " ON CONFLICT DO UPDATE SET "
    }

    fn inserted(&self, column: &str) -> String {
        format!("excluded.[{column}]")
    }

    fn or_leave(&self, _column: &str, key: &str) -> String {
        format!(" ON CONFLICT ({key}) DO NOTHING")
    }

    fn insert_or_leave(&self) -> (&'static str, &'static str) {
        ("INSERT INTO", " ON CONFLICT DO NOTHING")
    }

    fn delete_from(&self, table: &str, _key: WalkedKey<'_>) -> String {
        format!("DELETE FROM [{table}]")
    }

    fn update_many(&self, table: &str, columns: &[&Column], rows: usize) -> String {
        let row = format!("({})", marks("?", columns.len() + 2));
        let set = columns.iter().enumerate();
        let set: Vec<String> = set
            .map(|(at, column)| format!("[{}] = [new].[column{}]", column.name, at + 3))
            .collect();
        format!(
            "UPDATE [{table}] SET {} FROM (VALUES {}) AS [new] WHERE [{table}].[seq] = [new].[column1] \
             AND [{table}].[res_version] = [new].[column2]",
            set.join(", "),
            marks(&row, rows)
        )
    }

    fn moment_after(&self, _column: &str, _otherwise: &str) -> Option<String> {
        None
    }
}
