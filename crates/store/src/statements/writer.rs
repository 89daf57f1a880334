//! A statement in the making: its text and the values that are bound to it, piece by piece. Knows the notation of
//! `dialect`, and what equality to the byte is; no condition and no table.

use kindex_model::kind::Key;
use kindex_model::tables::Tables;
use kindex_model::value::Value;
use kindex_query::select::Select;

use crate::dialect::Spelling;
use crate::statement::Statement;

/// Base columns that hold a value in every row.
pub(crate) const REQUIRED: [&str; 6] = ["uid", "group_ver", "namespace", "name", "res_version", "create_time"];

/// Which table is read first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// The one that the engine takes.
    Engine,
    /// The table of labels, in the order of uids that its key has for one label.
    Label {
        /// Which of the query's labels.
        number: usize,
        /// A key of the main table whose columns all have one value each: it tells whether an object is
        /// wanted without reading its row.
        through: Option<&'static Key>,
    },
    /// The main table, in the order of uids that this key has, as all its columns have one value each.
    Key(&'static Key),
}

/// A statement in the making, with `t` for the kind's table.
pub(crate) struct Writer {
    spelling: &'static dyn Spelling,
    pub(crate) lead: Lead,
    pub(crate) tables: Tables,
    sql: String,
    values: Vec<Value>,
    conditions: usize,
    /// Rows without an order of their own are found by a key, and then put in order.
    pub(super) sorts_uids: bool,
}

impl Writer {
    pub(super) fn new(spelling: &'static dyn Spelling, select: &Select, lead: Lead) -> Self {
        Self {
            spelling,
            lead,
            tables: select.kind().tables(),
            sorts_uids: select.order.is_empty() && !select.scan,
            sql: String::new(),
            values: Vec::new(),
            conditions: 0,
        }
    }

    pub(super) fn finish(self) -> Statement {
        Statement {
            sql: self.sql,
            values: self.values,
        }
    }

    /// Begins a condition that must hold as well as those before.
    pub(crate) fn next_condition(&mut self) {
        self.push(if self.conditions == 0 { " WHERE " } else { " AND " });
        self.conditions += 1;
    }

    pub(crate) fn spelling(&self) -> &'static dyn Spelling {
        self.spelling
    }

    pub(crate) fn push(&mut self, sql: &str) {
        self.sql.push_str(sql);
    }

    pub(crate) fn bind(&mut self, value: Value) {
        self.sql.push('?');
        self.values.push(value);
    }

    /// Adds what the engine says of a condition.
    pub(crate) fn put(&mut self, piece: Statement) {
        self.sql.push_str(&piece.sql);
        self.values.extend(piece.values);
    }

    pub(crate) fn exactly_one_of(&mut self, alias: &str, column: &str, values: &[String]) {
        match values {
            [] => self.push("FALSE"),
            [value] => self.exactly(alias, column, value),
            values => {
                let piece = self.spelling.one_of(&column_of(alias, column), values);
                self.put(piece);
            }
        }
    }

    /// Equal to the byte.
    pub(crate) fn exactly(&mut self, alias: &str, column: &str, text: &str) {
        let piece = self.spelling.equals(&column_of(alias, column), text);
        self.put(piece);
    }
}

pub(crate) fn column_of(alias: &str, column: &str) -> String {
    format!("{alias}.[{column}]")
}
