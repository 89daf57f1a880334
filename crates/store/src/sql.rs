//! All SQL text of the store, for all dialects. Names come from the static tables
//! of kinds and are always quoted; values are always parameters. Executes nothing.

use kindex_model::kind::Kind;
use kindex_query::Life;
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::dialect::{Dialect, marks};
use super::driver::{Param, Statement};

/// Most names in one list: beyond it MariaDB would rewrite an `IN` list into a join.
pub(super) const LIST_MAX: usize = 500;

/// By the cluster's versions: those that SQL gave begin at 2^62, and say modulo 2^44 which they followed.
const NEWEST_FIRST: &str = "CASE WHEN `res_version` < 4611686018427387904 THEN `res_version` \
                            ELSE `res_version` % 17592186044416 END DESC";

/// The side tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Labels,
    Annotations,
}

impl Side {
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Annotations => "annotations",
        }
    }

    /// The side table's name.
    pub(super) fn table(self, main: &str) -> String {
        format!("{main}_{}", self.suffix())
    }
}

/// The columns that precede the extracted ones in an insert; two follow them.
pub(super) const LEADING: [&str; 10] = [
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
pub(super) const SEQ: &str = "seq";
/// Kindex's own columns, after the extracted ones.
pub(super) const TRAILING: [&str; 2] = ["evicted_time", "content_hash"];

/// The texts of one kind in one dialect.
pub(super) struct KindSql {
    dialect: Dialect,
    table: &'static str,
    uid_key: String,
    names_key: Option<&'static str>,
    columns: usize,
    insert_head: String,
    update_head: String,
    update_tail: String,
    state_columns: String,
    stored_columns: String,
}

impl KindSql {
    pub(super) fn new(dialect: Dialect, kind: &Kind) -> Self {
        let columns = main_columns(kind);
        let assignments: Vec<String> = columns
            .iter()
            .filter(|column| **column != "uid")
            .map(|column| format!("`{column}` = {}", dialect.inserted(column)))
            .collect();
        let time = |column| dialect.time_text(column);
        Self {
            dialect,
            table: kind.table,
            names_key: kind
                .keys
                .iter()
                .find(|key| key.columns.starts_with(&["namespace", "name"]))
                .map(|key| key.name),
            uid_key: uid_key(kind.table),
            columns: columns.len(),
            insert_head: format!("INSERT INTO `{}` ({}) VALUES ", kind.table, quoted(&columns)),
            update_head: format!("INSERT INTO `{}` (`{SEQ}`, {}) VALUES ", kind.table, quoted(&columns)),
            update_tail: dialect.on_any_conflict().to_owned() + &assignments.join(", "),
            state_columns: format!(
                "`{SEQ}`, `uid`, `namespace`, `name`, `res_version`, `content_hash`, {}, {}",
                time("delete_time"),
                time("evicted_time")
            ),
            stored_columns: format!(
                "`uid`, `json`, {}, {}, {}",
                time("update_time"),
                time("delete_time"),
                time("evicted_time")
            ),
        }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Parameters: [`padded`] uids.
    pub(super) fn states(&self, uids: usize, lock: bool) -> Statement {
        let lock = if lock { self.dialect.lock() } else { "" };
        kept(format!(
            "SELECT {} FROM `{}`{} WHERE `uid` IN ({}){lock}",
            self.state_columns,
            self.table,
            self.dialect.walk(&self.uid_key),
            marks("?", uids),
        ))
    }

    /// Parameters: `update_time`, `delete_time`, `evicted_time` and so on, a row after the other.
    pub(super) fn insert(&self, rows: usize) -> Statement {
        kept(self.insert_head.clone() + &row_marks(self.columns, rows))
    }

    /// As [`insert`](Self::insert), of rows that exist: each is replaced as a whole. A row's first parameter is its
    /// place, by which the engine finds it without the key of uids.
    pub(super) fn update(&self, rows: usize) -> Statement {
        kept(self.update_head.clone() + &row_marks(self.columns + 1, rows) + &self.update_tail)
    }

    /// Parameters: now, once or for `delete_time` and `evicted_time` twice, then [`padded`] uids.
    pub(super) fn relocate(&self, to: Life, uids: usize) -> Statement {
        let set = match to {
            Life::Live => "`update_time` = ?, `delete_time` = NULL, `evicted_time` = NULL",
            Life::Evicted => "`update_time` = ?, `delete_time` = NULL, `evicted_time` = ?",
            Life::Deleted => "`update_time` = ?, `delete_time` = ?",
        };
        kept(format!(
            "UPDATE `{}`{} SET {set} WHERE `uid` IN ({})",
            self.table,
            self.dialect.walk(&self.uid_key),
            marks("?", uids),
        ))
    }

    /// Parameters: [`padded`] uids.
    pub(super) fn rewind(&self, uids: usize) -> Statement {
        kept(format!(
            "UPDATE `{}`{} SET `res_version` = 0 WHERE `uid` IN ({})",
            self.table,
            self.dialect.walk(&self.uid_key),
            marks("?", uids),
        ))
    }

    /// All rows of these names that are not deleted. Parameters: [`padded`] pairs of namespace and name.
    pub(super) fn namesakes(&self, names: usize) -> Statement {
        let walk = self.names_key.map(|key| self.dialect.walk(key));
        kept(format!(
            "SELECT `uid`, `namespace`, `name`, `res_version`, {} FROM `{}`{} WHERE {} AND {}{}",
            self.dialect.time_text("evicted_time"),
            self.table,
            walk.unwrap_or_default(),
            self.dialect.pair_in("namespace", "name", names),
            self.dialect.is_null("delete_time"),
            self.dialect.lock(),
        ))
    }

    /// Parameters: [`padded`] uids.
    pub(super) fn delete_side(&self, side: Side, uids: usize) -> Statement {
        let table = format!("{}_{}", self.table, side.suffix());
        kept(format!(
            "{} WHERE `obj_uid` IN ({})",
            self.dialect.delete_from(&table, &format!("{table}_uid")),
            marks("?", uids),
        ))
    }

    /// Parameters: uid, key, value, a row after the other.
    pub(super) fn insert_side(&self, side: Side, rows: usize) -> Statement {
        let text = format!(
            "INSERT INTO `{}_{}` (`obj_uid`, `key`, `value`) VALUES {}",
            self.table,
            side.suffix(),
            marks("(?,?,?)", rows),
        );
        kept(text)
    }

    /// Parameters: the place after which to begin unless `first`, then the limit.
    pub(super) fn scan(&self, first: bool) -> Statement {
        let after = if first { "" } else { " WHERE `seq` > ?" };
        kept(format!(
            "SELECT {} FROM `{}`{after} ORDER BY `{SEQ}` LIMIT ?",
            self.state_columns, self.table,
        ))
    }

    /// Parameters: [`exact`] parameters of a namespace and of a name.
    pub(super) fn by_name(&self) -> Statement {
        kept(format!(
            "SELECT {} FROM `{}` WHERE {} AND {} AND {} ORDER BY {NEWEST_FIRST} LIMIT 1",
            self.stored_columns,
            self.table,
            exactly("namespace"),
            exactly("name"),
            self.dialect.is_null("delete_time"),
        ))
    }

    /// All rows of a name. Parameters: [`exact`] parameters of a namespace and of a name.
    pub(super) fn incarnations(&self) -> Statement {
        kept(format!(
            "SELECT {} FROM `{}` WHERE {} AND {} ORDER BY `delete_time` IS NOT NULL, {NEWEST_FIRST}",
            self.stored_columns,
            self.table,
            exactly("namespace"),
            exactly("name"),
        ))
    }

    /// For each name the row that is not deleted, else the one that was deleted last. Parameters:
    /// [`padded`] pairs of namespace and name.
    pub(super) fn newest(&self, names: usize) -> Statement {
        kept(format!(
            "SELECT {} FROM (SELECT `uid` AS newest_uid, ROW_NUMBER() OVER (PARTITION BY `namespace`, `name` \
             ORDER BY `delete_time` IS NOT NULL, `delete_time` DESC, `res_version` DESC) AS place FROM `{1}`{2} \
             WHERE {3}) AS newest {4} `{1}` WHERE `uid` = newest_uid AND place = 1",
            self.stored_columns,
            self.table,
            self.names_key.map(|key| self.dialect.walk(key)).unwrap_or_default(),
            self.dialect.pair_in("namespace", "name", names),
            self.dialect.join_in_order(),
        ))
    }

    /// Parameter: uid.
    pub(super) fn by_id(&self) -> Statement {
        kept(format!(
            "SELECT {} FROM `{}` WHERE `uid` = ?",
            self.stored_columns, self.table,
        ))
    }

    /// As [`by_id`](Self::by_id), of [`padded`] uids.
    pub(super) fn by_ids(&self, uids: usize) -> Statement {
        kept(format!(
            "SELECT {} FROM `{}`{} WHERE `uid` IN ({})",
            self.stored_columns,
            self.table,
            self.dialect.walk(&self.uid_key),
            marks("?", uids),
        ))
    }

    /// Parameters: [`exact`] parameters of a namespace and the uid after which to begin where asked
    /// for, then [`exact`] parameters of a key and of a value for each label, then the limit.
    pub(super) fn list(&self, filter: ListFilter) -> Statement {
        let mut conditions = Vec::new();
        if filter.namespace {
            conditions.push(exactly("namespace"));
        }
        if filter.after {
            conditions.push("`uid` > ?".to_owned());
        }
        if !filter.include_deleted {
            conditions.push(self.dialect.is_null("delete_time"));
        }
        let exists = format!(
            "EXISTS (SELECT 1 FROM `{0}_labels` WHERE `obj_uid` = `{0}`.`uid` AND {1} AND {2})",
            self.table,
            exactly("key"),
            exactly("value"),
        );
        conditions.extend(std::iter::repeat_n(exists, filter.labels));
        let filters = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        kept(format!(
            "SELECT {} FROM `{}`{filters} ORDER BY `uid` LIMIT ?",
            self.stored_columns, self.table,
        ))
    }

    /// One row: live, evicted, deleted.
    pub(super) fn count(&self) -> Statement {
        kept(format!(
            "SELECT COUNT(CASE WHEN `delete_time` IS NULL AND `evicted_time` IS NULL THEN 1 END), \
             COUNT(CASE WHEN `delete_time` IS NULL AND `evicted_time` IS NOT NULL THEN 1 END), \
             COUNT(`delete_time`) FROM `{}`",
            self.table,
        ))
    }
}

/// Which conditions a list has.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListFilter {
    pub(super) namespace: bool,
    pub(super) after: bool,
    pub(super) include_deleted: bool,
    pub(super) labels: usize,
}

/// The tables of a kind with the columns that the store needs.
pub(super) fn tables(kind: &Kind) -> Vec<(String, Vec<&'static str>)> {
    let side = |side: Side| {
        let name = format!("{}_{}", kind.table, side.suffix());
        (name, vec!["obj_uid", "key", "value"])
    };
    vec![
        (
            kind.table.to_owned(),
            main_columns(kind).into_iter().chain([SEQ]).collect(),
        ),
        side(Side::Labels),
        side(Side::Annotations),
    ]
}

fn main_columns(kind: &Kind) -> Vec<&'static str> {
    let extracted = kind.columns.iter().map(|column| column.name);
    LEADING.into_iter().chain(extracted).chain(TRAILING).collect()
}

