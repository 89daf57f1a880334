//! Field selectors and orders that people type: a column by its name in SQL or by its path in a
//! manifest. Names are looked up in the kind's static tables and values
//! are bound, so that nothing typed ever becomes SQL. Knows no spelling of SQL.

use kindex_model::kind::{ColumnType, Kind};
use kindex_model::projection::storable;
use kindex_model::spelling::nearest;
use kindex_model::value::{Unreadable, Value};

use crate::Select;
use crate::select::{Condition, Direction, Order};

/// Columns of every kind, with their paths in a manifest where they have one.
const BASE: [(&str, &str, ColumnType); 9] = [
    ("uid", "metadata.uid", TEXT),
    ("group_ver", "apiVersion", TEXT),
    ("namespace", "metadata.namespace", TEXT),
    ("name", "metadata.name", TEXT),
    ("res_version", "metadata.resourceVersion", ColumnType::Int64),
    ("create_time", "metadata.creationTimestamp", ColumnType::Time),
    ("update_time", "update_time", ColumnType::Time),
    ("delete_time", "delete_time", ColumnType::Time),
    ("evicted_time", "evicted_time", ColumnType::Time),
];
const TEXT: ColumnType = ColumnType::Text { chars: 255 };
/// Why a typed condition, order or selector is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The kind has no such column.
    #[error("{kind} has no column {column:?}: {help}")]
    Column {
        /// The kind.
        kind: &'static str,
        /// As it was typed.
        column: String,
        /// A suggestion, or the known columns.
        help: String,
    },
    /// Not an order.
    #[error("order {order:?}: {message}")]
    Order {
        /// As it was typed.
        order: String,
        /// What was expected.
        message: &'static str,
    },
    /// Not a condition.
    #[error("{message}\n  {text}\n  {caret}")]
    Expression {
        /// What was expected.
        message: String,
        /// As it was typed.
        text: String,
        /// Points at the position, in a line below.
        caret: String,
    },
    /// A group of conditions that is empty or too large.
    #[error("{0}")]
    Group(String),
    /// The column does not support the comparison.
    #[error("column {column}: {message}")]
    Comparison {
        /// The column.
        column: &'static str,
        /// Why.
        message: String,
    },
    /// The value cannot be compared with the column.
    #[error("column {column}: {source}")]
    Value {
        /// The column.
        column: &'static str,
        /// What its values look like.
        #[source]
        source: Unreadable,
    },
    /// Not a field selector. The message is that of the API server.
    #[error("{0}")]
    Fields(String),
}

impl Select {
    /// Only objects of a namespace.
    pub fn in_namespace(&mut self, namespace: &str) {
        let namespace = Value::Text(namespace.to_owned());
        self.conditions.push(Condition::equal("namespace", namespace));
    }

    /// Only rows whose fields a selector of Kubernetes matches, as in
    /// `metadata.name!=a,status.state=X`: a field is the path or the name of a column. As in
    /// Kubernetes a field without a value is empty, so that `!=` matches it. `\,`, `\=` and `\\`
    /// stand for the characters.
    ///
    /// # Errors
    /// What the API server refuses, with the same message; also a value of another type.
    pub fn filter_by_fields(&mut self, selector: &str) -> Result<(), TextError> {
        for term in terms(selector).into_iter().filter(|term| !term.is_empty()) {
            let at = |operator: &str| term.find(operator).map(|at| (at, operator.len()));
            let found = match (at("="), at("!=")) {
                (Some((equal, _)), Some((differ, width))) if differ < equal => Some((differ, width, false)),
                (Some((equal, _)), _) if term[equal..].starts_with("==") => Some((equal, 2, true)),
                (Some((equal, width)), _) => Some((equal, width, true)),
                (None, _) => None,
            };
            let Some((at, width, equal)) = found else {
                return Err(TextError::Fields(format!(
                    "invalid selector: '{selector}'; can't understand '{term}'"
                )));
            };
            self.size.grow(1).map_err(TextError::Fields)?;
            let value = unescaped(&term[at + width..])?;
            let field = &term[..at];
            let (column, ty) = find(self.kind(), field)
                .ok_or_else(|| TextError::Fields(format!("field label not supported: {field}")))?;
            self.conditions.push(match (value.is_empty(), equal) {
                (true, true) => Condition::Empty { column, ty },
                (true, false) => Condition::NotEmpty { column, ty },
                (false, true) => Condition::equal(column, operand(column, ty, &value)?),
                (false, false) => Condition::Differs {
                    column,
                    value: operand(column, ty, &value)?,
                },
            });
        }
        Ok(())
    }

