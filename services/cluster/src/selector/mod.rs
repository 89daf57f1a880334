//! Label and field selectors: parsed from query parameters, matched against objects. Refuses to know which fields a
//! resource lets itself be selected by.

mod fields;
mod labels;

pub use fields::FieldSelector;
pub use labels::LabelSelector;

/// Why a selector cannot be parsed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// A label selector outside the grammar.
    #[error("unable to parse requirement: {0}")]
    Labels(String),
    /// A field selector outside the grammar.
    #[error("invalid selector: '{0}'; can't understand '{1}'")]
    Fields(String, String),
}
