//! A query without types: conditions, order and limit over one kind's table, as a typed
//! query gathers them. Values are bound, and names come from column types and static
//! tables: no text of a caller ever becomes SQL. How it is spelled is known to the store's `statements` alone.

use kindex_model::kind::{ColumnType, Comparison, Kind};
use kindex_model::tables::Side;
use kindex_model::value::Value;

use super::pattern::Pattern;

/// The default page size in rows.
const PAGE_ROWS: u32 = 500;

/// Most comparisons of one query: SQLite parses at most a thousand that are joined by one operator.
const COMPARISONS_MAX: usize = 500;
/// Most values of one query.
const VALUES_MAX: usize = 2_000;

/// The size of the conditions that people typed, for the limits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QuerySize {
    comparisons: usize,
    values: usize,
}

impl QuerySize {
    /// Counts one more comparison, with so many values.
    ///
    /// # Errors
    /// If the query exceeds a limit.
    pub(crate) fn grow(&mut self, values: usize) -> Result<(), String> {
        self.comparisons += 1;
        self.values += values;
        match self {
            Self { comparisons, .. } if *comparisons > COMPARISONS_MAX => Err(format!(
                "a query has at most {COMPARISONS_MAX} comparisons: compare a column with several values by IN, or split \
                 it into several"
            )),
            Self { values, .. } if *values > VALUES_MAX => Err(format!(
                "a query has at most {VALUES_MAX} values: split it into several"
            )),
            Self { .. } => Ok(()),
        }
    }
}

/// The direction of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first; rows without a value come before all others.
    Ascending,
    /// Largest first; rows without a value come after all others.
    Descending,
}

/// A query.
#[derive(Clone, Debug)]
pub struct Select {
    kind: &'static Kind,
    /// Labels that a row must carry.
    pub labels: Vec<Label>,
    /// Conditions, all of which must hold.
    pub conditions: Vec<Condition>,
    /// Columns to sort by.
    pub order: Vec<Order>,
    /// Most rows a page.
    pub limit: Option<u32>,
    pub(crate) size: QuerySize,
    /// Whether the query may read the whole table.
    pub scan: bool,
}

/// A label that a row must carry, with one of these values.
#[derive(Clone, Debug)]
pub struct Label {
    /// The label's key.
    pub key: String,
    /// The values, of which it has one.
    pub values: Vec<String>,
}

/// A column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The column.
    pub column: &'static str,
    /// What it holds.
    pub ty: ColumnType,
    /// The direction.
    pub direction: Direction,
}

/// One condition; all of them must hold.
#[derive(Clone, Debug)]
pub enum Condition {
    /// A column compared with a value.
    Compare {
        /// The column.
        column: &'static str,
        /// How it is compared.
        comparison: Comparison,
        /// With what.
        value: Value,
    },
    /// One of these values.
    OneOf {
        /// The column.
        column: &'static str,
        /// The values.
        values: Vec<Value>,
    },
    /// A text with this prefix.
    StartsWith {
        /// The column.
        column: &'static str,
        /// The prefix.
        prefix: String,
    },
    /// No value.
    Null {
        /// The column.
        column: &'static str,
    },
    /// A value.
    NotNull {
        /// The column.
        column: &'static str,
    },
    /// Another value, or none.
    Differs {
        /// The column.
        column: &'static str,
        /// With what.
        value: Value,
    },
    /// No value, or the empty text.
    Empty {
        /// The column.
        column: &'static str,
        /// What the column holds.
        ty: ColumnType,
    },
    /// A value that is not the empty text.
    NotEmpty {
        /// The column.
        column: &'static str,
        /// What the column holds.
        ty: ColumnType,
    },
    /// Whether the side table has a row with this key and, where some are given, one of these values.
    Side {
        /// Which table.
        side: Side,
        /// The key.
        key: String,
        /// The values.
        values: Vec<String>,
        /// Whether there must be such a row, or must not.
        present: bool,
    },
    /// A label of this key whose value is a decimal integer within these bounds, both included.
    LabelWithin {
        /// The label's key.
        key: String,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// One of these texts, to the byte.
    Exactly {
        /// The column.
        column: &'static str,
        /// The values.
        values: Vec<String>,
    },
    /// A text before or after this one, by their code points.
    Ordered {
        /// The column.
        column: &'static str,
        /// How it is compared.
        comparison: Comparison,
        /// The text.
        text: String,
    },
    /// A text that matches this pattern.
    Like {
        /// The column.
        column: &'static str,
        /// The pattern.
        pattern: Pattern,
    },
    /// Each of them holds.
    All(Vec<Condition>),
    /// Some of them hold.
    Any(Vec<Condition>),
    /// Its negation holds; not the case if it is unknown, as in SQL.
    Not(Box<Condition>),
}

impl Condition {
    /// A column that has this value.
    pub fn equal(column: &'static str, value: Value) -> Self {
        Self::Compare {
            column,
            comparison: Comparison::Equal,
            value,
        }
    }

