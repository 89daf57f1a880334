//! The emitted CRDs against Kubernetes' rules for structural schemas, which an API server enforces when they are
//! installed, and against the messages that they are made from.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/>

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{shipped, shipped_model};

/// What a value validation, inside `allOf`, `anyOf`, `oneOf` or `not`, may not say.
const NOT_IN_VALIDATIONS: [&str; 8] = [
    "description",
    "type",
    "default",
    "nullable",
    "additionalProperties",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource",
];

fn crds() -> Vec<Value> {
    shipped()
        .iter()
        .filter(|(path, _)| path.as_str().starts_with("schema/crds/"))
        .map(|(path, text)| serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{path}: {error}")))
        .collect()
}

fn schema(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

#[test]
fn every_schema_is_structural() {
    let crds = crds();
    assert_eq!(crds.len(), 13);
    for crd in &crds {
        let name = crd["metadata"]["name"].as_str().expect("a name");
        structural(schema(crd), name);
        let metadata = &schema(crd)["properties"]["metadata"];
        assert_eq!(*metadata, serde_json::json!({ "type": "object" }), "{name}");
    }
}

fn structural(schema: &Value, path: &str) {
    let schema = schema.as_object().expect("a schema is an object");
    let is_set = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let is_typed = schema.contains_key("type");
    let int_or_string = is_set("x-kubernetes-int-or-string");
    assert!(!schema.contains_key("$ref"), "{path}: a reference");
    assert!(
        is_typed || int_or_string || is_set("x-kubernetes-preserve-unknown-fields"),
        "{path}: no type"
    );
    assert!(!(is_typed && int_or_string), "{path}: two types");
    assert!(
        !(schema.contains_key("properties") && schema.contains_key("additionalProperties")),
        "{path}: properties and a map at once"
    );
    if schema.get("type") == Some(&Value::from("array")) {
        structural(&schema["items"], &format!("{path}[]"));
    }
    if let Some(values) = schema.get("additionalProperties") {
        structural(values, &format!("{path}{{}}"));
    }
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        structural(property, &format!("{path}.{name}"));
    }
    if !int_or_string {
        validations(schema, path);
    }
}

/// The types of an int-or-string are the one exception; it is checked as a whole.
fn validations(schema: &Map<String, Value>, path: &str) {
    for key in ["allOf", "anyOf", "oneOf", "not"] {
        let inner = schema.get(key).into_iter();
        for inner in inner.flat_map(|inner| match inner {
            Value::Array(list) => list.iter().collect(),
            single => vec![single],
        }) {
            let inner = inner.as_object().expect("a validation is an object");
            for wrong in NOT_IN_VALIDATIONS {
                assert!(!inner.contains_key(wrong), "{path}: {wrong} in {key}");
            }
            validations(inner, path);
        }
    }
}

#[test]
fn every_field_of_spec_and_status_is_in_the_schema() {
    let model = shipped_model();
    let crds = crds();
    for kind in &model.kinds {
        let crd = crds
            .iter()
            .find(|crd| crd["spec"]["names"]["kind"] == kind.name.as_str())
            .unwrap_or_else(|| panic!("{} has no CRD", kind.name));
        let parts = [("spec", Some(&kind.spec)), ("status", kind.status.message())];
        for (part, message) in parts {
            let Some(message) = message else { continue };
            let fields: BTreeSet<&str> = model
                .message(message)
                .fields
                .iter()
                .map(|field| field.json_name.as_str())
                .collect();
            let properties = schema(crd)["properties"][part]["properties"].as_object();
            let properties: BTreeSet<&str> = properties
                .into_iter()
                .flat_map(|properties| properties.keys().map(String::as_str))
                .collect();
            assert_eq!(properties, fields, "{}.{part}", kind.name);
        }
    }
}

#[test]
fn every_column_is_read_from_a_field_that_the_api_server_keeps() {
    let model = shipped_model();
    let crds = crds();
    for kind in &model.kinds {
        let crd = crds
            .iter()
            .find(|crd| crd["spec"]["names"]["kind"] == kind.name.as_str())
            .unwrap_or_else(|| panic!("{} has no CRD", kind.name));
        for column in &kind.columns {
            let path: Vec<&str> = column.path.json().collect();
            if path.first() == Some(&"metadata") {
                continue;
            }
            let leaf = path
                .iter()
                .try_fold(schema(crd), |schema, name| schema.get("properties")?.get(name));
            assert!(leaf.is_some(), "{}.{}", kind.name, column.name);
        }
    }
}

#[test]
fn every_kind_shows_its_age_to_kubectl() {
    for crd in crds() {
        let columns = &crd["spec"]["versions"][0]["additionalPrinterColumns"];
        let ages = columns.as_array().expect("printer columns").iter();
        let age = ages.filter(|column| column["jsonPath"] == ".metadata.creationTimestamp");
        assert_eq!(age.count(), 1, "{}", crd["metadata"]["name"]);
    }
}
