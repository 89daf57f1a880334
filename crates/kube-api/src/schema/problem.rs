//! An error in one field: its path and the API server's message.

use std::fmt;

use serde_json::Value;

use super::go_text;

/// The machine-readable class of a [`FieldError`]: the `reason` of a cause inside a Status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldReason {
    /// A value that must be there is not.
    Required,
    /// Two entries that must differ are equal.
    Duplicate,
    /// A value that breaks a rule.
    Invalid,
    /// A value of another JSON type than the schema's.
    TypeInvalid,
    /// A value outside a closed set.
    NotSupported,
    /// A value that may not be given here.
    Forbidden,
    /// A text over its limit.
    TooLong,
    /// More entries than the limit.
    TooMany,
}

impl FieldReason {
    /// The word on the wire, `FieldValueInvalid`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }
}

/// One problem with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The path from the root of the object: `spec.list[0].name`. `<nil>` where the API server names none.
    pub field: String,
    /// The class of the problem.
    pub reason: FieldReason,
    /// The text after the path: `Invalid value: "x": must be …`.
    pub message: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl FieldError {
    pub(super) fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new(field, FieldReason::Required, "Required value", detail)
    }

    pub(super) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(field, FieldReason::Forbidden, "Forbidden", detail)
    }

    pub(super) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::new(
            field,
            FieldReason::Invalid,
            &format!("Invalid value: {}", go_text::bad_value(value)),
            detail,
        )
    }

    /// A value that breaks a rule and is too large to be shown.
    pub(super) fn invalid_as_a_whole(field: impl Into<String>, detail: &str) -> Self {
        Self::new(field, FieldReason::Invalid, "Invalid value", detail)
    }

    /// `found` is the name of a JSON type, or the text whose form is wrong.
    pub(super) fn type_invalid(field: impl Into<String>, found: &str, detail: &str) -> Self {
        Self::new(
            field,
            FieldReason::TypeInvalid,
            &format!("Invalid value: {}", go_text::quote(found)),
            detail,
        )
    }

    pub(super) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new(
            field,
            FieldReason::Duplicate,
            &format!("Duplicate value: {}", go_text::bad_value(value)),
            "",
        )
    }

    pub(super) fn not_supported(field: impl Into<String>, value: &Value, supported: &[Value]) -> Self {
        let supported: Vec<String> = supported
            .iter()
            .map(|value| {
                value
                    .as_str()
                    .map_or_else(|| go_text::quote(&value.to_string()), go_text::quote)
            })
            .collect();
        let what = format!("Unsupported value: {}", go_text::bad_value(value));
        Self::new(
            field,
            FieldReason::NotSupported,
            &what,
            &format!("supported values: {}", supported.join(", ")),
        )
    }

    pub(super) fn too_long(field: impl Into<String>, limit: u64) -> Self {
        Self::new(
            field,
            FieldReason::TooLong,
            "Too long",
            &format!(
                "may not be more than {limit} {}",
                if limit == 1 { "byte" } else { "bytes" }
            ),
        )
    }

    pub(super) fn too_many(field: impl Into<String>, count: usize, limit: u64) -> Self {
        Self::new(
            field,
            FieldReason::TooMany,
            &format!("Too many: {count}"),
            &format!(
                "must have at most {limit} {}",
                if limit == 1 { "item" } else { "items" }
            ),
        )
    }

    fn new(field: impl Into<String>, reason: FieldReason, what: &str, detail: &str) -> Self {
        let message = if detail.is_empty() {
            what.to_owned()
        } else {
            format!("{what}: {detail}")
        };
        Self {
            field: field.into(),
            reason,
            message,
        }
    }
}

/// How many characters of a name are told: a map may have keys of a megabyte, and below them much that is wrong.
const NAME_MAX: usize = 512;
/// How many problems of one object are told.
const PROBLEMS_MAX: usize = 1000;

/// Whether there are so many problems that no more are looked for.
pub(super) fn is_enough(errors: &[FieldError]) -> bool {
    errors.len() >= PROBLEMS_MAX
}

/// The way from the root to a value, kept on the stack of the walk and written out only for a problem.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    /// A field of an object: `.name`.
    Field(&'a Path<'a>, &'a str),
    /// An entry of a list: `[0]`.
    Item(&'a Path<'a>, usize),
    /// An entry of a map, where the API server writes it `[key]`.
    Key(&'a Path<'a>, &'a str),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => write!(f, "{name:.NAME_MAX$}"),
            Self::Field(parent, name) => write!(f, "{parent}.{name:.NAME_MAX$}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
            Self::Key(parent, key) => write!(f, "{parent}[{key:.NAME_MAX$}]"),
        }
    }
}
