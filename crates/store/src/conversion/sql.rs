//! The SQL text of converting rows to another version. Values are parameters; executes nothing.

use kindex_model::kind::Kind;

use crate::dialect::{Spelling, WalkedKey, marks};
use crate::driver::Statement;
use crate::statements::{SEQ, cells, fixed, kept, quoted};

/// Columns of the kept texts, in order.
const KEPT_COLUMNS: [&str; 7] = [
    "kind",
    "uid",
    "group_ver",
    "res_version",
    "convert_time",
    "encoding",
    "payload",
];

/// The last place of the next rows, whatever they are, and how many there are. Parameters: the place after which to
/// begin, the place where to end, the limit.
pub(super) fn window(spelling: &'static dyn Spelling, kind: &Kind) -> Statement {
    kept(format!(
        "SELECT MAX([{SEQ}]), COUNT(*) FROM (SELECT [{SEQ}] FROM [{}]{} WHERE [{SEQ}] > ? AND [{SEQ}] <= ? \
         ORDER BY [{SEQ}] LIMIT ?) AS [places]",
        kind.table,
        spelling.walk(WalkedKey::Primary),
    ))
}

/// Rows of a range in another version: place, uid, namespace, name, version, resource version, hash, text. Parameters:
/// the place after which to begin, the place where to end, the kind's own `group_ver`.
pub(super) fn other_versions(spelling: &'static dyn Spelling, kind: &Kind) -> Statement {
    kept(format!(
        "SELECT [{SEQ}], [uid], [namespace], [name], [group_ver], [res_version], [content_hash], [json] FROM [{}]{} \
         WHERE [{SEQ}] > ? AND [{SEQ}] <= ? AND [group_ver] <> ? AND {} ORDER BY [{SEQ}]",
        kind.table,
        spelling.walk(WalkedKey::Primary),
        is_gone(spelling),
    ))
}

/// What says whether rows are still as they were read: uid, version, resource version, hash; then the extracted
/// columns. Parameters: padded uids.
pub(super) fn lock(spelling: &'static dyn Spelling, kind: &Kind, uids: usize) -> Statement {
    kept(format!(
        "SELECT [uid], [group_ver], [res_version], [content_hash]{} FROM [{}]{} WHERE {} AND {}{}",
        cells(spelling, kind.columns.iter()),
        kind.table,
        spelling.walk(WalkedKey::Named(&kind.tables().uid_key())),
        spelling.value_in("[uid]", uids),
        is_gone(spelling),
        spelling.lock(),
    ))
}

/// Archived or deleted; never by a key of these columns.
fn is_gone(spelling: &'static dyn Spelling) -> String {
    let [deleted, archived] = ["delete_time", "evicted_time"].map(|column| spelling.is_null(column));
    format!("NOT ({deleted} AND {archived})")
}

/// Leaves texts alone that are kept already. Parameters: the seven columns, a row after the other.
pub(super) fn keep(spelling: &'static dyn Spelling, rows: usize) -> Statement {
    kept(format!(
        "INSERT INTO [kindex_converted] ({}) VALUES {}{}",
        quoted(&KEPT_COLUMNS),
        marks("(?,?,?,?,?,?,?)", rows),
        spelling.or_leave("kind", "[kind], [uid], [group_ver], [res_version]"),
    ))
}

/// Version, resource version, encoding and payload. Parameters: kind, uid.
pub(super) fn of_row() -> Statement {
    fixed(
        "SELECT [group_ver], [res_version], [encoding], [payload] FROM [kindex_converted] \
         WHERE [kind] = ? AND [uid] = ? ORDER BY [group_ver], [res_version]",
    )
}

/// The last uid of the next kept texts; NULL at the end. Parameters: kind, the uid after which to begin, the limit.
pub(super) fn last_kept() -> Statement {
    fixed(
        "SELECT MAX([uid]) FROM (SELECT [uid] FROM [kindex_converted] WHERE [kind] = ? AND [uid] > ? \
         ORDER BY [uid] LIMIT ?) AS [uids]",
    )
}

/// Parameters: kind, the uid after which to begin, the last uid, version.
pub(super) fn drop_version() -> Statement {
    fixed("DELETE FROM [kindex_converted] WHERE [kind] = ? AND [uid] > ? AND [uid] <= ? AND [group_ver] = ?")
}

/// Parameters: kind, padded uids.
pub(super) fn forget(spelling: &'static dyn Spelling, uids: usize) -> Statement {
    kept(format!(
        "DELETE FROM [kindex_converted] WHERE [kind] = ? AND {}",
        spelling.value_in("[uid]", uids),
    ))
}
