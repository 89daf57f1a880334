//! Fills in what a schema gives by default. Looks neither at the metadata of an object nor at types.

use serde_json::{Map, Value};

use super::structural::{Additional, Structural};
use crate::size::{OBJECT_BYTES_MAX, text_bytes};

/// The defaults of a schema make an object larger than an object may be.
#[derive(Debug)]
pub struct TooLarge;

/// Removes nulls where null is not allowed and no default stands, then fills in defaults, outer before inner, so
/// that a default object gets the defaults of its own fields.
///
/// # Errors
/// When the defaults come to more than [`OBJECT_BYTES_MAX`]: a list of empty entries is short, and each may have a
/// long default. What fits is filled in.
pub fn apply_defaults(schema: &Structural, value: &mut Value) -> Result<(), TooLarge> {
    let mut room = OBJECT_BYTES_MAX;
    fill(schema, value, &mut room)
}

fn fill(schema: &Structural, value: &mut Value, room: &mut usize) -> Result<(), TooLarge> {
    match value {
        Value::Object(fields) => fill_fields(schema, fields, room)?,
        Value::Array(items) => {
            if let Some(item_schema) = &schema.items {
                for item in items {
                    fill_item(item_schema, item, room)?;
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

fn fill_fields(schema: &Structural, fields: &mut Map<String, Value>, room: &mut usize) -> Result<(), TooLarge> {
    fields.retain(|name, value| {
        !value.is_null()
            || schema
                .field(name)
                .is_none_or(|field| field.nullable || field.default.is_some())
    });
    for (name, property) in &schema.properties {
        let Some(default) = &property.default else {
            continue;
        };
        if fields
            .get(name)
            .is_none_or(|value| value.is_null() && !property.nullable)
        {
            fields.insert(name.clone(), taken(default, name.len(), room)?);
        }
    }
    for (name, value) in fields.iter_mut() {
        match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => fill(property, value, room)?,
            (None, Additional::Schema(additional)) => fill_item(additional, value, room)?,
            (None, Additional::Absent | Additional::Refused | Additional::Any) => {}
        }
    }
    Ok(())
}

fn fill_item(schema: &Structural, value: &mut Value, room: &mut usize) -> Result<(), TooLarge> {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = taken(default, 0, room)?;
    }
    fill(schema, value, room)
}

/// A default that takes its part of the room.
fn taken(default: &Value, name_bytes: usize, room: &mut usize) -> Result<Value, TooLarge> {
    let left = room.checked_sub(text_bytes(default) + name_bytes);
    *room = left.ok_or(TooLarge)?;
    Ok(default.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn defaulted(schema: Value, mut object: Value) -> Value {
        apply_defaults(&Structural::parse(&schema).unwrap(), &mut object).unwrap();
        object
    }

    fn schema() -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {
            "tier": {"type": "string", "default": "gold"},
            "note": {"type": "string"},
            "free": {"type": "string", "nullable": true, "default": "x"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}}}}}})
    }

    #[test]
    fn a_default_object_gets_the_defaults_of_its_fields() {
        assert_eq!(
            defaulted(schema(), json!({})),
            json!({"spec": {"tier": "gold", "free": "x"}})
        );
    }

    #[test]
    fn a_null_is_dropped_or_defaulted_unless_it_is_allowed() {
        let object = json!({"spec": {"tier": null, "note": null, "free": null}});
        assert_eq!(
            defaulted(schema(), object),
            json!({"spec": {"tier": "gold", "free": null}})
        );
    }

    #[test]
    fn items_are_defaulted_and_given_values_stay() {
        let object = json!({"spec": {"tier": "tin", "free": "y", "list": [{}, {"n": 2}]}});
        assert_eq!(
            defaulted(schema(), object),
            json!({"spec": {"tier": "tin", "free": "y", "list": [{"n": 1}, {"n": 2}]}})
        );
    }

    #[test]
    fn a_list_of_empty_entries_does_not_get_gigabytes_of_defaults() {
        let text = "x".repeat(100_000);
        let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": {
            "type": "object", "properties": {"text": {"type": "string", "default": text}}}}}});
        let schema = Structural::parse(&schema).unwrap();
        let mut object = json!({"list": vec![json!({}); 20]});
        assert!(apply_defaults(&schema, &mut object).is_ok());
        let mut object = json!({"list": vec![json!({}); 20_000]});
        assert!(apply_defaults(&schema, &mut object).is_err());
        assert!(text_bytes(&object) < 2 * OBJECT_BYTES_MAX);
    }
}
