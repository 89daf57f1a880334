//! The SQL text of a select, piece by piece. Knows what a condition means in each dialect,
//! and how to go on after a row; not who asks.

use kindex_model::kind::{ColumnType, Key};
use kindex_model::value::Value;
use kindex_query::Selection;
use kindex_query::select::{Condition, Direction, Order, Select};

use super::dialect::Dialect;
use super::sql::Side;
use super::statement::Statement;

/// Base columns that hold a value in every row.
pub(super) const REQUIRED: [&str; 6] = ["uid", "group_ver", "namespace", "name", "res_version", "create_time"];

/// What [`super::cells::stored`] reads.
pub(super) const OBJECT: &[(&str, ColumnType)] = &[
    ("uid", ColumnType::Text { chars: 64 }),
    ("json", ColumnType::Text { chars: u32::MAX }),
    ("update_time", ColumnType::Time),
    ("delete_time", ColumnType::Time),
    ("evicted_time", ColumnType::Time),
];

/// Which table is read first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
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

/// A query, or what holds one, as the statement that reads its first page: for looking at it and for `EXPLAIN`.
pub trait ToSql {
    /// The SQL text of the first page and the values it is bound to. Fetching asks for one row more, to know whether
    /// another page follows.
    fn to_sql(&self, dialect: Dialect) -> Statement;
}

impl<Q: Selection + ?Sized> ToSql for Q {
    fn to_sql(&self, dialect: Dialect) -> Statement {
        let select = self.selection();
        page_of(
            select,
            self.columns().unwrap_or(OBJECT),
            dialect,
            Lead::Engine,
            None,
            select.page_rows().into(),
        )
    }
}

/// The statement that reads `rows` rows of objects after the one that has these values in the query's
/// [`total_order`](Select::total_order).
pub(super) fn page(select: &Select, dialect: Dialect, lead: Lead, after: Option<&[Value]>, rows: i64) -> Statement {
    page_of(select, OBJECT, dialect, lead, after, rows)
}

