//! Rules for single keywords and for combinations of keywords, anywhere in a schema. What must be declared outside of
//! `allOf`, `anyOf`, `oneOf` and `not` is checked in `structure`.

use serde_json::{Value, json};

use super::inner::each_inner;
use crate::schema::problem::{FieldError, Path};
use crate::schema::structural::Type;

/// Where in a schema the walk is, as far as rules depend on it.
#[derive(Clone)]
pub(super) struct Position {
    root: bool,
    inside_metadata: bool,
    /// Why defaults may not be given here.
    no_defaults: Option<String>,
}

impl Position {
    pub(super) fn root() -> Self {
        Self {
            root: true,
            inside_metadata: false,
            no_defaults: None,
        }
    }

    /// The place of the inner schema that `keyword` and the path's last step lead to.
    fn inner(&self, schema: &Value, keyword: &str, path: &Path<'_>) -> Self {
        let mut position = Self {
            root: false,
            ..self.clone()
        };
        let holds_resource = self.root || is_true(schema, "x-kubernetes-embedded-resource");
        match (keyword, path) {
            ("properties", Path::Key(_, name @ ("metadata" | "apiVersion" | "kind"))) if holds_resource => {
                position.inside_metadata = true;
                if self.root {
                    position.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            ("additionalProperties", _) if self.inside_metadata => {
                position.no_defaults = Some("inside additionalProperties applying to object metadata".to_owned());
            }
            _ => {}
        }
        position
    }
}

fn is_true(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword).and_then(Value::as_bool) == Some(true)
}

fn is_set(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword).is_some_and(|value| !value.is_null())
}

fn is_filled(schema: &Value, keyword: &str) -> bool {
    match schema.get(keyword) {
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::String(text)) => !text.is_empty(),
        _ => false,
    }
}

/// Whether no keyword stands in the schema that structural schemas do not have. With one, structure is not looked at.
pub(super) fn are_supported(schema: &Value, path: &Path<'_>) -> bool {
    let mut supported = true;
    visit(schema, path, &mut |schema| {
        supported &= !["id", "patternProperties", "definitions", "dependencies"]
            .iter()
            .any(|name| is_filled(schema, name))
            && !["additionalItems", "$ref"].iter().any(|name| is_set(schema, name))
            && !schema.get("items").is_some_and(Value::is_array)
            && schema.get("x-kubernetes-preserve-unknown-fields") != Some(&json!(false));
    });
    supported
}

fn visit(schema: &Value, path: &Path<'_>, look: &mut impl FnMut(&Value)) {
    look(schema);
    each_inner(schema, path, |_, inner, path| visit(inner, path, look));
}

pub(super) fn check(schema: &Value, position: &Position, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let at = |keyword: &str| Path::Field(path, keyword).to_string();
    unsupported(schema, &at, errors);
    if let Some(name) = schema
        .get("type")
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())
    {
        if name == "null" {
            let why = "type cannot be set to null, use nullable as an alternative";
            errors.push(FieldError::forbidden(at("type"), why));
        }
        if Type::of_name(name).is_none() {
            let known: Vec<Value> = Type::ALL.iter().map(|(name, _)| json!(name)).collect();
            errors.push(FieldError::not_supported(at("type"), &json!(name), &known));
        }
    }
    if let Some(why) = position.no_defaults.as_ref().filter(|_| is_set(schema, "default")) {
        errors.push(FieldError::forbidden(at("default"), &format!("must not be set {why}")));
    }
    if position.inside_metadata && is_true(schema, "x-kubernetes-embedded-resource") {
        let why = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(at("x-kubernetes-embedded-resource"), why));
    }
    if position.root && is_true(schema, "nullable") {
        errors.push(FieldError::forbidden(
            at("nullable"),
            "nullable cannot be true at the root",
        ));
    }
    if is_true(schema, "uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(at("uniqueItems"), why));
    }
    if is_filled(schema, "properties")
        && schema
            .get("additionalProperties")
            .is_some_and(|value| value.is_object() || *value == json!(false))
    {
        let why = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(at("additionalProperties"), why));
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
        let keyword = "x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::invalid(
            at(keyword),
            &json!(false),
            "must be true or undefined",
        ));
    }
    map_type(schema, &at, errors);
    list_type(schema, &at, errors);
    list_map(schema, path, errors);
    each_inner(schema, path, |keyword, inner, path| {
        check(inner, &position.inner(schema, keyword, path), path, errors)
    });
}

fn unsupported(schema: &Value, at: &impl Fn(&str) -> String, errors: &mut Vec<FieldError>) {
    for keyword in ["id", "patternProperties", "definitions"] {
        if is_filled(schema, keyword) {
            errors.push(FieldError::forbidden(
                at(keyword),
                &format!("{keyword} is not supported"),
            ));
        }
    }
    for keyword in ["additionalItems", "dependencies", "$ref"] {
        if is_set(schema, keyword) {
            errors.push(FieldError::forbidden(
                at(keyword),
                &format!("{keyword} is not supported"),
            ));
        }
    }
    if schema.get("items").is_some_and(Value::is_array) {
        errors.push(FieldError::forbidden(
            at("items"),
            "items must be a schema object and not an array",
        ));
    }
}

