//! A value against a compiled schema, with the API server's messages. Nothing is cloned and no path is written
//! unless a rule is broken. Knows nothing of resources: the metadata at the root of an object is not looked at.

mod keys;
mod words;

mod rules;
mod scalar;

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::problem::{FieldError, Path, is_enough};
use super::structural::{Additional, Structural};
use super::{go_text, listtype, metadata};

use keys::{entries_by_key, key_of};
use words::path_or_nil;

/// Checks `value`, a new object. The list is empty when it is valid.
pub(super) fn validate(schema: &Structural, value: &Value) -> Vec<FieldError> {
    validate_update(schema, value, None)
}

/// Checks `value`, which is to replace `old`. Parts that have not changed may break rules: an object stored before
/// a rule was added can still be updated elsewhere.
pub fn validate_update(schema: &Structural, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(schema, value, old, &Path::Root, &mut errors);
    listtype::check(schema, value, &Path::Root, &mut errors);
    metadata::check_embedded(schema, value, &Path::Root, &mut errors);
    if errors.len() > 1 {
        let mut seen = HashSet::new();
        errors.retain(|error| seen.insert((error.field.clone(), error.message.clone())));
    }
    rules::check(schema, value, old, &mut errors);
    errors
}

/// Checks one value and what is inside it. Gives the number of checks passed, by which the best failing alternative
/// of an `anyOf` or `oneOf` is chosen.
fn node(schema: &Structural, value: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) -> u32 {
    let mut passed = 0;
    if is_enough(errors) {
        return passed;
    }
    let typed = schema.kind.is_some() || schema.int_or_string || schema.rules.format.is_some();
    if value.is_null() {
        passed += scalar::kind(schema, value, path, errors);
        scalar::choices(&schema.rules, value, path, errors);
    } else {
        if typed {
            passed += scalar::kind(schema, value, path, errors) + 1;
        }
        passed += junctors(schema, value, old, path, errors) + 1;
        match value {
            Value::String(text) => passed += scalar::text(&schema.rules, text, path, errors),
            Value::Number(number) => passed += scalar::number(schema, number, path, errors),
            Value::Array(items) => passed += list(schema, items, old, path, errors),
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
        scalar::choices(&schema.rules, value, path, errors);
        passed += 1;
        if let Value::Object(fields) = value {
            passed += object(schema, fields, old, path, errors);
        }
        passed += 1;
    }
    passed
}

/// Checks a value inside another one. What is wrong with it is forgiven when it has not changed.
fn inner(
    schema: &Structural,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> u32 {
    let before = errors.len();
    let passed = node(schema, value, old, path, errors);
    if errors.len() > before && old == Some(value) {
        errors.truncate(before);
    }
    passed
}

fn list(
    schema: &Structural,
    items: &[Value],
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> u32 {
    let mut passed = 2;
    if let Some(item_schema) = &schema.items {
        let before = entries_by_key(schema, old);
        for (index, item) in items.iter().enumerate() {
            let old_item = key_of(schema, item).and_then(|key| before.get(&key).copied());
            passed += inner(item_schema, item, old_item, &Path::Item(path, index), errors);
        }
    }
    let count = items.len();
    if let Some(least) = schema.rules.min_items.filter(|least| (count as u64) < *least) {
        let detail = format!("{path} in body should have at least {least} items");
        errors.push(FieldError::invalid(path_or_nil(path), &count.into(), &detail));
    }
    if let Some(most) = schema.rules.max_items.filter(|most| count as u64 > *most) {
        errors.push(FieldError::too_many(path_or_nil(path), count, most));
    }
    passed
}

fn object(
    schema: &Structural,
    fields: &Map<String, Value>,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> u32 {
    let mut passed = 1;
    let rules = &schema.rules;
    let count = fields.len();
    if let Some(least) = rules.min_properties.filter(|least| (count as u64) < *least) {
        let detail = format!("{path} in body should have at least {least} properties");
        errors.push(FieldError::invalid(path_or_nil(path), &count.into(), &detail));
    }
    if let Some(most) = rules.max_properties.filter(|most| count as u64 > *most) {
        errors.push(FieldError::too_many(path_or_nil(path), count, most));
    }
    for (name, value) in fields {
        let field_schema = match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => property,
            (None, Additional::Schema(additional)) => additional,
            (None, Additional::Refused) => {
                let detail = format!("{path}.{name} in body is a forbidden property");
                errors.push(FieldError::invalid(path_or_nil(path), &name.as_str().into(), &detail));
                continue;
            }
            (None, Additional::Absent | Additional::Any) => continue,
        };
        let old_value = old.and_then(|old| old.get(name));
        passed += inner(field_schema, value, old_value, &Path::Field(path, name), errors);
    }
    for name in rules.required.iter().filter(|name| !fields.contains_key(name.as_str())) {
        errors.push(FieldError::required(Path::Field(path, name).to_string(), ""));
    }
    passed
}

/// `anyOf`, `oneOf`, `allOf` and `not`.
fn junctors(
    schema: &Structural,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> u32 {
    let rules = &schema.rules;
    let mut passed = 1;
    if !rules.any_of.is_empty() {
        let best = Alternatives::of(&rules.any_of, value, old, path, true);
        if best.valid == 0 {
            errors.push(junctor_error(path, "must validate at least one schema (anyOf)"));
        }
        passed += best.passed;
        errors.extend(best.errors);
    }
    if !rules.one_of.is_empty() {
        let best = Alternatives::of(&rules.one_of, value, old, path, false);
        let found = match best.valid {
            0 => "Found none valid".to_owned(),
            several => format!("Found {several} valid alternatives"),
        };
        if best.valid != 1 {
            errors.push(junctor_error(
                path,
                &format!("must validate one and only one schema (oneOf). {found}"),
            ));
        }
        if best.valid < 2 {
            passed += best.passed;
            errors.extend(best.errors);
        }
    }
    let mut valid = 0;
    for every in &rules.all_of {
        let before = errors.len();
        passed += node(every, value, old, path, errors);
        valid += usize::from(errors.len() == before);
    }
    if valid < rules.all_of.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        errors.push(junctor_error(
            path,
            &format!("must validate all the schemas (allOf){none}"),
        ));
    }
    if let Some(refused) = &rules.not {
        let mut found = Vec::new();
        node(refused, value, old, path, &mut found);
        if found.is_empty() {
            errors.push(junctor_error(path, "must not validate the schema (not)"));
        }
    }
    passed
}

/// What several alternatives say: how many accept the value, and the first that accepts it, else the one that came
/// closest.
struct Alternatives {
    valid: usize,
    passed: u32,
    errors: Vec<FieldError>,
}

impl Alternatives {
    fn of(schemas: &[Structural], value: &Value, old: Option<&Value>, path: &Path<'_>, stop_at_first: bool) -> Self {
        let mut valid = 0;
        let mut best: Option<(u32, Vec<FieldError>)> = None;
        for schema in schemas {
            let mut errors = Vec::new();
            let passed = node(schema, value, old, path, &mut errors);
            let better = best.as_ref().is_none_or(|(most, _)| passed > *most);
            if errors.is_empty() {
                valid += 1;
                if valid == 1 {
                    best = Some((passed, errors));
                }
                if stop_at_first {
                    break;
                }
            } else if valid == 0 && better {
                best = Some((passed, errors));
            }
        }
        let (passed, errors) = best.unwrap_or_default();
        Self { valid, passed, errors }
    }
}

/// The API server names no field for these; the path is in the text.
fn junctor_error(path: &Path<'_>, rule: &str) -> FieldError {
    let detail = format!("{} {rule}", go_text::quote(&path.to_string()));
    FieldError::invalid("<nil>", &Value::String(String::new()), &detail)
}

#[cfg(test)]
mod tests;
