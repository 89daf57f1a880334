//! Reading plans.

#[cfg(test)]
mod tests;

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::driver::Cells as _;
use crate::explained::{Access, PlanStep};

/// As in `SEARCH t USING INDEX key (column=?)`, `SCAN t` and `USE TEMP B-TREE FOR ORDER BY`. A sort of the
/// last terms alone puts those rows in order that are equal in the others, and `key` has in order.
pub(super) fn step(row: &SqliteRow) -> Result<PlanStep, sqlx::Error> {
    let text: String = row.try_get_unchecked("detail")?;
    let words: Vec<&str> = text.split(' ').collect();
    let after = |word: &str| {
        let at = words.iter().position(|found| *found == word)?;
        words.get(at + 1).map(|name| (*name).to_owned())
    };
    let key = after("INDEX");
    Ok(PlanStep {
        access: match words.first() {
            Some(&"SEARCH") => Access::Search,
            Some(&"SCAN") if key.is_some() => Access::Walk,
            Some(&"SCAN") => Access::Scan,
            Some(_) | None => Access::Other,
        },
        table: after("SEARCH").or_else(|| after("SCAN")),
        key,
        rows: None,
        sorts: text == "USE TEMP B-TREE FOR ORDER BY",
        text,
    })
}

/// What is counted for a part of [`ReadSql::entries`](crate::dialect::ReadSql::entries).
pub(super) fn entries(row: &SqliteRow) -> Result<u64, sqlx::Error> {
    row.int(0).map(i64::unsigned_abs)
}
