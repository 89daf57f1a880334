//! The versions of rows in SQL, by the numbers that [`RowVersion`](kindex_model::row_version::RowVersion) packs.

use kindex_model::row_version::{COUNT_BIT, DIRECT_BIT};

/// Whether SQL gave the version in a column.
pub(crate) fn is_direct(column: &str) -> String {
    format!("{column} >= (1 << {DIRECT_BIT})")
}

/// Whether the cluster gave it.
pub(crate) fn is_of_cluster(column: &str) -> String {
    format!("{column} < (1 << {DIRECT_BIT})")
}

/// The version of the cluster that it is, or followed.
pub(crate) fn of_cluster(column: &str) -> String {
    format!(
        "CASE WHEN {} THEN {column} ELSE {column} % (1 << {COUNT_BIT}) END",
        is_of_cluster(column)
    )
}
