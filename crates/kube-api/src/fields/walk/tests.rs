//! Which paths an object has under which schema.

use serde_json::json;

use super::*;
use crate::schema::Structural;

fn schema() -> Structural {
    Structural::parse(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"], "items": {
            "type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "port": {"type": "integer", "default": 80}, "v": {"type": "string"}}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"p": {"type": "string"}}}}}}}))
    .unwrap()
}

fn merged(live: Value, applied: Value) -> Value {
    merge(
        Shape::of_object(Some(&schema())),
        json!({ "spec": live }),
        json!({ "spec": applied }),
    )["spec"]
        .take()
}

#[test]
fn paths_are_leaves_entries_and_keys_of_maps() {
    let object = json!({"metadata": {"finalizers": ["f"], "labels": {"l": "1"}}, "spec": {
        "list": ["x"], "set": ["s"], "map": [{"name": "n", "v": "1"}], "labels": {"k": "v"}, "atom": {"p": "1"}}});
    assert_eq!(
        paths(Shape::of_object(Some(&schema())), &object).into_json(),
        json!({
            "f:metadata": {"f:finalizers": {"v:\"f\"": {}}, "f:labels": {"f:l": {}}},
            "f:spec": {
                "f:atom": {}, "f:labels": {"f:k": {}}, "f:list": {},
                "f:map": {"k:{\"name\":\"n\",\"port\":80}": {".": {}, "f:name": {}, "f:v": {}}},
                "f:set": {"v:\"s\"": {}},
            },
        })
    );
}

#[test]
fn without_a_schema_maps_merge_and_lists_are_one_value() {
    let object = json!({"spec": {"a": {"b": 1}, "l": [{"x": 1}]}});
    assert_eq!(
        paths(Shape::of_object(None), &object).into_json(),
        json!({"f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:l": {}}})
    );
}

#[test]
fn a_comparison_distinguishes_removed_modified_and_added() {
    let before = json!({"spec": {"a": "1", "set": ["x", "y"], "labels": {"k": "1", "l": "1"}}});
    let after = json!({"spec": {"a": "2", "set": ["y", "z"], "labels": {"k": "1"}, "atom": {"p": "1"}}});
    let comparison = compare(Shape::of_object(Some(&schema())), &before, &after);
    assert_eq!(
        comparison.removed.into_json(),
        json!({"f:spec": {"f:labels": {"f:l": {}}, "f:set": {"v:\"x\"": {}}}})
    );
    assert_eq!(comparison.modified.into_json(), json!({"f:spec": {"f:a": {}}}));
    assert_eq!(
        comparison.added.into_json(),
        json!({"f:spec": {"f:atom": {}, "f:set": {"v:\"z\"": {}}}})
    );
}

#[test]
fn equal_lists_differ_in_nothing_also_where_entries_occur_twice() {
    let object = |a: &str| json!({"spec": {"a": a, "set": ["x", "x", "y"], "map": [{"name": "n"}, {"name": "n"}]}});
    let comparison = compare(Shape::of_object(Some(&schema())), &object("1"), &object("2"));
    assert_eq!(comparison.all().into_json(), json!({"f:spec": {"f:a": {}}}));
    let mut after = object("1");
    after["spec"]["set"] = json!(["x", "y", "y"]);
    let comparison = compare(Shape::of_object(Some(&schema())), &object("1"), &after);
    assert_eq!(
        comparison.all().into_json(),
        json!({"f:spec": {"f:set": {"v:\"x\"": {}, "v:\"y\"": {}}}})
    );
}

#[test]
fn atomic_values_are_replaced_and_the_others_merge() {
    let live = json!({"a": "1", "list": ["x", "y"], "labels": {"k": "1", "l": "1"}, "atom": {"p": "1"}});
    let applied = json!({"list": ["z"], "labels": {"k": "2"}, "atom": {}});
    assert_eq!(
        merged(live, applied),
        json!({"a": "1", "list": ["z"], "labels": {"k": "2", "l": "1"}, "atom": {}})
    );
}

#[test]
fn list_maps_merge_by_key_with_defaults_and_keep_their_order() {
    let live = json!({"map": [{"name": "a", "port": 80, "v": "1"}, {"name": "b", "port": 81}]});
    let applied = json!({"map": [{"name": "c", "port": 1}, {"name": "a", "v": "2"}]});
    assert_eq!(
        merged(live, applied)["map"],
        json!([{"name": "c", "port": 1}, {"name": "a", "port": 80, "v": "2"}, {"name": "b", "port": 81}])
    );
}

#[test]
fn a_set_takes_the_order_of_what_is_applied() {
    let sets = |live: Value, applied: Value| merged(json!({ "set": live }), json!({ "set": applied }))["set"].take();
    assert_eq!(sets(json!(["a", "b", "c"]), json!(["c", "a"])), json!(["b", "c", "a"]));
    assert_eq!(sets(json!(["a", "b"]), json!(["c"])), json!(["a", "b", "c"]));
    assert_eq!(sets(json!(["a"]), json!([])), json!(["a"]));
}

#[test]
fn removing_takes_members_out_and_leaves_null_where_nothing_is_left() {
    let object = json!({"spec": {"a": "1", "set": ["x", "y"], "labels": {"k": "1"}}});
    let set = FieldSet::from_json(&json!({"f:spec": {"f:a": {}, "f:set": {"v:\"x\"": {}}, "f:labels": {"f:k": {}}}}))
        .unwrap();
    assert_eq!(
        remove(Shape::of_object(Some(&schema())), &object, &set),
        json!({"spec": {"set": ["y"], "labels": null}})
    );
    assert_eq!(
        with_named_fields(Shape::of_object(Some(&schema())), set).into_json(),
        json!({"f:spec": {".": {}, "f:a": {}, "f:labels": {".": {}, "f:k": {}}, "f:set": {".": {}, "v:\"x\"": {}}}})
    );
}
