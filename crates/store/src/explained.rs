//! How an engine reads a query, in one form for all engines. Knows no engine.

use crate::statement::Statement;

/// How an engine reads a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What it is asked.
    pub statement: Statement,
    /// What it does, in its order.
    pub steps: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// The rows that the step reads.
    pub access: Access,
    /// The alias of the table that is read: `t` is the kind's own.
    pub table: Option<String>,
    /// The key that is used.
    pub key: Option<String>,
    /// About how many rows it reads, where the engine estimates that.
    pub rows: Option<u64>,
    /// Whether the step puts rows in order.
    pub sorts: bool,
    /// The step as the engine describes it.
    pub text: String,
}

/// The rows that a step of a plan reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Those that a key finds.
    Search,
    /// All rows, in the order of a key, until there are enough.
    Walk,
    /// All rows.
    Scan,
    /// None by itself.
    Other,
}
