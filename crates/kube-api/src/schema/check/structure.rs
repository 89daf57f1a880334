//! Whether a schema is structural: every value has a type declared outside of `allOf`, `anyOf`, `oneOf` and `not`, and
//! inside of them stand only rules about values. Knows nothing of single keywords (`keywords`).

use serde_json::{Value, json};

use super::Path;
use crate::schema::go_regex;
use crate::schema::problem::FieldError;

/// What kind of value a schema describes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Root,
    Item,
    Field,
}

fn is_true(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword).and_then(Value::as_bool) == Some(true)
}

fn text<'a>(schema: &'a Value, keyword: &str) -> &'a str {
    schema.get(keyword).and_then(Value::as_str).unwrap_or("")
}

fn list<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    schema
        .get(keyword)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
}

pub(super) fn check(schema: &Value, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let at = |keyword: &str| Path::Field(path, keyword).to_string();
    let embedded = is_true(schema, "x-kubernetes-embedded-resource");
    if text(schema, "type") == "array" && schema.get("items").is_none_or(Value::is_null) {
        errors.push(FieldError::required(at("items"), "must be specified"));
    }
    let additional = schema.get("additionalProperties").filter(|value| !value.is_null());
    if additional.is_some() && level == Level::Root {
        errors.push(FieldError::forbidden(
            at("additionalProperties"),
            "must not be used at the root",
        ));
    }
    if additional.is_some() && embedded {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(at("additionalProperties"), why));
    }
    if is_true(schema, "x-kubernetes-int-or-string") {
        for keyword in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if is_true(schema, keyword) {
                let why = "must be false if x-kubernetes-int-or-string is true";
                errors.push(FieldError::invalid(at(keyword), &json!(true), why));
            }
        }
    }
    let has_properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|fields| !fields.is_empty());
    if embedded && !is_true(schema, "x-kubernetes-preserve-unknown-fields") && !has_properties {
        let why =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(at("properties"), why));
    }
    kind(schema, level, &at, errors);
    resource_fields(schema, level, path, errors);
    values(schema, junctor_exceptions(schema), level, path, errors);
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        check(items, Level::Item, &Path::Field(path, "items"), errors);
    }
    if let Some(inner) = additional.filter(|value| value.is_object()) {
        check(inner, Level::Field, &Path::Field(path, "additionalProperties"), errors);
    }
    let properties = Path::Field(path, "properties");
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        check(property, Level::Field, &Path::Key(&properties, name), errors);
    }
}

fn kind(schema: &Value, level: Level, at: &impl Fn(&str) -> String, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    if is_true(schema, "x-kubernetes-embedded-resource") && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(at("type"), why),
            other => FieldError::invalid(at("type"), &json!(other), why),
        });
    } else if kind.is_empty()
        && !is_true(schema, "x-kubernetes-int-or-string")
        && !is_true(schema, "x-kubernetes-preserve-unknown-fields")
    {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at("type"), why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(
            at("type"),
            &json!(kind),
            "must be object at the root",
        ));
    }
}

/// `kind`, `apiVersion` and `metadata` of a resource are given; a schema may only restrict the name.
fn resource_fields(schema: &Value, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let is_resource = level == Level::Root || is_true(schema, "x-kubernetes-embedded-resource");
    let Some(properties) = schema
        .get("properties")
        .and_then(Value::as_object)
        .filter(|_| is_resource)
    else {
        return;
    };
    let properties_path = Path::Field(path, "properties");
    for name in ["kind", "apiVersion"] {
        if let Some(property) = properties
            .get(name)
            .filter(|property| text(property, "type") != "string")
        {
            let at = format!("{}.type", Path::Key(&properties_path, name));
            errors.push(FieldError::invalid(
                at,
                &json!(text(property, "type")),
                "must be string",
            ));
        }
    }
    let Some(metadata) = properties.get("metadata") else {
        return;
    };
    let metadata_path = Path::Key(&properties_path, "metadata");
    if text(metadata, "type") != "object" {
        let found = json!(text(metadata, "type"));
        errors.push(FieldError::invalid(
            format!("{metadata_path}.type"),
            &found,
            "must be object",
        ));
    }
    let only_names = metadata.as_object().is_none_or(|metadata| {
        metadata.iter().all(|(keyword, value)| match keyword.as_str() {
            "type" | "default" => true,
            "properties" => value
                .as_object()
                .is_some_and(|fields| fields.keys().all(|name| name == "name" || name == "generateName")),
            _ => value.is_null() || *value == json!(false) || *value == json!(""),
        })
    });
    if level == Level::Root && !only_names {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(metadata_path.to_string(), why));
    }
}

