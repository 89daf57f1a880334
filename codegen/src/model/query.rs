//! Named queries: a parsed condition over the columns of one kind. The text of the SQL is the emitters' business.

use super::{BaseColumn, ColumnName, KindName, QueryName};

/// A query with a name, declared under `[queries.<name>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// `failed-runs`.
    pub name: QueryName,
    /// Documentation; never empty.
    pub doc: String,
    /// The kind whose rows are searched. Only live rows are: the condition `delete_time IS NULL` is implied.
    pub kind: KindName,
    /// All must hold; never empty, and at least one narrows by the first column of a key.
    pub conditions: Vec<Condition>,
    /// Sort order; empty: none asked for.
    pub order_by: Vec<Order>,
    /// Most rows returned where the caller asks for no less.
    pub limit: Option<u32>,
}

/// `column comparison operand`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The column on the left.
    pub column: ColumnRef,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what.
    pub operand: Operand,
}

/// A column in a condition or an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnRef {
    /// One that every kind has.
    Base(BaseColumn),
    /// One of the kind's own; it exists.
    Extracted(ColumnName),
}

impl ColumnRef {
    /// The SQL name.
    pub fn name(&self) -> &str {
        match self {
            Self::Base(column) => column.name(),
            Self::Extracted(name) => name.as_str(),
        }
    }
}

/// Comparisons that a condition may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessOrEqual,
        Self::Greater,
        Self::GreaterOrEqual,
    ];

    /// The comparison with this operator.
    pub fn parse(operator: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|comparison| comparison.as_str() == operator)
    }

    /// The operator, the same in `crds.toml` and SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// The right side of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// `:state`, an argument of the emitted function; its type is the column's.
    Parameter(ColumnName),
    /// A fixed value that fits the column.
    Literal(Literal),
}

/// A fixed value in a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// `'text'`.
    Text(String),
    /// `42`; any that a column of integers can hold.
    Integer(i128),
    /// `true` or `false`.
    Bool(bool),
}

/// One step of a sort order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The column.
    pub column: ColumnRef,
    /// Which way.
    pub direction: Direction,
}

/// Ascending or descending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Small first.
    Ascending,
    /// Large first.
    Descending,
}
