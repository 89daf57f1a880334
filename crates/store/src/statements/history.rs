//! The SQL text of the history tables. Executes nothing; values are parameters.

use kindex_model::kind::Kind;
use kindex_model::tables::Tables;

use crate::dialect::{Spelling, WalkedKey, marks};
use crate::driver::Statement;
use crate::statements::versions::{is_direct, is_of_cluster};
use crate::statements::{kept, quoted};

/// Columns of a history table, in order.
pub(crate) const COLUMNS: [&str; 6] = ["obj_uid", "branch", "res_version", "seen_time", "encoding", "payload"];

/// The history table of a kind with its columns.
pub(crate) fn table_and_columns(kind: &Kind) -> (String, Vec<&'static str>) {
    (kind.tables().history(), COLUMNS.into())
}

/// The texts for one kind in one dialect.
#[derive(Clone, Copy)]
pub(crate) struct HistorySql {
    pub(crate) spelling: &'static dyn Spelling,
    pub(crate) tables: Tables,
}

impl HistorySql {
    /// Keeps versions that are not kept yet. Parameters: the six columns, a row after the other.
    pub(crate) fn insert(self, rows: usize) -> Statement {
        kept(format!(
            "INSERT INTO [{}] ({}) VALUES {}{}",
            self.table(),
            quoted(&COLUMNS),
            marks("(?,?,?,?,?,?)", rows),
            self.spelling.or_leave("obj_uid", "[obj_uid], [branch], [res_version]"),
        ))
    }

    /// Uid, version, time and text of those rows of the main table whose version is not kept.
    /// Parameters: uids, padded.
    pub(crate) fn unkept(self, uids: usize) -> Statement {
        kept(format!(
            "SELECT [uid], [res_version], {}, [json] FROM [{main}]{} WHERE {} AND [res_version] > 0 \
             AND NOT EXISTS (SELECT 1 FROM [{}] AS h WHERE h.[obj_uid] = [{main}].[uid] AND h.[branch] = 0 \
             AND h.[res_version] = [{main}].[res_version])",
            self.spelling.time_text("update_time"),
            self.spelling.walk(WalkedKey::Named(&self.tables.uid_key())),
            self.spelling.value_in("[uid]", uids),
            self.table(),
            main = self.tables.main,
        ))
    }

    /// Moves the versions of these uids to a branch of their own. Parameters: the branch, uids, padded.
    pub(crate) fn branch_off(self, uids: usize) -> Statement {
        kept(format!(
            "UPDATE [{}]{} SET [branch] = ? WHERE {} AND [branch] = 0",
            self.table(),
            self.spelling.walk(WalkedKey::Primary),
            self.spelling.value_in("[obj_uid]", uids),
        ))
    }

    /// Moves all versions of the cluster beyond one to a branch of their own. Parameters: the branch, the version.
    pub(crate) fn branch_off_beyond(self) -> Statement {
        kept(format!(
            "UPDATE [{}] SET [branch] = ? WHERE [branch] = 0 AND [res_version] > ? AND {}",
            self.table(),
            is_of_cluster(self.spelling, "[res_version]"),
        ))
    }

    /// The version that an object had at a time, up to one of the cluster's in the present branch. Parameters:
    /// uid, time, version.
    pub(crate) fn at(self) -> Statement {
        self.select(&self.of_time(), "DESC", "1")
    }

    /// The same for so many objects. Parameters: uid, time, version, an object after the other.
    pub(crate) fn at_each(self, objects: usize) -> Statement {
        let one = format!(
            "SELECT * FROM ({}) AS [one]",
            self.selected(&self.of_time(), "DESC", "1")
        );
        kept(vec![one; objects].join(" UNION ALL "))
    }

    /// A version by its number. Parameters: uid, version.
    pub(crate) fn version(self) -> Statement {
        self.select("AND [res_version] = ?", "DESC", "1")
    }

    /// The oldest version. Parameter: uid.
    pub(crate) fn first(self) -> Statement {
        self.select("", "ASC", "1")
    }

    /// The newest versions. Parameters: uid, limit.
    pub(crate) fn newest(self) -> Statement {
        self.select("", "DESC", "?")
    }

    /// The versions before one. Parameters: uid, its branch, its branch, its version, limit.
    pub(crate) fn before(self) -> Statement {
        self.select("AND [branch] <= ? AND ([branch] < ? OR [res_version] < ?)", "DESC", "?")
    }

    fn select(self, condition: &str, direction: &str, limit: &str) -> Statement {
        kept(self.selected(condition, direction, limit))
    }

    fn selected(self, condition: &str, direction: &str, limit: &str) -> String {
        format!(
            "SELECT [obj_uid], [branch], [res_version], {}, [encoding], [payload] FROM [{}]{} \
             WHERE [obj_uid] = ? {condition} ORDER BY [branch] {direction}, [res_version] {direction} LIMIT {limit}",
            self.spelling.time_text("seen_time"),
            self.table(),
            self.spelling.walk(WalkedKey::Primary),
        )
    }

    /// Versions of a time, up to one of the cluster's, and those of SQL.
    fn of_time(self) -> String {
        format!(
            "AND [seen_time] <= ? AND ([branch] < 0 OR [res_version] <= ? OR {})",
            is_direct(self.spelling, "[res_version]")
        )
    }

    fn table(self) -> String {
        self.tables.history()
    }
}
