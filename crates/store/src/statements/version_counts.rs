//! The SQL text of counting rows by the version that their objects have.

use kindex_model::kind::Kind;

use crate::driver::Statement;
use crate::statements::{SEQ, kept};

/// Of the next rows in order of arrival: the version, how many say so, how many of these are deleted, how many are
/// archived and not deleted, and the last of them. Parameters: the row after which to begin, most rows.
pub(crate) fn next_counts(kind: &Kind) -> Statement {
    let table = kind.table;
    kept(format!(
        "SELECT [group_ver], COUNT(*), COUNT([delete_time]), \
         COUNT(CASE WHEN [delete_time] IS NULL THEN [evicted_time] END), MAX([{SEQ}]) \
         FROM (SELECT [group_ver], [delete_time], [evicted_time], [{SEQ}] FROM [{table}] \
         WHERE [{SEQ}] > ? ORDER BY [{SEQ}] LIMIT ?) AS [page] GROUP BY [group_ver]"
    ))
}

/// The versions of the first rows and of the last ones, each once. Parameters: most rows of each.
pub(crate) fn outermost(kind: &Kind) -> Statement {
    let table = kind.table;
    let rows = |name: &str, order: &str| {
        format!(
            "SELECT [group_ver] FROM (SELECT [group_ver] FROM [{table}] ORDER BY [{SEQ}]{order} LIMIT ?) AS [{name}]"
        )
    };
    kept(format!("{} UNION {}", rows("first", ""), rows("last", " DESC")))
}

/// How many versions of objects a history has.
pub(crate) fn history_entries(table: &str) -> Statement {
    kept(format!("SELECT COUNT(*) FROM [{table}]"))
}
