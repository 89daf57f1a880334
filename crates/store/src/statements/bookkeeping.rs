//! The SQL text of Kindex's own tables, and of preparing a database. Values are
//! parameters here as well.

use crate::dialect::Spelling;
use crate::driver::Statement;
use crate::statements::{fixed, kept, once, quoted};

/// Parameter: kind.
pub(crate) fn checkpoint() -> Statement {
    fixed("SELECT [res_version] FROM [kindex_checkpoint] WHERE [kind] = ?")
}

/// Leaves a mark alone that is not the one that the caller knows. Parameters: version, now, kind, the least mark,
/// the known one.
pub(crate) fn replace_checkpoint() -> Statement {
    fixed(
        "UPDATE [kindex_checkpoint] SET [res_version] = ?, [update_time] = ? \
         WHERE [kind] = ? AND ([res_version] < ? OR [res_version] = ?)",
    )
}

/// Changes a row only where none is there. Parameters: kind, version, now.
pub(crate) fn first_checkpoint(spelling: &'static dyn Spelling) -> Statement {
    let (insert, otherwise) = spelling.insert_or_leave();
    kept(format!(
        "{insert} [kindex_checkpoint] ([kind], [res_version], [update_time]) VALUES (?, ?, ?){otherwise}"
    ))
}

/// Parameters: kind, uid, namespace, name, version, reason, text, now, now.
pub(crate) fn quarantine(spelling: &'static dyn Spelling) -> Statement {
    let columns = [
        "kind",
        "uid",
        "namespace",
        "name",
        "res_version",
        "reason",
        "json",
        "first_time",
        "last_time",
        "attempts",
    ];
    replacing(
        spelling,
        "kindex_quarantine",
        &columns,
        "[kind], [uid]",
        &["namespace", "name", "res_version", "reason", "json", "last_time"],
        ", [attempts] = [kindex_quarantine].[attempts] + 1",
    )
}

/// Uid, version and reason of all recorded objects. Parameters: kind.
pub(crate) fn quarantined() -> Statement {
    fixed("SELECT [uid], [res_version], [reason] FROM [kindex_quarantine] WHERE [kind] = ? ORDER BY [uid]")
}

/// Parameters: kind, the uid after which to begin, the limit.
pub(crate) fn quarantine_page(spelling: &'static dyn Spelling) -> Statement {
    kept(format!(
        "SELECT [uid], [namespace], [name], [res_version], [reason], [attempts], {}, {} FROM [kindex_quarantine] \
         WHERE [kind] = ? AND [uid] > ? ORDER BY [uid] LIMIT ?",
        spelling.time_text("first_time"),
        spelling.time_text("last_time"),
    ))
}

/// Parameters: kind, uid, the newest version whose record goes.
pub(crate) fn release_quarantine() -> Statement {
    fixed("DELETE FROM [kindex_quarantine] WHERE [kind] = ? AND [uid] = ? AND [res_version] <= ?")
}

/// The highest recorded schema version with its checksum.
pub(crate) fn schema_version() -> Statement {
    fixed("SELECT [version], [checksum] FROM [kindex_schema] ORDER BY [version] DESC LIMIT 1")
}

/// Parameters: version, checksum, now.
pub(crate) fn record_schema(spelling: &'static dyn Spelling) -> Statement {
    replacing(
        spelling,
        "kindex_schema",
        &["version", "checksum", "applied_time"],
        "[version]",
        &["checksum", "applied_time"],
        "",
    )
}

/// Reads no row, and fails where one of the columns that the store writes is not there.
pub(crate) fn probe(table: &str, columns: &[&str]) -> Statement {
    once(format!("SELECT {} FROM [{table}] WHERE 1 = 0", quoted(columns)))
}

/// A statement of the emitted schema.
pub(crate) fn schema_statement(text: &str) -> Statement {
    Statement::of_engine(text)
}

/// Leaves a checkpoint alone that is there. Parameters: kind, version, now.
pub(crate) fn checkpoint_if_absent(spelling: &'static dyn Spelling) -> Statement {
    kept(format!(
        "INSERT INTO [kindex_checkpoint] ([kind], [res_version], [update_time]) VALUES (?, ?, ?){}",
        spelling.or_leave("kind", "[kind]"),
    ))
}

/// Parameters: kind, name, value, now.
pub(crate) fn save_state(spelling: &'static dyn Spelling) -> Statement {
    replacing(
        spelling,
        "kindex_state",
        &["kind", "name", "value", "update_time"],
        "[kind], [name]",
        &["value", "update_time"],
        "",
    )
}

/// Leaves a state alone that is there. Parameters: kind, name, value, now.
pub(crate) fn first_state(spelling: &'static dyn Spelling) -> Statement {
    let (insert, otherwise) = spelling.insert_or_leave();
    kept(format!(
        "{insert} [kindex_state] ([kind], [name], [value], [update_time]) VALUES (?, ?, ?, ?){otherwise}"
    ))
}

fn replacing(
    spelling: &'static dyn Spelling,
    table: &str,
    columns: &[&str],
    key: &str,
    replaced: &[&str],
    more: &str,
) -> Statement {
    let assignments: Vec<String> = replaced
        .iter()
        .map(|column| format!("[{column}] = {}", spelling.inserted(column)))
        .collect();
    let values = columns
        .iter()
        .map(|column| if *column == "attempts" { "1" } else { "?" });
    kept(format!(
        "INSERT INTO [{table}] ({}) VALUES ({}){}{}{more}",
        quoted(columns),
        values.collect::<Vec<_>>().join(","),
        spelling.on_conflict(key),
        assignments.join(", "),
    ))
}
