//! The laws of field ownership, and named cases for each rule of apply and update.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::conflict::Conflicts;
use super::*;
use crate::schema::Structural;

mod laws;

static SCHEMA: LazyLock<Structural> = LazyLock::new(|| {
    Structural::parse(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "algorithm": {"type": "string"},
        "size": {"type": "integer"},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "steps": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
            "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "image": {"type": "string"}}}}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}))
    .unwrap()
});

fn object(spec: Value) -> Value {
    json!({"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec})
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// Of objects that have room for their managers.
fn update(
    schema: Option<&Structural>,
    before: Option<&Value>,
    after: Value,
    manager: &str,
    subresource: Option<&str>,
    now: Timestamp,
) -> Value {
    super::update(schema, before, after, manager, subresource, now).expect("room for its managers")
}

fn apply_as(manager: &str, live: Option<&Value>, spec: Value, force: bool, second: i64) -> Result<Value, Conflicts> {
    let applied = apply(
        Some(&SCHEMA),
        live,
        object(spec),
        manager,
        force,
        None,
        "g.io/v1",
        at(second),
    );
    applied.map_err(|why| match why {
        NotApplied::Conflicts(conflicts) => conflicts,
        NotApplied::TooLarge => panic!("too large"),
    })
}

fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or("").to_owned();
    entries
        .iter()
        .map(|entry| {
            format!(
                "{} {} {}",
                text(entry, "manager"),
                text(entry, "operation"),
                entry["fieldsV1"]
            )
        })
        .collect()
}

#[test]
fn a_created_object_belongs_to_its_creator() {
    let created = update(Some(&SCHEMA), None, object(json!({"size": 1})), "curl", None, at(0));
    assert_eq!(
        created["metadata"]["managedFields"],
        json!([{"manager": "curl", "operation": "Update", "apiVersion": "g.io/v1", "time": "2023-11-14T22:13:20Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {".": {}, "f:size": {}}}}])
    );
}

#[test]
fn a_changed_field_moves_to_who_changed_it_and_unchanged_entries_keep_their_time() {
    let created = update(
        Some(&SCHEMA),
        None,
        object(json!({"size": 1, "algorithm": "x"})),
        "a",
        None,
        at(0),
    );
    let mut after = created.clone();
    after["spec"]["size"] = json!(2);
    let changed = update(Some(&SCHEMA), Some(&created), after, "b", None, at(60));
    assert_eq!(
        owners(&changed),
        [
            r#"a Update {"f:spec":{".":{},"f:algorithm":{}}}"#,
            r#"b Update {"f:spec":{"f:size":{}}}"#
        ]
    );
    assert_eq!(changed["metadata"]["managedFields"][0]["time"], "2023-11-14T22:13:20Z");
    let again = update(Some(&SCHEMA), Some(&changed), changed.clone(), "c", None, at(120));
    assert_eq!(again, changed);
}

#[test]
fn a_removed_field_belongs_to_nobody() {
    let created = update(Some(&SCHEMA), None, object(json!({"size": 1})), "a", None, at(0));
    let emptied = update(Some(&SCHEMA), Some(&created), object(json!({})), "b", None, at(1));
    assert_eq!(owners(&emptied), [r#"a Update {"f:spec":{}}"#]);
}

#[test]
fn a_subresource_has_an_entry_of_its_own() {
    let created = update(Some(&SCHEMA), None, object(json!({"size": 1})), "a", None, at(0));
    let mut after = created.clone();
    after["status"] = json!({"phase": "Done"});
    let changed = update(Some(&SCHEMA), Some(&created), after, "a", Some("status"), at(1));
    let entries = changed["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries[1]["subresource"], "status");
    assert_eq!(entries[1]["fieldsV1"], json!({"f:status": {".": {}, "f:phase": {}}}));
}

#[test]
fn an_empty_list_resets_ownership() {
    let created = update(Some(&SCHEMA), None, object(json!({"size": 1})), "a", None, at(0));
    let mut after = created.clone();
    after["metadata"]["managedFields"] = json!([{}]);
    let reset = update(Some(&SCHEMA), Some(&created), after, "b", None, at(1));
    assert_eq!(reset["metadata"].get("managedFields"), None);
}

#[test]
fn a_client_that_does_not_know_managed_fields_does_not_lose_them() {
    let created = update(Some(&SCHEMA), None, object(json!({"size": 1})), "a", None, at(0));
    let changed = update(
        Some(&SCHEMA),
        Some(&created),
        object(json!({"size": 1, "algorithm": "x"})),
        "b",
        None,
        at(1),
    );
    assert_eq!(
        owners(&changed),
        [
            r#"a Update {"f:spec":{".":{},"f:size":{}}}"#,
            r#"b Update {"f:spec":{"f:algorithm":{}}}"#
        ]
    );
}

#[test]
fn the_oldest_of_many_updaters_are_put_together() {
    let mut live = update(
        Some(&SCHEMA),
        None,
        object(json!({"tags": {"t": "0"}})),
        "m0",
        None,
        at(0),
    );
    for number in 1..14 {
        let mut after = live.clone();
        after["spec"]["tags"][format!("t{number}")] = json!("1");
        live = update(
            Some(&SCHEMA),
            Some(&live),
            after,
            &format!("m{number:02}"),
            None,
            at(number),
        );
    }
    let owners = owners(&live);
    assert_eq!(owners.len(), 10);
    assert!(owners[0].starts_with("ancient-changes Update"), "{}", owners[0]);
}

#[test]
fn an_apply_takes_away_what_it_no_longer_holds() {
    let first = apply_as(
        "a",
        None,
        json!({"size": 1, "tags": {"x": "1", "y": "1"}, "set": ["p", "q"]}),
        false,
        0,
    )
    .unwrap();
    let second = apply_as("a", Some(&first), json!({"tags": {"x": "1"}, "set": ["q"]}), false, 1).unwrap();
    assert_eq!(second["spec"], json!({"tags": {"x": "1"}, "set": ["q"]}));
    assert_eq!(
        owners(&second),
        [r#"a Apply {"f:spec":{"f:set":{"v:\"q\"":{}},"f:tags":{"f:x":{}}}}"#]
    );
}

#[test]
fn what_another_manager_owns_too_stays() {
    let first = apply_as("a", None, json!({"size": 1, "algorithm": "x"}), false, 0).unwrap();
    let second = apply_as("b", Some(&first), json!({"size": 1}), false, 1).unwrap();
    let third = apply_as("a", Some(&second), json!({"algorithm": "x"}), false, 2).unwrap();
    assert_eq!(third["spec"], json!({"size": 1, "algorithm": "x"}));
}

#[test]
fn a_conflict_names_the_other_manager_and_the_field() {
    let live = update(
        Some(&SCHEMA),
        None,
        object(json!({"algorithm": "x"})),
        "kubectl-client-side-apply",
        None,
        at(0),
    );
    let conflicts = apply_as("me", Some(&live), json!({"algorithm": "y"}), false, 1).unwrap_err();
    assert_eq!(
        conflicts.message,
        r#"Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using g.io/v1: .spec.algorithm"#
    );
    assert_eq!(conflicts.reported[0].field, ".spec.algorithm");
    assert_eq!(
        conflicts.reported[0].message,
        r#"conflict with "kubectl-client-side-apply" using g.io/v1"#
    );
}

#[test]
fn several_conflicts_are_listed_by_manager() {
    let live = apply_as(
        "a",
        None,
        json!({"algorithm": "x", "steps": [{"name": "s", "image": "1"}]}),
        false,
        0,
    )
    .unwrap();
    let live = apply_as("b", Some(&live), json!({"size": 1}), false, 1).unwrap();
    let wanted = json!({"algorithm": "y", "size": 2, "steps": [{"name": "s", "image": "2"}]});
    let conflicts = apply_as("c", Some(&live), wanted, false, 2).unwrap_err();
    assert_eq!(
        conflicts.message,
        "Apply failed with 3 conflicts: conflicts with \"a\":\n- .spec.algorithm\n- .spec.steps[name=\"s\"].image\n\
         conflicts with \"b\":\n- .spec.size"
    );
}

#[test]
fn kubectl_may_turn_from_client_side_to_server_side_apply() {
    let mut sent = object(json!({"algorithm": "x"}));
    let annotation = sent.to_string();
    sent["metadata"]["annotations"] = json!({ "kubectl.kubernetes.io/last-applied-configuration": annotation });
    let live = update(Some(&SCHEMA), None, sent, "kubectl-client-side-apply", None, at(0));
    let applied = apply_as("kubectl", Some(&live), json!({"algorithm": "y"}), false, 1).unwrap();
    assert_eq!(applied["spec"]["algorithm"], "y");
    let renewed = applied["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
        .as_str()
        .unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(renewed).unwrap()["spec"],
        json!({"algorithm": "y"})
    );
    // Another hand has changed the field since: then it is a conflict.
    let mut edited = live.clone();
    edited["spec"]["algorithm"] = json!("z");
    let edited = update(Some(&SCHEMA), Some(&live), edited, "editor", None, at(1));
    assert!(apply_as("kubectl", Some(&edited), json!({"algorithm": "y"}), false, 2).is_err());
}

#[test]
fn an_object_that_was_never_tracked_belongs_to_before_first_apply() {
    let untracked = object(json!({"size": 1}));
    let applied = apply_as("a", Some(&untracked), json!({"algorithm": "x"}), false, 0).unwrap();
    assert_eq!(
        owners(&applied),
        [
            r#"a Apply {"f:spec":{"f:algorithm":{}}}"#,
            r#"before-first-apply Update {"f:spec":{".":{},"f:size":{}}}"#
        ]
    );
}

#[test]
fn of_many_conflicts_the_first_are_reported_with_their_number() {
    let tags = |value: &str| -> Value { (0..1000).map(|at| (format!("t{at:04}"), json!(value))).collect() };
    let live = apply_as("a", None, json!({ "tags": tags("x") }), false, 0).unwrap();
    let conflicts = apply_as("b", Some(&live), json!({ "tags": tags("y") }), false, 1).unwrap_err();
    assert_eq!(conflicts.reported.len(), 100);
    assert!(conflicts.message.starts_with("Apply failed with 1000 conflicts: "));
    let key = "k".repeat(100_000);
    let long = |value: &str| json!({ "tags": { key.clone(): value } });
    let live = apply_as("a", None, long("x"), false, 0).unwrap();
    let conflicts = apply_as("b", Some(&live), long("y"), false, 1).unwrap_err();
    assert!(conflicts.message.len() < 3000, "{}", conflicts.message.len());
}
