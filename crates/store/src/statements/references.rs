//! The SQL text of references on archived objects, and of the tombstones of those that wait for their release. Values
//! are parameters; executes nothing.

use crate::dialect::{Spelling, WalkedKey, marks};
use crate::driver::Statement;
use crate::statements::text::{fixed, kept, quoted};

/// Columns of a reference, in order.
const COLUMNS: [&str; 8] = [
    "kind",
    "uid",
    "name",
    "holder_kind",
    "holder_group",
    "holder_uid",
    "place_time",
    "placed_by",
];

/// Leaves references alone that are there. Parameters: the eight columns, a row after the other.
pub(crate) fn place(spelling: &'static dyn Spelling, rows: usize) -> Statement {
    kept(format!(
        "INSERT INTO [kindex_reference] ({}) VALUES {}{}",
        quoted(&COLUMNS),
        marks("(?,?,?,?,?,?,?,?)", rows),
        spelling.or_leave("kind", "[kind], [uid], [name]"),
    ))
}

/// Kind, uid, name, time and by whom. Parameters: kind, padded uids.
pub(crate) fn of_objects(spelling: &'static dyn Spelling, uids: usize) -> Statement {
    kept(format!(
        "{} WHERE [kind] = ? AND {} ORDER BY [uid], [name]",
        selected(spelling),
        spelling.value_in("[uid]", uids),
    ))
}

/// As [`of_objects`], the first ones of one object. Parameters: kind, uid, the limit.
pub(crate) fn first_of_object(spelling: &'static dyn Spelling) -> Statement {
    kept(format!(
        "{} WHERE [kind] = ? AND [uid] = ? ORDER BY [name] LIMIT ?",
        selected(spelling),
    ))
}

/// A row if the object has the reference. Parameters: kind, uid, name.
pub(crate) fn has() -> Statement {
    fixed("SELECT [uid] FROM [kindex_reference] WHERE [kind] = ? AND [uid] = ? AND [name] = ?")
}

/// The same of one holder. Parameter: the holder's uid.
pub(crate) fn of_holder(spelling: &'static dyn Spelling) -> Statement {
    kept(format!(
        "{} WHERE [holder_uid] = ? ORDER BY [kind], [uid], [name]",
        selected(spelling)
    ))
}

fn selected(spelling: &'static dyn Spelling) -> String {
    format!(
        "SELECT [kind], [uid], [name], {}, [placed_by] FROM [kindex_reference]",
        spelling.time_text("place_time")
    )
}

/// How many references each object has: uid and number; objects without any are left out. Parameters: kind, padded
/// uids.
pub(crate) fn counts(spelling: &'static dyn Spelling, uids: usize) -> Statement {
    kept(format!(
        "SELECT [uid], COUNT(*) FROM [kindex_reference] WHERE [kind] = ? AND {} GROUP BY [uid]",
        spelling.value_in("[uid]", uids),
    ))
}

/// Parameters: kind, uid, name.
pub(crate) fn release() -> Statement {
    fixed("DELETE FROM [kindex_reference] WHERE [kind] = ? AND [uid] = ? AND [name] = ?")
}

/// All that these holders have. Parameters: padded uids.
pub(crate) fn release_held_by(spelling: &'static dyn Spelling, uids: usize) -> Statement {
    kept(format!(
        "{} WHERE {}",
        spelling.delete_from("kindex_reference", WalkedKey::Named("kindex_reference_holder")),
        spelling.value_in("[holder_uid]", uids),
    ))
}

/// Those that came with their objects from the cluster. Parameters: kind, padded uids.
pub(crate) fn forget_carried(spelling: &'static dyn Spelling, uids: usize) -> Statement {
    kept(format!(
        "{} WHERE [kind] = ? AND {} AND [placed_by] IS NULL",
        spelling.delete_from("kindex_reference", WalkedKey::Primary),
        spelling.value_in("[uid]", uids),
    ))
}

/// Keeps the time of the first request. Parameters of each: kind, uid, now.
pub(crate) fn make_tombstones(spelling: &'static dyn Spelling, rows: usize) -> Statement {
    kept(format!(
        "INSERT INTO [kindex_tombstone] ([kind], [uid], [request_time]) VALUES {}{}",
        marks("(?,?,?)", rows),
        spelling.or_leave("kind", "[kind], [uid]"),
    ))
}

/// Uid and time. Parameters: kind, padded uids.
pub(crate) fn tombstones(spelling: &'static dyn Spelling, uids: usize) -> Statement {
    kept(format!(
        "SELECT [uid], {} FROM [kindex_tombstone] WHERE [kind] = ? AND {}",
        spelling.time_text("request_time"),
        spelling.value_in("[uid]", uids),
    ))
}

/// As [`tombstones`], in order of uid. Parameters: kind, the uid after which to begin, the limit.
pub(crate) fn tombstone_page(spelling: &'static dyn Spelling) -> Statement {
    kept(format!(
        "SELECT [uid], {} FROM [kindex_tombstone] WHERE [kind] = ? AND [uid] > ? ORDER BY [uid] LIMIT ?",
        spelling.time_text("request_time"),
    ))
}

/// As [`of_objects`], of all objects of a kind. Parameters: kind, the uid, the uid again and the name after which to
/// begin, the limit.
pub(crate) fn page(spelling: &'static dyn Spelling) -> Statement {
    kept(format!(
        "{} WHERE [kind] = ? AND ([uid] > ? OR ([uid] = ? AND [name] > ?)) ORDER BY [uid], [name] LIMIT ?",
        selected(spelling),
    ))
}

/// Parameters: kind, padded uids.
pub(crate) fn forget_tombstones(spelling: &'static dyn Spelling, uids: usize) -> Statement {
    kept(format!(
        "DELETE FROM [kindex_tombstone] WHERE [kind] = ? AND {}",
        spelling.value_in("[uid]", uids),
    ))
}
