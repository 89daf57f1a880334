//! Request bodies into JSON values: JSON (noting fields given twice), YAML, and the protobuf form of built-in
//! kinds, with bounds on depth. Knows nothing of what an object means.

mod shapes;

mod protobuf;

use std::cell::{Cell, RefCell};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::media;
use crate::size::{FIELD_BYTES, ITEM_BYTES, MAP_BYTES, note};

/// Whole numbers up to here are the same as integers and as floating point.
const EXACT_INTEGER_MAX: f64 = 9_007_199_254_740_992.0;
/// What the values of one body may take in memory, a map of one field a hundred times its text: as much as 37,000 maps,
/// or one for each forty bytes of the largest object that etcd takes. A change holds several such objects at a time.
const VALUES_MAX_BYTES: usize = 24 * 1024 * 1024;
/// What a text takes beside its length.
const TEXT_BYTES: usize = 16;

/// A body that could be read.
#[derive(Debug, PartialEq)]
pub struct Decoded {
    /// What the body says.
    pub value: Value,
    /// Paths of fields that were given more than once; the last one counts.
    pub duplicates: Vec<String>,
}

/// Why a body cannot be read, in words for the one who sent it.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Not YAML.
    #[error("error converting YAML to JSON: {0}")]
    Yaml(String),
    /// Not the protobuf form of a built-in kind.
    #[error(transparent)]
    Protobuf(#[from] protobuf::ProtobufError),
    /// A media type that is not read.
    #[error("unsupported media type {0:?}")]
    MediaType(String),
}

/// Reads a body of one of the media types in which objects are sent. None is JSON.
pub fn by_media_type(content_type: &str, body: &[u8]) -> Result<Decoded, DecodeError> {
    match media::essence(content_type) {
        "" | media::JSON => json(body),
        media::YAML => yaml(body),
        media::PROTOBUF => Ok(Decoded {
            value: protobuf::read(body)?,
            duplicates: Vec::new(),
        }),
        other => Err(DecodeError::MediaType(other.to_owned())),
    }
}

/// Reads JSON. Depth is bounded (128 levels), and so is the stack.
pub fn json(text: &[u8]) -> Result<Decoded, DecodeError> {
    let state = DecodeState::new();
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = state.root().deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Decoded {
        value,
        duplicates: state.duplicates.into_inner(),
    })
}

/// Reads one YAML document; JSON is YAML. The parser bounds depth, aliases and node count.
pub fn yaml(text: &[u8]) -> Result<Decoded, DecodeError> {
    // JSON is by far the most common body under a YAML content type, and reading it as JSON is much quicker.
    if text.trim_ascii_start().starts_with(b"{") {
        match json(text) {
            Ok(decoded) => return Ok(decoded),
            // It is JSON, and too much of it.
            Err(DecodeError::Json(error)) if error.is_data() => return Err(error.into()),
            Err(_) => {}
        }
    }
    let state = DecodeState::new();
    let read = serde_saphyr::with_deserializer_from_slice(text, |yaml| state.root().deserialize(yaml));
    Ok(Decoded {
        value: read.map_err(|error| DecodeError::Yaml(error.to_string()))?,
        duplicates: Vec::new(),
    })
}

/// Numbers as the API server writes them back: `1.0` is `1`.
fn canonical_float(float: f64) -> Option<Number> {
    if float.fract() == 0.0 && float.abs() <= EXACT_INTEGER_MAX {
        // Within the bound the conversion is exact.
        return Some(Number::from(float as i64));
    }
    Number::from_f64(float)
}

/// The way from the root to a value, on the stack of the reader; written out only for a duplicate.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// What is known of a body while it is read.
struct DecodeState {
    duplicates: RefCell<Vec<String>>,
    /// Bytes that further values may take.
    room: Cell<usize>,
}

impl DecodeState {
    fn new() -> Self {
        Self {
            duplicates: RefCell::default(),
            room: Cell::new(VALUES_MAX_BYTES),
        }
    }

    fn root(&self) -> Node<'_> {
        Node {
            path: &Path::Root,
            state: self,
        }
    }

    /// What a value takes is counted before it is made.
    fn take<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.room.get().checked_sub(bytes);
        self.room.set(left.ok_or_else(|| E::custom(TooManyValues))?);
        Ok(())
    }
}

/// More values than [`VALUES_MAX_BYTES`] hold.
#[derive(Debug, thiserror::Error)]
#[error(
    "it holds more values than are read: those of one body may take {} MiB of memory, so send fewer or larger ones",
    VALUES_MAX_BYTES / (1024 * 1024)
)]
struct TooManyValues;

