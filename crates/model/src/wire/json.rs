//! `google.protobuf.Struct`, `Value` and `ListValue`: free JSON inside of a message. In Rust they
//! hold JSON values, so that their JSON comes back as it was; on the wire every number is a double
//! and integers beyond 2^53 lose digits.

use prost::bytes::{Buf, BufMut};
use prost::encoding::{
    DecodeContext, WireType, bool, double, encode_key, encode_varint, encoded_len_varint, int32, key_len, message,
    skip_field, string,
};
use prost::{DecodeError, Message};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// Any JSON object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Struct(pub Map<String, Json>);

/// Any JSON value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Value(pub Json);

/// Any JSON array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ListValue(pub Vec<Json>);

/// Field numbers of `google.protobuf.Value`.
mod kind {
    pub(super) const NULL: u32 = 1;
    pub(super) const NUMBER: u32 = 2;
    pub(super) const STRING: u32 = 3;
    pub(super) const BOOL: u32 = 4;
    pub(super) const STRUCT: u32 = 5;
    pub(super) const LIST: u32 = 6;
}

/// The only field of `Struct`, of `ListValue`, and the key of a map's entry.
const FIRST: u32 = 1;
/// The value of a map's entry.
const SECOND: u32 = 2;

/// One entry of the map in a `Struct`.
#[derive(Clone, PartialEq, prost::Message)]
struct Entry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Value>,
}

fn value_len(json: &Json) -> usize {
    match json {
        Json::Null => key_len(kind::NULL) + 1,
        Json::Number(number) => double::encoded_len(kind::NUMBER, &as_double(number)),
        Json::String(text) => string::encoded_len(kind::STRING, text),
        Json::Bool(flag) => bool::encoded_len(kind::BOOL, flag),
        Json::Object(members) => delimited_len(kind::STRUCT, struct_len(members)),
        Json::Array(items) => delimited_len(kind::LIST, list_len(items)),
    }
}

fn encode_value(json: &Json, buf: &mut impl BufMut) {
    match json {
        Json::Null => int32::encode(kind::NULL, &0, buf),
        Json::Number(number) => double::encode(kind::NUMBER, &as_double(number), buf),
        Json::String(text) => string::encode(kind::STRING, text, buf),
        Json::Bool(flag) => bool::encode(kind::BOOL, flag, buf),
        Json::Object(members) => {
            encode_header(kind::STRUCT, struct_len(members), buf);
            encode_struct(members, buf);
        }
        Json::Array(items) => {
            encode_header(kind::LIST, list_len(items), buf);
            encode_list(items, buf);
        }
    }
}

/// Every number of serde_json without arbitrary precision has a nearest double.
fn as_double(number: &serde_json::Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

fn entry_len(key: &String, json: &Json) -> usize {
    string::encoded_len(FIRST, key) + delimited_len(SECOND, value_len(json))
}

fn struct_len(members: &Map<String, Json>) -> usize {
    members
        .iter()
        .map(|(key, json)| delimited_len(FIRST, entry_len(key, json)))
        .sum()
}

fn encode_struct(members: &Map<String, Json>, buf: &mut impl BufMut) {
    for (key, json) in members {
        encode_header(FIRST, entry_len(key, json), buf);
        string::encode(FIRST, key, buf);
        encode_header(SECOND, value_len(json), buf);
        encode_value(json, buf);
    }
}

fn list_len(items: &[Json]) -> usize {
    items.iter().map(|json| delimited_len(FIRST, value_len(json))).sum()
}

fn encode_list(items: &[Json], buf: &mut impl BufMut) {
    for json in items {
        encode_header(FIRST, value_len(json), buf);
        encode_value(json, buf);
    }
}

fn delimited_len(tag: u32, len: usize) -> usize {
    key_len(tag) + encoded_len_varint(len as u64) + len
}

fn encode_header(tag: u32, len: usize, buf: &mut impl BufMut) {
    encode_key(tag, WireType::LengthDelimited, buf);
    encode_varint(len as u64, buf);
}

impl Message for Struct {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        encode_struct(&self.0, buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != FIRST {
            return skip_field(wire_type, tag, buf, ctx);
        }
        let mut entry = Entry::default();
        message::merge(wire_type, &mut entry, buf, ctx)?;
        self.0.insert(entry.key, entry.value.unwrap_or_default().0);
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        struct_len(&self.0)
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl Message for ListValue {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        encode_list(&self.0, buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != FIRST {
            return skip_field(wire_type, tag, buf, ctx);
        }
        let mut value = Value::default();
        message::merge(wire_type, &mut value, buf, ctx)?;
        self.0.push(value.0);
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        list_len(&self.0)
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl Message for Value {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        encode_value(&self.0, buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        self.0 = match tag {
            kind::NULL => {
                skip_field(wire_type, tag, buf, ctx)?;
                Json::Null
            }
            kind::NUMBER => {
                let mut number = 0.0;
                double::merge(wire_type, &mut number, buf, ctx)?;
                from_double(number)
            }
            kind::STRING => {
                let mut text = String::new();
                string::merge(wire_type, &mut text, buf, ctx)?;
                Json::String(text)
            }
            kind::BOOL => {
                let mut flag = false;
                bool::merge(wire_type, &mut flag, buf, ctx)?;
                Json::Bool(flag)
            }
            kind::STRUCT => {
                let mut members = Struct::default();
                message::merge(wire_type, &mut members, buf, ctx)?;
                Json::Object(members.0)
            }
            kind::LIST => {
                let mut items = ListValue::default();
                message::merge(wire_type, &mut items, buf, ctx)?;
                Json::Array(items.0)
            }
            _ => return skip_field(wire_type, tag, buf, ctx),
        };
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        value_len(&self.0)
    }

    fn clear(&mut self) {
        self.0 = Json::Null;
    }
}

/// The wire does not tell `1` from `1.0`; a whole number that a double holds exactly is taken for
/// an integer, because people write those more often.
fn from_double(number: f64) -> Json {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "the range was just checked")]
        return Json::from(number as i64);
    }
    serde_json::Number::from_f64(number).map_or(Json::Null, Json::Number)
}
