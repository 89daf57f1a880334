//! A JSON text that is taken apart only along the paths that are asked for. What is not asked for stays as it is
//! written, to the byte.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// JSON names from the root of an object.
pub(crate) type Path = [&'static str];

/// Why an object has no form in another version.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It is no JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// It has no identity.
    #[error(transparent)]
    Object(#[from] kindex_model::object::ObjectError),
    /// Its `apiVersion` is not one of the kind's.
    #[error("apiVersion {0:?} is not a version of this kind")]
    UnknownVersion(String),
    /// A value belongs into an object, and something else is there.
    #[error("{0}: not an object")]
    NotAnObject(String),
    /// A function of the platform refused the value.
    #[error("{path}: {message}")]
    Function {
        /// Where the value is.
        path: String,
        /// What the function said.
        message: String,
    },
}

/// A value: its text, or its fields once somebody looked inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Text(String),
    Fields(Vec<(String, Node)>),
}

impl Node {
    /// The value with this text.
    pub(crate) fn of(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The fields in the order of the text; `None` where the value is not an object.
    fn fields(&mut self) -> Result<Option<&mut Vec<(String, Node)>>, serde_json::Error> {
        if let Self::Text(text) = self
            && text.trim_start().starts_with('{')
        {
            let Entries(entries) = serde_json::from_str(text)?;
            *self = Self::Fields(entries);
        }
        Ok(match self {
            Self::Fields(fields) => Some(fields),
            Self::Text(_) => None,
        })
    }

    /// The value at `path`.
    pub(crate) fn at(&mut self, path: &[&str]) -> Result<Option<&mut Self>, serde_json::Error> {
        let mut node = self;
        for name in path {
            let Some(fields) = node.fields()? else {
                return Ok(None);
            };
            let Some((_, next)) = fields.iter_mut().rev().find(|(field, _)| field == name) else {
                return Ok(None);
            };
            node = next;
        }
        Ok(Some(node))
    }

    /// Takes the value at `path` out.
    pub(crate) fn take(&mut self, path: &[&str]) -> Result<Option<Self>, serde_json::Error> {
        let Some((last, parents)) = path.split_last() else {
            return Ok(None);
        };
        let Some(parent) = self.at(parents)? else {
            return Ok(None);
        };
        let Some(fields) = parent.fields()? else {
            return Ok(None);
        };
        let found = fields.iter().rposition(|(field, _)| field == last);
        Ok(found.map(|at| fields.remove(at).1))
    }

    /// Puts `value` at `path`, in place of what is there, and makes the objects above it where they are absent. Returns
    /// the lengths of the paths of those, the outermost first.
    pub(crate) fn put(&mut self, path: &[&str], value: Self) -> Result<Vec<usize>, Problem> {
        let Some((last, parents)) = path.split_last() else {
            return Ok(Vec::new());
        };
        let mut made = Vec::new();
        let mut node = self;
        for (at, name) in parents.iter().enumerate() {
            let inside = || Problem::NotAnObject(path[..at].join("."));
            let fields = node.fields()?.ok_or_else(inside)?;
            let index = match fields.iter().rposition(|(field, _)| field == name) {
                Some(index) => index,
                None => {
                    made.push(at + 1);
                    fields.push(((*name).to_owned(), Self::Fields(Vec::new())));
                    fields.len() - 1
                }
            };
            node = &mut fields[index].1;
        }
        let inside = || Problem::NotAnObject(parents.join("."));
        let fields = node.fields()?.ok_or_else(inside)?;
        match fields.iter_mut().rev().find(|(field, _)| field == last) {
            Some((_, present)) => *present = value,
            None => fields.push(((*last).to_owned(), value)),
        }
        Ok(made)
    }

    /// Whether it is an object at all.
    pub(crate) fn is_object(&mut self) -> Result<bool, serde_json::Error> {
        Ok(self.fields()?.is_some())
    }

    /// Whether it is an object without fields.
    pub(crate) fn is_empty(&mut self) -> Result<bool, serde_json::Error> {
        Ok(self.fields()?.is_some_and(|fields| fields.is_empty()))
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Fields(fields) => {
                f.write_str("{")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    let name = serde_json::to_string(name).map_err(|_| fmt::Error)?;
                    write!(f, "{comma}{name}:{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

/// The fields of an object in the order of the text, each with its value's text.
struct Entries(Vec<(String, Node)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    entries.push((name, Node::of(value.get())));
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"b": 1.50, "a" :{"x":[1, 2],"y":{}} ,"c":"\u0041"}"#;

    #[test]
    fn values_that_nobody_asked_for_stay_to_the_byte() {
        let mut node = Node::of(TEXT);
        let taken = node.take(&["a", "y"]).expect("JSON");
        assert_eq!(taken, Some(Node::of("{}")));
        assert_eq!(node.to_string(), r#"{"b":1.50,"a":{"x":[1, 2]},"c":"\u0041"}"#);
    }

    #[test]
    fn objects_above_a_value_are_made_and_told() {
        let mut node = Node::of(TEXT);
        assert_eq!(
            node.put(&["a", "n", "m", "z"], Node::of("1")).expect("an object"),
            [2, 3]
        );
        assert!(node.put(&["a", "n", "o"], Node::of("2")).expect("an object").is_empty());
        let made = node.at(&["a", "n"]).expect("JSON").expect("made").to_string();
        assert_eq!(made, r#"{"m":{"z":1},"o":2}"#);
        let refused = node.put(&["b", "z"], Node::of("1")).expect_err("a number");
        assert_eq!(refused.to_string(), "b: not an object");
    }
}
