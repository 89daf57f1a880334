//! The SQL text of finding and removing rows of objects that are no longer in the
//! cluster. Every statement that finds has the condition that the row is not live.

use kindex_model::kind::Kind;
use kindex_model::tables::{Side, Tables};

use crate::dialect::{Spelling, WalkedKey};
use crate::driver::Statement;
use crate::maintenance::Gone;
use crate::statements::{SEQ, kept};

/// The statements of one filter.
pub(super) struct GoneSql {
    spelling: &'static dyn Spelling,
    tables: Tables,
    /// When a row's object went.
    time: &'static str,
    conditions: String,
    /// That no reference holds the row, and that its deletion is over if it has begun. Parameters: kind, kind.
    unheld: String,
}

impl GoneSql {
    /// Parameters of every statement begin with: namespace, name, since, before, states, as far as
    /// the filter has them.
    pub(super) fn new(spelling: &'static dyn Spelling, kind: &Kind, gone: &Gone) -> Self {
        let (time, life) = match (gone.deleted, gone.archived) {
            (true, false) => ("[delete_time]", "[delete_time] IS NOT NULL"),
            (false, true) => ("[evicted_time]", "[evicted_time] IS NOT NULL AND [delete_time] IS NULL"),
            (true, true) => (
                "COALESCE([delete_time], [evicted_time])",
                "([delete_time] IS NOT NULL OR [evicted_time] IS NOT NULL)",
            ),
            (false, false) => ("[delete_time]", "1 = 0"),
        };
        let mut conditions = vec![life.to_owned()];
        let more = [
            (gone.namespace.is_some(), "[namespace] = ?".to_owned()),
            (gone.name.is_some(), "[name] = ?".to_owned()),
            (gone.since.is_some(), format!("{time} >= ?")),
            (gone.before.is_some(), format!("{time} < ?")),
        ];
        conditions.extend(more.into_iter().filter(|(wanted, _)| *wanted).map(|(_, text)| text));
        if let Some((column, values)) = gone.states {
            conditions.push(spelling.value_in(&format!("[{column}]"), values.len()));
        }
        Self {
            spelling,
            tables: kind.tables(),
            time,
            conditions: conditions.join(" AND "),
            unheld: unheld(kind.table),
        }
    }

    pub(super) fn spelling(&self) -> &'static dyn Spelling {
        self.spelling
    }

    fn columns(&self) -> String {
        let [deleted, archived] = ["delete_time", "evicted_time"].map(|column| self.spelling.time_text(column));
        format!("[{SEQ}], [uid], [namespace], [name], [res_version], {deleted}, {archived}")
    }

    /// Rows that nothing keeps. Parameters after those: the kind, twice, the place after which to begin, the limit.
    pub(super) fn page(&self) -> Statement {
        kept(format!(
            "SELECT {} FROM [{}] WHERE {} AND {} AND [{SEQ}] > ? ORDER BY [{SEQ}] LIMIT ?",
            self.columns(),
            self.tables.main,
            self.conditions,
            self.unheld,
        ))
    }

    /// The same of one place in each namespace. Parameters after those: the kind, twice, the place, counted from 1 for
    /// the row that went last.
    pub(super) fn nth_newest(&self) -> Statement {
        kept(format!(
            "SELECT {} FROM (SELECT [{SEQ}], [uid], [namespace], [name], [res_version], [delete_time], [evicted_time], \
             ROW_NUMBER() OVER (PARTITION BY [namespace] ORDER BY {} DESC, [uid] DESC) AS [place] \
             FROM [{}] WHERE {} AND {}) AS [ranked] WHERE [place] = ?",
            self.columns(),
            self.time,
            self.tables.main,
            self.conditions,
            self.unheld,
        ))
    }

    /// Finds the rows among so many uids, and keeps them as they are until the transaction ends. Their references are
    /// read by a statement that follows: one in this statement would be read as of before the wait for the locks. Uid,
    /// namespace, name, and when it was deleted.
    pub(super) fn lock(&self, uids: usize) -> Statement {
        kept(format!(
            "SELECT [uid], [namespace], [name], {} FROM [{}]{} WHERE {} AND {}{}",
            self.spelling.time_text("delete_time"),
            self.tables.main,
            self.spelling.walk(WalkedKey::Named(&self.tables.uid_key())),
            self.conditions,
            self.spelling.value_in("[uid]", uids),
            self.spelling.lock(),
        ))
    }
}

fn unheld(table: &str) -> String {
    format!(
        "NOT EXISTS (SELECT 1 FROM [kindex_reference] WHERE [kindex_reference].[kind] = ? \
         AND [kindex_reference].[uid] = [{table}].[uid]) \
         AND ([delete_time] IS NOT NULL OR NOT EXISTS (SELECT 1 FROM [kindex_tombstone] \
         WHERE [kindex_tombstone].[kind] = ? AND [kindex_tombstone].[uid] = [{table}].[uid]))"
    )
}

/// Deletes all parts of rows, the row itself last. Parameters of each: so many uids.
pub(super) fn remove(spelling: &'static dyn Spelling, kind: &Kind, uids: usize) -> Vec<Statement> {
    let delete = |table: &str, key: WalkedKey<'_>, column: &str| {
        let from = spelling.delete_from(table, key);
        kept(format!("{from} WHERE {}", spelling.value_in(column, uids)))
    };
    let tables = kind.tables();
    let sides = [Side::Labels, Side::Annotations];
    let sides = sides.map(|side| {
        let key = tables.side_uid_key(side);
        delete(&tables.side(side), WalkedKey::Named(&key), "[obj_uid]")
    });
    let history = kind
        .history
        .then(|| delete(&tables.history(), WalkedKey::Primary, "[obj_uid]"));
    let main = delete(tables.main, WalkedKey::Named(&tables.uid_key()), "[uid]");
    sides.into_iter().chain(history).chain([main]).collect()
}
