//! Which definitions are accepted, and what they come to serve.

use serde_json::{Value, json};

use super::*;
use crate::resource::ResourceType;

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

fn errors(definition: &Value, before: Option<&Value>) -> Vec<String> {
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
    assert_eq!(errors(&definition, None), [""; 0]);
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
    let granted = resources(&first, ResourceType::Custom, 1, None);
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
        errors(&after, Some(&before)),
        ["spec.scope: Invalid value: \"Cluster\": field is immutable"]
    );
}

#[test]
fn a_stored_version_must_stay() {
    let mut after = definition();
    record_stored_version(&mut after);
    after["spec"]["versions"][0]["name"] = "v2".into();
    let errors = errors(&after, None);
    assert!(
        errors[0].starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions"),
        "{errors:?}"
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
    let resources = resources(&definition, ResourceType::Custom, 7, None);
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

/// A definition that lets itself be selected by these paths.
fn selectable_by(paths: &[&str]) -> Value {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let fields: serde_json::Map<_, _> = ('a'..='j')
        .map(|name| (name.to_string(), json!({"type": "string"})))
        .collect();
    let mut spec = json!({"type": "object", "properties": fields});
    for (name, schema) in [
        ("size", json!({"type": "integer"})),
        ("ready", json!({"type": "boolean"})),
        ("share", json!({"type": "number"})),
        ("list", json!({"type": "array", "items": {"type": "string"}})),
        ("labels", texts),
        ("either", json!({"x-kubernetes-int-or-string": true})),
    ] {
        spec["properties"][name] = schema;
    }
    let metadata = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let mut definition = definition();
    let version = &mut definition["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "properties": {"spec": spec, "metadata": metadata}});
    version["selectableFields"] = paths.iter().map(|path| json!({ "jsonPath": path })).collect();
    definition
}

#[test]
fn objects_are_selected_by_scalars_that_their_schema_declares() {
    assert_eq!(
        errors(
            &selectable_by(&[".spec.a", ".spec.size", ".spec.ready", ".spec.labels.x"]),
            None
        ),
        [""; 0]
    );
    let invalid = |path: &str, why: &str| format!("Invalid value: {path:?}: is an invalid path: {why}");
    let no_field = "does not refer to a valid field";
    let scalar = |path: &str| {
        format!(
            "Invalid value: {path:?}: must point to a field of type string, boolean or integer. Enum string fields and \
             strings with formats are allowed."
        )
    };
    for (path, why) in [
        ("", "Required value".to_owned()),
        (".spec.none", invalid(".spec.none", no_field)),
        (".spec.list.x", invalid(".spec.list.x", no_field)),
        (".spec.a.b", invalid(".spec.a.b", no_field)),
        ("spec.a", invalid("spec.a", "expected [ or . but got: spec")),
        (
            ".spec.list[0]",
            invalid(".spec.list[0]", "array notation is not allowed"),
        ),
        (".spec.", invalid(".spec.", "unexpected end of JSON path")),
        (".spec", scalar(".spec")),
        (".spec.share", scalar(".spec.share")),
        (".spec.list", scalar(".spec.list")),
        (".spec.either", scalar(".spec.either")),
        (
            ".metadata.name",
            "Invalid value: \".metadata.name\": must not point to fields in metadata".to_owned(),
        ),
    ] {
        assert_eq!(
            errors(&selectable_by(&[path]), None),
            [format!("spec.selectableFields[0].jsonPath: {why}")],
            "{path}"
        );
    }
}

#[test]
fn objects_are_selected_by_eight_fields_at_most_and_by_none_twice() {
    let paths: Vec<String> = ('a'..='i').map(|name| format!(".spec.{name}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    assert_eq!(errors(&selectable_by(&paths[..8]), None), [""; 0]);
    let nine = selectable_by(&paths);
    let too_many = "spec.selectableFields: Too many: 9: must have at most 8 items";
    assert_eq!(errors(&nine, None), [too_many]);
    assert_eq!(errors(&nine, Some(&nine)), [""; 0], "what was there before may stay");
    assert_eq!(errors(&nine, Some(&selectable_by(&paths[..8]))), [too_many]);
    assert_eq!(
        errors(&selectable_by(&[".spec.a", ".spec.b", ".spec.a"]), None),
        ["spec.selectableFields[2].jsonPath: Duplicate value: \".spec.a\""]
    );
}
