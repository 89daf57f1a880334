//! A deserializer over a parsed document that tells [`report`](super::report) where it is, so that
//! errors and reports carry a path. Slower than reading text, hence used only once something is
//! known to be wrong.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value as Json};

use super::report::{Segment, within};

/// A value of the document.
#[derive(Clone, Copy)]
pub(super) struct Tracked<'a>(pub(super) &'a Json);

impl<'de, 'a: 'de> Deserializer<'de> for Tracked<'a> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Json::Array(items) => visitor.visit_seq(Elements {
                items: items.iter().enumerate(),
            }),
            Json::Object(members) => visitor.visit_map(Members::new(members.iter())),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => self.0.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Json::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// The only enums read as such are oneofs, whose members [`super::oneof`] hands over one by one;
    /// what is inside a member is still tracked because `Members` is.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Json::Object(members) => Members::new(members.iter())
                .into_enum()
                .deserialize_enum(name, variants, visitor),
            _ => self.0.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Elements<I> {
    items: I,
}

impl<'de, 'a: 'de, I: Iterator<Item = (usize, &'a Json)>> SeqAccess<'de> for Elements<I> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some((index, item)) = self.items.next() else {
            return Ok(None);
        };
        within(Segment::Element(index), || seed.deserialize(Tracked(item))).map(Some)
    }
}

/// The members of an object, one after the other.
pub(super) struct Members<'a, I> {
    rest: I,
    current: Option<(&'a String, &'a Json)>,
}

impl<'a, I: Iterator<Item = (&'a String, &'a Json)>> Members<'a, I> {
    pub(super) fn new(rest: I) -> Self {
        Self { rest, current: None }
    }

    /// Reads the first member as a variant and its content.
    pub(super) fn into_enum(self) -> serde::de::value::MapAccessDeserializer<Self> {
        serde::de::value::MapAccessDeserializer::new(self)
    }
}

impl<'de, 'a: 'de, I: Iterator<Item = (&'a String, &'a Json)>> MapAccess<'de> for Members<'a, I> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.current = self.rest.next();
        let Some((key, _)) = self.current else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Error> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (key, value) = self.current.take().expect("a value is asked for after its key");
        within(Segment::Member(key.clone()), || seed.deserialize(Tracked(value)))
    }
}
