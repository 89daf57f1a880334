//! Names and values in JSON: as an object, or as a list of objects with the names that the messages have.

use std::fmt;

use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::values::Text;

/// Names and values in their order. What occurs twice is there twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pairs(pub(super) Vec<(String, String)>);

#[derive(Deserialize)]
struct Pair {
    #[serde(alias = "key")]
    name: String,
    value: Text,
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and values, or a list of such pairs")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Pairs, E> {
        Ok(Pairs::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some((name, Text(value))) = map.next_entry()? {
            pairs.push((name, value));
        }
        Ok(Pairs(pairs))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some(Pair {
            name,
            value: Text(value),
        }) = list.next_element()?
        {
            pairs.push((name, value));
        }
        Ok(Pairs(pairs))
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PairsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_an_object_or_a_list_and_values_are_texts() {
        let expected = [("a", "1"), ("b", "x"), ("c", "true"), ("d", r#"{"e":null}"#)];
        let expected = Pairs(
            expected
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
        );
        for text in [
            r#"{"a":1,"b":"x","c":true,"d":{"e":null}}"#,
            r#"[{"name":"a","value":1},{"key":"b","value":"x"},{"name":"c","value":true},{"name":"d","value":{"e":null}}]"#,
        ] {
            assert_eq!(serde_json::from_str::<Pairs>(text).expect("pairs"), expected, "{text}");
        }
        assert_eq!(serde_json::from_str::<Pairs>("null").expect("pairs"), Pairs::default());
        assert!(serde_json::from_str::<Pairs>(r#"[{"name":"a"}]"#).is_err());
    }
}
