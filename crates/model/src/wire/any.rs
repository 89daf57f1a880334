//! `google.protobuf.Any`: a message of a type that only its content names.

use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, bytes, skip_field, string};
use prost::{DecodeError, Message};
use serde::de::Error;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};

use super::report::report;
use super::text::Base64;

const TYPE: &str = "@type";
const VALUE: &str = "value";

/// A message of any type.
///
/// Michelangelo writes it in JSON as `{"@type": …, "value": base64}`, which is read into
/// [`value`](Any::value). The other form, the message's own fields beside `@type`, cannot be
/// encoded without the message's descriptor: it is kept in [`fields`](Any::fields), written back
/// as it was, reported, and absent on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Any {
    /// Names the type after its last `/`.
    pub type_url: String,
    /// The message, encoded.
    pub value: Vec<u8>,
    /// The message as JSON, where it was read in that form.
    pub fields: Map<String, Json>,
}

impl Message for Any {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        if !self.type_url.is_empty() {
            string::encode(1, &self.type_url, buf);
        }
        if !self.value.is_empty() {
            bytes::encode(2, &self.value, buf);
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            1 => string::merge(wire_type, &mut self.type_url, buf, ctx),
            2 => bytes::merge(wire_type, &mut self.value, buf, ctx),
            _ => skip_field(wire_type, tag, buf, ctx),
        }
    }

    fn encoded_len(&self) -> usize {
        let type_url = match self.type_url.as_str() {
            "" => 0,
            _ => string::encoded_len(1, &self.type_url),
        };
        let value = match self.value.as_slice() {
            [] => 0,
            _ => bytes::encoded_len(2, &self.value),
        };
        type_url + value
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Serialize for Any {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if !self.type_url.is_empty() {
            map.serialize_entry(TYPE, &self.type_url)?;
        }
        for (name, json) in &self.fields {
            map.serialize_entry(name, json)?;
        }
        if self.fields.is_empty() && !self.value.is_empty() {
            map.serialize_entry(VALUE, &Base64::to_text(&self.value))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let type_url = match fields.remove(TYPE) {
            Some(Json::String(type_url)) => type_url,
            Some(_) => return Err(D::Error::custom("@type is not a string")),
            None => String::new(),
        };
        let mut any = Self {
            type_url,
            ..Self::default()
        };
        match encoded(&fields) {
            Some(value) => any.value = value,
            None => {
                report(format!(
                    "the fields of {:?} cannot be encoded without its descriptor; the message \
                     encoding leaves them out",
                    any.type_url
                ));
                any.fields = fields;
            }
        }
        Ok(any)
    }
}

/// The bytes, where the content beside `@type` is nothing but bytes, or nothing.
fn encoded(fields: &Map<String, Json>) -> Option<Vec<u8>> {
    match (fields.len(), fields.get(VALUE)) {
        (0, _) => Some(Vec::new()),
        (1, Some(Json::String(text))) => Base64::from_text(text),
        _ => None,
    }
}
