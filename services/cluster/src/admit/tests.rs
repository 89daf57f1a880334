//! What is admitted and what is refused, with which messages.

use kindex_kube_api::request::FieldValidation;
use kindex_kube_api::status::Status;
use serde_json::{Value, json};

use super::*;
use crate::definition::{self, Claims};
use crate::resource::{Resource, ResourceType};

fn widgets() -> Resource {
    let definition = json!({"spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    "size": {"type": "integer"}, "color": {"type": "string", "default": "red"}}},
                "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}}]}});
    definition::resources(&definition, ResourceType::Custom, 0, None).remove(0)
}

fn builtin(kind: &str) -> Resource {
    crate::builtin::resources()
        .into_iter()
        .find(|resource| resource.names.kind == kind)
        .unwrap()
}

fn author(subresource: Option<Subresource>) -> Author<'static> {
    Author {
        manager: "tester",
        subresource,
        applied: false,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
    }
}

fn sent(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec})
}

/// A widget as it is stored.
fn existing() -> Value {
    let mut object = create(
        &widgets(),
        sent(json!({"size": 1})),
        "ns",
        &Claims::default(),
        &author(None),
    )
    .unwrap();
    object["metadata"]["resourceVersion"] = "5".into();
    object
}

fn change(before: &Value, subresource: Option<Subresource>, edit: impl Fn(&mut Value)) -> Result<Outcome, Status> {
    let mut object = before.clone();
    edit(&mut object);
    update(&widgets(), before, object, &Claims::default(), &author(subresource))
}

fn changed(outcome: Result<Outcome, Status>) -> Value {
    match outcome.unwrap() {
        Outcome::Changed(object) => object,
        other => panic!("not a change: {other:?}"),
    }
}

