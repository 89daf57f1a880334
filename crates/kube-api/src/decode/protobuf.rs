//! The wire form in which Go clients send built-in kinds: an envelope that names the kind, and the message in it,
//! read by tables of field numbers. Only for reading: every client that writes this form reads JSON. Knows nothing of
//! what the tables hold.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::shapes::{self, Field, Shape};

/// What every such body begins with.
const MAGIC: &[u8; 4] = b"k8s\0";
/// Messages in messages; the deepest known kind needs five.
const DEPTH_MAX: u32 = 16;

/// Why a body cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// It does not begin as it must.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// It ends in the middle of a field, or a field is longer than the message.
    #[error("proto: unexpected end of data")]
    Truncated,
    /// A field of an impossible kind, or a text that is not UTF-8.
    #[error("proto: illegal data")]
    Illegal,
    /// A kind without a table.
    #[error("no protobuf form of kind {0:?} is known")]
    UnknownKind(String),
}

/// Reads an enveloped object into the JSON that it stands for.
pub(crate) fn read(body: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = body.strip_prefix(MAGIC).ok_or(ProtobufError::Prefix)?;
    let (mut kind, mut api_version, mut message) = (String::new(), String::new(), &envelope[..0]);
    for field in (Fields { rest: envelope }) {
        match field? {
            (1, Wire::Bytes(type_meta)) => {
                for field in (Fields { rest: type_meta }) {
                    match field? {
                        (1, Wire::Bytes(bytes)) => api_version = text(bytes)?,
                        (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(raw)) => message = raw,
            _ => {}
        }
    }
    let fields = shapes::of_kind(&api_version, &kind).ok_or_else(|| ProtobufError::UnknownKind(kind.clone()))?;
    let mut object = read_message(message, fields, DEPTH_MAX)?;
    object.insert("kind".to_owned(), kind.into());
    object.insert("apiVersion".to_owned(), api_version.into());
    Ok(Value::Object(object))
}

/// A value on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message in the order in which they stand.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(ProtobufError::Truncated)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Illegal)
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], ProtobufError> {
        let count = usize::try_from(count).map_err(|_| ProtobufError::Truncated)?;
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u64, Wire<'a>), ProtobufError> {
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Bytes(self.take(8)?),
            2 => {
                let count = self.varint()?;
                Wire::Bytes(self.take(count)?)
            }
            5 => Wire::Bytes(self.take(4)?),
            _ => return Err(ProtobufError::Illegal),
        };
        Ok((tag >> 3, wire))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Wire<'a>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

fn text(bytes: &[u8]) -> Result<String, ProtobufError> {
    std::str::from_utf8(bytes)
        .map(str::to_owned)
        .map_err(|_| ProtobufError::Illegal)
}

fn read_message(message: &[u8], shape: &[Field], depth: u32) -> Result<Map<String, Value>, ProtobufError> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(ProtobufError::Illegal);
    };
    let mut object = Map::new();
    for field in (Fields { rest: message }) {
        let (number, wire) = field?;
        let Some(known) = shape.iter().find(|known| known.number == number) else {
            continue;
        };
        let name = known.name.to_owned();
        match &known.shape {
            Shape::List(inner) => {
                let item = read_value(&wire, inner, depth)?;
                match object.entry(name).or_insert_with(|| json!([])) {
                    Value::Array(items) => items.push(item),
                    _ => return Err(ProtobufError::Illegal),
                }
            }
            Shape::Map(inner) => {
                let (key, value) = read_entry(&wire, inner, depth)?;
                object.entry(name).or_insert_with(|| json!({}))[key] = value;
            }
            shape => {
                let value = read_value(&wire, shape, depth)?;
                // Go writes empty texts and zero times for what is not set.
                if value != "" && !value.is_null() {
                    object.insert(name, value);
                }
            }
        }
    }
    Ok(object)
}

fn read_entry(wire: &Wire<'_>, shape: &Shape, depth: u32) -> Result<(String, Value), ProtobufError> {
    let Wire::Bytes(entry) = wire else {
        return Err(ProtobufError::Illegal);
    };
    let (mut key, mut value) = (String::new(), Value::from(""));
    for field in (Fields { rest: entry }) {
        match field? {
            (1, Wire::Bytes(bytes)) => key = text(bytes)?,
            (2, wire) => value = read_value(&wire, shape, depth)?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn read_value(wire: &Wire<'_>, shape: &Shape, depth: u32) -> Result<Value, ProtobufError> {
    Ok(match (shape, wire) {
        (Shape::Text, Wire::Bytes(bytes)) => text(bytes)?.into(),
        (Shape::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Shape::Flag, Wire::Number(number)) => (*number != 0).into(),
        (Shape::Integer, Wire::Number(number)) => number.cast_signed().into(),
        (Shape::Time, Wire::Bytes(bytes)) => read_time(bytes)?,
        (Shape::Message(fields), Wire::Bytes(bytes)) => Value::Object(read_message(bytes, fields, depth)?),
        _ => return Err(ProtobufError::Illegal),
    })
}

/// Seconds and nanoseconds; an empty message is no time at all.
fn read_time(message: &[u8]) -> Result<Value, ProtobufError> {
    let (mut seconds, mut nanoseconds) = (None, 0);
    for field in (Fields { rest: message }) {
        match field? {
            (1, Wire::Number(number)) => seconds = Some(number.cast_signed()),
            (2, Wire::Number(number)) => nanoseconds = i32::try_from(number).map_err(|_| ProtobufError::Illegal)?,
            _ => {}
        }
    }
    let Some(seconds) = seconds else {
        return Ok(Value::Null);
    };
    let time = Timestamp::new(seconds, nanoseconds).map_err(|_| ProtobufError::Illegal)?;
    Ok(time.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        [&[number << 3 | 2, length], content].concat()
    }

    fn envelope(kind: &str, message: &[u8]) -> Vec<u8> {
        let type_meta = [bytes(1, b"v1"), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &type_meta), bytes(2, message)].concat()
    }

    #[test]
    fn a_config_map_is_read_with_its_metadata_and_maps() {
        let labels = bytes(11, &[bytes(1, b"a"), bytes(2, b"b")].concat());
        let metadata = bytes(1, &[bytes(1, b"name"), bytes(2, b""), bytes(8, b""), labels].concat());
        let data = bytes(2, &[bytes(1, b"k"), bytes(2, b"v")].concat());
        let binary = bytes(3, &[bytes(1, b"b"), bytes(2, &[0xff])].concat());
        let immutable = vec![4 << 3, 1];
        let object = read(&envelope("ConfigMap", &[metadata, data, binary, immutable].concat())).unwrap();
        let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "name", "labels": {"a": "b"}},
            "data": {"k": "v"}, "binaryData": {"b": "/w=="}, "immutable": true});
        assert_eq!(object, expected);
    }

    #[test]
    fn every_truncation_is_an_error_or_a_shorter_object_but_no_panic() {
        let whole = envelope("Namespace", &bytes(1, &bytes(1, b"abc")));
        for end in 0..whole.len() {
            let _either = read(&whole[..end]);
        }
        assert_eq!(read(b"{}"), Err(ProtobufError::Prefix));
        assert_eq!(
            read(&envelope("Pod", b"")),
            Err(ProtobufError::UnknownKind("Pod".into()))
        );
        assert_eq!(read(&envelope("Namespace", &[10, 200])), Err(ProtobufError::Truncated));
    }
}
