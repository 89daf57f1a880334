//! `metadata` of an object, which the API server reads into a typed structure: wrong types are refused, unknown
//! fields and empty values dropped, times brought to one form. Refuses to judge the values (are names well-formed,
//! do labels fit a limit).

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::problem::{FieldError, Path, is_enough};
use super::structural::{Additional, Structural};
use crate::meta;
use crate::size::note;

/// Metadata that cannot be read. The text is the API server's, to stand after `… cannot be handled as a …: `.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MetadataError(String);

enum Shape {
    Text(&'static str),
    Integer,
    Flag,
    Time,
    Texts,
    TextMap,
    Record(&'static Record),
    /// Kept as it is.
    Anything,
}

struct Record {
    name: &'static str,
    fields: &'static [(&'static str, Shape)],
}

static OBJECT_META: Record = Record {
    name: "ObjectMeta",
    fields: &[
        ("name", Shape::Text("string")),
        ("generateName", Shape::Text("string")),
        ("namespace", Shape::Text("string")),
        ("selfLink", Shape::Text("string")),
        ("uid", Shape::Text("types.UID")),
        ("resourceVersion", Shape::Text("string")),
        ("generation", Shape::Integer),
        ("creationTimestamp", Shape::Time),
        ("deletionTimestamp", Shape::Time),
        ("deletionGracePeriodSeconds", Shape::Integer),
        ("labels", Shape::TextMap),
        ("annotations", Shape::TextMap),
        ("ownerReferences", Shape::Record(&OWNER_REFERENCE)),
        ("finalizers", Shape::Texts),
        ("managedFields", Shape::Record(&MANAGED_FIELDS_ENTRY)),
    ],
};

static OWNER_REFERENCE: Record = Record {
    name: "OwnerReference",
    fields: &[
        ("apiVersion", Shape::Text("string")),
        ("kind", Shape::Text("string")),
        ("name", Shape::Text("string")),
        ("uid", Shape::Text("types.UID")),
        ("controller", Shape::Flag),
        ("blockOwnerDeletion", Shape::Flag),
    ],
};

static MANAGED_FIELDS_ENTRY: Record = Record {
    name: "ManagedFieldsEntry",
    fields: &[
        ("manager", Shape::Text("string")),
        ("operation", Shape::Text("v1.ManagedFieldsOperationType")),
        ("apiVersion", Shape::Text("string")),
        ("time", Shape::Time),
        ("fieldsType", Shape::Text("string")),
        ("fieldsV1", Shape::Anything),
        ("subresource", Shape::Text("string")),
    ],
};

/// Brings `metadata` of `object` into the API server's form. Gives the paths of unknown fields that were dropped
/// (`metadata.foo`), sorted.
///
/// # Errors
/// A field of a wrong type, or a time that cannot be read; the object is then partly converted and must not be used.
pub fn coerce_metadata(object: &mut Value) -> Result<Vec<String>, MetadataError> {
    let mut removed = Vec::new();
    if let Some(value) = object.get_mut("metadata") {
        coerce(value, &Path::Field(&Path::Root, "metadata"), &mut removed)?;
    }
    removed.sort_unstable();
    Ok(removed)
}

/// Drops what is unknown in the metadata of an embedded resource; wrong types stay for [`check_embedded`].
pub(super) fn drop_unknown(value: &mut Value, path: &Path<'_>, removed: &mut Vec<String>) {
    let mut copy = value.clone();
    let mut unknown = Vec::new();
    if coerce(&mut copy, path, &mut unknown).is_ok() {
        *value = copy;
        removed.append(&mut unknown);
    }
}

