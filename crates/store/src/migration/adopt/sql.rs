//! The SQL text of taking up rows of another program.

use kindex_model::kind::Kind;

use crate::dialect::Spelling;
use crate::driver::Statement;
use crate::statements::{cells, fixed, once, quoted};

/// Another adoption begins. Parameter: now.
pub(super) fn begin_again() -> Statement {
    fixed(
        "UPDATE [kindex_migrations] SET [steps_done] = 0, [fill_after] = NULL, [finish_time] = NULL, \
         [begin_time] = ? WHERE [number] = 0 AND [finish_time] IS NOT NULL",
    )
}

/// A page of rows: place, version, text, message, hash, deleted, archived, extracted columns. Parameters:
/// place, rows.
pub(super) fn page(spelling: &'static dyn Spelling, kind: &Kind) -> Statement {
    once(format!(
        "SELECT [seq], [res_version], [json], [proto], [content_hash], [delete_time] IS NOT NULL, \
         [evicted_time] IS NOT NULL{} FROM [{}] WHERE [seq] > ? ORDER BY [seq] LIMIT ?",
        cells(spelling, kind.columns.iter()),
        kind.table
    ))
}

/// What a row gets. Parameters: message or NULL, hash or NULL, whether it is archived, extracted
/// columns, place, version.
pub(super) fn take_up(kind: &Kind) -> Statement {
    let columns = kind.columns.iter().map(|column| format!(", [{}] = ?", column.name));
    once(format!(
        "UPDATE [{}] SET [proto] = COALESCE(?, [proto]), [content_hash] = COALESCE(?, [content_hash]), \
         [evicted_time] = CASE WHEN ? THEN COALESCE([update_time], [create_time]) ELSE [evicted_time] END{} \
         WHERE [seq] = ? AND [res_version] = ?",
        kind.table,
        columns.collect::<String>()
    ))
}

/// How many rows a table has.
pub(super) fn count(table: &str) -> Statement {
    once(format!("SELECT COUNT(*) FROM {}", quoted(&[table])))
}
