//! Reading plans.

use sqlx::Row;
use sqlx::mysql::MySqlRow;

use crate::explained::{Access, PlanStep};

pub(super) fn step(row: &MySqlRow) -> Result<PlanStep, sqlx::Error> {
    let cell = |name: &str| row.try_get_unchecked::<Option<String>, _>(name);
    let (table, kind, key, extra) = (cell("table")?, cell("type")?, cell("key")?, cell("Extra")?);
    let rows: Option<u64> = row.try_get_unchecked("rows")?;
    let words = [
        table.clone(),
        kind.clone(),
        key.as_ref().map(|key| format!("key {key}")),
        rows.map(|rows| format!("about {rows} rows")),
        extra.clone().filter(|extra| !extra.is_empty()),
    ];
    Ok(PlanStep {
        access: match kind.as_deref() {
            Some("ALL") => Access::Scan,
            Some("index") => Access::Walk,
            Some("system") | None => Access::Other,
            Some(_) => Access::Search,
        },
        table,
        key,
        rows,
        sorts: extra.is_some_and(|extra| extra.contains("filesort")),
        text: words.into_iter().flatten().collect::<Vec<_>>().join(", "),
    })
}

/// What the server estimates for a part of [`ReadSql::entries`](crate::dialect::ReadSql::entries).
pub(super) fn entries(row: &MySqlRow) -> Result<u64, sqlx::Error> {
    step(row).map(|step| step.rows.unwrap_or(0))
}
