//! Accessors for the metadata of an object. Does not validate.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// A text in `metadata`, empty where absent.
fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// `metadata.name`
pub fn name(object: &Value) -> &str {
    text(object, "name")
}

/// `metadata.namespace`
pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// `metadata.uid`
pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// `metadata.resourceVersion`
pub fn resource_version(object: &Value) -> &str {
    text(object, "resourceVersion")
}

/// Whether the object is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// `metadata.finalizers`
pub fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Adds a finalizer unless it is there.
pub fn add_finalizer(object: &mut Value, finalizer: &str) {
    if finalizers(object).contains(&finalizer) {
        return;
    }
    match object["metadata"]["finalizers"].as_array_mut() {
        Some(finalizers) => finalizers.push(finalizer.into()),
        None => object["metadata"]["finalizers"] = vec![Value::from(finalizer)].into(),
    }
}

/// Removes a finalizer.
pub fn remove_finalizer(object: &mut Value, finalizer: &str) {
    if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|present| present != finalizer);
        if finalizers.is_empty()
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("finalizers");
        }
    }
}

/// `metadata` as a map, made where there is none.
pub fn map_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    object["metadata"]
        .as_object_mut()
        .expect("metadata was just made a map")
}

/// Sets or, without a value, removes a field of `metadata`.
pub fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let metadata = map_mut(object);
    match value {
        Some(value) => metadata.insert(field.to_owned(), value),
        None => metadata.remove(field),
    };
}

/// A time as Kubernetes writes it: UTC, whole seconds.
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
