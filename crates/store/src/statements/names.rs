//! The names of columns.

use kindex_model::kind::Kind;
use kindex_model::tables::Side;

/// The columns that precede the extracted ones in an insert; two follow them.
pub(crate) const LEADING: [&str; 10] = [
    "uid",
    "group_ver",
    "namespace",
    "name",
    "res_version",
    "create_time",
    "update_time",
    "delete_time",
    "proto",
    "json",
];
/// The primary key of a main table, which the engine counts up.
pub(crate) const SEQ: &str = "seq";
/// Kindex's own columns, after the extracted ones.
pub(crate) const TRAILING: [&str; 2] = ["evicted_time", "content_hash"];

/// The columns that say the same of an object in all versions of its kind.
pub(crate) const UNCONVERTED: [&str; 8] = [
    "uid",
    "namespace",
    "name",
    "res_version",
    "create_time",
    "update_time",
    "delete_time",
    "evicted_time",
];

/// The tables of a kind with the columns that the store needs.
pub(crate) fn tables(kind: &Kind) -> Vec<(String, Vec<&'static str>)> {
    let side = |side: Side| (kind.tables().side(side), vec!["obj_uid", "key", "value"]);
    vec![
        (
            kind.table.to_owned(),
            main_columns(kind).into_iter().chain([SEQ]).collect(),
        ),
        side(Side::Labels),
        side(Side::Annotations),
    ]
}

pub(crate) fn main_columns(kind: &Kind) -> Vec<&'static str> {
    LEADING.into_iter().chain(extracted(kind)).chain(TRAILING).collect()
}

/// The columns whose values are read from an object's text.
pub(crate) fn extracted(kind: &Kind) -> Vec<&'static str> {
    kind.columns.iter().map(|column| column.name).collect()
}
