//! The rules in CEL of a schema, asked of a value. Like the API server, they are not asked of a value that has not the
//! structure they rely on, and those that do not speak of `oldSelf` are forgiven where nothing has changed.

use serde_json::{Value, json};

use super::keys::{entries_by_key, key_of};
use super::words::path_or_nil;
use crate::schema::cel::{Budget, Failure, holds};
use crate::schema::problem::{FieldError, FieldReason, Path, is_enough};
use crate::schema::structural::{Additional, Structural, Type, Validation};

const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete \
     validation";
const EXHAUSTED: &str = "validation failed due to running out of cost budget, no further validation rules will be run";

/// Adds to `errors`, which are those of the structure, what the rules say.
pub(super) fn check(schema: &Structural, value: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if !schema.is_validated {
        return;
    }
    if errors.iter().any(|error| is_blocking(error.reason)) {
        errors.push(FieldError::invalid("<nil>", &Value::Null, NOT_CHECKED));
        return;
    }
    let mut budget = Budget::default();
    // An error means that the budget is used up, which is reported already.
    let _reported = node(schema, value, old, &Path::Root, &mut budget, errors);
}

fn is_blocking(reason: FieldReason) -> bool {
    match reason {
        FieldReason::NotSupported
        | FieldReason::Required
        | FieldReason::TooLong
        | FieldReason::TooMany
        | FieldReason::TypeInvalid => true,
        FieldReason::Duplicate | FieldReason::Invalid | FieldReason::Forbidden => false,
    }
}

/// The budget is used up.
struct Exhausted;

fn node(
    schema: &Structural,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    budget: &mut Budget,
    errors: &mut Vec<FieldError>,
) -> Result<(), Exhausted> {
    if !schema.is_validated || value.is_null() || is_enough(errors) {
        return Ok(());
    }
    let old = old.filter(|old| !old.is_null());
    own(schema, value, old, path, budget, errors)?;
    match value {
        Value::Array(items) => {
            let Some(of) = &schema.items else { return Ok(()) };
            let before = entries_by_key(schema, old);
            for (index, item) in items.iter().enumerate() {
                let old = key_of(schema, item).and_then(|key| before.get(&key).copied());
                node(of, item, old, &Path::Item(path, index), budget, errors)?;
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                // The fields of an atomic map are told apart by nobody: it is one value.
                let old = old.filter(|_| !schema.atomic_map).and_then(|old| old.get(name));
                match (schema.properties.get(name), &schema.additional) {
                    (Some(of), _) => node(of, field, old, &Path::Field(path, name), budget, errors)?,
                    (None, Additional::Schema(of)) => node(of, field, old, &Path::Key(path, name), budget, errors)?,
                    (None, Additional::Absent | Additional::Refused | Additional::Any) => {}
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

/// The rules of the value itself.
fn own(
    schema: &Structural,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    budget: &mut Budget,
    errors: &mut Vec<FieldError>,
) -> Result<(), Exhausted> {
    let kind = json!(schema.kind.map_or("", Type::name));
    for validation in &schema.validations {
        if validation.is_transition && old.is_none() || !validation.is_transition && old == Some(value) {
            continue;
        }
        match holds(&validation.expression, value, old, budget) {
            Ok(true) => {}
            Ok(false) => errors.push(broken(validation, value, path)),
            Err(Failure::Error(why)) => {
                let detail = match validation.message.as_str() {
                    "" => &validation.rule,
                    message => message,
                };
                let why = format!("{why} evaluating rule: {detail}");
                errors.push(FieldError::invalid(path_or_nil(path), &kind, &why));
            }
            Err(Failure::Exhausted) => {
                errors.push(FieldError::invalid(path_or_nil(path), &kind, EXHAUSTED));
                return Err(Exhausted);
            }
        }
    }
    Ok(())
}

/// Scalars are shown, objects and lists are not.
fn broken(validation: &Validation, value: &Value, path: &Path<'_>) -> FieldError {
    let detail = match validation.message.as_str() {
        "" => format!("failed rule: {}", validation.rule),
        message => message.to_owned(),
    };
    let field = path_or_nil(path);
    match validation.reason {
        FieldReason::Forbidden => FieldError::forbidden(field, &detail),
        FieldReason::Required => FieldError::required(field, &detail),
        FieldReason::Duplicate => FieldError::duplicate(field, value),
        FieldReason::Invalid
        | FieldReason::TypeInvalid
        | FieldReason::NotSupported
        | FieldReason::TooLong
        | FieldReason::TooMany => match value {
            Value::Array(_) | Value::Object(_) => FieldError::invalid_as_a_whole(field, &detail),
            scalar => FieldError::invalid(field, scalar, &detail),
        },
    }
}
