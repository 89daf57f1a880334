//! Removes the fields that a schema does not know. Looks neither at the metadata of an object (`metadata`) nor at
//! types.

use serde_json::{Map, Value};

use super::metadata;
use super::problem::Path;
use super::structural::{Additional, Structural};
use crate::size::note;

/// Fields that every resource has.
fn is_resource_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// Prunes `object`, a whole resource: `apiVersion`, `kind` and `metadata` at its root stay as they are. Gives the
/// paths of what was removed (`spec.foo`, `spec.list[0].bar`), sorted.
pub fn prune(schema: &Structural, object: &mut Value) -> Vec<String> {
    let mut removed = Vec::new();
    node(
        Known {
            schema: Some(schema),
            resource: true,
            keep: false,
        },
        object,
        &Path::Root,
        &mut removed,
    );
    removed.sort_unstable();
    removed
}

/// Prunes a value that is not a whole resource, unless its schema says that one is embedded.
pub(super) fn prune_inner(schema: &Structural, value: &mut Value) -> Vec<String> {
    let mut removed = Vec::new();
    node(Known::by(Some(schema)), value, &Path::Root, &mut removed);
    removed
}

/// What is known of a value.
#[derive(Clone, Copy)]
struct Known<'a> {
    /// Absent below `additionalProperties: true` and for undeclared items; then no field is known.
    schema: Option<&'a Structural>,
    /// The value is a resource with type and metadata.
    resource: bool,
    /// Unknown fields stay.
    keep: bool,
}

impl<'a> Known<'a> {
    fn by(schema: Option<&'a Structural>) -> Self {
        Self {
            schema,
            resource: schema.is_some_and(|schema| schema.embedded_resource),
            keep: false,
        }
    }
}

fn node(known: Known<'_>, value: &mut Value, path: &Path<'_>, removed: &mut Vec<String>) {
    let keep = known.keep || known.schema.is_some_and(|schema| schema.preserve_unknown);
    match value {
        Value::Object(fields) => object(Known { keep, ..known }, fields, path, removed),
        Value::Array(items) => {
            let inner = known.schema.and_then(|schema| schema.items.as_deref());
            if inner.is_none() && keep {
                return;
            }
            for (index, item) in items.iter_mut().enumerate() {
                node(
                    Known {
                        keep,
                        ..Known::by(inner)
                    },
                    item,
                    &Path::Item(path, index),
                    removed,
                );
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn object(known: Known<'_>, fields: &mut Map<String, Value>, path: &Path<'_>, removed: &mut Vec<String>) {
    let is_root = matches!(path, Path::Root);
    fields.retain(|name, value| {
        let here = Path::Field(path, name);
        if known.resource && is_resource_field(name) {
            if name == "metadata" && !is_root {
                metadata::drop_unknown(value, &here, removed);
            }
            return true;
        }
        let inner = known
            .schema
            .map(|schema| (schema.properties.get(name), &schema.additional));
        match inner {
            Some((Some(property), _)) => node(Known::by(Some(property)), value, &here, removed),
            Some((None, Additional::Schema(additional))) => {
                node(Known::by(Some(additional)), value, &here, removed);
            }
            Some((None, Additional::Any | Additional::Refused)) => node(Known::by(None), value, &here, removed),
            Some((None, Additional::Absent)) if known.keep => {}
            None | Some((None, Additional::Absent)) => {
                note(removed, &here);
                return false;
            }
        }
        true
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pruned(schema: Value, mut object: Value) -> (Value, Vec<String>) {
        let schema = Structural::parse(&schema).unwrap();
        let removed = prune(&schema, &mut object);
        (object, removed)
    }

    #[test]
    fn unknown_fields_are_pruned_and_their_paths_reported_in_order() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "string"}, "list": {"type": "array", "items": {
                "type": "object", "properties": {"x": {"type": "integer"}}}}}}}});
        let object = json!({"apiVersion": "g/v1", "kind": "A", "metadata": {"name": "n"}, "zz": 1,
            "spec": {"a": "b", "foo": {"deep": 1}, "list": [{"x": 1}, {"bar": 2}]}});
        let (object, removed) = pruned(schema, object);
        assert_eq!(removed, ["spec.foo", "spec.list[1].bar", "zz"]);
        assert_eq!(object["spec"], json!({"a": "b", "list": [{"x": 1}, {}]}));
        assert_eq!(object["metadata"], json!({"name": "n"}));
    }

    #[test]
    fn thousands_of_unknown_fields_below_a_long_key_are_reported_briefly() {
        let schema = json!({"type": "object", "properties": {"map": {"type": "object", "additionalProperties": {
            "type": "object", "properties": {"a": {"type": "string"}}}}}});
        let unknown: Map<String, Value> = (0..100_000).map(|at| (at.to_string(), json!(1))).collect();
        let mut map = Map::new();
        map.insert("k".repeat(1_000_000), unknown.into());
        let (object, removed) = pruned(schema, json!({ "map": map }));
        let reported: usize = removed.iter().map(String::len).sum();
        assert!(reported <= 110_000, "{reported} bytes");
        assert!(
            object["map"]
                .as_object()
                .unwrap()
                .values()
                .all(|left| *left == json!({}))
        );
    }

    #[test]
    fn preserved_objects_keep_all_but_what_known_fields_do_not_know() {
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "integer"}}}}}}});
        let (object, removed) = pruned(
            schema,
            json!({"spec": {"known": {"a": 1, "b": 2}, "free": {"c": [{"d": 1}]}, "l": [{"e": 1}]}}),
        );
        assert_eq!(removed, ["spec.known.b"]);
        assert_eq!(object["spec"]["free"], json!({"c": [{"d": 1}]}));
    }

    #[test]
    fn a_map_keeps_its_keys_and_additional_properties_true_keeps_one_level() {
        let schema = json!({"type": "object", "properties": {
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"type": "object", "additionalProperties": true}}});
        let (object, removed) = pruned(schema, json!({"labels": {"x": "y"}, "any": {"a": 1, "b": {"c": 1}}}));
        assert_eq!(removed, ["any.b.c"]);
        assert_eq!(object, json!({"labels": {"x": "y"}, "any": {"a": 1, "b": {}}}));
    }

    #[test]
    fn an_embedded_resource_keeps_its_type_and_known_metadata() {
        let schema = json!({"type": "object", "properties": {"template": {
            "type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}}});
        let (object, removed) = pruned(
            schema,
            json!({"template": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "zip": 1}, "spec": {"x": 1}}}),
        );
        assert_eq!(removed, ["template.metadata.zip", "template.spec.x"]);
        assert_eq!(object["template"]["metadata"], json!({"name": "a"}));
    }

    #[test]
    fn a_nested_field_named_like_metadata_is_an_ordinary_field() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
        let (object, removed) = pruned(schema, json!({"spec": {"metadata": {}, "kind": "x"}}));
        assert_eq!(removed, ["spec.kind", "spec.metadata"]);
        assert_eq!(object, json!({"spec": {}}));
    }
}
