//! Reading rows as MySQL wants it.

use kindex_query::select::Direction;

use crate::dialect::{ReadSql, WalkedKey};
use crate::mysql::notation::MySqlSpelling;

impl ReadSql for MySqlSpelling {
    fn time(&self, column: &str) -> String {
        format!("CAST({column} AS CHAR)")
    }

    fn clock(&self) -> &'static str {
        "SELECT CAST(UTC_TIMESTAMP(6) AS CHAR)"
    }

    fn explain(&self) -> &'static str {
        "EXPLAIN FORMAT=TRADITIONAL"
    }

    /// Estimates.
    fn entries(&self, selects: &[String]) -> String {
        format!("{} {}", self.explain(), selects.join(" UNION ALL "))
    }

    fn lock(&self) -> &'static str {
        " FOR UPDATE"
    }

    /// Without it InnoDB reads a small table from end to end, and waits for every row that another writer holds.
    fn walk(&self, key: WalkedKey<'_>) -> String {
        let key = match key {
            WalkedKey::Primary => "PRIMARY",
            WalkedKey::Named(name) => name,
        };
        format!(" FORCE INDEX ([{key}])")
    }

    fn join_in_order(&self) -> &'static str {
        "STRAIGHT_JOIN"
    }

    /// It has statistics.
    fn unkeyed(&self, column: &str) -> String {
        column.to_owned()
    }

    /// An engine that may choose collects all rows of the key first, however many there are.
    fn exists(&self, present: bool) -> (&'static str, &'static str) {
        match present {
            true => ("(", " LIMIT 1) IS NOT NULL"),
            false => ("(", " LIMIT 1) IS NULL"),
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
