//! A kind with every sort of difference between three versions, and generated objects of all of them.

use kindex_model::kind::{FieldMap, MapRule};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

pub(crate) const PLATFORM: Platform = Platform {
    group: "test.kindex",
    version: "v2",
    conversion_data: "test/ConversionData",
    ..Platform::EMPTY
};

const fn moved(here: &'static [&'static str], own: &'static [&'static str]) -> FieldMap {
    FieldMap {
        here: Some(here),
        own: Some(own),
        rule: MapRule::Same,
    }
}

const fn only_here(here: &'static [&'static str]) -> FieldMap {
    FieldMap {
        here: Some(here),
        own: None,
        rule: MapRule::Same,
    }
}

const fn only_own(own: &'static [&'static str], rule: MapRule) -> FieldMap {
    FieldMap {
        here: None,
        own: Some(own),
        rule,
    }
}

/// Whole hours lose what seconds have besides.
fn seconds(hours: &Value) -> Result<Value, String> {
    let hours = hours.as_i64().ok_or("not a number of hours")?;
    Ok(json!(hours * 3600))
}

fn hours(seconds: &Value) -> Result<Value, String> {
    let seconds = seconds.as_i64().ok_or("not a number of seconds")?;
    Ok(json!(seconds / 3600))
}

static V1: Version = Version {
    name: "v1",
    served: true,
    stored: false,
    deprecated: None,
    map: &[
        moved(&["spec", "rate"], &["spec", "optimizer", "schedule", "rate"]),
        moved(&["spec", "limits", "cpu"], &["spec", "resources", "cpu"]),
        moved(&["spec", "one"], &["spec", "two"]),
        moved(&["spec", "two"], &["spec", "one"]),
        moved(&["status", "owner"], &["spec", "owner"]),
        only_here(&["spec", "legacy"]),
        only_own(&["spec", "optimizer"], MapRule::Same),
        only_own(&["spec", "mode"], MapRule::Default("\"LEGACY\"")),
        FieldMap {
            here: Some(&["spec", "tries"]),
            own: Some(&["spec", "retries"]),
            rule: MapRule::Default("3"),
        },
        FieldMap {
            here: Some(&["spec", "seed"]),
            own: Some(&["spec", "optimizer", "seed"]),
            rule: MapRule::Default("7"),
        },
        FieldMap {
            here: Some(&["spec", "timeout"]),
            own: Some(&["spec", "timeout"]),
            rule: MapRule::Function {
                to_own: seconds,
                from_own: hours,
            },
        },
    ],
};

static V1BETA1: Version = Version {
    name: "v1beta1",
    served: true,
    stored: false,
    deprecated: None,
    map: &[
        only_here(&["spec", "rate"]),
        only_own(&["spec", "limits"], MapRule::Same),
        only_own(&["status"], MapRule::Same),
        moved(&["spec", "kept"], &["spec", "optimizer", "momentum"]),
    ],
};

pub(crate) static KIND: Kind = Kind {
    name: "Trial",
    group: "test.kindex",
    version: "v2",
    versions: &[V1, V1BETA1],
    plural: "trials",
    singular: "trial",
    table: "trial",
    ..Kind::EMPTY
};

const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v2"];

