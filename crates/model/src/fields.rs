//! The fields of an object as a JSON value, from which columns are read. Knows no kind.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Error, Map, Value};

use crate::object::Object;

/// Says who has written which field. It is often the largest part of an object, and a list: no path of a column leads
/// into one.
const LEFT_OUT: &[&str] = &["metadata", "managedFields"];

/// Reads the fields of an object, without `metadata.managedFields`.
///
/// # Errors
/// Where a number is too large for a value, or fields are nested too deeply.
pub(crate) fn fields_of(object: &Object) -> Result<Value, Error> {
    let mut text = serde_json::Deserializer::from_str(object.text());
    Without(LEFT_OUT).deserialize(&mut text)
}

/// Reads a JSON object without the field at a path.
struct Without<'p>(&'p [&'p str]);

impl<'de> DeserializeSeed<'de> for Without<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Without<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let value = match self.0 {
                [last] if *last == name => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
                [first, rest @ ..] if *first == name => entries.next_value_seed(Without(rest))?,
                _ => entries.next_value()?,
            };
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        let object = Object::parse_str(text).expect("an object");
        fields_of(&object).expect("fields")
    }

    /// As if the name alone counted, wherever it stands.
    #[test]
    fn all_fields_are_read_but_that_which_says_who_has_written_them() {
        let text = json!({
            "managedFields": 1,
            "metadata": {
                "name": "a", "uid": "u", "resourceVersion": "7",
                "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
                "labels": {"managedFields": "2"},
            },
            "spec": {"managedFields": [3], "metadata": {"managedFields": 4}, "none": null},
        });
        let mut expected = text.clone();
        let metadata = expected["metadata"].as_object_mut().expect("a map");
        assert!(metadata.remove("managedFields").is_some());
        assert_eq!(read(&text.to_string()), expected);
    }

    /// As if it were made into a value and dropped after that, which costs as much as to keep it.
    #[test]
    fn who_has_written_the_fields_is_skipped_and_not_read() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let text =
            format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"7","managedFields":{deep}}},"spec":1}}"#);
        assert!(
            serde_json::from_str::<Value>(&text).is_err(),
            "it is too deep for a value"
        );
        assert_eq!(read(&text)["spec"], 1);
    }
}
