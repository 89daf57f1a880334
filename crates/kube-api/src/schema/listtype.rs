//! Lists declared as sets or maps hold no two entries with the same key. Knows no other rule.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::problem::{FieldError, Path, is_enough};
use super::structural::{Additional, ListType, Structural};

pub(super) fn check(schema: &Structural, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !schema.has_keyed_lists || is_enough(errors) {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match (schema.properties.get(name), &schema.additional) {
                    (Some(property), _) => check(property, inner, &Path::Field(path, name), errors),
                    (None, Additional::Schema(additional)) => check(additional, inner, &Path::Key(path, name), errors),
                    (None, Additional::Absent | Additional::Refused | Additional::Any) => {}
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type {
                ListType::Atomic => {}
                ListType::Set => check_set(items, path, errors),
                ListType::Map => check_map(schema, items, path, errors),
            }
            if let Some(item_schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check(item_schema, item, &Path::Item(path, index), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_set(items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for index in second_occurrences(items.iter().map(Value::to_string)) {
        errors.push(FieldError::duplicate(
            Path::Item(path, index).to_string(),
            &items[index],
        ));
    }
}

fn check_map(schema: &Structural, items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(
            Path::Item(path, index).to_string(),
            &items[index],
            detail,
        ));
        return;
    }
    let keys: Vec<Value> = items.iter().map(|item| key_of(schema, item)).collect();
    for index in second_occurrences(keys.iter().map(Value::to_string)) {
        errors.push(FieldError::duplicate(Path::Item(path, index).to_string(), &keys[index]));
    }
}

/// The key fields of an entry, in the order of the schema; absent ones are left out.
fn key_of(schema: &Structural, item: &Value) -> Value {
    let fields = schema
        .list_map_keys
        .iter()
        .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// The index at which each repeated text occurs for the second time.
fn second_occurrences(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for (index, text) in texts.enumerate() {
        let times = times.entry(text).or_default();
        *times += 1;
        if *times == 2 {
            found.push(index);
        }
    }
    found
}
