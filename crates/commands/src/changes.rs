//! Which fields of an object differ between two versions. Pure.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Change {
    /// As in `spec.containers[0].image` and `metadata.labels["team"]`.
    pub(crate) path: String,
    /// Absent where the field came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Value>,
    /// Absent where the field went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<Value>,
}

/// Takes out what differs in every version or says nothing to people.
pub(crate) fn without_noise(mut object: Value, managed_fields: bool) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("resourceVersion");
        if !managed_fields {
            metadata.remove("managedFields");
        }
    }
    object
}

/// All fields that differ, in order of their path. A field that came or went is one change, whatever
/// lies in it, and so is a list of another length.
pub(crate) fn between(from: &Value, to: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", Some(from), Some(to), &mut changes);
    changes
}

fn compare(path: &str, from: Option<&Value>, to: Option<&Value>, changes: &mut Vec<Change>) {
    match (from, to) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                compare(&field(path, name), old.get(name), new.get(name), changes);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{path}[{index}]"), Some(old), Some(new), changes);
            }
        }
        _ if from == to => {}
        _ => changes.push(Change {
            path: path.to_owned(),
            from: from.cloned(),
            to: to.cloned(),
        }),
    }
}

fn field(path: &str, name: &str) -> String {
    let is_word = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    match (path, is_word) {
        ("", true) => name.to_owned(),
        (_, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[{name:?}]"),
    }
}

/// The first paths, and how many more there are. The generation counts changes and is none.
pub(crate) fn summary(changes: &[Change]) -> String {
    const SHOWN: usize = 3;
    let paths: Vec<&str> = changes
        .iter()
        .map(|change| change.path.as_str())
        .filter(|path| *path != "metadata.generation")
        .collect();
    let mut text = paths.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match paths.len() {
        0 => text.push_str("nothing to see"),
        1..=SHOWN => {}
        all => write!(text, " and {} more", all - SHOWN).expect("a String takes all text"),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_that_came_went_or_changed_is_named_once() {
        let from = json!({
            "metadata": {"labels": {"team": "a", "a.b/c": "1"}},
            "spec": {"size": 1, "list": [1, {"x": 1}], "grows": [1], "same": {"y": null}, "goes": {"deep": true}},
        });
        let to = json!({
            "metadata": {"labels": {"team": "a", "a.b/c": "2"}},
            "spec": {"size": "1", "list": [1, {"x": 2}], "grows": [1, 2], "same": {"y": null}},
            "status": {"state": "READY"},
        });
        let changes = between(&from, &to);
        let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                r#"metadata.labels["a.b/c"]"#,
                "spec.goes",
                "spec.grows",
                "spec.list[1].x",
                "spec.size",
                "status",
            ]
        );
        assert_eq!(changes[1].to, None);
        assert_eq!((&changes[4].from, &changes[4].to), (&Some(json!(1)), &Some(json!("1"))));
        assert_eq!(changes[5].from, None);
        assert!(between(&from, &from).is_empty());
    }

    #[test]
    fn a_summary_names_three_and_counts_the_rest() {
        let change = |path: &str| Change {
            path: path.to_owned(),
            from: None,
            to: None,
        };
        let mut changes = vec![change("metadata.generation"), change("a")];
        assert_eq!(summary(&changes), "a");
        changes.extend(["b", "c", "d", "e"].map(change));
        assert_eq!(summary(&changes), "a, b, c and 2 more");
        assert_eq!(summary(&changes[..1]), "nothing to see");
    }

    #[test]
    fn noise_is_what_differs_in_every_version() {
        let object = json!({"metadata": {"name": "a", "resourceVersion": "1", "managedFields": []}});
        assert_eq!(without_noise(object.clone(), false), json!({"metadata": {"name": "a"}}));
        let kept = without_noise(object, true);
        assert_eq!(kept, json!({"metadata": {"name": "a", "managedFields": []}}));
    }
}
