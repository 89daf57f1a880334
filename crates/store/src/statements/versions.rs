//! The versions of rows in SQL, by the numbers that [`RowVersion`](kindex_model::row_version::RowVersion) packs.

use kindex_model::row_version::{COUNT_BIT, DIRECT_BIT};

use crate::dialect::Spelling;

/// Whether SQL gave the version in a column.
pub(crate) fn is_direct(spelling: &dyn Spelling, column: &str) -> String {
    format!("{column} >= {}", spelling.power_of_two(DIRECT_BIT))
}

/// Whether the cluster gave it.
pub(crate) fn is_of_cluster(spelling: &dyn Spelling, column: &str) -> String {
    format!("{column} < {}", spelling.power_of_two(DIRECT_BIT))
}

/// The version of the cluster that it is, or followed.
pub(crate) fn of_cluster(spelling: &dyn Spelling, column: &str) -> String {
    format!(
        "CASE WHEN {} THEN {column} ELSE {column} % {} END",
        is_of_cluster(spelling, column),
        spelling.power_of_two(COUNT_BIT),
    )
}
