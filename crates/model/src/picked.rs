//! As much of a JSON text as is at the end of some paths. Everything else is passed over: a large text takes no memory
//! beside itself, and it may be nested more deeply than a [`Value`] (127 levels). Pure.

use std::fmt;

use serde::Deserializer;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Map, Value};

/// A part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathSegment {
    /// Into the field of that name.
    Field(&'static str),
    /// Into each item of a list.
    Items,
}

/// The path through fields alone.
pub fn segments(path: &[&'static str]) -> Vec<PathSegment> {
    path.iter().copied().map(PathSegment::Field).collect()
}

/// The texts, numbers and booleans at the end of these paths, in the objects and lists that they are in. Whatever else
/// is on a path is null, or empty if it is an object.
///
/// # Errors
/// A text that is no JSON, and a number that is too large, at the end of a path.
pub fn picked(text: &str, paths: &[Vec<PathSegment>]) -> Result<Value, Error> {
    let paths: Vec<_> = paths.iter().map(Vec::as_slice).collect();
    let mut text = serde_json::Deserializer::from_str(text);
    let picked = Pick { paths: &paths }.deserialize(&mut text)?;
    text.end()?;
    Ok(picked)
}

/// What is read of one value: what is at the end of these paths from it on.
struct Pick<'p> {
    paths: &'p [&'p [PathSegment]],
}

impl<'p> Pick<'p> {
    /// The value, if a path ends at it.
    fn at_end(&self, value: impl Into<Value>) -> Value {
        match self.paths.iter().any(|path| path.is_empty()) {
            true => value.into(),
            false => Value::Null,
        }
    }

    /// What is left of the paths that begin with a segment.
    fn below(&self, is_next: impl Fn(PathSegment) -> bool) -> Vec<&'p [PathSegment]> {
        let parts = self.paths.iter().filter_map(|path| path.split_first());
        parts
            .filter(|(first, _)| is_next(**first))
            .map(|(_, rest)| rest)
            .collect()
    }
}

