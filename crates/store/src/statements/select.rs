//! The SQL text of a select: its columns, filters and order, and how to go on after a row. Does not know who asks.

use kindex_model::kind::{ColumnType, Comparison};
use kindex_model::tables::Side;
use kindex_model::value::Value;
use kindex_query::Selection;
use kindex_query::select::{Direction, Order, Select};

use crate::dialect::{Dialect, Spelling};
use crate::engines;
use crate::statement::Statement;
use crate::statements::writer::{Lead, Writer, column_of};

/// What [`crate::cells::stored`] reads.
pub(crate) const OBJECT: &[(&str, ColumnType)] = &[
    ("uid", ColumnType::Text { chars: 64 }),
    ("json", ColumnType::Text { chars: u32::MAX }),
    ("update_time", ColumnType::Time),
    ("delete_time", ColumnType::Time),
    ("evicted_time", ColumnType::Time),
    ("group_ver", ColumnType::Text { chars: 64 }),
];

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
        spelled(page_of(select, columns, spelling, Lead::Engine, None, rows), spelling)
    }
}

/// As the engine takes it.
pub(crate) fn spelled(statement: Statement, spelling: &dyn Spelling) -> Statement {
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
    spelled(writer.finish(), spelling)
}

/// The statement that counts the rows of all pages.
pub(crate) fn counting(select: &Select, spelling: &'static dyn Spelling) -> Statement {
    let mut writer = Writer::new(spelling, select, Lead::Engine);
    writer.push("SELECT COUNT(*) ");
    writer.filter(select);
    writer.finish()
}

impl Writer {
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

    fn head(&mut self, columns: &[(&'static str, ColumnType)], order: &[Order]) {
        let ordered = order.iter().map(|order| (order.column, order.ty));
        let cells = columns.iter().copied().chain(ordered).map(|(name, ty)| {
            let column = column_of("t", name);
            match ty {
                ColumnType::Time => self.spelling().time(&column),
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
            self.push(" ");
            self.push(self.spelling().direction(order.direction));
        }
    }

    fn limit(&mut self, rows: i64) {
        self.push(" LIMIT ");
        self.bind(Value::Int(rows));
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
            None if self.sorts_uids && column == "uid" => self.spelling().unkeyed(&named),
            None => named,
        };
        self.push(&text);
    }

    fn not_before(&mut self, order: Order, value: &Value) {
        match (order.direction, value) {
            // Everything follows a row without a value.
            (Direction::Ascending, Value::Null) => return,
            (Direction::Ascending, value) => self.compare(order.column, Comparison::GreaterOrEqual, value),
            (Direction::Descending, Value::Null) => self.null(order.column),
            (Direction::Descending, value) => self.matches_or_null(order.column, Comparison::LessOrEqual, value),
        }
        self.push(" AND ");
    }

    fn same(&mut self, column: &str, value: &Value) {
        match value {
            Value::Null => self.null(column),
            value => self.compare(column, Comparison::Equal, value),
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
            (Direction::Descending, value) => self.matches_or_null(order.column, Comparison::Less, value),
        }
    }
}