    fn equal_texts<'a>(&'a self, texts: &mut Vec<(&'static str, &'a str)>) {
        match self {
            Self::Compare {
                column,
                comparison: Comparison::Equal,
                value: Value::Text(text),
            } => texts.push((column, text)),
            Self::OneOf { column, values } => {
                for value in values {
                    if let Value::Text(text) = value {
                        texts.push((column, text));
                    }
                }
            }
            Self::Exactly { column, values } => texts.extend(values.iter().map(|text| (*column, text.as_str()))),
            Self::All(conditions) | Self::Any(conditions) => {
                for condition in conditions {
                    condition.equal_texts(texts);
                }
            }
            Self::Not(condition) => condition.equal_texts(texts),
            Self::Compare { .. }
            | Self::StartsWith { .. }
            | Self::Null { .. }
            | Self::NotNull { .. }
            | Self::Differs { .. }
            | Self::Empty { .. }
            | Self::NotEmpty { .. }
            | Self::Side { .. }
            | Self::LabelWithin { .. }
            | Self::Ordered { .. }
            | Self::Like { .. } => {}
        }
    }

    /// Whether it only compares the state: live, archived or deleted.
    pub fn is_of_life(&self) -> bool {
        match self {
            Self::Null { column } | Self::NotNull { column } => matches!(*column, "delete_time" | "evicted_time"),
            Self::All(conditions) | Self::Any(conditions) => conditions.iter().all(Self::is_of_life),
            Self::Not(condition) => condition.is_of_life(),
            Self::Compare { .. }
            | Self::OneOf { .. }
            | Self::StartsWith { .. }
            | Self::Differs { .. }
            | Self::Empty { .. }
            | Self::NotEmpty { .. }
            | Self::Side { .. }
            | Self::LabelWithin { .. }
            | Self::Exactly { .. }
            | Self::Ordered { .. }
            | Self::Like { .. } => false,
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
            size: QuerySize::default(),
            scan: false,
        }
    }

    /// The kind whose rows are asked for.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// The texts that columns are compared with for equality.
    pub fn equal_texts(&self) -> Vec<(&'static str, &str)> {
        let mut texts = Vec::new();
        for condition in &self.conditions {
            condition.equal_texts(&mut texts);
        }
        texts
    }

    /// Whether it has no condition other than on the state.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.conditions.iter().all(Condition::is_of_life)
    }

    /// The same rows, without those that are deleted, in order of uid.
    pub fn undeleted_by_uid(&self) -> Self {
        let mut select = self.clone();
        select.order.clear();
        select.conditions.push(Condition::Null { column: "delete_time" });
        select
    }

    /// Those of these rows that the query finds.
    pub fn among(&self, uids: &[&str]) -> Self {
        let mut select = self.clone();
        let values = uids.iter().map(|&uid| Value::Text(uid.to_owned())).collect();
        select.conditions.push(Condition::OneOf { column: "uid", values });
        select
    }

    /// The query's own order, and then `uid`, so that no two rows are equal in it. The last
    /// direction goes on: a key ends with the uid, and is walked one way.
    pub fn total_order(&self) -> Vec<Order> {
        let mut order: Vec<Order> = Vec::with_capacity(self.order.len() + 1);
        for wanted in &self.order {
            if order.iter().any(|sorted| sorted.column == wanted.column) {
                continue;
            }
            order.push(*wanted);
            if wanted.column == "uid" {
                return order;
            }
        }
        order.push(Order {
            column: "uid",
            ty: ColumnType::Text { chars: 64 },
            direction: order.last().map_or(Direction::Ascending, |last| last.direction),
        });
        order
    }

    /// Most rows a page.
    pub fn page_rows(&self) -> u32 {
        self.limit.filter(|rows| *rows > 0).unwrap_or(PAGE_ROWS)
    }
}