/// The unique key of a main table.
pub(super) fn uid_key(table: &str) -> String {
    format!("{table}_uid")
}

/// `(?,?),(?,?)`
fn row_marks(columns: usize, rows: usize) -> String {
    marks(&format!("({})", marks("?", columns)), rows)
}

/// Equal to the byte. MySQL's binary collations pass over trailing spaces, which the length tells.
fn exactly(column: &str) -> String {
    format!("`{column}` = ? AND LENGTH(HEX(`{column}`)) = ?")
}

/// The parameters of an exact comparison.
pub(super) fn exact(text: &str) -> [Param<'_>; 2] {
    let hex_digits = i64::try_from(text.len() * 2).unwrap_or(i64::MAX);
    [Param::Text(text), Param::Int(hex_digits)]
}

/// The next size of a list that is kept prepared. The rest is filled by repeating the last name,
/// which changes nothing in an `IN` list.
pub(super) fn padded(names: usize) -> usize {
    const SIZES: [usize; 4] = [1, 10, 50, 200];
    SIZES.into_iter().find(|size| names <= *size).unwrap_or(LIST_MAX)
}

pub(super) fn quoted(columns: &[&str]) -> String {
    let quoted: Vec<String> = columns.iter().map(|column| format!("`{column}`")).collect();
    quoted.join(", ")
}

pub(super) fn kept(text: String) -> Statement {
    Statement {
        text: safe(text),
        keep: true,
    }
}

/// A statement whose like may never come again.
pub(super) fn once(text: String) -> Statement {
    Statement {
        text: safe(text),
        keep: false,
    }
}

pub(super) fn fixed(text: &'static str) -> Statement {
    Statement {
        text: text.into_sql_str(),
        keep: true,
    }
}

/// The one place where built text is declared safe: it is made of names from static tables,
/// the schema that the generator emitted, and placeholders.
pub(super) fn safe(text: String) -> SqlStr {
    AssertSqlSafe(text).into_sql_str()
}
