//! Fills in what a schema gives by default. Refuses to look at the metadata of an object and at types.

use serde_json::Value;

use super::structural::{Additional, Structural};

/// Removes nulls where null is not allowed and no default stands, then fills in defaults, outer before inner, so
/// that a default object gets the defaults of its own fields.
pub(crate) fn apply_defaults(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(fields) => {
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
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                match (schema.properties.get(name), &schema.additional) {
                    (Some(property), _) => apply_defaults(property, value),
                    (None, Additional::Schema(additional)) => fill_item(additional, value),
                    (None, Additional::Unsaid | Additional::Refused | Additional::Any) => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_schema) = &schema.items {
                items.iter_mut().for_each(|item| fill_item(item_schema, item));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill_item(schema: &Structural, value: &mut Value) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
    apply_defaults(schema, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn defaulted(schema: Value, mut object: Value) -> Value {
        apply_defaults(&Structural::parse(&schema).unwrap(), &mut object);
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
}