    /// Sorts by a column, after any order given before: `column`, `column:asc` or `column:desc`.
    ///
    /// # Errors
    /// [`TextError`] for an unknown column or direction.
    pub fn order_by(&mut self, text: &str) -> Result<(), TextError> {
        let (column, direction) = match text.split_once(':') {
            None => (text, Direction::Ascending),
            Some((column, "asc")) => (column, Direction::Ascending),
            Some((column, "desc")) => (column, Direction::Descending),
            Some(_) => {
                return Err(TextError::Order {
                    order: text.to_owned(),
                    message: "expected asc or desc after the colon",
                });
            }
        };
        let (column, ty) = resolve(self.kind(), column)?;
        self.order.push(Order { column, ty, direction });
        Ok(())
    }
}

pub(super) fn resolve(kind: &'static Kind, text: &str) -> Result<(&'static str, ColumnType), TextError> {
    find(kind, text).ok_or_else(|| {
        let base = BASE.into_iter().map(|(name, ..)| name);
        let known: Vec<&str> = kind.columns.iter().map(|column| column.name).chain(base).collect();
        TextError::Column {
            kind: kind.name,
            column: text.to_owned(),
            help: match nearest(text, known.iter().copied()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("one of {}", known.join(", ")),
            },
        }
    })
}

/// The column of that name, or of that path.
fn find(kind: &'static Kind, text: &str) -> Option<(&'static str, ColumnType)> {
    let own = kind
        .columns
        .iter()
        .find(|column| column.name == text || column.path.iter().copied().eq(text.split('.')));
    let base = BASE.into_iter().find(|(name, path, _)| *name == text || *path == text);
    base.map(|(name, _, ty)| (name, ty))
        .or_else(|| own.map(|column| (column.name, column.ty)))
}

pub(super) fn operand(column: &'static str, ty: ColumnType, text: &str) -> Result<Value, TextError> {
    let value = Value::read(text, ty).map_err(|source| TextError::Value { column, source })?;
    check_time(column, &value)?;
    Ok(value)
}

/// Refuses a time outside the range of SQL, which servers refuse to compare.
pub(super) fn check_time(column: &'static str, value: &Value) -> Result<(), TextError> {
    match value {
        Value::Time(time) if !storable(time) => Err(TextError::Comparison {
            column,
            message: format!("{time} is beyond the years 1000 to 9999 that SQL holds"),
        }),
        Value::Time(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Double(_)
        | Value::Text(_) => Ok(()),
    }
}

/// Splits at commas that no backslash escapes.
fn terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if !escaped && c == ',' {
            terms.push(&text[start..at]);
            start = at + 1;
        }
        escaped = !escaped && c == '\\';
    }
    terms.push(&text[start..]);
    terms
}

fn unescaped(text: &str) -> Result<String, TextError> {
    let refused = |what: &str, shown: &str| TextError::Fields(format!("invalid field selector: {what}: {shown}"));
    let (mut value, mut characters) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(refused("invalid escape sequence", &sequence));
                }
            },
            '=' | ',' => return Err(refused("unescaped character in value", &c.to_string())),
            other => value.push(other),
        }
    }
    Ok(value)
}
