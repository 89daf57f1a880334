//! Writing rows as MySQL wants it.

use kindex_model::kind::{Column, ColumnType};

use crate::dialect::{ReadSql as _, WalkedKey, WriteSql};
use crate::mysql::notation::MySqlSpelling;

impl WriteSql for MySqlSpelling {
    fn on_conflict(&self, _key: &str) -> String {
        " ON DUPLICATE KEY UPDATE ".to_owned()
    }

    fn on_any_conflict(&self) -> &'static str {
        " ON DUPLICATE KEY UPDATE "
    }

    /// MySQL prefers a row alias since 8.0.20, which MariaDB does not know; both know this.
    fn inserted(&self, column: &str) -> String {
        format!("VALUES([{column}])")
    }

    fn or_leave(&self, column: &str, _key: &str) -> String {
        format!(" ON DUPLICATE KEY UPDATE [{column}] = [{column}]")
    }

    /// [`or_leave`](Self::or_leave) counts the row that it leaves.
    fn insert_or_leave(&self) -> (&'static str, &'static str) {
        ("INSERT IGNORE INTO", "")
    }

    fn delete_from(&self, table: &str, key: WalkedKey<'_>) -> String {
        format!("DELETE [{table}] FROM [{table}]{}", self.walk(key))
    }

    fn update_many(&self, table: &str, columns: &[&Column], rows: usize) -> String {
        let cells = columns.iter().enumerate();
        let cells: Vec<String> = cells
            .map(|(at, column)| format!(", CAST(? AS {}) AS [c{at}]", cast(column.ty)))
            .collect();
        let row = format!(
            "SELECT CAST(? AS SIGNED) AS [seq], CAST(? AS UNSIGNED) AS [version]{}",
            cells.concat()
        );
        let set = columns.iter().enumerate();
        let set: Vec<String> = set
            .map(|(at, column)| format!("[{table}].[{}] = [new].[c{at}]", column.name))
            .collect();
        format!(
            "UPDATE [{table}] JOIN ({}) AS [new] ON [{table}].[seq] = [new].[seq] \
             AND [{table}].[res_version] = [new].[version] SET {}",
            vec![row; rows].join(" UNION ALL "),
            set.join(", ")
        )
    }

    fn moment_after(&self, column: &str, otherwise: &str) -> Option<String> {
        Some(format!("COALESCE([{column}], [{otherwise}]) + INTERVAL 1 MICROSECOND"))
    }
}

/// What a parameter of a derived table is cast to, so that it has the column's type.
fn cast(ty: ColumnType) -> &'static str {
    match ty {
        ColumnType::Text { .. } => "CHAR",
        ColumnType::Int32 | ColumnType::Int64 | ColumnType::Bool => "SIGNED",
        ColumnType::UInt64 => "UNSIGNED",
        ColumnType::Double => "DOUBLE",
        ColumnType::Time => "DATETIME(6)",
    }
}