struct Node<'a> {
    path: &'a Path<'a>,
    state: &'a DecodeState,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(canonical_float(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.state.take(TEXT_BYTES + value.len())?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.state.take(TEXT_BYTES + value.len())?;
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        loop {
            let path = Path::Item(self.path, values.len());
            self.state.take(ITEM_BYTES)?;
            match items.next_element_seed(Node {
                path: &path,
                state: self.state,
            })? {
                Some(value) => values.push(value),
                None => {
                    values.shrink_to_fit();
                    return Ok(Value::Array(values));
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let path = Path::Field(self.path, &name);
            let own = if fields.is_empty() { MAP_BYTES } else { FIELD_BYTES };
            self.state.take(own + TEXT_BYTES + name.len())?;
            let value = entries.next_value_seed(Node {
                path: &path,
                state: self.state,
            })?;
            if fields.contains_key(&name) {
                note(&mut self.state.duplicates.borrow_mut(), &path);
            }
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_given_twice_is_noted_with_its_path_and_the_last_one_counts() {
        let decoded = json(br#"{"spec":{"a":1,"list":[{"b":1,"b":2}],"a":3}}"#).unwrap();
        assert_eq!(decoded.value, json!({"spec": {"a": 3, "list": [{"b": 2}]}}));
        assert_eq!(decoded.duplicates, ["spec.list[0].b", "spec.a"]);
    }

    #[test]
    fn thousands_of_duplicates_below_a_long_key_are_reported_briefly() {
        let fields = vec!["\"a\":1"; 100_000].join(",");
        let text = format!("{{\"{}\":{{{fields}}}}}", "k".repeat(1_000_000));
        let reported: usize = json(text.as_bytes()).unwrap().duplicates.iter().map(String::len).sum();
        assert!(reported <= 110_000, "{reported} bytes");
    }

    #[test]
    fn whole_floats_are_integers() {
        assert_eq!(
            json(b"[1.0, 1.5, 1e3, -0.0]").unwrap().value.to_string(),
            "[1,1.5,1000,0]"
        );
        assert_eq!(yaml(b"a: 2.0").unwrap().value.to_string(), r#"{"a":2}"#);
    }

    #[test]
    fn nesting_is_bounded_and_trailing_text_refused() {
        assert!(json("[".repeat(100_000).as_bytes()).is_err());
        assert!(yaml("[".repeat(100_000).as_bytes()).is_err());
        assert!(json(b"{} x").is_err());
    }

    #[test]
    fn more_values_than_fit_are_not_read() {
        let maps = |count: usize| format!("{{\"a\":[{}]}}", vec![r#"{"a":0}"#; count].join(","));
        assert!(json(maps(30_000).as_bytes()).is_ok());
        let fields = |count: usize| {
            let fields: Vec<String> = (0..count).map(|at| format!(r#""k{at:x}":"v""#)).collect();
            format!("{{{}}}", fields.join(","))
        };
        assert!(json(fields(200_000).as_bytes()).is_ok());
        assert!(json(fields(300_000).as_bytes()).is_err());
        assert!(json(format!("[\"{}\"]", "x".repeat(3 * 1024 * 1024)).as_bytes()).is_ok());
        let block = format!("a:\n{}", "- a: 0\n".repeat(40_000));
        let flow = format!("# YAML\n{}", maps(40_000));
        assert!(yaml(format!("a:\n{}", "- a: 0\n".repeat(30_000)).as_bytes()).is_ok());
        for refused in [
            json(maps(40_000).as_bytes()),
            yaml(maps(40_000).as_bytes()),
            yaml(flow.as_bytes()),
            yaml(block.as_bytes()),
        ] {
            let said = refused.unwrap_err().to_string();
            assert!(said.contains("more values than are read"), "{said}");
        }
    }

    #[test]
    fn json_under_a_yaml_content_type_is_read_as_json_also_after_blanks() {
        assert_eq!(yaml(b"\n {\"a\": 1, \"a\": 2}").unwrap().duplicates, ["a"]);
    }

    #[test]
    fn yaml_refuses_duplicates_and_alias_bombs() {
        assert!(yaml(b"a: 1\na: 2").is_err());
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let inner = level - 1;
            bomb.push_str(&format!(
                "a{level}: &a{level} [{}]\n",
                vec![format!("*a{inner}"); 9].join(",")
            ));
        }
        assert!(yaml(bomb.as_bytes()).is_err());
    }
}