/// The statement that reads these columns of `rows` rows, and then those of the order.
pub(super) fn page_of(
    select: &Select,
    columns: &[(&'static str, ColumnType)],
    dialect: Dialect,
    lead: Lead,
    after: Option<&[Value]>,
    rows: i64,
) -> Statement {
    let order = select.total_order();
    let mut writer = Writer::new(dialect, select, lead);
    writer.head(columns, &order);
    writer.filter(select);
    if let Some(after) = after {
        writer.next_condition();
        writer.after(&order, after);
    }
    writer.order(&order);
    writer.limit(rows);
    writer.finish()
}

/// What tells this query from others whose pages go on elsewhere: everything but the limit.
pub(super) fn identity(select: &Select) -> Statement {
    let mut writer = Writer::new(Dialect::Sqlite, select, Lead::Engine);
    writer.filter(select);
    writer.order(&select.total_order());
    writer.finish()
}

/// The statement that counts the rows of all pages.
pub(super) fn counting(select: &Select, dialect: Dialect) -> Statement {
    let mut writer = Writer::new(dialect, select, Lead::Engine);
    writer.push("SELECT COUNT(*) ");
    writer.filter(select);
    writer.finish()
}

/// A statement in the making, with `t` for the kind's table.
pub(super) struct Writer {
    dialect: Dialect,
    pub(super) lead: Lead,
    pub(super) table: &'static str,
    sql: String,
    values: Vec<Value>,
    conditions: usize,
    /// Rows without an order of their own are found by a key, and then put in order.
    sorts_uids: bool,
}

impl Writer {
    fn new(dialect: Dialect, select: &Select, lead: Lead) -> Self {
        Self {
            dialect,
            lead,
            table: select.kind().table,
            sorts_uids: select.order.is_empty() && !select.scan,
            sql: String::new(),
            values: Vec::new(),
            conditions: 0,
        }
    }

    fn filter(&mut self, select: &Select) {
        self.from(select);
        for label in self.unjoined(&select.labels) {
            self.next_condition();
            self.side(Side::Labels.suffix(), &label.key, &label.values, true);
        }
        for condition in &select.conditions {
            self.next_condition();
            self.condition(condition);
        }
    }

    fn finish(self) -> Statement {
        Statement {
            sql: self.sql,
            values: self.values,
        }
    }

    fn head(&mut self, columns: &[(&'static str, ColumnType)], order: &[Order]) {
        let ordered = order.iter().map(|order| (order.column, order.ty));
        let cells = columns.iter().copied().chain(ordered).map(|(name, ty)| {
            let column = column_of("t", name);
            match ty {
                ColumnType::Time => self.dialect.time_cell(&column),
                // A column of a decimal type is read as the double that it is compared with.
                ColumnType::Double => format!("{column} + 0e0"),
                ColumnType::Text { .. } | ColumnType::Int32 | ColumnType::Int64 | ColumnType::Bool => column,
            }
        });
        let cells: Vec<String> = cells.collect();
        self.push("SELECT ");
        self.push(&cells.join(", "));
        self.push(" ");
    }

    /// Begins a condition that must hold as well as those before.
    pub(super) fn next_condition(&mut self) {
        self.push(if self.conditions == 0 { " WHERE " } else { " AND " });
        self.conditions += 1;
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(super) fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Compare {
                column,
                operator,
                value,
            } => self.compare(column, operator, value),
            Condition::OneOf { column, values } => self.one_of(column, values),
            Condition::StartsWith { column, prefix } => self.starts_with(column, prefix),
            Condition::Null { column } => self.null(column),
            Condition::NotNull { column } => self.not_null(column),
            Condition::Differs { column, value } => self.matches_or_null(column, "<>", value),
            Condition::Empty { column, ty } => match ty {
                ColumnType::Text { .. } => self.matches_or_null(column, "=", &Value::Text(String::new())),
                ColumnType::Int32 | ColumnType::Int64 | ColumnType::Bool | ColumnType::Double | ColumnType::Time => {
                    self.null(column)
                }
            },
            Condition::NotEmpty { column, ty } => match ty {
                ColumnType::Text { .. } => self.compare(column, "<>", &Value::Text(String::new())),
                ColumnType::Int32 | ColumnType::Int64 | ColumnType::Bool | ColumnType::Double | ColumnType::Time => {
                    self.not_null(column)
                }
            },
            Condition::Side {
                suffix,
                key,
                values,
                present,
            } => self.side(suffix, key, values, *present),
            Condition::LabelWithin { key, least, most } => self.label_within(key, *least, *most),
            Condition::Exactly { column, values } => self.texts(column, values),
            Condition::Ordered { column, operator, text } => self.ordered(column, operator, text),
            Condition::Like { column, pattern } => self.like(column, pattern),
            Condition::All(conditions) => self.group(conditions, " AND ", "TRUE"),
            Condition::Any(conditions) => self.group(conditions, " OR ", "FALSE"),
            Condition::Not(condition) => self.not(condition),
        }
    }

    /// The rows that follow the one with these values. The bound on the first column says nothing
    /// that the alternatives do not say; it is what an engine walks a key by.
    fn after(&mut self, order: &[Order], values: &[Value]) {
        if order.len() > 1 {
            self.not_before(order[0], &values[0]);
        }
        self.push("(");
        let mut alternatives = 0;
        for (last, (sorted, value)) in order.iter().zip(values).enumerate() {
            if *value == Value::Null && sorted.direction == Direction::Descending {
                continue;
            }
            self.push(if alternatives == 0 { "" } else { " OR " });
            for (equal, value) in order.iter().zip(values).take(last) {
                self.same(equal.column, value);
                self.push(" AND ");
            }
            self.beyond(*sorted, value);
            alternatives += 1;
        }
        self.push(")");
    }

    fn order(&mut self, order: &[Order]) {
        for (number, order) in order.iter().enumerate() {
            self.push(if number == 0 { " ORDER BY " } else { ", " });
            self.column(order.column);
            self.push(match order.direction {
                Direction::Ascending => " ASC",
                Direction::Descending => " DESC",
            });
        }
    }

    fn limit(&mut self, rows: i64) {
        self.push(" LIMIT ");
        self.bind(Value::Int(rows));
    }

    pub(super) fn push(&mut self, sql: &str) {
        self.sql.push_str(sql);
    }

    pub(super) fn bind(&mut self, value: Value) {
        self.bind_as("?", value);
    }

    /// Binds a value where `mark` has its `?`.
    pub(super) fn bind_as(&mut self, mark: &str, value: Value) {
        self.sql.push_str(mark);
        self.values.push(value);
    }

    /// Without statistics SQLite would walk a whole table for the order of uids that its unique key
    /// has, in the hope of matching rows; the sign keeps it from that. <https://sqlite.org/optoverview.html>
    fn column(&mut self, column: &str) {
        let in_order = match self.lead {
            Lead::Label { number, .. } if column == "uid" => Some(format!("l{number}.`obj_uid`")),
            Lead::Key(_) if column == "uid" => Some("k.`uid`".to_owned()),
            Lead::Engine | Lead::Label { .. } | Lead::Key(_) => None,
        };
        if self.sorts_uids && in_order.is_none() && column == "uid" && self.dialect == Dialect::Sqlite {
            self.push("+");
        }
        self.push(&in_order.unwrap_or_else(|| column_of("t", column)));
    }

    fn compare(&mut self, column: &str, operator: &str, value: &Value) {
        self.push(&column_of("t", column));
        self.push(&format!(" {operator} "));
        self.bind(value.clone());
    }

    fn one_of(&mut self, column: &str, values: &[Value]) {
        if values.is_empty() {
            return self.push("FALSE");
        }
        self.push(&column_of("t", column));
        for (number, value) in values.iter().enumerate() {
            self.push(if number == 0 { " IN (" } else { ", " });
            self.bind(value.clone());
        }
        self.push(")");
    }

    /// SQLite's LIKE ignores case, and only its GLOB can use a key; MySQL has no GLOB.
    fn starts_with(&mut self, column: &str, prefix: &str) {
        self.push(&column_of("t", column));
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
        self.push(&column_of("t", column));
        self.push(" IS NULL");
    }

    fn not_null(&mut self, column: &str) {
        self.push(&column_of("t", column));
        self.push(" IS NOT NULL");
    }

    pub(super) fn exactly_one_of(&mut self, alias: &str, column: &str, values: &[String]) {
        match (self.dialect, values) {
            (_, []) => self.push("FALSE"),
            (_, [value]) => self.exactly(alias, column, value),
            (Dialect::MySql, values) => {
                for (number, value) in values.iter().enumerate() {
                    self.push(if number == 0 { "(" } else { " OR " });
                    self.exactly(alias, column, value);
                }
                self.push(")");
            }
            // A chain of so many words would be deeper than its parser goes.
            (Dialect::Sqlite, values) => {
                self.push(&column_of(alias, column));
                self.list("?", values);
            }
        }
    }

    /// Equal to the byte. MySQL's binary collations pass over spaces at the end, which the length tells.
    pub(super) fn exactly(&mut self, alias: &str, column: &str, text: &str) {
        let column = column_of(alias, column);
        self.push(&format!("{column} = "));
        self.bind(Value::Text(text.to_owned()));
        match self.dialect {
            Dialect::MySql => {
                self.push(&format!(" AND LENGTH({column}) = "));
                self.bind(Value::Int(i64::try_from(text.len()).unwrap_or(i64::MAX)));
            }
            Dialect::Sqlite => {}
        }
    }

    fn not_before(&mut self, order: Order, value: &Value) {
        match (order.direction, value) {
            // Everything follows a row without a value.
            (Direction::Ascending, Value::Null) => return,
            (Direction::Ascending, value) => self.compare(order.column, ">=", value),
            (Direction::Descending, Value::Null) => self.null(order.column),
            (Direction::Descending, value) => self.matches_or_null(order.column, "<=", value),
        }
        self.push(" AND ");
    }

    fn same(&mut self, column: &str, value: &Value) {
        match value {
            Value::Null => self.null(column),
            value => self.compare(column, "=", value),
        }
    }

    fn beyond(&mut self, order: Order, value: &Value) {
        match (order.direction, value) {
            (Direction::Ascending, Value::Null) => self.not_null(order.column),
            (Direction::Ascending, value) => {
                self.column(order.column);
                self.push(" > ");
                self.bind(value.clone());
            }
            (Direction::Descending, Value::Null) => unreachable!("nothing follows the rows without a value"),
            (Direction::Descending, value) => self.matches_or_null(order.column, "<", value),
        }
    }

    fn matches_or_null(&mut self, column: &str, operator: &str, value: &Value) {
        if REQUIRED.contains(&column) {
            return self.compare(column, operator, value);
        }
        self.push("(");
        self.compare(column, operator, value);
        self.push(" OR ");
        self.null(column);
        self.push(")");
    }
}

pub(super) fn column_of(alias: &str, column: &str) -> String {
    format!("{alias}.`{column}`")
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
