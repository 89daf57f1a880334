//! The statements on the tables of one kind. Names come from the static tables of kinds and are always quoted; values
//! are always parameters. Executes nothing.

use kindex_model::kind::Kind;
use kindex_model::tables::{Side, Tables};
use kindex_query::Life;

use crate::dialect::{Spelling, WalkedKey, marks};
use crate::driver::Statement;
use crate::statements::names::{SEQ, UNCONVERTED, extracted, main_columns};
use crate::statements::text::{kept, quoted, row_marks};
use crate::statements::versions::of_cluster;

/// The texts of one kind in one dialect.
pub(crate) struct KindSql {
    spelling: &'static dyn Spelling,
    tables: Tables,
    uid_key: String,
    names_key: Option<&'static str>,
    columns: usize,
    insert_head: String,
    update_head: String,
    update_tail: String,
    convert_tail: String,
    convert_text_tail: String,
    state_columns: String,
    stored_columns: String,
}

impl KindSql {
    pub(crate) fn new(spelling: &'static dyn Spelling, kind: &Kind) -> Self {
        let columns = main_columns(kind);
        let assigned = |left: &[&str]| {
            let columns = columns.iter().filter(|column| !left.contains(column));
            let assignments = columns.map(|column| format!("[{column}] = {}", spelling.inserted(column)));
            spelling.on_any_conflict().to_owned() + &assignments.collect::<Vec<_>>().join(", ")
        };
        let time = |column| spelling.time_text(column);
        Self {
            spelling,
            tables: kind.tables(),
            names_key: kind
                .keys
                .iter()
                .find(|key| key.columns.starts_with(&["namespace", "name"]))
                .map(|key| key.name),
            uid_key: kind.tables().uid_key(),
            columns: columns.len(),
            insert_head: format!("INSERT INTO [{}] ({}) VALUES ", kind.table, quoted(&columns)),
            update_head: format!("INSERT INTO [{}] ([{SEQ}], {}) VALUES ", kind.table, quoted(&columns)),
            update_tail: assigned(&["uid"]),
            convert_tail: assigned(&UNCONVERTED),
            convert_text_tail: assigned(&[&UNCONVERTED[..], &extracted(kind)].concat()),
            state_columns: format!(
                "[{SEQ}], [uid], [namespace], [name], [res_version], [content_hash], {}, {}, [group_ver]",
                time("delete_time"),
                time("evicted_time")
            ),
            stored_columns: format!(
                "[uid], [json], {}, {}, {}, [group_ver]",
                time("update_time"),
                time("delete_time"),
                time("evicted_time")
            ),
        }
    }

