//! One step of a path into an object, as `fieldsV1` writes it: `f:name`, `k:{"name":"a"}`, `v:"a"`, `i:0`. Knows
//! nothing of sets.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::size::{quoted_bytes, text_bytes};

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
            "v" if is_plain(rest) => Self::Value(rest.into()),
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
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(fields) => ["k:", fields].concat(),
            Self::Value(value) => ["v:", value].concat(),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// The length of this key as JSON, which is not made.
    pub(super) fn text_bytes(&self) -> usize {
        const PREFIX_BYTES: usize = "f:".len();
        const QUOTES_BYTES: usize = 2;
        let rest = match self {
            Self::Field(text) | Self::Key(text) | Self::Value(text) => quoted_bytes(text),
            Self::Index(index) => QUOTES_BYTES + text_bytes(&Value::from(*index)),
        };
        PREFIX_BYTES + rest
    }
}

/// Whether this is a text in JSON of which nothing is escaped: then it is written as it was read. Sets of thousands of
/// finalizers are read with each write.
fn is_plain(json: &str) -> bool {
    let text = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    text.is_some_and(|text| !text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\'))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_read_as_it_would_be_written() {
        for written in [
            r#""""#,
            r#""example.com/a""#,
            "\"é\u{7f}😀\"",
            r#""a\"b""#,
            r#""a\\""#,
            r#""\u0041\/""#,
            "1.0",
            "true",
        ] {
            let value: Value = serde_json::from_str(written).unwrap();
            let read = Element::parse(&format!("v:{written}"));
            assert_eq!(read, Some(Element::value(&value)), "{written}");
        }
        for broken in [r#"""#, r#""a"#, r#""a"b""#, r#""a\""#, "\"a\nb\""] {
            assert_eq!(Element::parse(&format!("v:{broken}")), None, "{broken}");
        }
    }

    #[test]
    fn a_key_is_measured_as_it_would_be_written() {
        let (name, port) = (json!("é\"\\\n\u{1}"), json!(80));
        let elements = [
            Element::field(""),
            Element::field("plain"),
            Element::field("é\"\\\n\u{1}\u{7f}/😀"),
            Element::value(&name),
            Element::value(&port),
            Element::key(vec![("name", &name), ("port", &port)]),
            Element::Index(0),
            Element::Index(10),
            Element::Index(u64::MAX),
        ];
        for element in elements {
            let written = Value::from(element.text()).to_string();
            assert_eq!(element.text_bytes(), written.len(), "{written}");
        }
    }
}
