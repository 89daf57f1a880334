//! What the answer of a conversion webhook about one object is worth, in the words of kube-apiserver. Pure.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/>

use kindex_kube_api::conversion::{named, objects};
use serde_json::{Map, Value};

/// What a conversion may change in the metadata.
const CHANGEABLE: [&str; 2] = ["labels", "annotations"];
/// What says which object it is.
const IDENTITY: [(&str, &str); 3] = [("name", "name"), ("namespace", "namespace"), ("uid", "UID")];

/// The converted object of an answer: the metadata is that of `object` but for labels and annotations.
///
/// # Errors
/// What is wrong with the answer, after the name of the object's kind.
pub(super) fn converted(uid: &str, answer: Value, object: &Value, api_version: &str) -> Result<Value, String> {
    let asked = asked(object);
    let mut objects = objects(uid, answer).map_err(|why| format!("conversion webhook for {asked} failed: {why}"))?;
    let returned = |what: String| format!("conversion webhook for {asked} returned {what}");
    let found = objects.len();
    let (1, Some(converted)) = (found, objects.pop()) else {
        return Err(returned(format!("{found} objects, expected 1")));
    };
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let given = text(&converted, "apiVersion");
    if given != api_version {
        let why = format!("invalid groupVersion (expected {api_version}, received {given})");
        return Err(returned(format!("invalid object at index 0: {why}")));
    }
    let (expected, given) = (text(object, "kind"), text(&converted, "kind"));
    if expected != given {
        let why = format!("invalid kind (expected {expected}, received {given})");
        return Err(returned(format!("invalid object at index 0: {why}")));
    }
    for (field, name) in IDENTITY {
        let value = |object: &Value| text(&object["metadata"], field);
        let (expected, given) = (value(object), value(&converted));
        if expected != given {
            return Err(returned(format!(
                "invalid object: must have the same {name}: {expected} != {given}"
            )));
        }
    }
    with_metadata(object, converted).map_err(|why| returned(format!("invalid metadata: {why}")))
}

/// What kube-apiserver calls an object in messages.
pub(super) fn asked(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    named(text("apiVersion"), text("kind"))
}

/// The Go type of a value, as its messages name it.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// `converted` with the metadata of `object` but for labels and annotations.
///
/// # Errors
/// Which metadata of the converted object is none.
pub(super) fn with_metadata(object: &Value, mut converted: Value) -> Result<Value, String> {
    let given = match converted["metadata"].take() {
        Value::Object(given) => given,
        Value::Null => return Err("missing metadata in converted object".to_owned()),
        other => {
            let is = go_type(&other);
            return Err(format!("invalid metadata of type {is} in converted object"));
        }
    };
    let mut metadata: Map<String, Value> = object["metadata"].as_object().cloned().unwrap_or_default();
    for field in CHANGEABLE {
        match given.get(field) {
            None | Some(Value::Null) => {
                metadata.remove(field);
            }
            Some(Value::Object(values)) => {
                if let Some((key, value)) = values.iter().find(|(_, value)| !value.is_string()) {
                    let is = go_type(value);
                    return Err(format!(
                        "metadata.{field}[{key}] must be a string, but is {is} in converted object"
                    ));
                }
                metadata.insert(field.to_owned(), values.clone().into());
            }
            Some(other) => {
                let is = go_type(other);
                return Err(format!("invalid metadata.{field} of type {is} in converted object"));
            }
        }
    }
    converted["metadata"] = metadata.into();
    Ok(converted)
}
