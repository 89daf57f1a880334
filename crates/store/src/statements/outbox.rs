//! The SQL text of the outbox. Values are parameters; executes nothing.

use kindex_model::kind::Kind;

use crate::dialect::{Spelling, WalkedKey, marks};
use crate::driver::Statement;
use crate::statements::names::SEQ;
use crate::statements::text::{LIST_MAX, fixed, kept};

/// Marks that are looked at at once when old ones are dropped.
const MARKS_DROPPED: usize = 500;

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

/// Adds to the number of changes of a kind. Parameters: kind, how many.
pub(crate) fn advance(spelling: &'static dyn Spelling) -> Statement {
    let sum = format!("[kindex_outbox_counter].[position] + {}", spelling.inserted("position"));
    kept(format!(
        "INSERT INTO [kindex_outbox_counter] ([kind], [position]) VALUES (?, ?){}[position] = {sum}",
        spelling.on_conflict("[kind]"),
    ))
}

/// Parameter: kind.
pub(crate) fn position() -> Statement {
    fixed("SELECT [position] FROM [kindex_outbox_counter] WHERE [kind] = ?")
}

/// Replaces entries. A tombstone keeps the time since when its object was being deleted. Parameters: kind, uid,
/// position, namespace, name, deletion timestamp, erase time, a row after the other.
pub(crate) fn store(spelling: &'static dyn Spelling, rows: usize) -> Statement {
    let [deletion, erased] = ["deletion_timestamp", "erase_time"].map(|column| spelling.inserted(column));
    let replaced = ["position", "namespace", "name", "erase_time"];
    let replaced = replaced.map(|column| format!("[{column}] = {}", spelling.inserted(column)));
    kept(format!(
        "INSERT INTO [kindex_outbox] ([kind], [uid], [position], [namespace], [name], [deletion_timestamp], \
         [erase_time]) VALUES {}{}[deletion_timestamp] = CASE WHEN {erased} IS NULL THEN {deletion} \
         ELSE COALESCE([kindex_outbox].[deletion_timestamp], {deletion}) END, {}",
        marks("(?,?,?,?,?,?,?)", rows),
        spelling.on_conflict("[kind], [uid]"),
        replaced.join(", "),
    ))
}

/// Leaves a mark alone that is there. Parameters: kind, position, stamp, now.
pub(crate) fn mark(spelling: &'static dyn Spelling) -> Statement {
    kept(format!(
        "INSERT INTO [kindex_outbox_mark] ([kind], [position], [stamp], [mark_time]) VALUES (?, ?, ?, ?){}",
        spelling.or_leave("kind", "[kind], [position]"),
    ))
}

/// Position and time of the first marks, in order. Parameter: kind.
pub(crate) fn oldest_marks(spelling: &'static dyn Spelling) -> Statement {
    kept(format!(
        "SELECT [position], {} FROM [kindex_outbox_mark] WHERE [kind] = ? ORDER BY [position] LIMIT {MARKS_DROPPED}",
        spelling.time_text("mark_time"),
    ))
}

/// Parameters: kind, the last position whose mark goes.
pub(crate) fn drop_marks() -> Statement {
    fixed("DELETE FROM [kindex_outbox_mark] WHERE [kind] = ? AND [position] <= ?")
}

/// Uids of tombstones, the oldest first. Parameters: kind, the time before which their objects went, the last position.
pub(crate) fn old_tombstones() -> Statement {
    kept(format!(
        "SELECT [uid] FROM [kindex_outbox] WHERE [kind] = ? AND [erase_time] < ? AND [position] <= ? \
         ORDER BY [erase_time] LIMIT {LIST_MAX}",
    ))
}

/// Parameters: kind, padded uids.
pub(crate) fn drop_entries(spelling: &'static dyn Spelling, uids: usize) -> Statement {
    kept(format!(
        "{} WHERE [kind] = ? AND {}",
        spelling.delete_from("kindex_outbox", WalkedKey::Primary),
        spelling.value_in("[uid]", uids),
    ))
}

/// How far the entries of all kinds are filled: kind, the last row, and when they were complete.
pub(crate) fn fills(spelling: &'static dyn Spelling) -> Statement {
    kept(format!(
        "SELECT [kind], [fill_after], {} FROM [kindex_outbox_counter]",
        spelling.time_text("fill_time"),
    ))
}

/// Notes how far the entries of a kind are filled. Parameters: the last row, when they were complete, kind.
pub(crate) fn note_fill() -> Statement {
    fixed("UPDATE [kindex_outbox_counter] SET [fill_after] = ?, [fill_time] = ? WHERE [kind] = ?")
}

/// Uids of any entries. Parameter: kind.
pub(crate) fn some_entries() -> Statement {
    kept(format!(
        "SELECT [uid] FROM [kindex_outbox] WHERE [kind] = ? ORDER BY [uid] LIMIT {LIST_MAX}"
    ))
}

/// A page of objects that exist and have no entry: place, uid, namespace, name, the text of a live one, and since when
/// an archived one waits for the release of its references. Parameters: kind, kind, the place after which to begin, the
/// limit.
pub(crate) fn without_entry(spelling: &'static dyn Spelling, kind: &Kind) -> Statement {
    kept(format!(
        "SELECT [object].[{SEQ}], [object].[uid], [object].[namespace], [object].[name], \
         CASE WHEN [object].[evicted_time] IS NULL THEN [object].[json] END, {} FROM [{}] AS [object] \
         LEFT JOIN [kindex_tombstone] AS [waits] ON [waits].[kind] = ? AND [waits].[uid] = [object].[uid] \
         LEFT JOIN [kindex_outbox] AS [entry] ON [entry].[kind] = ? AND [entry].[uid] = [object].[uid] \
         WHERE [object].[{SEQ}] > ? AND [object].[delete_time] IS NULL AND [entry].[uid] IS NULL \
         ORDER BY [object].[{SEQ}] LIMIT ?",
        spelling.time("[waits].[request_time]"),
        kind.table,
    ))
}
