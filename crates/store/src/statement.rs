//! SQL text and its values, and what can be spelled as such. Knows no engine.

use kindex_model::value::Value;

/// SQL text with `?` for each of the values.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The text.
    pub sql: String,
    /// The values, in the order of their `?`.
    pub values: Vec<Value>,
}
