//! What has to hold for the metadata of any object: labels, annotations, finalizers and owners. Its types are right
//! already; knows nothing of names, which have rules of their own in each resource.

use serde_json::Value;

use crate::status::FieldProblem;
use crate::{meta, names};

/// Keys and values of all annotations together.
const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

/// Everything that is wrong with the metadata of an object, but for its name.
pub fn metadata_problems(object: &Value) -> Vec<FieldProblem> {
    let mut found = Vec::new();
    for (key, value) in pairs(object, "labels") {
        for problem in names::qualified_name_problems(key) {
            found.push(FieldProblem::invalid("metadata.labels", key, &problem));
        }
        for problem in names::label_value_problems(value) {
            found.push(FieldProblem::invalid("metadata.labels", value, &problem));
        }
    }
    let mut bytes = 0;
    for (key, value) in pairs(object, "annotations") {
        bytes += key.len() + value.len();
        for problem in names::qualified_name_problems(&key.to_lowercase()) {
            found.push(FieldProblem::invalid("metadata.annotations", key, &problem));
        }
    }
    if bytes > ANNOTATIONS_MAX_BYTES {
        found.push(FieldProblem::too_long("metadata.annotations", ANNOTATIONS_MAX_BYTES));
    }
    for finalizer in meta::finalizers(object) {
        for problem in names::qualified_name_problems(finalizer) {
            found.push(FieldProblem::invalid("metadata.finalizers", finalizer, &problem));
        }
    }
    check_owners(object, &mut found);
    found
}

fn pairs<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let fields = object["metadata"][field].as_object();
    fields
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

fn check_owners(object: &Value, found: &mut Vec<FieldProblem>) {
    let mut controllers = Vec::new();
    let owners = &object["metadata"]["ownerReferences"];
    for owner in owners.as_array().into_iter().flatten() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                let rule = match field {
                    "apiVersion" => "version must not be empty",
                    _ => "must not be empty",
                };
                found.push(FieldProblem::invalid(
                    format!("metadata.ownerReferences.{field}"),
                    "",
                    rule,
                ));
            }
        }
        if owner["controller"] == true {
            let text = |field: &str| owner[field].as_str().unwrap_or_default();
            controllers.push(format!("{}/{}", text("kind"), text("name")));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let rule = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        let shown = owners.to_string();
        found.push(FieldProblem::invalid_number("metadata.ownerReferences", &shown, &rule));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_annotations_finalizers_and_owners_have_rules() {
        let owner =
            |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u", "controller": true});
        let problems = |metadata: Value| -> Vec<String> {
            let found = metadata_problems(&json!({"metadata": metadata}));
            found.into_iter().map(|problem| problem.field).collect()
        };
        let right = json!({"labels": {"a/b": "c"}, "annotations": {"A/b": "any text"}, "finalizers": ["a.b/c", "orphan"],
            "ownerReferences": [owner("p")]});
        assert_eq!(problems(right), [""; 0]);
        for (wrong, field) in [
            (json!({"labels": {"a b": "c"}}), "metadata.labels"),
            (json!({"labels": {"a": "b c"}}), "metadata.labels"),
            (json!({"annotations": {"a b": "c"}}), "metadata.annotations"),
            (
                json!({"annotations": {"a": "x".repeat(ANNOTATIONS_MAX_BYTES)}}),
                "metadata.annotations",
            ),
            (json!({"finalizers": [""]}), "metadata.finalizers"),
            (json!({"ownerReferences": [owner("")]}), "metadata.ownerReferences.name"),
            (
                json!({"ownerReferences": [owner("p"), owner("q")]}),
                "metadata.ownerReferences",
            ),
        ] {
            let found = problems(wrong.clone());
            assert!(
                !found.is_empty() && found.iter().all(|found| found == field),
                "{wrong}: {found:?}"
            );
        }
    }
}
