//! What a version has no place for, as an annotation of the object carries it: by version that has the place, then by
//! path, with the value, or without one where there was none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::tree::{Node, Problem};

/// Values by path, with dots between the names. `None`: there was no value.
pub(crate) type Values = BTreeMap<String, Option<String>>;

/// All that an object carries for its other versions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ConversionData {
    versions: BTreeMap<String, Values>,
}

/// A value as it is written. `null` is a value; a missing one is none.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    value: Option<Box<RawValue>>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl ConversionData {
    /// Takes the annotation `name` from an object. What is no text of ours counts as none.
    pub(crate) fn take(object: &mut Node, name: &str) -> Result<Self, Problem> {
        let annotations = ["metadata", "annotations"];
        let Some(text) = object.take(&[&annotations[..], &[name]].concat())? else {
            return Ok(Self::default());
        };
        if object.at(&annotations)?.map_or(Ok(false), Node::is_empty)? {
            object.take(&annotations)?;
        }
        Ok(Self::read(&text.to_string()).unwrap_or_default())
    }

    fn read(literal: &str) -> Option<Self> {
        let text: String = serde_json::from_str(literal).ok()?;
        let written: BTreeMap<String, BTreeMap<String, Written>> = serde_json::from_str(&text).ok()?;
        let values = |values: BTreeMap<String, Written>| -> Values {
            let value = |written: Written| written.value.map(|value| value.get().to_owned());
            values
                .into_iter()
                .map(|(path, written)| (path, value(written)))
                .collect()
        };
        let versions = written.into_iter().map(|(version, written)| (version, values(written)));
        Some(Self {
            versions: versions.collect(),
        })
    }

    /// What is carried for `version`, which the object has a place for from now on.
    pub(crate) fn remove(&mut self, version: &str) -> Values {
        self.versions.remove(version).unwrap_or_default()
    }

    /// Carries `values` for `version`.
    pub(crate) fn insert(&mut self, version: &str, values: Values) {
        self.versions.remove(version);
        if !values.is_empty() {
            self.versions.insert(version.to_owned(), values);
        }
    }

    /// Writes the annotation, where there is something to carry.
    pub(crate) fn put(self, object: &mut Node, name: &str) -> Result<(), Problem> {
        if self.versions.is_empty() {
            return Ok(());
        }
        let mut versions = BTreeMap::new();
        for (version, values) in self.versions {
            let mut written = BTreeMap::new();
            for (path, value) in values {
                let value = value.map(RawValue::from_string).transpose()?;
                written.insert(path, Written { value });
            }
            versions.insert(version, written);
        }
        let text = serde_json::to_string(&versions)?;
        let literal = serde_json::to_string(&text)?;
        object.put(&["metadata", "annotations", name], Node::of(literal))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_comes_back_and_leaves_nothing_behind() {
        let mut object = Node::of(r#"{"metadata":{"name":"a"}}"#);
        let mut data = ConversionData::default();
        let values = Values::from([
            ("spec.a".to_owned(), Some("1.0".to_owned())),
            ("spec.b".to_owned(), Some("null".to_owned())),
            ("spec.c".to_owned(), None),
        ]);
        data.insert("v2", values.clone());
        data.insert("v1", Values::new());
        data.put(&mut object, "x/Data").expect("an object");
        assert_eq!(
            object.to_string(),
            r#"{"metadata":{"name":"a","annotations":{"x/Data":"{\"v2\":{\"spec.a\":{\"value\":1.0},\"spec.b\":{\"value\":null},\"spec.c\":{}}}"}}}"#
        );
        let mut again = ConversionData::take(&mut object, "x/Data").expect("an object");
        assert_eq!(again.remove("v2"), values);
        assert_eq!(object.to_string(), r#"{"metadata":{"name":"a"}}"#);
    }

    #[test]
    fn somebody_elses_text_counts_as_none() {
        for text in ["\"no JSON\"", "\"[]\"", "3", r#""{\"v1\": {\"spec.a\": 3}}""#] {
            let mut object = Node::of(format!(
                r#"{{"metadata":{{"annotations":{{"x/Data":{text},"other":"b"}}}}}}"#
            ));
            assert_eq!(
                ConversionData::take(&mut object, "x/Data").expect("an object"),
                ConversionData::default()
            );
            assert_eq!(object.to_string(), r#"{"metadata":{"annotations":{"other":"b"}}}"#);
        }
    }
}
