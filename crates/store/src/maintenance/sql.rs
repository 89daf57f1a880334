//! The SQL text of checking and healing. Names come from the static tables of kinds
//! and are always quoted; values are always parameters. Executes nothing.

use kindex_model::kind::{ColumnType, Kind};
use kindex_model::tables::Side;

use crate::dialect::{Spelling, WalkedKey};
use crate::driver::Statement;
use crate::statements::{kept, quoted};

/// The columns of [`image`] before the extracted ones.
pub(super) const IMAGE_LEADING: [&str; 8] = [
    "uid",
    "group_ver",
    "namespace",
    "name",
    "res_version",
    "proto",
    "json",
    "content_hash",
];
/// The columns of [`image`] after those, and before the extracted ones.
pub(super) const IMAGE_TIMES: [&str; 4] = ["create_time", "update_time", "delete_time", "evicted_time"];

/// Whole rows of the main table. Parameters: so many uids.
pub(super) fn image(spelling: &'static dyn Spelling, kind: &Kind, uids: usize) -> Statement {
    let times = IMAGE_TIMES.map(|column| spelling.time_text(column));
    let extracted = kind.columns.iter().map(|column| match column.ty {
        ColumnType::Time => spelling.time_text(column.name),
        ColumnType::Text { .. }
        | ColumnType::Int32
        | ColumnType::Int64
        | ColumnType::UInt64
        | ColumnType::Bool
        | ColumnType::Double => format!("[{}]", column.name),
    });
    let selected: Vec<String> = std::iter::once(quoted(&IMAGE_LEADING))
        .chain(times)
        .chain(extracted)
        .collect();
    kept(format!(
        "SELECT {} FROM [{}]{} WHERE {}",
        selected.join(", "),
        kind.table,
        spelling.walk(WalkedKey::Named(&kind.tables().uid_key())),
        spelling.value_in("[uid]", uids),
    ))
}

/// Rows of a side table. Parameters: so many uids.
pub(super) fn sides(spelling: &'static dyn Spelling, kind: &Kind, side: Side, uids: usize) -> Statement {
    kept(format!(
        "SELECT [obj_uid], [key], [value] FROM [{}] WHERE {} ORDER BY [obj_uid], [key]",
        kind.tables().side(side),
        spelling.value_in("[obj_uid]", uids),
    ))
}

/// Parameters: the uid after which to begin unless `first`, then the limit.
pub(super) fn side_owners(kind: &Kind, side: Side, first: bool) -> Statement {
    let after = if first { "" } else { " WHERE [obj_uid] > ?" };
    kept(format!(
        "SELECT DISTINCT [obj_uid] FROM [{}]{after} ORDER BY [obj_uid] LIMIT ?",
        kind.tables().side(side),
    ))
}

/// Uids with side rows and without a row. Parameters: so many uids.
pub(super) fn orphaned_sides(spelling: &'static dyn Spelling, kind: &Kind, side: Side, uids: usize) -> Statement {
    kept(format!(
        "SELECT DISTINCT [obj_uid] FROM [{}] WHERE {} \
         AND NOT EXISTS (SELECT 1 FROM [{}] WHERE [uid] = [obj_uid])",
        kind.tables().side(side),
        spelling.value_in("[obj_uid]", uids),
        kind.table,
    ))
}

/// Rows that share their name with another one, neither deleted. Parameters: so many uids.
pub(super) fn namesakes(spelling: &'static dyn Spelling, kind: &Kind, uids: usize) -> Statement {
    kept(format!(
        "SELECT [uid] FROM [{0}] AS one WHERE {1} AND {2} AND EXISTS (\
         SELECT 1 FROM [{0}] WHERE [namespace] = one.[namespace] AND [name] = one.[name] AND {2} \
         AND [uid] <> one.[uid])",
        kind.table,
        spelling.value_in("[uid]", uids),
        spelling.is_null("delete_time"),
    ))
}
