//! The four shapes of a field (one value, one value with presence, a list, a map) around any codec.
//! Each is a type with `serialize` and `deserialize`, to be named in `#[serde(with = "…")]`.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How one value is written and read.
pub trait Codec {
    /// The Rust type of the field.
    type Value;

    /// Reads a value that is not null.
    ///
    /// # Errors
    /// Where the content does not fit the value's type.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self::Value, D::Error>;

    /// Writes a value.
    ///
    /// # Errors
    /// Where the value has no JSON form, such as a time after the year 9999.
    fn write<S: Serializer>(value: &Self::Value, serializer: S) -> Result<S::Ok, S::Error>;
}

/// The codec of types whose own serde implementation is right: strings, bools and messages.
pub struct Nested<T>(PhantomData<T>);

impl<T: Serialize + for<'de> Deserialize<'de>> Codec for Nested<T> {
    type Value = T;

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }

    fn write<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }
}

/// Whether a field holds its default and is therefore left out of the JSON.
pub fn unset<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads `null` as the default. API servers may deliver null for a field of any type.
///
/// # Errors
/// Where the content does not fit `T`.
pub fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads a field of `google.protobuf.Value`, for which `null` is one of the values.
///
/// # Errors
/// Where the content does not fit `T`.
pub fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// A value seen through its codec, which is how serde's own containers reach it.
struct Via<C: Codec>(C::Value);

impl<'de, C: Codec> Deserialize<'de> for Via<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        C::read(deserializer).map(Self)
    }
}

struct Borrowed<'a, C: Codec>(&'a C::Value);

impl<C: Codec> Serialize for Borrowed<'_, C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        C::write(self.0, serializer)
    }
}

/// One value without presence: null reads as the default.
pub struct Plain<C>(PhantomData<C>);

impl<C: Codec<Value: Default>> Plain<C> {
    /// For `#[serde(with)]`.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<C::Value, D::Error> {
        let value = Option::<Via<C>>::deserialize(deserializer)?;
        Ok(value.map(|via| via.0).unwrap_or_default())
    }

    /// For `#[serde(with)]`.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn serialize<S: Serializer>(value: &C::Value, serializer: S) -> Result<S::Ok, S::Error> {
        C::write(value, serializer)
    }
}

/// One value with presence: null reads as absent.
pub struct Optional<C>(PhantomData<C>);

impl<C: Codec> Optional<C> {
    /// For `#[serde(with)]`.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<C::Value>, D::Error> {
        let value = Option::<Via<C>>::deserialize(deserializer)?;
        Ok(value.map(|via| via.0))
    }

    /// For `#[serde(with)]`.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn serialize<S: Serializer>(value: &Option<C::Value>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(Borrowed::<C>).serialize(serializer)
    }
}

/// A list: null reads as empty.
pub struct Repeated<C>(PhantomData<C>);

impl<C: Codec> Repeated<C> {
    /// For `#[serde(with)]`.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<C::Value>, D::Error> {
        let elements = Option::<Elements<C>>::deserialize(deserializer)?;
        Ok(elements.map(|elements| elements.0).unwrap_or_default())
    }

    /// For `#[serde(with)]`.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn serialize<S: Serializer>(values: &[C::Value], serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(values.len()))?;
        for value in values {
            seq.serialize_element(&Borrowed::<C>(value))?;
        }
        seq.end()
    }
}

struct Elements<C: Codec>(Vec<C::Value>);

impl<'de, C: Codec> Deserialize<'de> for Elements<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ElementsVisitor::<C>(PhantomData))
    }
}

struct ElementsVisitor<C>(PhantomData<C>);

impl<'de, C: Codec> Visitor<'de> for ElementsVisitor<C> {
    type Value = Elements<C>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element::<Via<C>>()? {
            elements.push(element.0);
        }
        Ok(Elements(elements))
    }
}

/// A type that maps have as key; in JSON every key is a string.
pub trait MapKey: Ord + Sized {
    /// The key of a JSON name.
    fn from_name(name: &str) -> Option<Self>;
    /// The JSON name of the key.
    fn to_name(&self) -> String;
}

macro_rules! map_key {
    ($($key:ty),*) => {$(
        impl MapKey for $key {
            fn from_name(name: &str) -> Option<Self> {
                name.parse().ok()
            }

            fn to_name(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

map_key!(String, bool, i32, i64, u32, u64);

/// A map: null reads as empty.
pub struct Map<K, C>(PhantomData<(K, C)>);

impl<K: MapKey, C: Codec> Map<K, C> {
    /// For `#[serde(with)]`.
    ///
    /// # Errors
    /// A key that is not a `K`, and those of the codec.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<K, C::Value>, D::Error> {
        let members = Option::<Members<K, C>>::deserialize(deserializer)?;
        Ok(members.map(|members| members.0).unwrap_or_default())
    }

    /// For `#[serde(with)]`.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn serialize<S: Serializer>(values: &BTreeMap<K, C::Value>, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(values.len()))?;
        for (key, value) in values {
            map.serialize_entry(&key.to_name(), &Borrowed::<C>(value))?;
        }
        map.end()
    }
}

struct Members<K, C: Codec>(BTreeMap<K, C::Value>);

impl<'de, K: MapKey, C: Codec> Deserialize<'de> for Members<K, C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor::<K, C>(PhantomData))
    }
}

struct MembersVisitor<K, C>(PhantomData<(K, C)>);

impl<'de, K: MapKey, C: Codec> Visitor<'de> for MembersVisitor<K, C> {
    type Value = Members<K, C>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let key = K::from_name(&name)
                .ok_or_else(|| serde::de::Error::custom(format!("{name:?} is not a key of this map")))?;
            members.insert(key, map.next_value::<Via<C>>()?.0);
        }
        Ok(Members(members))
    }
}
