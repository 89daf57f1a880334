//! Kubernetes' messages that are not objects in JSON: quantities, ports by number or name, raw JSON.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

/// `api/resource.Quantity`: an amount with unit, such as `500m`; plain numbers are read too.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Quantity {
    /// The amount as text.
    #[prost(string, tag = "1")]
    pub string: String,
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.string)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let string = match Json::deserialize(deserializer)? {
            Json::String(text) => text,
            Json::Number(number) => number.to_string(),
            other => return Err(D::Error::custom(format!("{other} is not a quantity"))),
        };
        Ok(Self { string })
    }
}

/// `util/intstr.IntOrString`: a number or a text.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct IntOrString {
    /// [`IntOrString::NUMBER`] or [`IntOrString::TEXT`].
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    /// The number.
    #[prost(int32, tag = "2")]
    pub int_val: i32,
    /// The text.
    #[prost(string, tag = "3")]
    pub str_val: String,
}

impl IntOrString {
    /// The number counts.
    pub const NUMBER: i64 = 0;
    /// The text counts.
    pub const TEXT: i64 = 1;
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.r#type == Self::NUMBER {
            serializer.serialize_i32(self.int_val)
        } else {
            serializer.serialize_str(&self.str_val)
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntOrStringVisitor)
    }
}

struct IntOrStringVisitor;

impl Visitor<'_> for IntOrStringVisitor {
    type Value = IntOrString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a 32-bit number or a string")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<IntOrString, E> {
        let int_val = i32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))?;
        Ok(IntOrString {
            int_val,
            ..IntOrString::default()
        })
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<IntOrString, E> {
        let signed = i64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))?;
        self.visit_i64(signed)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<IntOrString, E> {
        Ok(IntOrString {
            r#type: IntOrString::TEXT,
            str_val: text.to_owned(),
            ..IntOrString::default()
        })
    }
}

/// `meta/v1.FieldsV1`, `runtime.RawExtension` and `apiextensions.JSON`: JSON of any shape, which the
/// wire carries as text.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct RawJson {
    /// The JSON text.
    #[prost(bytes = "vec", tag = "1")]
    pub raw: Vec<u8>,
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json: Json = serde_json::from_slice(&self.raw).map_err(serde::ser::Error::custom)?;
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        let raw = serde_json::to_vec(&json).map_err(D::Error::custom)?;
        Ok(Self { raw })
    }
}
