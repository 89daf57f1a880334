//! The SQL text of migrations beside their own: the table that remembers them, what is there
//! already, and the filling of columns.

use kindex_model::kind::{Column, Kind};

use crate::dialect::Spelling;
use crate::driver::Statement;
use crate::migration::script::Effect;
use crate::statements::{cells, fixed, kept, once, quoted};

/// All remembered migrations in order.
pub(super) fn applied() -> Statement {
    fixed(
        "SELECT [number], [name], [checksum], [compatible], [steps_done], [fill_after], \
         [finish_time] IS NOT NULL FROM [kindex_migrations] ORDER BY [number]",
    )
}

/// Remembers that one has begun; leaves it alone where it is there. Parameters: number, name,
/// checksum, compatible, steps done, now, time of its end.
pub(super) fn begin(spelling: &'static dyn Spelling) -> Statement {
    once(format!(
        "INSERT INTO [kindex_migrations] ([number], [name], [checksum], [compatible], [steps_done], \
             [begin_time], [finish_time]) VALUES (?, ?, ?, ?, ?, ?, ?){}",
        spelling.or_leave("number", "[number]")
    ))
}

/// Never takes back what somebody else noted. Parameters: steps done, number, steps done.
pub(super) fn step_done() -> Statement {
    fixed(
        "UPDATE [kindex_migrations] SET [steps_done] = ?, [fill_after] = NULL WHERE [number] = ? AND [steps_done] < ?",
    )
}

/// A row where so many steps are done. Parameters: number, steps done.
pub(super) fn is_step_done() -> Statement {
    fixed("SELECT 1 FROM [kindex_migrations] WHERE [number] = ? AND [steps_done] >= ?")
}

/// Parameters: place, number.
pub(super) fn filled_up_to() -> Statement {
    fixed("UPDATE [kindex_migrations] SET [fill_after] = ? WHERE [number] = ?")
}

/// Parameters: now, number.
pub(super) fn finish() -> Statement {
    fixed("UPDATE [kindex_migrations] SET [finish_time] = ? WHERE [number] = ?")
}

/// A statement of a migration.
pub(super) fn step(text: &str) -> Statement {
    Statement::of_engine(text)
}

/// Whether what a step changes is there, as a row or none, with the parameters; `None` where
/// nothing can tell whether the step has run.
pub(super) fn presence<'a>(spelling: &'static dyn Spelling, effect: &Effect<'a>) -> Option<(Statement, Vec<&'a str>)> {
    Some(match effect {
        Effect::Table { name, .. } => (fixed(spelling.has_table()), vec![name]),
        Effect::Column { table, name, .. } => (fixed(spelling.has_column()), vec![table, name]),
        Effect::Key { table, name, .. } => (fixed(spelling.has_key()), vec![table, name]),
        Effect::Renamed { table, to } => (fixed(spelling.has_column()), vec![table, to]),
        Effect::Changed { .. } => return None,
    })
}

/// A page of rows with what some columns hold. Parameters: place, rows.
pub(super) fn fill_page(spelling: &'static dyn Spelling, kind: &Kind, columns: &[&Column]) -> Statement {
    kept(format!(
        "SELECT [seq], [res_version], [json]{} FROM [{}] WHERE [seq] > ? ORDER BY [seq] LIMIT ?",
        cells(spelling, columns.iter().copied()),
        kind.table
    ))
}

/// Sets columns of so many rows that still have the version that was read. Parameters of each:
/// place, version, values.
pub(super) fn fill(spelling: &'static dyn Spelling, kind: &Kind, columns: &[&Column], rows: usize) -> Statement {
    once(spelling.update_many(kind.table, columns, rows))
}

/// How many rows a table has, for the progress bar.
pub(super) fn count(table: &str) -> Statement {
    once(format!("SELECT COUNT(*) FROM {}", quoted(&[table])))
}
