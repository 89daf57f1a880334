//! A parsed expression. Lists of operands are flat, so that its depth is bounded by that of its parentheses.

/// What a rule speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schema) enum Variable {
    /// `self`: the value as it is to be.
    New,
    /// `oldSelf`: the value as it is stored.
    Old,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schema) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A question about a string: `text.startsWith(part)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schema) enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
}

/// One expression.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::schema) enum Expression {
    Bool(bool),
    Int(i64),
    Text(String),
    Variable(Variable),
    Field(Box<Expression>, String),
    Has(Box<Expression>, String),
    Size(Box<Expression>),
    Test(TextTest, Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
    Compare(Comparison, Box<Expression>, Box<Expression>),
    Sum(Vec<Expression>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    If(Box<[Expression; 3]>),
}

impl Expression {
    /// Whether it speaks of `oldSelf`: a transition rule, which is asked on updates alone.
    pub(in crate::schema) fn is_transition(&self) -> bool {
        match self {
            Self::Variable(variable) => *variable == Variable::Old,
            Self::Bool(_) | Self::Int(_) | Self::Text(_) => false,
            Self::Field(of, _) | Self::Has(of, _) | Self::Size(of) | Self::Not(of) => of.is_transition(),
            Self::Test(_, a, b) | Self::Compare(_, a, b) => a.is_transition() || b.is_transition(),
            Self::Sum(all) | Self::And(all) | Self::Or(all) => all.iter().any(Self::is_transition),
            Self::If(parts) => parts.iter().any(Self::is_transition),
        }
    }
}

/// Why a rule is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schema) enum Refusal {
    /// It is no expression, or compares what cannot be compared: no API server takes it.
    Wrong(String),
    /// CEL that is not evaluated here.
    Unsupported(String),
}
