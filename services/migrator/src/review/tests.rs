//! Reviews of a kind that moves one field between its versions.

use kindex_model::kind::{FieldMap, MapRule, Platform, Version};
use serde_json::{Value, json};

use super::*;

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

static WIDGET: Kind = Kind {
    name: "Widget",
    group: "test.kindex",
    version: "v2",
    versions: &[Version {
        name: "v1",
        served: true,
        stored: false,
        deprecated: None,
        map: &[
            FieldMap {
                here: Some(&["spec", "size"]),
                own: Some(&["spec", "shape", "size"]),
                rule: MapRule::Same,
            },
            FieldMap {
                here: None,
                own: Some(&["spec", "shape"]),
                rule: MapRule::Same,
            },
        ],
    }],
    plural: "widgets",
    singular: "widget",
    table: "widget",
    ..Kind::EMPTY
};

const REGISTRY: Registry = Registry {
    platform: Platform {
        group: "test.kindex",
        version: "v2",
        conversion_data: "test/ConversionData",
        ..Platform::EMPTY
    },
    kinds: &[&WIDGET],
    ..Registry::EMPTY
};

fn widget(version: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("test.kindex/{version}"), "kind": "Widget",
           "metadata": {"name": name, "namespace": "n"}, "spec": spec})
}

fn answer(version: &str, objects: &[Value]) -> Value {
    let asked = json!({"apiVersion": API_VERSION, "kind": KIND,
                       "request": {"uid": "7", "desiredAPIVersion": version, "objects": objects}});
    let answer = review(&REGISTRY, asked.to_string().as_bytes())
        .expect("a review")
        .answer;
    serde_json::from_str(&answer).expect("JSON")
}

#[test]
fn objects_of_any_version_are_answered_in_their_order() {
    let moved = json!({"shape": {"size": 1}});
    let objects = [
        widget("v1", "a", &json!({"size": 1})),
        widget("v2", "b", &moved),
        widget("v1", "c", &json!({})),
    ];
    let expected = [
        widget("v2", "a", &moved),
        widget("v2", "b", &moved),
        widget("v2", "c", &json!({})),
    ];
    assert_eq!(
        answer("test.kindex/v2", &objects),
        json!({"apiVersion": API_VERSION, "kind": KIND,
               "response": {"uid": "7", "convertedObjects": expected, "result": {"status": "Success"}}})
    );
}

#[test]
fn one_object_without_a_form_fails_the_review_with_its_name() {
    let objects = [widget("v1", "a", &json!({"size": 1})), widget("v2", "b", &json!({}))];
    for (version, message) in [
        (
            "test.kindex/v3",
            r#"Widget n/a: apiVersion "test.kindex/v3" is not a version of this kind"#,
        ),
        ("other/v2", "Widget.other is not a kind of Kindex"),
    ] {
        let answered = answer(version, &objects);
        assert_eq!(
            answered["response"]["result"],
            json!({"status": "Failure", "message": message})
        );
        assert_eq!(answered["response"]["convertedObjects"], json!([]));
    }
}

#[test]
fn what_is_no_review_is_refused() {
    for (body, error) in [
        (
            "",
            "not a ConversionReview: EOF while parsing a value at line 1 column 0",
        ),
        (
            r#"{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview",
                "request":{"uid":"","desiredAPIVersion":"","objects":[]}}"#,
            "apiextensions.k8s.io/v1beta1 ConversionReview is not answered here: only apiextensions.k8s.io/v1 \
             ConversionReview is",
        ),
    ] {
        let refused = review(&REGISTRY, body.as_bytes()).expect_err("refused");
        assert_eq!(refused.to_string(), error);
    }
}

#[test]
fn what_follows_the_first_without_a_form_is_read_over() {
    let body = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",
        "request":{"uid":"u","objects":[1,{"kind":"Widget"},3],"desiredAPIVersion":"test.kindex/v2"}}"#;
    let reviewed = review(&REGISTRY, body.as_bytes()).expect("a review");
    assert!(!reviewed.converted, "{}", reviewed.answer);
    assert!(
        reviewed.answer.contains("\"convertedObjects\":[]"),
        "{}",
        reviewed.answer
    );
}
