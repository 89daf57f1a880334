//! The SQL text of a select, piece by piece. Knows what a condition means in each dialect,
//! and how to go on after a row; not who asks.

use kindex_model::kind::{ColumnType, Key};
use kindex_model::tables::{Side, Tables};
use kindex_model::value::Value;
use kindex_query::Selection;
use kindex_query::select::{Condition, Direction, Order, Select};

use crate::dialect::{Dialect, Spelling};
use crate::engines;
use crate::statement::Statement;

/// Base columns that hold a value in every row.
pub(crate) const REQUIRED: [&str; 6] = ["uid", "group_ver", "namespace", "name", "res_version", "create_time"];

/// What [`crate::cells::stored`] reads.
pub(crate) const OBJECT: &[(&str, ColumnType)] = &[
    ("uid", ColumnType::Text { chars: 64 }),
    ("json", ColumnType::Text { chars: u32::MAX }),
    ("update_time", ColumnType::Time),
    ("delete_time", ColumnType::Time),
    ("evicted_time", ColumnType::Time),
    ("group_ver", ColumnType::Text { chars: 64 }),
];

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

/// A query, or what holds one, as the statement that reads its first page: for looking at it and for `EXPLAIN`.
pub trait ToSql {
    /// The SQL text of the first page and the values it is bound to. Fetching asks for one row more, to know whether
    /// another page follows. SQLite has a [`Value::UInt`] from 2^63 on as text of 20 digits.
    fn to_sql(&self, dialect: Dialect) -> Statement;
}

impl<Q: Selection + ?Sized> ToSql for Q {
    fn to_sql(&self, dialect: Dialect) -> Statement {
        let (select, spelling) = (self.selection(), engines::spelling(dialect));
        let columns = self.columns().unwrap_or(OBJECT);
        let rows = select.page_rows().into();
        spelt(page_of(select, columns, spelling, Lead::Engine, None, rows), spelling)
    }
}

/// As the engine takes it.
pub(crate) fn spelt(statement: Statement, spelling: &dyn Spelling) -> Statement {
    Statement {
        sql: spelling.spell(&statement.sql),
        values: statement.values,
    }
}

/// The statement that reads `rows` rows of objects after the one that has these values in the query's
/// [`total_order`](Select::total_order).
pub(crate) fn page(
    select: &Select,
    spelling: &'static dyn Spelling,
    lead: Lead,
    after: Option<&[Value]>,
    rows: i64,
) -> Statement {
    page_of(select, OBJECT, spelling, lead, after, rows)
}

/// The statement that reads these columns of `rows` rows, and then those of the order.
pub(crate) fn page_of(
    select: &Select,
    columns: &[(&'static str, ColumnType)],
    spelling: &'static dyn Spelling,
    lead: Lead,
    after: Option<&[Value]>,
    rows: i64,
) -> Statement {
    let order = select.total_order();
    let mut writer = Writer::new(spelling, select, lead);
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
pub(crate) fn identity(select: &Select) -> Statement {
    let spelling = engines::of_tokens();
    let mut writer = Writer::new(spelling, select, Lead::Engine);
    writer.filter(select);
    writer.order(&select.total_order());
    spelt(writer.finish(), spelling)
}

/// The statement that counts the rows of all pages.
pub(crate) fn counting(select: &Select, spelling: &'static dyn Spelling) -> Statement {
    let mut writer = Writer::new(spelling, select, Lead::Engine);
    writer.push("SELECT COUNT(*) ");
    writer.filter(select);
    writer.finish()
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
    sorts_uids: bool,
}

impl Writer {
    fn new(spelling: &'static dyn Spelling, select: &Select, lead: Lead) -> Self {
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

    fn filter(&mut self, select: &Select) {
        self.from(select);
        for label in self.unjoined(&select.labels) {
            self.next_condition();
            self.side(Side::Labels, &label.key, &label.values, true);
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
                ColumnType::Time => self.spelling.time(&column),
                // A column of a decimal type is read as the double that it is compared with.
                ColumnType::Double => format!("{column} + 0e0"),
                ColumnType::Text { .. }
                | ColumnType::Int32
                | ColumnType::Int64
                | ColumnType::UInt64
                | ColumnType::Bool => column,
            }
        });
        let cells: Vec<String> = cells.collect();
        self.push("SELECT ");
        self.push(&cells.join(", "));
        self.push(" ");
    }

    /// Begins a condition that must hold as well as those before.
    pub(crate) fn next_condition(&mut self) {
        self.push(if self.conditions == 0 { " WHERE " } else { " AND " });
        self.conditions += 1;
    }

    pub(crate) fn spelling(&self) -> &'static dyn Spelling {
        self.spelling
    }

    pub(crate) fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Compare {
                column,
                operator,
                value,
            } => self.compare(column, operator, value),
            Condition::OneOf { column, values } => self.one_of(column, values),
            Condition::StartsWith { column, prefix } => {
                let piece = self.spelling.starts_with(&column_of("t", column), prefix);
                self.put(piece);
            }
            Condition::Null { column } => self.null(column),
            Condition::NotNull { column } => self.not_null(column),
            Condition::Differs { column, value } => self.matches_or_null(column, "<>", value),
            Condition::Empty { column, ty } => match ty {
                ColumnType::Text { .. } => self.matches_or_null(column, "=", &Value::Text(String::new())),
                ColumnType::Int32
                | ColumnType::Int64
                | ColumnType::UInt64
                | ColumnType::Bool
                | ColumnType::Double
                | ColumnType::Time => self.null(column),
            },
            Condition::NotEmpty { column, ty } => match ty {
                ColumnType::Text { .. } => self.compare(column, "<>", &Value::Text(String::new())),
                ColumnType::Int32
                | ColumnType::Int64
                | ColumnType::UInt64
                | ColumnType::Bool
                | ColumnType::Double
                | ColumnType::Time => self.not_null(column),
            },
            Condition::Side {
                side,
                key,
                values,
                present,
            } => self.side(*side, key, values, *present),
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

    /// No engine may walk a whole table for the order of uids, in the hope of matching rows.
    fn column(&mut self, column: &str) {
        let in_order = match self.lead {
            Lead::Label { number, .. } if column == "uid" => Some(format!("l{number}.[obj_uid]")),
            Lead::Key(_) if column == "uid" => Some("k.[uid]".to_owned()),
            Lead::Engine | Lead::Label { .. } | Lead::Key(_) => None,
        };
        let named = column_of("t", column);
        let text = match in_order {
            Some(in_order) => in_order,
            None if self.sorts_uids && column == "uid" => self.spelling.unkeyed(&named),
            None => named,
        };
        self.push(&text);
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
        let condition = self.spelling.value_in(&column_of("t", column), values.len());
        // People are shown the statement.
        self.push(&condition.replace(',', ", "));
        self.values.extend_from_slice(values);
    }

    fn null(&mut self, column: &str) {
        let column = self.spelling.unkeyed(&column_of("t", column));
        self.push(&format!("{column} IS NULL"));
    }

    fn not_null(&mut self, column: &str) {
        self.push(&column_of("t", column));
        self.push(" IS NOT NULL");
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

pub(crate) fn column_of(alias: &str, column: &str) -> String {
    format!("{alias}.[{column}]")
}