/// Checks that resources inside `value` have a type and readable metadata.
pub(super) fn check_embedded(schema: &Structural, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !schema.has_embedded || is_enough(errors) {
        return;
    }
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                check_resource(fields, path, errors);
            }
            for (name, inner) in fields {
                match (schema.properties.get(name), &schema.additional) {
                    (Some(property), _) => check_embedded(property, inner, &Path::Field(path, name), errors),
                    (None, Additional::Schema(other)) => check_embedded(other, inner, &Path::Key(path, name), errors),
                    (None, Additional::Absent | Additional::Refused | Additional::Any) => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(item_schema) = &schema.items else {
                return;
            };
            for (index, item) in items.iter().enumerate() {
                check_embedded(item_schema, item, &Path::Item(path, index), errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_resource(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let field = Path::Field(path, name).to_string();
        match fields.get(name) {
            None => errors.push(FieldError::required(field, "")),
            Some(Value::String(text)) if !text.is_empty() => {}
            Some(value @ Value::String(_)) => errors.push(FieldError::invalid(field, value, "must not be empty")),
            Some(value) => errors.push(FieldError::invalid(field, value, "must be a string")),
        }
    }
    if let Some(metadata) = fields.get("metadata") {
        let path = Path::Field(path, "metadata");
        if let Err(error) = coerce(&mut metadata.clone(), &path, &mut Vec::new()) {
            errors.push(FieldError::invalid(path.to_string(), metadata, &error.to_string()));
        }
    }
}

fn coerce(value: &mut Value, path: &Path<'_>, removed: &mut Vec<String>) -> Result<(), MetadataError> {
    match value {
        Value::Null => *value = Value::Object(Map::new()),
        Value::Object(fields) => record(&OBJECT_META, fields, "", path, removed)?,
        other => {
            let found = json_name(other);
            return Err(MetadataError(format!(
                "json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"
            )));
        }
    }
    Ok(())
}

fn record(
    shape: &Record,
    fields: &mut Map<String, Value>,
    prefix: &str,
    path: &Path<'_>,
    removed: &mut Vec<String>,
) -> Result<(), MetadataError> {
    let mut outcome = Ok(());
    fields.retain(|name, value| {
        let Some((_, field)) = shape.fields.iter().find(|(known, _)| known == name) else {
            note(removed, &Path::Field(path, name));
            return false;
        };
        if outcome.is_ok() {
            let field_name = format!("{prefix}{name}");
            outcome = coerce_field(field, value, shape, &field_name, &Path::Field(path, name), removed);
        }
        !is_empty(value)
    });
    outcome
}

/// Whether the API server leaves the value out when it writes the object.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn coerce_field(
    shape: &Shape,
    value: &mut Value,
    within: &Record,
    name: &str,
    path: &Path<'_>,
    removed: &mut Vec<String>,
) -> Result<(), MetadataError> {
    let refuse = |found: &Value, wanted: &str| {
        let found = match found {
            Value::Number(number) if wanted == "int64" => format!("number {number}"),
            other => json_name(other).to_owned(),
        };
        let holder = within.name;
        Err(MetadataError(format!(
            "json: cannot unmarshal {found} into Go struct field {holder}.{name} of type {wanted}"
        )))
    };
    match (shape, &mut *value) {
        (_, Value::Null)
        | (Shape::Anything, _)
        | (Shape::Text(_), Value::String(_))
        | (Shape::Flag, Value::Bool(_)) => {}
        (Shape::Integer, Value::Number(number)) if number.is_i64() => {}
        (Shape::Time, Value::String(text)) => *text = normal_time(text)?,
        (Shape::Texts, Value::Array(items)) => {
            for item in items {
                match item {
                    Value::String(_) => {}
                    Value::Null => *item = Value::String(String::new()),
                    other => return refuse(other, "string"),
                }
            }
        }
        (Shape::TextMap, Value::Object(entries)) => {
            for (_, entry) in entries {
                match entry {
                    Value::String(_) => {}
                    Value::Null => *entry = Value::String(String::new()),
                    other => return refuse(other, "string"),
                }
            }
        }
        (Shape::Record(inner), Value::Array(items)) => {
            let prefix = format!("{name}.");
            for (index, item) in items.iter_mut().enumerate() {
                match item {
                    Value::Object(fields) => record(inner, fields, &prefix, &Path::Item(path, index), removed)?,
                    other => return refuse(other, &format!("v1.{}", inner.name)),
                }
            }
        }
        (Shape::Text(wanted), other) => return refuse(other, wanted),
        (Shape::Integer, other) => return refuse(other, "int64"),
        (Shape::Flag, other) => return refuse(other, "bool"),
        (Shape::Time, other) => return refuse(other, "string"),
        (Shape::Texts, other) => return refuse(other, "[]string"),
        (Shape::TextMap, other) => return refuse(other, "map[string]string"),
        (Shape::Record(inner), other) => return refuse(other, &format!("[]v1.{}", inner.name)),
    }
    Ok(())
}

/// A time in UTC with whole seconds.
fn normal_time(text: &str) -> Result<String, MetadataError> {
    let unreadable = || {
        MetadataError(format!(
            "parsing time \"{text}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{text}\" as \"2006\""
        ))
    };
    let time: Timestamp = text.parse().map_err(|_| unreadable())?;
    Ok(meta::time(time))
}

fn json_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn coerced(metadata: Value) -> Result<(Value, Vec<String>), String> {
        let mut object = json!({ "metadata": metadata });
        let removed = coerce_metadata(&mut object).map_err(|error| error.to_string())?;
        Ok((object["metadata"].take(), removed))
    }

    #[test]
    fn unknown_and_empty_fields_are_dropped() {
        let (metadata, removed) = coerced(
            json!({"name": "a", "foo": 1, "generateName": "", "labels": {}, "annotations": null,
            "ownerReferences": [{"name": "o", "bar": 1}], "clusterName": "c", "finalizers": ["x"]}),
        )
        .unwrap();
        assert_eq!(
            metadata,
            json!({"name": "a", "ownerReferences": [{"name": "o"}], "finalizers": ["x"]})
        );
        assert_eq!(
            removed,
            [
                "metadata.clusterName",
                "metadata.foo",
                "metadata.ownerReferences[0].bar"
            ]
        );
    }

    #[test]
    fn times_are_brought_to_utc_and_nulls_in_maps_to_empty_texts() {
        let (metadata, _) =
            coerced(json!({"creationTimestamp": "2024-01-01T01:00:00.5+01:00", "labels": {"a": null}})).unwrap();
        assert_eq!(
            metadata,
            json!({"creationTimestamp": "2024-01-01T00:00:00Z", "labels": {"a": ""}})
        );
        assert_eq!(coerced(json!({"creationTimestamp": null})).unwrap().0, json!({}));
    }

    #[test]
    fn wrong_types_are_refused_with_the_messages_of_the_api_server() {
        let cases = [
            (
                json!({"name": 5}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
            ),
            (
                json!({"labels": {"a": 1}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
            ),
            (
                json!({"labels": []}),
                "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string",
            ),
            (
                json!({"finalizers": "a"}),
                "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string",
            ),
            (
                json!({"generation": 1.5}),
                "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of type int64",
            ),
            (
                json!({"generation": "x"}),
                "json: cannot unmarshal string into Go struct field ObjectMeta.generation of type int64",
            ),
            (
                json!({"ownerReferences": [{"controller": "x"}]}),
                "json: cannot unmarshal string into Go struct field OwnerReference.ownerReferences.controller of type bool",
            ),
            (
                json!({"ownerReferences": {}}),
                "json: cannot unmarshal object into Go struct field ObjectMeta.ownerReferences of type []v1.OwnerReference",
            ),
            (
                json!({"creationTimestamp": "abc"}),
                r#"parsing time "abc" as "2006-01-02T15:04:05Z07:00": cannot parse "abc" as "2006""#,
            ),
            (
                json!(5),
                "json: cannot unmarshal number into Go value of type v1.ObjectMeta",
            ),
        ];
        for (metadata, words) in cases {
            assert_eq!(coerced(metadata).unwrap_err(), words);
        }
    }
}
