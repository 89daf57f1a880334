//! Label and field selectors: parsed from query parameters, matched against objects. Refuses to know which fields a
//! resource lets itself be selected by.

mod fields;
mod labels;

pub use fields::{FieldSelector, field_text};
pub use labels::LabelSelector;

/// The most terms of a selector, and the most values of one of its sets: each object of a list is compared with all.
pub const TERMS_MAX: usize = 1000;

/// Why a selector cannot be parsed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// A label selector outside the grammar.
    #[error("unable to parse requirement: {0}")]
    Labels(String),
    /// A selector of more terms than [`TERMS_MAX`].
    #[error("a selector has at most {TERMS_MAX} terms, and a set in it at most as many values")]
    TooMany,
    /// A field selector outside the grammar.
    #[error("invalid selector: '{0}'; can't understand '{1}'")]
    Fields(String, String),
}
