//! One step of a path into an object, as `fieldsV1` writes it: `f:name`, `k:{"name":"a"}`, `v:"a"`, `i:0`. Refuses
//! to know sets.

use std::fmt;

use serde_json::{Map, Value};

/// A step from a value to one inside it. The order is that of the API server: fields, keys, values, indices.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Element {
    /// A field of an object.
    Field(String),
    /// The entry of a list map with these key fields, sorted by name.
    Key(Vec<(String, Scalar)>),
    /// The entry of a set.
    Value(Scalar),
    /// The entry at a position.
    Index(u64),
}

/// A scalar as its JSON text, which can be compared and ordered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scalar(String);

impl Scalar {
    pub(super) fn of(value: &Value) -> Self {
        Self(value.to_string())
    }

    fn value(&self) -> Value {
        serde_json::from_str(&self.0).expect("the text was written from a value")
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Element {
    /// Reads a key of `fieldsV1`; none for what is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        Some(match kind {
            "f" => Self::Field(rest.to_owned()),
            "i" => Self::Index(rest.parse().ok()?),
            "v" => Self::Value(Scalar::of(&serde_json::from_str(rest).ok()?)),
            "k" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
                Self::key(
                    keys.iter()
                        .map(|(name, value)| (name.clone(), Scalar::of(value)))
                        .collect(),
                )
            }
            _ => return None,
        })
    }

    pub(super) fn key(mut fields: Vec<(String, Scalar)>) -> Self {
        fields.sort();
        Self::Key(fields)
    }

    /// The key in `fieldsV1`.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("{}:{value}", Value::String(name.clone())))
                    .collect();
                format!("k:{{{}}}", fields.join(","))
            }
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// The step as messages write it: `.name`, `[name="a"]`, `[="a"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |scalar: &Scalar| match scalar.value() {
            Value::String(text) => crate::schema::quote(&text),
            other => other.to_string(),
        };
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("{name}={}", shown(value)))
                    .collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}