impl<'de> DeserializeSeed<'de> for Pick<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(self.at_end(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(self.at_end(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(self.at_end(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(self.at_end(value))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(self.at_end(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let paths = self.below(|segment| segment == PathSegment::Items);
        if paths.is_empty() {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        let mut picked = Vec::new();
        while let Some(item) = list.next_element_seed(Pick { paths: &paths })? {
            picked.push(item);
        }
        Ok(Value::Array(picked))
    }

    /// Of a field that is there twice, the last one counts, as for the cluster.
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut picked = Map::new();
        while let Some(field) = fields.next_key::<String>()? {
            let paths = self.below(|segment| matches!(segment, PathSegment::Field(name) if name == field));
            if paths.is_empty() {
                fields.next_value::<IgnoredAny>()?;
            } else {
                picked.insert(field, fields.next_value_seed(Pick { paths: &paths })?);
            }
        }
        Ok(Value::Object(picked))
    }
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;
    use serde_json::json;

    use super::*;

    fn read(text: &str, paths: &[&[&'static str]]) -> Value {
        let paths: Vec<_> = paths.iter().map(|path| segments(path)).collect();
        picked(text, &paths).expect("JSON")
    }

    #[test]
    fn what_is_at_the_end_of_a_path_is_read_and_nothing_else() {
        const PATHS: &[&[&str]] = &[
            &["spec", "network", "name"],
            &["spec", "size"],
            &["spec", "count"],
            &["spec", "big"],
            &["spec", "flag"],
            &["spec", "none"],
            &["spec", "list"],
            &["spec", "map"],
            &["spec", "text", "name"],
            &["absent"],
        ];
        let text = r#"{"name": "h", "spec": {"network": {"name": "old"}, "more": [{"network": 1}], "size": 1.5,
            "count": -2, "big": 18446744073709551615, "flag": true, "left": {"name": "l"}, "none": null,
            "network": {"name": "a\n", "other": {}}, "list": ["a"], "map": {"a": 1}, "text": "t"}}"#;
        let expected = json!({"network": {"name": "a\n"}, "size": 1.5, "count": -2, "big": u64::MAX, "flag": true,
            "none": null, "list": null, "map": {}, "text": null});
        assert_eq!(read(text, PATHS), json!({ "spec": expected }));
        for text in ["[]", "1", "null"] {
            assert_eq!(read(text, &[&["spec"]]), Value::Null, "{text}");
        }
        for text in ["", "{", r#"{"spec": {"network": {"name": "#] {
            assert!(picked(text, &[segments(&["spec"])]).is_err(), "{text}");
        }
    }

    /// As if a field were another one, or a text another text, for who reads all of an object.
    #[test]
    fn what_is_picked_is_what_a_value_has_and_wrong_where_a_value_is() {
        for text in [
            "\t{\r\n \"name\" : \"a\" }\n",
            r#"{"n\u0061me": "a"}"#,
            r#"{"name": "a", "n\u0061me": "b"}"#,
            r#"{"name": "a", "name": null}"#,
            r#"{"name": "\u0000\ud83d\ude00\/\u00e9é"}"#,
            r#"{"name": -0}"#,
            r#"{"name": 1E+2}"#,
            r#"{"name": 0.1}"#,
            r#"{"name": 1e-400}"#,
            r#"{"name": 18446744073709551616}"#,
            r#"{"name": -9223372036854775808}"#,
            r#"{"name": -9223372036854775809}"#,
            r#"{"name": 1e400}"#,
            r#"{"name": 01}"#,
            r#"{"name": +1}"#,
            r#"{"name": nul}"#,
            r#"{"name": "\ud800"}"#,
            "{\"name\": \"\u{0}\"}",
            r#"{"name": "a",}"#,
            r#"{"name": "a", "name"}"#,
            r#"{"name": "a"}}"#,
            r#"{"name": "a"} {}"#,
        ] {
            let value = serde_json::from_str::<Value>(text);
            assert_eq!(picked(text, &[segments(&["name"])]).ok(), value.ok(), "{text}");
        }
    }

    #[test]
    fn each_item_of_a_list_is_read_on_a_path_that_says_so() {
        let paths = [vec![
            PathSegment::Field("list"),
            PathSegment::Items,
            PathSegment::Field("type"),
        ]];
        let of = |list: &str| picked(&format!(r#"{{"list": {list}}}"#), &paths).expect("JSON")["list"].clone();
        assert_eq!(
            of(r#"[{"type": "a", "more": 1}, "b", [{"type": "c"}], {}]"#),
            json!([{"type": "a"}, null, null, {}])
        );
        assert_eq!(of(r#"{"type": "a"}"#), json!({}));
    }

    /// As if an object that a cluster takes had no fields.
    #[test]
    fn what_is_beside_a_path_may_be_nested_however_deeply() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = format!(r#"{{"deep": {deep}, "spec": {{"deep": {{"a": {deep}}}, "name": "a"}}, "list": {deep}}}"#);
        assert!(
            serde_json::from_str::<Value>(&text).is_err(),
            "it is too deep for a value"
        );
        let expected = json!({"spec": {"name": "a"}, "list": null});
        assert_eq!(read(&text, &[&["spec", "name"], &["list"]]), expected);
    }

    /// As a value, such a text takes about thirty times its length.
    #[test]
    fn a_large_text_takes_no_memory_beside_itself() {
        let lists = "[[]],".repeat(100_000);
        let spec = format!(r#"{{"more": [{lists} 0], "network": [{lists} 0], "about": "z"}}"#);
        let text = format!(r#"{{"metadata": {{"annotations": {{"a": [{lists} 0]}}}}, "spec": {spec}}}"#);
        let paths: [&[&'static str]; 3] = [&["metadata", "name"], &["spec", "network", "name"], &["spec", "about"]];
        let taken = measure(|| {
            assert_eq!(read(&text, &paths)["spec"]["about"], "z");
        });
        assert!(taken.bytes_max < 16 * 1024, "{} bytes", taken.bytes_max);
    }
}
