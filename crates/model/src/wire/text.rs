//! Values that are text in JSON: enums by name, bytes in base64, field masks. And `Empty`, which is
//! an empty object.

use std::fmt;
use std::marker::PhantomData;

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::report::{report, report_nameless};
use super::shape::Codec;

/// An enum of a `.proto` file. Fields hold its number; JSON and SQL hold its full name.
pub trait ProtoEnum: Copy + TryFrom<i32> + Into<i32> {
    /// The enum's name, for messages.
    const ENUM: &'static str;

    /// Full name: `PIPELINE_RUN_STATE_FAILED`.
    fn name(self) -> &'static str;

    /// The value of that full name.
    fn from_name(name: &str) -> Option<Self>;

    /// The name of a number, if the number is known.
    fn name_of(number: i32) -> Option<&'static str> {
        Self::try_from(number).ok().map(Self::name)
    }
}

/// An enum field: a full name in JSON. A number is read too; an unknown number is kept and written
/// as number; an unknown name reads as 0 and is reported, because a number cannot hold it.
pub struct Name<E>(PhantomData<E>);

impl<E: ProtoEnum> Codec for Name<E> {
    type Value = i32;

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
        deserializer.deserialize_any(NameVisitor::<E>(PhantomData))
    }

    fn write<S: Serializer>(value: &i32, serializer: S) -> Result<S::Ok, S::Error> {
        match E::name_of(*value) {
            Some(name) => serializer.serialize_str(name),
            None => {
                report_nameless(|| nameless::<E>(*value));
                serializer.serialize_i32(*value)
            }
        }
    }
}

fn nameless<E: ProtoEnum>(number: i32) -> String {
    format!("{} has no value with the number {number}", E::ENUM)
}

struct NameVisitor<E>(PhantomData<E>);

impl<T: ProtoEnum> Visitor<'_> for NameVisitor<T> {
    type Value = i32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a name or number of {}", T::ENUM)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<i32, E> {
        Ok(T::from_name(name).map_or_else(
            || {
                report(format!("{} has no value {name:?}; it reads as 0", T::ENUM));
                0
            },
            Into::into,
        ))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<i32, E> {
        let number = i32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))?;
        if T::name_of(number).is_none() {
            report_nameless(|| nameless::<T>(number));
        }
        Ok(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<i32, E> {
        let signed = i64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))?;
        self.visit_i64(signed)
    }
}

/// A bytes field: base64 in JSON, read in both alphabets, with padding or without.
pub struct Base64;

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

impl Base64 {
    pub(super) fn from_text(text: &str) -> Option<Vec<u8>> {
        PLAIN.decode(text).or_else(|_| URL.decode(text)).ok()
    }

    pub(super) fn to_text(bytes: &[u8]) -> String {
        PLAIN.encode(bytes)
    }
}

impl Codec for Base64 {
    type Value = Vec<u8>;

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_text(&text).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &"base64"))
    }

    fn write<S: Serializer>(value: &Vec<u8>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Self::to_text(value))
    }
}

/// `google.protobuf.Empty`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
pub struct Empty {}

/// `google.protobuf.FieldMask`: paths in `snake_case`; in JSON one text of comma-separated
/// `camelCase` paths.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct FieldMask {
    /// The paths.
    #[prost(string, repeated, tag = "1")]
    pub paths: Vec<String>,
}

impl Serialize for FieldMask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let paths: Vec<String> = self.paths.iter().map(|path| camel_case(path)).collect();
        serializer.serialize_str(&paths.join(","))
    }
}

impl<'de> Deserialize<'de> for FieldMask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let paths = text.split(',').filter(|path| !path.is_empty());
        Ok(Self {
            paths: paths.map(snake_case).collect(),
        })
    }
}

fn camel_case(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    let mut upper = false;
    for c in path.chars() {
        if c == '_' {
            upper = true;
        } else if std::mem::take(&mut upper) {
            text.push(c.to_ascii_uppercase());
        } else {
            text.push(c);
        }
    }
    text
}

fn snake_case(path: &str) -> String {
    let mut text = String::with_capacity(path.len() + 4);
    for c in path.chars() {
        if c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}