/// The one junctor that may speak of types: `anyOf` (or the first `allOf`'s `anyOf`) of exactly integer and string.
#[derive(Clone, Copy, Default)]
struct Exceptions {
    any_of: bool,
    first_all_of: bool,
}

fn junctor_exceptions(schema: &Value) -> Exceptions {
    let pattern = json!([{"type": "integer"}, {"type": "string"}]);
    let any_of = schema.get("anyOf") == Some(&pattern);
    Exceptions {
        any_of,
        first_all_of: list(schema, "allOf")
            .next()
            .is_some_and(|(_, first)| first.get("anyOf") == Some(&pattern)),
    }
}

/// The rules about values in `schema`.
fn values(schema: &Value, except: Exceptions, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for keyword in ["anyOf", "allOf", "oneOf"] {
        if keyword == "anyOf" && except.any_of {
            continue;
        }
        let list_path = Path::Field(path, keyword);
        for (index, inner) in list(schema, keyword) {
            let any_of = keyword == "allOf" && index == 0 && except.first_all_of;
            nested(
                inner,
                Exceptions {
                    any_of,
                    first_all_of: false,
                },
                level,
                &Path::Item(&list_path, index),
                errors,
            );
        }
    }
    if let Some(inner) = schema.get("not").filter(|inner| inner.is_object()) {
        nested(inner, Exceptions::default(), level, &Path::Field(path, "not"), errors);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Err(error) = go_regex::compile(pattern)
    {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(
            Path::Field(path, "pattern").to_string(),
            &json!(pattern),
            &why,
        ));
    }
}

/// A schema inside a junctor: rules about values, no structure.
fn nested(schema: &Value, except: Exceptions, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let at = |keyword: &str| Path::Field(path, keyword).to_string();
    values(schema, except, level, path, errors);
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        nested(items, Exceptions::default(), level, &Path::Field(path, "items"), errors);
    }
    let properties = Path::Field(path, "properties");
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let property_path = Path::Key(&properties, name);
        if name == "metadata" {
            let why = "must not be specified in a nested context";
            errors.push(FieldError::forbidden(property_path.to_string(), why));
        }
        nested(property, Exceptions::default(), Level::Field, &property_path, errors);
    }
    for keyword in ["type", "title", "description"] {
        if !text(schema, keyword).is_empty() {
            errors.push(FieldError::forbidden(at(keyword), "must be empty to be structural"));
        }
    }
    let flags = [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ];
    for keyword in flags.into_iter().filter(|keyword| is_true(schema, keyword)) {
        errors.push(FieldError::forbidden(at(keyword), "must be false to be structural"));
    }
    for keyword in ["default", "x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if schema.get(keyword).is_some_and(|value| !value.is_null()) {
            errors.push(FieldError::forbidden(at(keyword), "must be undefined to be structural"));
        }
    }
    if schema
        .get("additionalProperties")
        .is_some_and(|value| value.is_object() || *value == json!(true))
    {
        errors.push(FieldError::forbidden(
            at("additionalProperties"),
            "must be undefined to be structural",
        ));
    }
    if list(schema, "x-kubernetes-list-map-keys").next().is_some() {
        errors.push(FieldError::forbidden(
            at("x-kubernetes-list-map-keys"),
            "must be empty to be structural",
        ));
    }
}
