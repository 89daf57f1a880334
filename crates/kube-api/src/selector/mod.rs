//! Label and field selectors: parsed from query parameters, matched against objects. Knows nothing of the fields that a
//! resource can be selected by.

mod fields;
mod labels;

pub use fields::{FieldSelector, field_text, is_unselectable};
pub use labels::{LabelSelector, Requirement, Test};

/// The most terms of a selector: each object of a list is compared with all.
pub const TERMS_MAX: usize = 1000;
/// The most values of one of its sets.
pub const VALUES_MAX: usize = 10_000;

/// Why a selector cannot be parsed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// A label selector outside the grammar, in the words of the API server.
    #[error("{0}")]
    Labels(String),
    /// A selector of more terms than [`TERMS_MAX`], or of a set of more than [`VALUES_MAX`].
    #[error("a selector has at most {TERMS_MAX} terms, and a set in it at most {VALUES_MAX} values")]
    TooMany,
    /// A field selector outside the grammar.
    #[error("invalid selector: '{0}'; can't understand '{1}'")]
    Fields(String, String),
}