    pub(crate) fn spelling(&self) -> &'static dyn Spelling {
        self.spelling
    }

    fn walk_uids(&self) -> String {
        self.spelling.walk(WalkedKey::Named(&self.uid_key))
    }

    /// Leaves the choice to the engine where no key begins with the names.
    fn walk_names(&self) -> String {
        let key = self.names_key.map(WalkedKey::Named);
        key.map(|key| self.spelling.walk(key)).unwrap_or_default()
    }

    /// Parameters: `padded` uids.
    pub(crate) fn states(&self, uids: usize, lock: bool) -> Statement {
        let lock = if lock { self.spelling.lock() } else { "" };
        kept(format!(
            "SELECT {} FROM [{}]{} WHERE {}{lock}",
            self.state_columns,
            self.tables.main,
            self.walk_uids(),
            self.spelling.value_in("[uid]", uids),
        ))
    }

    /// Parameters: `update_time`, `delete_time`, `evicted_time` and so on, a row after the other.
    pub(crate) fn insert(&self, rows: usize) -> Statement {
        kept(self.insert_head.clone() + &row_marks(self.columns, rows))
    }

    /// As [`insert`](Self::insert), of rows that exist: each is replaced as a whole. A row's first parameter is its
    /// place, by which the engine finds it without the key of uids.
    pub(crate) fn update(&self, rows: usize) -> Statement {
        kept(self.update_head.clone() + &row_marks(self.columns + 1, rows) + &self.update_tail)
    }

    /// As [`update`](Self::update), with the same parameters, of rows that get the same object in another version: what
    /// the version does not change keeps its value.
    pub(crate) fn convert(&self, rows: usize) -> Statement {
        kept(self.update_head.clone() + &row_marks(self.columns + 1, rows) + &self.convert_tail)
    }

    /// As [`convert`](Self::convert), of rows whose extracted columns hold what they would get. What is assigned is
    /// written to its keys anew, even where it is the same: SQLite does not compare.
    pub(crate) fn convert_text(&self, rows: usize) -> Statement {
        kept(self.update_head.clone() + &row_marks(self.columns + 1, rows) + &self.convert_text_tail)
    }

    /// Parameters: now, once or for `delete_time` and `evicted_time` twice, then `padded` uids.
    pub(crate) fn relocate(&self, to: Life, uids: usize) -> Statement {
        let set = match to {
            Life::Live => "[update_time] = ?, [delete_time] = NULL, [evicted_time] = NULL",
            Life::Archived => "[update_time] = ?, [delete_time] = NULL, [evicted_time] = ?",
            Life::Deleted => "[update_time] = ?, [delete_time] = ?",
        };
        kept(format!(
            "UPDATE [{}]{} SET {set} WHERE {}",
            self.tables.main,
            self.walk_uids(),
            self.spelling.value_in("[uid]", uids),
        ))
    }

    /// Writes rows and leaves what they say: an update that sets a value to itself writes nothing. `None` where the
    /// engine has no use for it. Parameters: `padded` uids.
    pub(crate) fn touch(&self, uids: usize) -> Option<Statement> {
        let later = self.spelling.moment_after("update_time", "create_time")?;
        Some(kept(format!(
            "UPDATE [{}]{} SET [update_time] = {later} WHERE {}",
            self.tables.main,
            self.walk_uids(),
            self.spelling.value_in("[uid]", uids),
        )))
    }

    /// Parameters: `padded` uids.
    pub(crate) fn rewind(&self, uids: usize) -> Statement {
        kept(format!(
            "UPDATE [{}]{} SET [res_version] = 0 WHERE {}",
            self.tables.main,
            self.walk_uids(),
            self.spelling.value_in("[uid]", uids),
        ))
    }

    /// All rows of these names that are not deleted. Parameters: `padded` pairs of namespace and name.
    pub(crate) fn namesakes(&self, names: usize) -> Statement {
        kept(format!(
            "SELECT [uid], [namespace], [name], [res_version], {} FROM [{}]{} WHERE {} AND {}{}",
            self.spelling.time_text("evicted_time"),
            self.tables.main,
            self.walk_names(),
            self.spelling.pair_in("namespace", "name", names),
            self.spelling.is_null("delete_time"),
            self.spelling.lock(),
        ))
    }

    /// Parameters: `padded` uids.
    pub(crate) fn delete_side(&self, side: Side, uids: usize) -> Statement {
        let (table, key) = (self.tables.side(side), self.tables.side_uid_key(side));
        kept(format!(
            "{} WHERE {}",
            self.spelling.delete_from(&table, WalkedKey::Named(&key)),
            self.spelling.value_in("[obj_uid]", uids),
        ))
    }

    /// Parameters: uid, key, value, a row after the other.
    pub(crate) fn insert_side(&self, side: Side, rows: usize) -> Statement {
        let text = format!(
            "INSERT INTO [{}] ([obj_uid], [key], [value]) VALUES {}",
            self.tables.side(side),
            marks("(?,?,?)", rows),
        );
        kept(text)
    }

    /// Parameters: the place after which to begin unless `first`, then the limit.
    pub(crate) fn scan(&self, first: bool) -> Statement {
        let after = if first { "" } else { " WHERE [seq] > ?" };
        kept(format!(
            "SELECT {} FROM [{}]{after} ORDER BY [{SEQ}] LIMIT ?",
            self.state_columns, self.tables.main,
        ))
    }

    /// Parameters: `exact` parameters of a namespace and of a name.
    pub(crate) fn by_name(&self) -> Statement {
        kept(format!(
            "SELECT {} FROM [{}] WHERE {} AND {} AND {} ORDER BY {} DESC LIMIT 1",
            self.stored_columns,
            self.tables.main,
            self.spelling.exactly("namespace"),
            self.spelling.exactly("name"),
            self.spelling.is_null("delete_time"),
            of_cluster(self.spelling, "[res_version]"),
        ))
    }

    /// Rows of these names that are not deleted, the newest of a name after the others. Parameters: `padded` pairs of
    /// namespace and name.
    pub(crate) fn by_names(&self, names: usize) -> Statement {
        kept(format!(
            "SELECT {} FROM [{}]{} WHERE {} AND {} ORDER BY {}",
            self.stored_columns,
            self.tables.main,
            self.walk_names(),
            self.spelling.pair_in("namespace", "name", names),
            self.spelling.is_null("delete_time"),
            of_cluster(self.spelling, "[res_version]"),
        ))
    }

    /// Rows that are not deleted, in order of namespace and name, after one of them. Parameters: of one namespace it
    /// and the name after which to begin; of all of them the namespace twice and the name; then the limit.
    pub(crate) fn after_name(&self, one_namespace: bool) -> Statement {
        kept(format!(
            "SELECT {} FROM {} ORDER BY [namespace], [name] LIMIT ?",
            self.stored_columns,
            self.undeleted_after(one_namespace),
        ))
    }

    /// How many these are. The same parameters, without the limit.
    pub(crate) fn count_after_name(&self, one_namespace: bool) -> Statement {
        kept(format!("SELECT COUNT(*) FROM {}", self.undeleted_after(one_namespace)))
    }

    fn undeleted_after(&self, one_namespace: bool) -> String {
        let after = match one_namespace {
            true => "[namespace] = ? AND [name] > ?",
            false => "([namespace] > ? OR ([namespace] = ? AND [name] > ?))",
        };
        format!(
            "[{}]{} WHERE {after} AND {}",
            self.tables.main,
            self.walk_names(),
            self.spelling.is_null("delete_time"),
        )
    }

    /// All rows of a name. Parameters: `exact` parameters of a namespace and of a name.
    pub(crate) fn rows_of_name(&self) -> Statement {
        kept(format!(
            "SELECT {} FROM [{}] WHERE {} AND {} ORDER BY [delete_time] IS NOT NULL, {} DESC",
            self.stored_columns,
            self.tables.main,
            self.spelling.exactly("namespace"),
            self.spelling.exactly("name"),
            of_cluster(self.spelling, "[res_version]"),
        ))
    }

    /// For each name the row that is not deleted, else the one that was deleted last. Parameters:
    /// `padded` pairs of namespace and name.
    pub(crate) fn newest(&self, names: usize) -> Statement {
        kept(format!(
            "SELECT {} FROM (SELECT [uid] AS newest_uid, ROW_NUMBER() OVER (PARTITION BY [namespace], [name] \
             ORDER BY [delete_time] IS NOT NULL, [delete_time] DESC, {5} DESC) AS place FROM [{1}]{2} \
             WHERE {3}) AS newest {4} [{1}] WHERE [uid] = newest_uid AND place = 1",
            self.stored_columns,
            self.tables.main,
            self.walk_names(),
            self.spelling.pair_in("namespace", "name", names),
            self.spelling.join_in_order(),
            of_cluster(self.spelling, "[res_version]"),
        ))
    }

    /// Parameter: uid.
    pub(crate) fn by_id(&self) -> Statement {
        kept(format!(
            "SELECT {} FROM [{}] WHERE [uid] = ?",
            self.stored_columns, self.tables.main,
        ))
    }

    /// As [`by_id`](Self::by_id), of `padded` uids.
    pub(crate) fn by_ids(&self, uids: usize) -> Statement {
        kept(format!(
            "SELECT {} FROM [{}]{} WHERE {}",
            self.stored_columns,
            self.tables.main,
            self.walk_uids(),
            self.spelling.value_in("[uid]", uids),
        ))
    }

    /// Parameters: `exact` parameters of a namespace and the uid after which to begin where asked
    /// for, then `exact` parameters of a key and of a value for each label, then the limit.
    pub(crate) fn list(&self, filter: ListFilter) -> Statement {
        let mut conditions = Vec::new();
        if filter.namespace {
            conditions.push(self.spelling.exactly("namespace"));
        }
        if filter.after {
            conditions.push("[uid] > ?".to_owned());
        }
        if !filter.include_deleted {
            conditions.push(self.spelling.is_null("delete_time"));
        }
        let exists = format!(
            "EXISTS (SELECT 1 FROM [{}] WHERE [obj_uid] = [{}].[uid] AND {} AND {})",
            self.tables.side(Side::Labels),
            self.tables.main,
            self.spelling.exactly("key"),
            self.spelling.exactly("value"),
        );
        conditions.extend(std::iter::repeat_n(exists, filter.labels));
        let filters = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        kept(format!(
            "SELECT {} FROM [{}]{filters} ORDER BY [uid] LIMIT ?",
            self.stored_columns, self.tables.main,
        ))
    }

    /// One row: live, archived, deleted.
    pub(crate) fn count(&self) -> Statement {
        kept(format!(
            "SELECT COUNT(CASE WHEN [delete_time] IS NULL AND [evicted_time] IS NULL THEN 1 END), \
             COUNT(CASE WHEN [delete_time] IS NULL AND [evicted_time] IS NOT NULL THEN 1 END), \
             COUNT([delete_time]) FROM [{}]",
            self.tables.main,
        ))
    }
}

/// Which conditions a list has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListFilter {
    pub(crate) namespace: bool,
    pub(crate) after: bool,
    pub(crate) include_deleted: bool,
    pub(crate) labels: usize,
}
