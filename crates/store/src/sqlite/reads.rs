//! Reading rows as SQLite wants it.

use kindex_query::select::Direction;

use crate::dialect::{ReadSql, WalkedKey};
use crate::sqlite::notation::SqliteSpelling;

/// Entries at which counting ends.
const COUNT_MAX: u32 = 5_000;

impl ReadSql for SqliteSpelling {
    fn time(&self, column: &str) -> String {
        column.to_owned()
    }

    fn clock(&self) -> &'static str {
        "SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')"
    }

    fn explain(&self) -> &'static str {
        "EXPLAIN QUERY PLAN"
    }

    /// Counts, and no further than to where a key is no longer rare.
    fn entries(&self, selects: &[String]) -> String {
        let counts = selects
            .iter()
            .map(|select| format!("SELECT COUNT(*) FROM ({select} LIMIT {COUNT_MAX})"));
        counts.collect::<Vec<_>>().join(" UNION ALL ")
    }

    /// A writing transaction is alone from its start.
    fn lock(&self) -> &'static str {
        ""
    }

    fn walk(&self, _key: WalkedKey<'_>) -> String {
        String::new()
    }

    fn join_in_order(&self) -> &'static str {
        "CROSS JOIN"
    }

    /// Without statistics a key on a column that is NULL in nearly every row passes for a selective one, and a whole
    /// table is walked for an order that a key has, in the hope of matching rows; the sign keeps it from both.
    /// <https://sqlite.org/optoverview.html>
    fn unkeyed(&self, column: &str) -> String {
        format!("+{column}")
    }

    fn exists(&self, present: bool) -> (&'static str, &'static str) {
        match present {
            true => ("EXISTS (", ")"),
            false => ("NOT EXISTS (", ")"),
        }
    }

    /// It takes NULL for the smallest value by itself.
    fn direction(&self, direction: Direction) -> &'static str {
        match direction {
            Direction::Ascending => "ASC",
            Direction::Descending => "DESC",
        }
    }
}