#[test]
fn creation_sets_what_only_the_server_may_set() {
    let mut forged = sent(json!({"size": 1}));
    forged["metadata"]["uid"] = "mine".into();
    forged["metadata"]["generation"] = 9.into();
    forged["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z".into();
    forged["status"] = json!({"phase": "Done"});
    let object = create(&widgets(), forged, "ns", &Claims::default(), &author(None)).unwrap();
    assert_ne!(object["metadata"]["uid"], "mine");
    assert_eq!(object["metadata"]["generation"], 1);
    assert_eq!(object["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(object["metadata"]["namespace"], "ns");
    assert_eq!(object["metadata"].get("deletionTimestamp"), None);
    assert_eq!(object.get("status"), None);
    assert_eq!(object["spec"], json!({"size": 1, "color": "red"}));
}

#[test]
fn a_body_that_contradicts_its_path_is_refused() {
    let mut elsewhere = sent(json!({}));
    elsewhere["metadata"]["namespace"] = "other".into();
    let refused = create(&widgets(), elsewhere, "ns", &Claims::default(), &author(None)).unwrap_err();
    assert_eq!(refused.code, 400);
    let renamed = change(&existing(), None, |object| object["metadata"]["name"] = "b".into()).unwrap_err();
    assert_eq!(
        renamed.message,
        "the name of the object (b) does not match the name on the URL (a)"
    );
    let another = change(&existing(), None, |object| object["metadata"]["uid"] = "other".into()).unwrap_err();
    assert_eq!(another.code, 409);
}

#[test]
fn the_servers_fields_survive_whatever_an_update_says() {
    let before = existing();
    let object = changed(change(&before, None, |object| {
        object["metadata"]["creationTimestamp"] = "1999-01-01T00:00:00Z".into();
        object["metadata"]["generation"] = 70.into();
        object["spec"]["size"] = 2.into();
    }));
    assert_eq!(
        object["metadata"]["creationTimestamp"],
        before["metadata"]["creationTimestamp"]
    );
    assert_eq!(object["metadata"]["generation"], 2);
}

#[test]
fn an_update_of_nothing_is_no_change() {
    assert_eq!(change(&existing(), None, |_| ()).unwrap(), Outcome::Unchanged);
    let forged = change(&existing(), None, |object| object["status"] = json!({"phase": "x"}));
    assert_eq!(forged.unwrap(), Outcome::Unchanged);
}

#[test]
fn the_status_subresource_changes_only_the_status() {
    let object = changed(change(&existing(), Some(Subresource::Status), |object| {
        object["spec"]["size"] = 9.into();
        object["metadata"]["labels"] = json!({"a": "b"});
        object["status"] = json!({"phase": "Ready"});
    }));
    assert_eq!(object["spec"]["size"], 1);
    assert_eq!(object["metadata"].get("labels"), None);
    assert_eq!(object["status"], json!({"phase": "Ready"}));
    assert_eq!(object["metadata"]["generation"], 1);
}

#[test]
fn the_last_finalizer_of_a_deleted_object_takes_it_along() {
    let mut before = existing();
    before["metadata"]["finalizers"] = json!(["x.y/z"]);
    mark_deleting(&widgets(), &mut before, author(None).now);
    assert_eq!(before["metadata"]["generation"], 2);
    let refused = change(&before, None, |object| {
        object["metadata"]["finalizers"] = json!(["x.y/z", "x.y/w"])
    });
    assert_eq!(refused.unwrap_err().code, 422);
    let gone = change(&before, None, |object| {
        kindex_kube_api::meta::set(object, "finalizers", None)
    })
    .unwrap();
    assert!(matches!(gone, Outcome::Gone(_)));
}

#[test]
fn unknown_fields_are_the_clients_choice() {
    let mut odd = sent(json!({"size": 1, "weight": 2}));
    odd["metadata"]["shade"] = "dark".into();
    let read = || accept(&widgets(), odd.clone(), vec!["spec.size".into()]).unwrap();
    let (object, warnings) = read().checked(&widgets(), FieldValidation::Warn).unwrap();
    assert_eq!(object["spec"], json!({"size": 1}));
    assert_eq!(warnings.len(), 3);
    assert_eq!(read().checked(&widgets(), FieldValidation::Ignore).unwrap().1, [""; 0]);
    assert_eq!(
        read().checked(&widgets(), FieldValidation::Strict).unwrap_err().code,
        400
    );
}

#[test]
fn an_object_of_another_kind_or_version_is_refused() {
    for (field, value, code) in [
        ("apiVersion", "example.com/v2", 400),
        ("kind", "Gadget", 422),
        ("apiVersion", "", 400),
        ("kind", "", 400),
    ] {
        let mut other = sent(json!({}));
        other[field] = value.into();
        assert_eq!(
            accept(&widgets(), other, Vec::new()).unwrap_err().code,
            code,
            "{field}={value}"
        );
    }
    assert_eq!(accept(&widgets(), json!([]), Vec::new()).unwrap_err().code, 400);
}

#[test]
fn metadata_is_validated_field_by_field() {
    let mut bad = sent(json!({}));
    bad["metadata"] = json!({"name": "A_b", "labels": {"x": "a b"}, "annotations": {"/x": "y"},
        "finalizers": ["no good"], "ownerReferences": [{"kind": "K", "name": "n", "apiVersion": "v1"}]});
    let refused = create(&widgets(), bad, "ns", &Claims::default(), &author(None)).unwrap_err();
    let fields: Vec<_> = refused
        .details
        .unwrap()
        .causes
        .into_iter()
        .map(|cause| cause.field)
        .collect();
    let expected = [
        "metadata.name",
        "metadata.labels",
        "metadata.annotations",
        "metadata.finalizers",
        "metadata.ownerReferences.uid",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn built_in_kinds_get_what_is_theirs() {
    let new = |resource: &Resource, object: Value, namespace: &str| {
        let object = accept(resource, object, Vec::new()).unwrap().object;
        create(resource, object, namespace, &Claims::default(), &author(None)).unwrap()
    };
    let namespace = new(&builtin("Namespace"), json!({"metadata": {"name": "a"}}), "");
    assert_eq!(namespace["status"]["phase"], "Active");
    assert!(!is_released(&builtin("Namespace"), &namespace));
    assert_eq!(namespace["metadata"].get("generation"), None);
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}});
    let secret = new(&builtin("Secret"), secret, "ns");
    assert_eq!(
        (&secret["data"]["k"], &secret["type"]),
        (&json!("dg=="), &json!("Opaque"))
    );
    assert_eq!(secret.get("stringData"), None);
}
