//! When two fields take the same values, and what a value in crds.toml is as JSON of a field.

use serde_json::{Value, json};

use super::Shapes;
use crate::diag::{Collector, messages as errors};
use crate::lower::types;
use crate::model::{Cardinality, Field, FieldType, Message, Scalar as ScalarType, WellKnown};
use crate::source::Text;
use crate::spec::{Scalar, WithSpan};

/// Whether every value of one field is one of the other.
pub(super) fn are_same(one: &Field, other: &Field, shapes: &Shapes<'_>) -> bool {
    fields(one, other, shapes, &mut Vec::new())
}

fn fields<'m>(
    one: &'m Field,
    other: &'m Field,
    shapes: &Shapes<'m>,
    inside: &mut Vec<(&'m Message, &'m Message)>,
) -> bool {
    let single = |field: &Field| matches!(field.cardinality, Cardinality::Single | Cardinality::Optional);
    if one.cardinality != other.cardinality && !(single(one) && single(other)) {
        return false;
    }
    match (&one.ty, &other.ty) {
        (FieldType::Message(one), FieldType::Message(other)) if one != other => {
            match (shapes.messages.get(one), shapes.messages.get(other)) {
                (Some(one), Some(other)) => messages(one, other, shapes, inside),
                _ => false,
            }
        }
        (FieldType::Enum(one), FieldType::Enum(other)) if one != other => {
            let names = |name| {
                let values = shapes.enums.get(name).into_iter().flat_map(|found| &found.values);
                values.map(|value| &value.name).collect::<Vec<_>>()
            };
            names(one) == names(other)
        }
        (one, other) => one == other,
    }
}

fn messages<'m>(
    one: &'m Message,
    other: &'m Message,
    shapes: &Shapes<'m>,
    inside: &mut Vec<(&'m Message, &'m Message)>,
) -> bool {
    if inside.contains(&(one, other)) {
        return true;
    }
    inside.push((one, other));
    let is_same = one.fields.len() == other.fields.len()
        && one.fields.iter().all(|field| {
            let other = other.field_by_json_name(&field.json_name);
            other.is_some_and(|other| fields(field, other, shapes, inside))
        });
    inside.pop();
    is_same
}

/// The message of a field that holds one.
pub(super) fn single_message<'m>(field: &Field, shapes: &Shapes<'m>) -> Option<&'m Message> {
    match (&field.ty, field.cardinality) {
        (FieldType::Message(name), Cardinality::Single | Cardinality::Optional) => shapes.messages.get(name),
        _ => None,
    }
}

/// What a person calls the values of a field.
pub(super) fn word(field: &Field) -> String {
    let word = types::word(&field.ty);
    match field.cardinality {
        Cardinality::Single | Cardinality::Optional => word,
        Cardinality::Repeated => format!("a list of {word}"),
        Cardinality::Map(_) => format!("a map of {word}"),
    }
}

/// The value as JSON, where the field at `path` takes it.
pub(super) fn json(
    value: &WithSpan<Scalar>,
    field: &Field,
    path: &Text,
    shapes: &Shapes<'_>,
    found: &mut Collector,
) -> Option<String> {
    let is_single = matches!(field.cardinality, Cardinality::Single | Cardinality::Optional);
    let scalar = match &field.ty {
        FieldType::Scalar(scalar) | FieldType::WellKnown(WellKnown::Wrapper(scalar)) => Some(*scalar),
        FieldType::WellKnown(WellKnown::Timestamp | WellKnown::Duration) => Some(ScalarType::String),
        FieldType::Enum(name) => {
            let values = shapes.enums.get(name).into_iter().flat_map(|found| &found.values);
            let mut names = values.map(|value| value.name.as_str());
            if let Scalar::Text(text) = &value.value
                && !names.clone().any(|name| name == text)
            {
                found.push(errors::no_such_value(text, value.span, names.by_ref()));
                return None;
            }
            Some(ScalarType::String)
        }
        FieldType::WellKnown(_) | FieldType::Kubernetes(_) | FieldType::Message(_) => None,
    };
    let fitting = scalar.filter(|_| is_single).and_then(|ty| fitting(ty, &value.value));
    if fitting.is_none() {
        found.push(errors::scalar_does_not_fit(path, value.span, &word(field)));
    }
    fitting.map(|value| value.to_string())
}

fn fitting(ty: ScalarType, value: &Scalar) -> Option<Value> {
    match (ty, value) {
        (ScalarType::String, Scalar::Text(text)) => Some(json!(text)),
        (ScalarType::Bool, Scalar::Flag(flag)) => Some(json!(flag)),
        (ScalarType::Int32, Scalar::Integer(number)) => i32::try_from(*number).ok().map(|number| json!(number)),
        (ScalarType::UInt32, Scalar::Integer(number)) => u32::try_from(*number).ok().map(|number| json!(number)),
        (ScalarType::Int64, Scalar::Integer(number)) => Some(json!(number)),
        (ScalarType::UInt64, Scalar::Integer(number)) => u64::try_from(*number).ok().map(|number| json!(number)),
        (ScalarType::Float | ScalarType::Double, Scalar::Integer(number)) => Some(json!(number)),
        (ScalarType::Float | ScalarType::Double, Scalar::Float(number)) => Some(json!(number)),
        _ => None,
    }
}
