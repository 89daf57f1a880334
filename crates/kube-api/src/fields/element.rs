//! One step of a path into an object, as `fieldsV1` writes it: `f:name`, `k:{"name":"a"}`, `v:"a"`, `i:0`. Knows
//! nothing of sets.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// A step from a value to one inside it. The order is that of the API server: fields, keys, values, indices. Sets of
/// paths that are made of one another share their texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Element {
    /// A field of an object.
    Field(Arc<str>),
    /// The entry of a list map with these key fields: as JSON, sorted by name.
    Key(Arc<str>),
    /// The entry of a set, as JSON.
    Value(Arc<str>),
    /// The entry at a position.
    Index(u64),
}

impl Element {
    /// Reads a key of `fieldsV1`; none for what is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        Some(match kind {
            "f" => Self::field(rest),
            "i" => Self::Index(rest.parse().ok()?),
            "v" => Self::value(&serde_json::from_str(rest).ok()?),
            "k" => {
                let keys: BTreeMap<String, Value> = serde_json::from_str(rest).ok()?;
                Self::key(keys.iter().map(|(name, value)| (name.as_str(), value)).collect())
            }
            _ => return None,
        })
    }

    pub(super) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    pub(super) fn value(scalar: &Value) -> Self {
        Self::Value(scalar.to_string().into())
    }

    pub(super) fn key(mut fields: Vec<(&str, &Value)>) -> Self {
        fields.sort_by_key(|(name, _)| *name);
        let fields: Vec<String> = fields
            .into_iter()
            .map(|(name, value)| format!("{}:{value}", Value::from(name)))
            .collect();
        Self::Key(format!("{{{}}}", fields.join(",")).into())
    }

    /// The key in `fieldsV1`.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => format!("k:{fields}"),
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// The step as messages write it: `.name`, `[name="a"]`, `[="a"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |scalar: Value| match scalar {
            Value::String(text) => crate::schema::quote(&text),
            other => other.to_string(),
        };
        let written = "the text was written from a value";
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: BTreeMap<String, Value> = serde_json::from_str(fields).expect(written);
                let fields: Vec<String> = fields
                    .into_iter()
                    .map(|(name, value)| format!("{name}={}", shown(value)))
                    .collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", shown(serde_json::from_str(value).expect(written))),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}
