//! Which definitions are accepted, and what they come to serve.

use serde_json::{Value, json};

use super::*;
use crate::resource::Nature;

const NOW: &str = "2026-01-01T00:00:00Z";

fn definition() -> Value {
    let mut definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    apply_defaults(&mut definition);
    definition
}

fn said(definition: &Value, before: Option<&Value>) -> Vec<String> {
    problems(definition, before)
        .iter()
        .map(|problem| format!("{}: {}", problem.field, problem.message))
        .collect()
}

fn condition<'a>(definition: &'a Value, kind: &str) -> &'a Value {
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == kind).unwrap()
}

#[test]
fn a_valid_definition_is_named_and_established() {
    let mut definition = definition();
    assert_eq!(said(&definition, None), [""; 0]);
    settle(&mut definition, &Claims::default(), NOW);
    record_stored_version(&mut definition);
    assert!(is_established(&definition));
    let accepted = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
        "shortNames": ["wd"]});
    assert_eq!(definition["status"]["acceptedNames"], accepted);
    assert_eq!(definition["status"]["storedVersions"], json!(["v1"]));
}

#[test]
fn names_that_others_hold_are_not_granted() {
    let mut first = definition();
    settle(&mut first, &Claims::default(), NOW);
    let granted = resources(&first, Nature::Custom, 1);
    let mut claims = Claims::default();
    claims.add(&granted[0].names);
    let mut second = definition();
    second["spec"]["names"]["plural"] = "others".into();
    settle(&mut second, &claims, NOW);
    assert!(!is_established(&second));
    let refused = condition(&second, "NamesAccepted");
    assert_eq!(refused["status"], "False");
    assert_eq!(refused["message"], "\"wd\" is already in use");
    assert_eq!(second["status"]["acceptedNames"]["plural"], "others");
    assert_eq!(second["status"]["acceptedNames"]["kind"], Value::Null);
}

#[test]
fn a_condition_keeps_its_time_while_its_status_stays() {
    let mut definition = definition();
    settle(&mut definition, &Claims::default(), NOW);
    settle(&mut definition, &Claims::default(), "2027-01-01T00:00:00Z");
    assert_eq!(condition(&definition, "Established")["lastTransitionTime"], NOW);
}

#[test]
fn what_identifies_the_resource_cannot_change_afterwards() {
    let mut before = definition();
    settle(&mut before, &Claims::default(), NOW);
    let mut after = before.clone();
    after["spec"]["scope"] = "Cluster".into();
    assert_eq!(
        said(&after, Some(&before)),
        ["spec.scope: Invalid value: \"Cluster\": field is immutable"]
    );
}

#[test]
fn a_stored_version_must_stay() {
    let mut after = definition();
    record_stored_version(&mut after);
    after["spec"]["versions"][0]["name"] = "v2".into();
    let said = said(&after, None);
    assert!(
        said[0].starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions"),
        "{said:?}"
    );
}

#[test]
fn only_served_versions_become_resources_and_all_share_their_storage() {
    let mut definition = definition();
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    second["deprecated"] = true.into();
    let mut third = second.clone();
    third["name"] = "v3".into();
    third["served"] = false.into();
    definition["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .extend([second, third]);
    let resources = resources(&definition, Nature::Custom, 7);
    let versions: Vec<_> = resources.iter().map(|resource| resource.version.as_str()).collect();
    assert_eq!(versions, ["v1", "v2"]);
    assert!(
        resources
            .iter()
            .all(|r| &*r.storage == "widgets.example.com" && r.storage_version == "v1" && r.since == 7)
    );
    assert_eq!(
        resources[1].deprecation.as_deref(),
        Some("example.com/v2 Widget is deprecated")
    );
}
