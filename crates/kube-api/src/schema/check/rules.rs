//! Whether the rules in CEL of a schema can be evaluated: each is parsed, and every part of it has a type that the
//! schema gives. What the API server takes and this one does not evaluate is refused by name, never ignored.

mod types;

use std::cell::Cell;

use serde_json::{Value, json};

use super::inner::each_inner;
use crate::schema::cel::{self, Expression, Refusal};
use crate::schema::problem::{FieldError, Path};
use crate::schema::structural::{Additional, ListType, Structural};

const RULES: &str = "x-kubernetes-validations";
/// What else a rule may say on the API server.
const UNSUPPORTED: [&str; 3] = ["fieldPath", "messageExpression", "optionalOldSelf"];
/// What a broken rule may be called.
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Checks the rules of `schema`, which is in order but for them, and of everything inside it.
pub(super) fn check(schema: &Value, compiled: &Structural, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let place = Context {
        is_root: true,
        alone: None,
        steps: &Cell::new(0),
    };
    node(schema, compiled, place, path, errors);
}

/// Where a schema stands, as far as its rules depend on it.
#[derive(Clone, Copy)]
struct Context<'a> {
    is_root: bool,
    /// The list or map of which no entry can be found in the object before.
    alone: Option<&'a str>,
    /// What the comparisons of all rules have taken to check so far.
    steps: &'a Cell<u32>,
}

fn node(schema: &Value, compiled: &Structural, place: Context<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let rules = schema.get(RULES).and_then(Value::as_array);
    let at = Path::Field(path, RULES);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        one(rule, compiled, place, &Path::Item(&at, index), errors);
    }
    each_inner(schema, path, |keyword, inner, inner_path| {
        let (compiled_inner, is_alone) = match (keyword, inner_path, &compiled.additional) {
            ("items", ..) => (compiled.items.as_deref(), compiled.list_type != ListType::Map),
            ("properties", Path::Key(_, name), _) => (compiled.properties.get(*name), compiled.atomic_map),
            ("additionalProperties", _, Additional::Schema(inner)) => (Some(&**inner), compiled.atomic_map),
            _ => (None, false),
        };
        let asks = |inner: &Structural| is_alone && place.alone.is_none() && inner.is_validated;
        let alone = compiled_inner.filter(|inner| asks(inner)).map(|_| path.to_string());
        match compiled_inner {
            Some(compiled) => {
                let alone = place.alone.or(alone.as_deref());
                let place = Context {
                    is_root: false,
                    alone,
                    ..place
                };
                node(inner, compiled, place, inner_path, errors);
            }
            None => nowhere(inner, inner_path, errors),
        }
    });
}

/// Refuses rules inside `anyOf` and its like.
fn nowhere(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if schema
        .get(RULES)
        .and_then(Value::as_array)
        .is_some_and(|rules| !rules.is_empty())
    {
        let refusal = unsupported(&format!("a rule inside {path}"));
        errors.push(FieldError::forbidden(Path::Field(path, RULES).to_string(), &refusal));
    }
    each_inner(schema, path, |_, inner, path| nowhere(inner, path, errors));
}

fn unsupported(what: &str) -> String {
    format!("{what} is not supported by the embedded cluster")
}

fn one(rule: &Value, compiled: &Structural, place: Context<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let at = |field: &str| Path::Field(path, field).to_string();
    let is_set = |field: &&&str| rule.get(**field).is_some_and(|value| !value.is_null());
    for field in UNSUPPORTED.iter().filter(is_set) {
        errors.push(FieldError::forbidden(at(field), &unsupported(field)));
    }
    for field in ["message", "reason"].iter().filter(is_set) {
        if !rule[field].is_string() {
            errors.push(FieldError::invalid(at(field), &rule[field], "must be a string"));
        }
    }
    if let Some(reason) = rule["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
        errors.push(FieldError::not_supported(
            at("reason"),
            &json!(reason),
            &REASONS.map(Value::from),
        ));
    }
    let source = match rule.get("rule").unwrap_or(&Value::Null) {
        Value::String(source) if !source.trim().is_empty() => source,
        Value::String(_) | Value::Null => {
            errors.push(FieldError::required(at("rule"), "rule is not specified"));
            return;
        }
        other => {
            errors.push(FieldError::invalid(at("rule"), other, "must be a string"));
            return;
        }
    };
    let parsed = cel::parse(source);
    let typed = parsed.as_ref().map_err(Clone::clone);
    match typed.and_then(|expression| types::check(expression, compiled, place.is_root, place.steps)) {
        Ok(()) => {}
        Err(Refusal::Unsupported(what)) => errors.push(FieldError::forbidden(at("rule"), &unsupported(&what))),
        Err(Refusal::Wrong(why)) => {
            let why = format!("compilation failed: {why}");
            errors.push(FieldError::invalid(at("rule"), &json!(source), &why));
        }
    }
    if let Some(alone) = place
        .alone
        .filter(|_| parsed.as_ref().is_ok_and(Expression::is_transition))
    {
        let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {alone}");
        errors.push(FieldError::invalid(at("rule"), &json!(source), &why));
    }
}
