//! Checks that every field under a junctor such as `anyOf` is also a property outside of it.

use serde_json::Value;

use super::Path;
use crate::schema::problem::FieldError;

/// Checks the junctors at the root of `schema`; like the API server, not those deeper in its structure.
pub(super) fn check(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    junctors(schema, Some(schema), path, path, errors);
}

fn junctors(rules: &Value, structure: Option<&Value>, at: &Path<'_>, from: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(inner) = rules.get("not").filter(|inner| inner.is_object()) {
        nested(inner, structure, at, &Path::Field(from, "not"), errors);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let list = Path::Field(from, keyword);
        for (index, inner) in rules
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            nested(inner, structure, at, &Path::Item(&list, index), errors);
        }
    }
}

fn nested(rules: &Value, structure: Option<&Value>, at: &Path<'_>, from: &Path<'_>, errors: &mut Vec<FieldError>) {
    if structure.is_none() {
        errors.push(FieldError::required(
            at.to_string(),
            &format!("because it is defined in {from}"),
        ));
        return;
    }
    junctors(rules, structure, at, from, errors);
    if let Some(items) = rules.get("items").filter(|items| items.is_object()) {
        let inner = structure
            .and_then(|schema| schema.get("items"))
            .filter(|items| items.is_object());
        nested(
            items,
            inner,
            &Path::Field(at, "items"),
            &Path::Field(from, "items"),
            errors,
        );
    }
    let (at_properties, from_properties) = (Path::Field(at, "properties"), Path::Field(from, "properties"));
    for (name, property) in rules.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let inner = structure
            .and_then(|schema| schema.get("properties"))
            .and_then(|fields| fields.get(name));
        let (at, from) = (Path::Key(&at_properties, name), Path::Key(&from_properties, name));
        nested(property, inner, &at, &from, errors);
    }
}
