//! Where the engines' SQL differs, one small method for each difference. Knows no
//! table and no driver.

use std::fmt::Write as _;

use kindex_model::kind::{Column, ColumnType};

/// The differences between the engines, as far as text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL and MariaDB.
    MySql,
    /// SQLite.
    Sqlite,
}

impl Dialect {
    /// Selects a time so that [`super::driver::parse_time`] reads it.
    pub(super) fn time_text(self, column: &str) -> String {
        self.time_cell(&format!("`{column}`"))
    }

    /// As [`time_text`](Self::time_text), of a column that is already quoted.
    pub(super) fn time_cell(self, column: &str) -> String {
        match self {
            Self::MySql => format!("CAST({column} AS CHAR)"),
            Self::Sqlite => column.to_owned(),
        }
    }

    /// Before a query: asks for its plan, a row for each step.
    pub(super) fn explain(self) -> &'static str {
        match self {
            Self::MySql => "EXPLAIN FORMAT=TRADITIONAL",
            Self::Sqlite => "EXPLAIN QUERY PLAN",
        }
    }

    /// Ends a select whose rows no other writer may change before the transaction ends.
    /// A writing transaction of SQLite is alone from its start.
    pub(super) fn lock(self) -> &'static str {
        match self {
            Self::MySql => " FOR UPDATE",
            Self::Sqlite => "",
        }
    }

    /// A column has no value. Without statistics SQLite takes a key on a column that is NULL in nearly
    /// every row for a selective one; the sign keeps it from looking.
    /// <https://sqlite.org/optoverview.html>
    pub(super) fn is_null(self, column: &str) -> String {
        match self {
            Self::MySql => format!("`{column}` IS NULL"),
            Self::Sqlite => format!("+`{column}` IS NULL"),
        }
    }

    /// Whether a text has a digit, and nothing else.
    pub(super) fn has_digits_alone(self, text: &str) -> String {
        match self {
            Self::MySql => format!("{text} REGEXP '^[0-9]+$'"),
            Self::Sqlite => format!("{text} <> '' AND {text} NOT GLOB '*[^0-9]*'"),
        }
    }

    /// A text of at most so many characters, with zeros before it up to as many.
    pub(super) fn padded(self, text: &str, chars: usize) -> String {
        match self {
            Self::MySql => format!("LPAD({text}, {chars}, '0')"),
            Self::Sqlite => format!("substr('{:0chars$}' || {text}, -{chars})", 0),
        }
    }

    /// Names the key to walk. Without it InnoDB reads a small table from end to end, and
    /// waits for every row that another writer holds.
    pub(super) fn walk(self, key: &str) -> String {
        match self {
            Self::MySql => format!(" FORCE INDEX (`{key}`)"),
            Self::Sqlite => String::new(),
        }
    }

    /// Between an insert's rows and the assignments that replace a row with the same key.
    pub(super) fn on_conflict(self, key: &str) -> String {
        match self {
            Self::MySql => " ON DUPLICATE KEY UPDATE ".to_owned(),
            Self::Sqlite => format!(" ON CONFLICT ({key}) DO UPDATE SET "),
        }
    }

    /// As [`on_conflict`](Self::on_conflict), whichever key it is that is there.
    pub(super) fn on_any_conflict(self) -> &'static str {
        match self {
            Self::MySql => " ON DUPLICATE KEY UPDATE ",
            Self::Sqlite => " ON CONFLICT DO UPDATE SET ",
        }
    }

    /// Ends an insert that leaves rows as they are whose key is there already.
    pub(super) fn or_leave(self, column: &str, key: &str) -> String {
        match self {
            Self::MySql => format!(" ON DUPLICATE KEY UPDATE `{column}` = `{column}`"),
            Self::Sqlite => format!(" ON CONFLICT ({key}) DO NOTHING"),
        }
    }

    /// The beginning and the end of an insert that counts no row where one is there already: MySQL counts the row that
    /// [`or_leave`](Self::or_leave) leaves.
    pub(super) fn insert_or_leave(self) -> (&'static str, &'static str) {
        match self {
            Self::MySql => ("INSERT IGNORE INTO", ""),
            Self::Sqlite => ("INSERT INTO", " ON CONFLICT DO NOTHING"),
        }
    }

    /// The value that the insert came with. MySQL prefers a row alias since 8.0.20, which
    /// MariaDB does not know; both know this.
    pub(super) fn inserted(self, column: &str) -> String {
        match self {
            Self::MySql => format!("VALUES(`{column}`)"),
            Self::Sqlite => format!("excluded.`{column}`"),
        }
    }

    /// `(a, b)` is one of so many pairs.
    pub(super) fn pair_in(self, a: &str, b: &str, pairs: usize) -> String {
        let values = marks("(?,?)", pairs);
        match self {
            Self::MySql => format!("(`{a}`, `{b}`) IN ({values})"),
            Self::Sqlite => format!("(`{a}`, `{b}`) IN (VALUES {values})"),
        }
    }

    /// Joins the table on the right to each row of the one on the left, and never the other way round.
    pub(super) fn join_in_order(self) -> &'static str {
        match self {
            Self::MySql => "STRAIGHT_JOIN",
            Self::Sqlite => "CROSS JOIN",
        }
    }

    /// Deletes by a key that is named, as [`Dialect::walk`] says.
    pub(super) fn delete_from(self, table: &str, key: &str) -> String {
        match self {
            Self::MySql => format!("DELETE `{table}` FROM `{table}`{}", self.walk(key)),
            Self::Sqlite => format!("DELETE FROM `{table}`"),
        }
    }

    /// Whether a table is there: a row or none. Parameter: table.
    pub(super) fn has_table(self) -> &'static str {
        match self {
            Self::MySql => "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?",
            Self::Sqlite => "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?",
        }
    }

    /// Whether a column is there. Parameters: table, column.
    pub(super) fn has_column(self) -> &'static str {
        match self {
            Self::MySql => {
                "SELECT 1 FROM information_schema.columns \
                 WHERE table_schema = DATABASE() AND table_name = ? AND column_name = ?"
            }
            Self::Sqlite => "SELECT 1 FROM pragma_table_info(?) WHERE name = ?",
        }
    }

    /// Whether a key is there. Parameters: table, key.
    pub(super) fn has_key(self) -> &'static str {
        match self {
            Self::MySql => {
                "SELECT 1 FROM information_schema.statistics \
                 WHERE table_schema = DATABASE() AND table_name = ? AND index_name = ? LIMIT 1"
            }
            Self::Sqlite => "SELECT 1 FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND name = ?",
        }
    }

    /// All columns of all tables, in order: table, its collation, column, type, whether it is NOT NULL,
    /// whether it has a value by itself, its collation.
    pub(super) fn all_columns(self) -> &'static str {
        match self {
            Self::MySql => {
                "SELECT t.table_name, t.table_collation, c.column_name, CAST(c.column_type AS CHAR), \
                 c.is_nullable = 'NO', c.column_default IS NOT NULL OR c.extra <> '', c.collation_name \
                 FROM information_schema.tables AS t JOIN information_schema.columns AS c \
                 ON c.table_schema = t.table_schema AND c.table_name = t.table_name \
                 WHERE t.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' \
                 ORDER BY t.table_name, c.ordinal_position"
            }
            Self::Sqlite => {
                "SELECT m.name, NULL, c.name, c.type, c.\"notnull\", c.dflt_value IS NOT NULL OR c.pk > 0, NULL \
                 FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c \
                 WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY m.name, c.cid"
            }
        }
    }

    /// All columns of all keys, in order: table, key, column, whether values are unique. The primary
    /// key is called `PRIMARY`.
    pub(super) fn all_keys(self) -> &'static str {
        match self {
            Self::MySql => {
                "SELECT table_name, index_name, column_name, non_unique = 0 FROM information_schema.statistics \
                 WHERE table_schema = DATABASE() AND column_name IS NOT NULL \
                 ORDER BY table_name, index_name, seq_in_index"
            }
            Self::Sqlite => {
                "SELECT m.name, 'PRIMARY', c.name, 1, c.pk AS place FROM sqlite_master AS m \
                 JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' AND c.pk > 0 \
                 UNION ALL SELECT m.name, i.name, c.name, i.\"unique\", c.seqno AS place FROM sqlite_master AS m \
                 JOIN pragma_index_list(m.name) AS i JOIN pragma_index_info(i.name) AS c \
                 WHERE m.type = 'table' AND i.origin = 'c' AND c.name IS NOT NULL ORDER BY 1, 2, place"
            }
        }
    }

    /// Takes the lock of the one who migrates, and says 1, or 0 once so many seconds have passed.
    /// `None` where every statement of a migration is a transaction that waits for the others anyway.
    pub(super) fn take_migration_lock(self) -> Option<&'static str> {
        match self {
            Self::MySql => Some("SELECT GET_LOCK(SHA2(CONCAT('kindex migrate ', DATABASE()), 224), ?)"),
            Self::Sqlite => None,
        }
    }

    /// Whether this connection has that lock: 1 or 0.
    pub(super) fn holds_migration_lock(self) -> &'static str {
        match self {
            Self::MySql => {
                "SELECT COALESCE(IS_USED_LOCK(SHA2(CONCAT('kindex migrate ', DATABASE()), 224)) = CONNECTION_ID(), 0)"
            }
            Self::Sqlite => "SELECT 1",
        }
    }

    /// Before a statement that changes a table: it may wait only so long for the writers of the
    /// table, since all others wait behind it.
    pub(super) fn be_brief(self) -> Option<&'static str> {
        match self {
            Self::MySql => Some("SET SESSION lock_wait_timeout = 5"),
            Self::Sqlite => None,
        }
    }

    /// Sets columns of so many rows, each found by its place while it has a certain version. Parameters of
    /// each: place, version, values.
    pub(super) fn update_many(self, table: &str, columns: &[&Column], rows: usize) -> String {
        let assign = |value: fn(usize) -> String| {
            let one = |(at, column): (usize, &&Column)| format!("{} = {}", self.target(table, column.name), value(at));
            let all: Vec<String> = columns.iter().enumerate().map(one).collect();
            all.join(", ")
        };
        match self {
            Self::MySql => {
                let cells = columns.iter().enumerate();
                let cells: Vec<String> = cells
                    .map(|(at, column)| format!(", CAST(? AS {}) AS `c{at}`", cast(column.ty)))
                    .collect();
                let row = format!(
                    "SELECT CAST(? AS SIGNED) AS `seq`, CAST(? AS UNSIGNED) AS `version`{}",
                    cells.concat()
                );
                format!(
                    "UPDATE `{table}` JOIN ({}) AS `new` ON `{table}`.`seq` = `new`.`seq` \
                     AND `{table}`.`res_version` = `new`.`version` SET {}",
                    vec![row; rows].join(" UNION ALL "),
                    assign(|at| format!("`new`.`c{at}`"))
                )
            }
            Self::Sqlite => {
                let row = format!("({})", marks("?", columns.len() + 2));
                format!(
                    "UPDATE `{table}` SET {} FROM (VALUES {}) AS `new` WHERE `{table}`.`seq` = `new`.`column1` \
                     AND `{table}`.`res_version` = `new`.`column2`",
                    assign(|at| format!("`new`.`column{}`", at + 3)),
                    marks(&row, rows)
                )
            }
        }
    }

    /// A column as the target of an assignment beside another table.
    fn target(self, table: &str, column: &str) -> String {
        match self {
            Self::MySql => format!("`{table}`.`{column}`"),
            Self::Sqlite => format!("`{column}`"),
        }
    }
}

/// What a parameter of a derived table is cast to, so that it has the column's type.
fn cast(ty: ColumnType) -> &'static str {
    match ty {
        ColumnType::Text { .. } => "CHAR",
        ColumnType::Int32 | ColumnType::Int64 | ColumnType::Bool => "SIGNED",
        ColumnType::Double => "DOUBLE",
        ColumnType::Time => "DATETIME(6)",
    }
}

/// A mark so many times, with commas between.
pub(super) fn marks(mark: &str, times: usize) -> String {
    let mut text = String::with_capacity((mark.len() + 1) * times);
    for index in 0..times {
        let comma = if index == 0 { "" } else { "," };
        write!(text, "{comma}{mark}").expect("a string takes any text");
    }
    text
}
