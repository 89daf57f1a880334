//! Column values of message fields, for generated `IndexedObject` impls.

use serde::Serialize;

use super::text::ProtoEnum;
use crate::value::Value;

/// A field without presence that holds its zero counts as absent.
pub fn non_default<T: Default + PartialEq>(value: Option<&T>) -> Option<&T> {
    value.filter(|value| **value != T::default())
}

/// An enum by its full name; a number that has none as decimal text.
pub fn enum_name<E: ProtoEnum>(number: Option<&i32>) -> Value {
    number.map_or(Value::Null, |number| {
        Value::Text(E::name_of(*number).map_or_else(|| number.to_string(), str::to_owned))
    })
}

/// A value whose JSON is a string, as that string.
pub fn json_text<T: Serialize>(value: Option<&T>) -> Value {
    match value.map(serde_json::to_value) {
        Some(Ok(serde_json::Value::String(text))) => Value::Text(text),
        _ => Value::Null,
    }
}

/// The namespace of a `ResourceIdentifier`: where it names none, it means the object's own.
pub fn own_namespace(named: Option<&String>, own: Option<&String>) -> Value {
    named.map_or(Value::Null, |named| {
        let namespace = match named.as_str() {
            "" => own.map_or("", String::as_str),
            named => named,
        };
        Value::Text(namespace.to_owned())
    })
}
