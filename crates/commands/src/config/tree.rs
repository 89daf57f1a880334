//! YAML with positions: mappings of scalars, and nothing else, for that is all that a
//! configuration is made of. Knows no key.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// Where something stands, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) line: u64,
    pub(super) column: u64,
}

/// A value.
#[derive(Debug)]
pub(super) enum Node {
    Absent,
    Scalar(Scalar),
    Map(Vec<(Key, Spanned<Node>)>),
    List,
}

/// A scalar as YAML resolves it; numbers with the text that YAML made them of is lost,
/// which matters to a password with leading zeros: see [`raw`].
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

pub(super) type Key = Spanned<String>;

pub(super) fn position<T>(spanned: &Spanned<T>) -> Position {
    Position {
        line: spanned.referenced.line(),
        column: spanned.referenced.column(),
    }
}

/// The text of a plain scalar as it stands in the file.
pub(super) fn raw<'a, T>(source: &'a str, spanned: &Spanned<T>) -> Option<&'a str> {
    let span = spanned.referenced.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let end = start + usize::try_from(span.byte_len()?).ok()?;
    source.get(start..end).map(str::trim)
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Absent)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(Scalar::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(Scalar::Int(value)))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
        let number = i64::try_from(value).map_err(|_| E::custom("a number beyond all limits"))?;
        Ok(Node::Scalar(Scalar::Int(number)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Scalar(Scalar::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(Scalar::Text(value.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        while access.next_element::<de::IgnoredAny>()?.is_some() {}
        Ok(Node::List)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}