fn map_type(schema: &Value, at: &impl Fn(&str) -> String, errors: &mut Vec<FieldError>) {
    let Some(map_type) = schema.get("x-kubernetes-map-type").filter(|value| !value.is_null()) else {
        return;
    };
    needs_type(schema, "object", "x-kubernetes-map-type", at, errors);
    if !matches!(map_type.as_str(), Some("atomic" | "granular")) {
        let known = [json!("atomic"), json!("granular")];
        errors.push(FieldError::not_supported(at("x-kubernetes-map-type"), map_type, &known));
    }
}

fn needs_type(schema: &Value, kind: &str, because: &str, at: &impl Fn(&str) -> String, errors: &mut Vec<FieldError>) {
    let why = format!("must be {kind} if {because} is specified");
    match schema.get("type").and_then(Value::as_str) {
        Some(found) if found == kind => {}
        None | Some("") => errors.push(FieldError::required(at("type"), &why)),
        Some(found) => errors.push(FieldError::invalid(at("type"), &json!(found), &why)),
    }
}

fn list_type(schema: &Value, at: &impl Fn(&str) -> String, errors: &mut Vec<FieldError>) {
    let list_type = schema.get("x-kubernetes-list-type").filter(|value| !value.is_null());
    if let Some(list_type) = list_type {
        needs_type(schema, "array", "x-kubernetes-list-type", at, errors);
        if !matches!(list_type.as_str(), Some("atomic" | "set" | "map")) {
            let known = [json!("atomic"), json!("set"), json!("map")];
            errors.push(FieldError::not_supported(
                at("x-kubernetes-list-type"),
                list_type,
                &known,
            ));
        }
        if list_type == "set" {
            set_items(schema, at, errors);
        }
        if (list_type == "set" || list_type == "map") && is_true(&schema["items"], "nullable") {
            let why = format!(
                "cannot be nullable when x-kubernetes-list-type is {}",
                list_type.as_str().unwrap_or("")
            );
            errors.push(FieldError::forbidden(format!("{}.nullable", at("items")), &why));
        }
    }
    if is_filled(schema, "x-kubernetes-list-map-keys") && list_type != Some(&json!("map")) {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(at("x-kubernetes-list-type"), why),
            Some(other) => FieldError::invalid(at("x-kubernetes-list-type"), other, why),
        });
    }
}

fn set_items(schema: &Value, at: &impl Fn(&str) -> String, errors: &mut Vec<FieldError>) {
    let items = &schema["items"];
    let keyword = match items.get("type").and_then(Value::as_str) {
        Some("array") if items.get("x-kubernetes-list-type").is_some_and(|kind| kind != "atomic") => {
            "x-kubernetes-list-type"
        }
        Some("object") if items.get("x-kubernetes-map-type") != Some(&json!("atomic")) => "x-kubernetes-map-type",
        _ => return,
    };
    let found = items.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    errors.push(FieldError::invalid(format!("{}.{keyword}", at("items")), found, why));
}

/// A list of type map names its keys, which are required or defaulted scalar fields of its items.
fn list_map(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if schema.get("x-kubernetes-list-type") != Some(&json!("map")) {
        return;
    }
    let keys_at = || Path::Field(path, "x-kubernetes-list-map-keys").to_string();
    let items_path = Path::Field(path, "items");
    let properties_path = Path::Field(&items_path, "properties");
    let empty = Vec::new();
    let keys = schema
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array)
        .unwrap_or(&empty);
    if keys.is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(keys_at(), why));
    }
    let Some(items) = schema.get("items").filter(|items| items.is_object()) else {
        let why = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(items_path.to_string(), why));
        return;
    };
    if items.get("type") != Some(&json!("object")) {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        let found = items.get("type").cloned().unwrap_or_else(|| json!(""));
        errors.push(FieldError::invalid(format!("{items_path}.type"), &found, why));
        return;
    }
    let all_keys = json!(keys);
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        match items.get("properties").and_then(|properties| properties.get(name)) {
            None => errors.push(FieldError::invalid(
                keys_at(),
                &all_keys,
                "entries must all be names of item properties",
            )),
            Some(property) => list_map_key(items, name, property, &Path::Key(&properties_path, name), errors),
        }
        if keys[..index].contains(key) {
            errors.push(FieldError::invalid(
                keys_at(),
                &all_keys,
                "must not contain duplicate entries",
            ));
        }
    }
}

fn list_map_key(items: &Value, name: &str, property: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some("array" | "object") = property.get("type").and_then(Value::as_str) {
        let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{path}.type"), &items["type"], why));
    }
    let required = items
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|n| n == name));
    if !required && !is_set(property, "default") {
        let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
        errors.push(FieldError::required(format!("{path}.default"), why));
    }
    if is_true(property, "nullable") {
        let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        errors.push(FieldError::forbidden(format!("{path}.nullable"), why));
    }
}
