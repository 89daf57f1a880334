//! A query without types: conditions, order and limit of one kind's table, and their SQL.
//! Values are bound, names come from the registry and from column types: no text of a
//! caller ever becomes SQL.

use std::fmt::Write;

use crate::kind::Kind;
use crate::value::Value;

/// The SQL that an engine speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL and MariaDB.
    MySql,
    /// SQLite.
    Sqlite,
}

/// Which way an order goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first; rows without a value come before all others.
    Ascending,
    /// Largest first; rows without a value come after all others.
    Descending,
}

/// SQL text with `?` for each of the values.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The text.
    pub sql: String,
    /// The values, in the order of their `?`.
    pub values: Vec<Value>,
}

/// What a query has gathered.
#[derive(Clone, Debug)]
pub struct Select {
    kind: &'static Kind,
    pub(super) labels: Vec<(String, String)>,
    pub(super) conditions: Vec<Condition>,
    pub(super) order: Vec<(&'static str, Direction)>,
    pub(super) limit: Option<u32>,
}

/// One condition; all of them must hold.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    Compare {
        column: &'static str,
        operator: &'static str,
        value: Value,
    },
    OneOf {
        column: &'static str,
        values: Vec<Value>,
    },
    StartsWith {
        column: &'static str,
        prefix: String,
    },
    Null {
        column: &'static str,
    },
    NotNull {
        column: &'static str,
    },
    /// A row of the side table with this key and, where given, this value.
    Side {
        suffix: &'static str,
        key: String,
        value: Option<String>,
    },
}

impl Condition {
    pub(super) fn equal(column: &'static str, value: Value) -> Self {
        Self::Compare {
            column,
            operator: "=",
            value,
        }
    }
}

impl Select {
    /// Everything in the kind's table.
    pub fn all(kind: &'static Kind) -> Self {
        Self {
            kind,
            labels: Vec::new(),
            conditions: Vec::new(),
            order: Vec::new(),
            limit: None,
        }
    }

    /// The kind whose rows are asked for.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// The statement that selects the objects' JSON.
    pub fn statement(&self, dialect: Dialect) -> Statement {
        let mut statement = self.tail(dialect);
        statement.sql.insert_str(0, "SELECT t.`json` ");
        statement
    }

    /// The statement from `FROM` on, with `t` for the kind's table: a store puts before it
    /// the columns that it reads.
    pub fn tail(&self, dialect: Dialect) -> Statement {
        let mut writer = Writer {
            dialect,
            table: self.kind.table,
            sql: format!("FROM `{}` AS t", self.kind.table),
            values: Vec::new(),
        };
        for (number, (key, value)) in self.labels.iter().enumerate() {
            writer.join_label(number, key, value);
        }
        for (number, condition) in self.conditions.iter().enumerate() {
            writer.push(if number == 0 { " WHERE " } else { " AND " });
            writer.condition(condition);
        }
        for (number, (column, direction)) in self.order.iter().enumerate() {
            writer.push(if number == 0 { " ORDER BY " } else { ", " });
            writer.order(column, *direction);
        }
        if let Some(limit) = self.limit {
            writer.push(&format!(" LIMIT {limit}"));
        }
        Statement {
            sql: writer.sql,
            values: writer.values,
        }
    }
}

struct Writer {
    dialect: Dialect,
    table: &'static str,
    sql: String,
    values: Vec<Value>,
}

impl Writer {
    fn push(&mut self, sql: &str) {
        self.sql.push_str(sql);
    }

    fn bind(&mut self, value: Value) {
        self.sql.push('?');
        self.values.push(value);
    }

    fn column(&mut self, alias: &str, column: &str) {
        write!(self.sql, "{alias}.`{column}`").expect("a string takes any text");
    }

    fn equal(&mut self, alias: &str, column: &str, value: Value) {
        self.column(alias, column);
        self.push(" = ");
        self.bind(value);
    }

    /// A join and not a subquery: both engines then may start from the label's key.
    fn join_label(&mut self, number: usize, key: &str, value: &str) {
        let alias = format!("l{number}");
        let table = self.table;
        self.push(&format!(
            " JOIN `{table}_labels` AS {alias} ON {alias}.`obj_uid` = t.`uid` AND "
        ));
        self.equal(&alias, "key", Value::Text(key.to_owned()));
        self.push(" AND ");
        self.equal(&alias, "value", Value::Text(value.to_owned()));
    }

    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Compare {
                column,
                operator,
                value,
            } => {
                self.column("t", column);
                self.push(&format!(" {operator} "));
                self.bind(value.clone());
            }
            Condition::OneOf { column, values } => self.one_of(column, values),
            Condition::StartsWith { column, prefix } => self.starts_with(column, prefix),
            Condition::Null { column } => self.null(column),
            Condition::NotNull { column } => {
                self.column("t", column);
                self.push(" IS NOT NULL");
            }
            Condition::Side { suffix, key, value } => self.side(suffix, key, value.as_deref()),
        }
    }

    fn one_of(&mut self, column: &str, values: &[Value]) {
        if values.is_empty() {
            return self.push("FALSE");
        }
        self.column("t", column);
        for (number, value) in values.iter().enumerate() {
            self.push(if number == 0 { " IN (" } else { ", " });
            self.bind(value.clone());
        }
        self.push(")");
    }

    /// SQLite's LIKE ignores case, and only its GLOB can use a key; MySQL has no GLOB.
    fn starts_with(&mut self, column: &str, prefix: &str) {
        self.column("t", column);
        match self.dialect {
            Dialect::MySql => {
                self.push(" LIKE ");
                self.bind(Value::Text(escape(prefix, "\\%_", |c| format!("\\{c}")) + "%"));
            }
            Dialect::Sqlite => {
                self.push(" GLOB ");
                self.bind(Value::Text(escape(prefix, "*?[", |c| format!("[{c}]")) + "*"));
            }
        }
    }

    /// Without statistics SQLite takes a key on a column that is NULL in nearly every row for a selective one;
    /// the sign keeps it from looking. <https://sqlite.org/optoverview.html>
    fn null(&mut self, column: &str) {
        match self.dialect {
            Dialect::MySql => {}
            Dialect::Sqlite => self.push("+"),
        }
        self.column("t", column);
        self.push(" IS NULL");
    }

    fn side(&mut self, suffix: &str, key: &str, value: Option<&str>) {
        let table = self.table;
        self.push(&format!(
            "EXISTS (SELECT 1 FROM `{table}_{suffix}` AS s WHERE s.`obj_uid` = t.`uid` AND "
        ));
        self.equal("s", "key", Value::Text(key.to_owned()));
        if let Some(value) = value {
            self.push(" AND ");
            self.equal("s", "value", Value::Text(value.to_owned()));
        }
        self.push(")");
    }

    fn order(&mut self, column: &str, direction: Direction) {
        self.column("t", column);
        match direction {
            Direction::Ascending => self.push(" ASC"),
            Direction::Descending => self.push(" DESC"),
        }
    }
}

/// The text with every one of `special` written as `quote` says.
fn escape(text: &str, special: &str, quote: impl Fn(char) -> String) -> String {
    text.chars()
        .map(|c| match special.contains(c) {
            true => quote(c),
            false => c.to_string(),
        })
        .collect()
}
