//! The SQL text of the outbox. Values are parameters; executes nothing.

use crate::dialect::Spelling;
use crate::driver::Statement;
use crate::statements::text::{fixed, kept};

/// Position and stamp of the newest mark. Parameter: kind.
pub(crate) fn head() -> Statement {
    fixed("SELECT [position], [stamp] FROM [kindex_outbox_mark] WHERE [kind] = ? ORDER BY [position] DESC LIMIT 1")
}

/// The mark at a position, and the newest one. Parameters: kind, position, kind.
pub(crate) fn known() -> Statement {
    fixed(
        "SELECT [position], [stamp] FROM [kindex_outbox_mark] WHERE [kind] = ? AND [position] = ? \
         UNION ALL SELECT [position], [stamp] FROM (SELECT [position], [stamp] FROM [kindex_outbox_mark] \
         WHERE [kind] = ? ORDER BY [position] DESC LIMIT 1) AS [newest]",
    )
}

/// The last mark after one position and up to another. Parameters: kind, both.
pub(crate) fn last_between() -> Statement {
    fixed(
        "SELECT [position], [stamp] FROM [kindex_outbox_mark] WHERE [kind] = ? AND [position] > ? AND [position] <= ? \
         ORDER BY [position] DESC LIMIT 1",
    )
}

/// Entries in order. Parameters: kind, the position after which to begin, the last one, the limit.
pub(crate) fn since(spelling: &'static dyn Spelling) -> Statement {
    kept(format!(
        "{} WHERE [kind] = ? AND [position] > ? AND [position] <= ? ORDER BY [position] LIMIT ?",
        entries(spelling),
    ))
}

/// The same in order of uid. Parameters: kind, the uid after which to begin, the limit.
pub(crate) fn replay(spelling: &'static dyn Spelling) -> Statement {
    kept(format!(
        "{} WHERE [kind] = ? AND [uid] > ? ORDER BY [uid] LIMIT ?",
        entries(spelling),
    ))
}

fn entries(spelling: &'static dyn Spelling) -> String {
    format!(
        "SELECT [uid], [namespace], [name], [position], {}, {} FROM [kindex_outbox]",
        spelling.time_text("deletion_timestamp"),
        spelling.time_text("erase_time"),
    )
}