fn to(version: &str, text: &str) -> String {
    convert(&PLATFORM, &KIND, text, version).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn shown(version: &str, text: &str) -> Value {
    value(&to(version, text))
}

#[test]
fn each_rule_does_what_it_says() {
    let v1 = r#"{"apiVersion":"test.kindex/v1","kind":"Trial","metadata":{"name":"a"},
        "spec":{"rate":0.10,"legacy":[1, 2],"one":1,"timeout":2,"name":"x"}}"#;
    let carried = json!({"v1": {"spec.legacy": {"value": [1, 2]}, "spec.seed": {}, "spec.tries": {}}});
    let v2 = to("v2", v1);
    let annotation = value(&v2)["metadata"]["annotations"]["test/ConversionData"].clone();
    assert_eq!(value(annotation.as_str().expect("a text")), carried);
    assert_eq!(
        value(&v2)["spec"],
        json!({"name": "x", "two": 1, "mode": "LEGACY", "retries": 3, "timeout": 7200,
               "optimizer": {"schedule": {"rate": 0.10}, "seed": 7}})
    );
    assert!(v2.contains(r#""rate":0.10"#), "numbers stay as they are written: {v2}");
    assert_eq!(value(&to("v1", &v2)), value(v1));
    assert!(to("v1", &v2).contains("[1, 2]"), "values stay to the byte");
}

/// Of what was kept, only that comes back whose visible part nobody changed.
#[test]
fn a_change_in_one_version_is_not_undone_by_what_the_other_kept() {
    let v2 = json!({"apiVersion": "test.kindex/v2", "kind": "Trial", "metadata": {"name": "a"},
                    "spec": {"timeout": 5000, "mode": "NEW", "optimizer": {"momentum": 0.9}}});
    let mut v1 = shown("v1", &v2.to_string());
    assert_eq!(v1["spec"], json!({"timeout": 1}));
    assert_eq!(shown("v2", &v1.to_string()), v2);
    v1["spec"]["timeout"] = json!(2);
    v1["spec"]["rate"] = json!(0.5);
    let changed = shown("v2", &v1.to_string());
    let expected = json!({"timeout": 7200, "mode": "NEW", "optimizer": {"momentum": 0.9, "schedule": {"rate": 0.5}}});
    let mut spec = changed["spec"].clone();
    let retries = spec.as_object_mut().expect("an object").remove("retries");
    assert_eq!((spec, retries), (expected, None), "what v2 had none of stays absent");
}

#[test]
fn what_cannot_be_converted_is_named() {
    for (text, version, error) in [
        (
            "{",
            "v1",
            "Trial : not JSON: EOF while parsing an object at line 1 column 1",
        ),
        ("3", "v1", r#"Trial : apiVersion "" is not a version of this kind"#),
        (
            r#"{"apiVersion":"test.kindex/v2","metadata":{"namespace":"n","name":"a"}}"#,
            "v3",
            r#"Trial n/a: apiVersion "test.kindex/v3" is not a version of this kind"#,
        ),
        (
            r#"{"apiVersion":"other/v2","metadata":{"name":"a"}}"#,
            "v1",
            r#"Trial a: apiVersion "other/v2" is not a version of this kind"#,
        ),
        (
            r#"{"apiVersion":"test.kindex/v1","metadata":{"name":"a"},"spec":{"timeout":"long"}}"#,
            "v2",
            "Trial a: spec.timeout: not a number of hours",
        ),
        (
            r#"{"apiVersion":"test.kindex/v1","metadata":{"name":"a"},"spec":{"limits":{"cpu":1},"resources":3}}"#,
            "v2",
            "Trial a: spec.resources: not an object",
        ),
    ] {
        let refused = convert(&PLATFORM, &KIND, text, version).expect_err("refused");
        assert_eq!(refused.to_string(), error);
    }
}

/// Objects with any of the fields of any version, and some of none: servers that do not prune keep those.
fn object() -> impl Strategy<Value = Value> {
    let scalar = || {
        prop_oneof![
            Just(json!(null)),
            (-9000i64..9000).prop_map(Value::from),
            Just(json!("text"))
        ]
    };
    let number = || (-9000i64..9000).prop_map(Value::from);
    let inner = |names: &'static [&'static str]| {
        let fields = proptest::collection::btree_map(proptest::sample::select(names), scalar(), 0..3);
        fields.prop_map(|fields| json!(fields))
    };
    let schedule = proptest::option::of(inner(&["rate", "decay"]));
    let optimizer = (inner(&["momentum", "rate", "seed"]), schedule).prop_map(|(mut fields, schedule)| {
        if let Some(schedule) = schedule {
            fields["schedule"] = schedule;
        }
        fields
    });
    const NAMES: &[&str] = &[
        "rate", "one", "two", "owner", "legacy", "mode", "tries", "retries", "seed", "kept", "name",
    ];
    let scalars = proptest::collection::btree_map(proptest::sample::select(NAMES), scalar(), 0..6);
    let spec = (
        scalars,
        proptest::option::of(number()),
        proptest::option::of(optimizer),
        proptest::option::of(inner(&["cpu", "memory"])),
        proptest::option::of(inner(&["cpu", "memory"])),
    );
    let spec = spec.prop_map(|(scalars, timeout, optimizer, limits, resources)| {
        let mut spec = json!(scalars);
        for (name, value) in [
            ("timeout", timeout),
            ("optimizer", optimizer),
            ("limits", limits),
            ("resources", resources),
        ] {
            if let Some(value) = value {
                spec[name] = value;
            }
        }
        spec
    });
    let parts = (
        proptest::option::of(spec),
        proptest::option::of(inner(&["owner", "phase"])),
        any::<bool>(),
    );
    parts.prop_map(|(spec, status, annotated)| {
        let mut object = json!({"apiVersion": "", "kind": "Trial", "metadata": {"name": "a", "labels": {"l": "1"}}});
        if annotated {
            object["metadata"]["annotations"] = json!({"other": "b"});
        }
        for (name, part) in [("spec", spec), ("status", status)] {
            if let Some(part) = part {
                object[name] = part;
            }
        }
        object
    })
}

fn metadata_besides(object: &Value) -> Value {
    let mut metadata = object["metadata"].clone();
    let fields = metadata.as_object_mut().expect("an object");
    if let Some(annotations) = fields.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("test/ConversionData");
        if annotations.is_empty() {
            fields.remove("annotations");
        }
    }
    metadata
}

proptest! {
    #[test]
    fn every_round_trip_is_the_identity(object in object()) {
        for from in VERSIONS {
            let mut object = object.clone();
            object["apiVersion"] = format!("test.kindex/{from}").into();
            let text = object.to_string();
            prop_assert_eq!(to(from, &text), text.clone());
            for through in VERSIONS {
                let there = to(through, &text);
                prop_assert_eq!(metadata_besides(&value(&there)), metadata_besides(&object));
                prop_assert_eq!(shown(from, &there), object.clone(), "{} to {} as {}", from, through, there);
                for further in VERSIONS {
                    let there = to(further, &there);
                    prop_assert_eq!(shown(from, &there), object.clone(), "{} to {}, {} as {}", from, through, further, there);
                }
            }
        }
    }
}
