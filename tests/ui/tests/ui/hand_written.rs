//! Correct hand-written kinds: beside kube-derive, and a root struct alone. What
//! the derive reads from the type agrees with what the ingester reads from JSON.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kindex_model::indexed::IndexedObject;
use kindex_model::kind::{Column, ColumnType, Key, Kind, Scope};
use kindex_model::object::Object;
use kindex_model::projection::extract;
use kindex_model::value::{ToColumnValue, Value};
use kube::CustomResource;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, IndexedObject, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "ml.example", version = "v1beta1", kind = "TrainingJob", plural = "jobs")]
#[kube(status = "TrainingJobStatus", schema = "disabled", namespaced)]
#[kube(printcolumn(name = "Owner", type_ = "string", json_path = ".spec.owner"))]
#[indexed(column = "owner", path = spec.owner, sql = "VARCHAR(64)", key)]
#[indexed(column = "framework", path = spec.training_framework)]
#[indexed(column = "flavour", path = spec.r#type, json = spec.type)]
#[indexed(column = "budget", path = spec.limits?.budget, key)]
#[indexed(column = "retries", path = spec.limits?.max_retries, sql = "BIGINT")]
#[indexed(column = "bytes", path = spec.limits?.bytes, sql = "BIGINT UNSIGNED")]
#[indexed(column = "urgent", path = spec.urgent)]
#[indexed(column = "loss", path = status?.loss)]
#[indexed(column = "end_time", path = status?.end_time)]
#[indexed(column = "phase", path = status?.phase, sql = "VARCHAR(32)", key)]
#[serde(rename_all = "camelCase")]
struct TrainingJobSpec {
    owner: String,
    training_framework: Option<String>,
    r#type: String,
    limits: Option<Box<Limits>>,
    #[serde(default)]
    urgent: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Limits {
    budget: i64,
    max_retries: i32,
    bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TrainingJobStatus {
    phase: Phase,
    loss: Option<f64>,
    end_time: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Phase {
    Running,
    Succeeded,
}

/// By name, as the JSON shows it.
impl ToColumnValue for Phase {
    const TYPE: ColumnType = ColumnType::Text { chars: 255 };

    fn to_column_value(&self) -> Value {
        format!("{self:?}").to_column_value()
    }
}

const FULL: &str = r#"{
    "apiVersion": "ml.example/v1beta1", "kind": "TrainingJob",
    "metadata": { "name": "nightly", "namespace": "ml", "uid": "1", "resourceVersion": "7" },
    "spec": {
        "owner": "ada", "trainingFramework": "jax", "type": "sweep", "urgent": true,
        "limits": { "budget": 9007199254740993, "maxRetries": 3, "bytes": 18446744073709551615 }
    },
    "status": { "phase": "Succeeded", "loss": 0.25, "endTime": "2026-02-03T04:05:06Z" }
}"#;

const BARE: &str = r#"{
    "apiVersion": "ml.example/v1beta1", "kind": "TrainingJob",
    "metadata": { "name": "bare", "namespace": "ml", "uid": "2", "resourceVersion": "8" },
    "spec": { "owner": "ada", "type": "sweep", "urgent": false }
}"#;

fn columns_of(text: &str) -> Vec<(&'static str, Value)> {
    let job: TrainingJob = serde_json::from_str(text).expect("fits the type");
    let fields = job.get_indexed_key_value_pairs();
    fields.into_iter().map(|field| (field.key, field.value)).collect()
}

#[test]
fn every_field_becomes_its_column() {
    let text = |text: &str| Value::Text(text.to_owned());
    let end = "2026-02-03T04:05:06Z".parse().expect("a time");
    let expected = [
        ("owner", text("ada")),
        ("framework", text("jax")),
        ("flavour", text("sweep")),
        ("budget", Value::Int(9_007_199_254_740_993)),
        ("retries", Value::Int(3)),
        ("bytes", Value::UInt(u64::MAX)),
        ("urgent", Value::Bool(true)),
        ("loss", Value::Double(0.25)),
        ("end_time", Value::Time(end)),
        ("phase", text("Succeeded")),
    ];
    assert_eq!(columns_of(FULL), expected);
}

#[test]
fn what_is_absent_anywhere_on_the_path_is_null() {
    let columns = columns_of(BARE);
    let absent: Vec<_> = columns.iter().filter(|(_, value)| *value == Value::Null).collect();
    let names: Vec<_> = absent.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        ["framework", "budget", "retries", "bytes", "loss", "end_time", "phase"]
    );
}

#[test]
fn type_and_json_text_give_the_same_columns() {
    for text in [FULL, BARE] {
        let object = Object::parse_str(text).expect("an object");
        let mut problems = Vec::new();
        let from_json = extract(TrainingJob::COLUMNS, &object, &mut problems);
        let from_type: Vec<_> = columns_of(text).into_iter().map(|(_, value)| value).collect();
        assert_eq!(from_json, from_type);
        assert_eq!(problems, []);
    }
}

#[test]
fn columns_say_name_json_path_and_type() {
    let column = |name: &str| {
        let found = TrainingJob::COLUMNS.iter().find(|column| column.name == name);
        *found.expect("declared")
    };
    let expected = |name, path, ty| Column {
        name,
        path,
        ty,
        own_namespace: false,
    };
    let cases = [
        expected("owner", &["spec", "owner"], ColumnType::Text { chars: 64 }),
        expected(
            "framework",
            &["spec", "trainingFramework"],
            ColumnType::Text { chars: 255 },
        ),
        expected("flavour", &["spec", "type"], ColumnType::Text { chars: 255 }),
        expected("budget", &["spec", "limits", "budget"], ColumnType::Int64),
        expected("retries", &["spec", "limits", "maxRetries"], ColumnType::Int64),
        expected("bytes", &["spec", "limits", "bytes"], ColumnType::UInt64),
        expected("urgent", &["spec", "urgent"], ColumnType::Bool),
        expected("loss", &["status", "loss"], ColumnType::Double),
        expected("end_time", &["status", "endTime"], ColumnType::Time),
        expected("phase", &["status", "phase"], ColumnType::Text { chars: 32 }),
    ];
    for case in cases {
        assert_eq!(column(case.name), case);
    }
}

#[test]
fn a_hand_written_kind_stands_beside_generated_ones() {
    let kind = Kind::of::<TrainingJob>("");
    assert_eq!(
        (kind.name, kind.singular, kind.plural),
        ("TrainingJob", "trainingjob", "jobs")
    );
    assert_eq!(kind.api_version(), "ml.example/v1beta1");
    assert_eq!((kind.table, kind.scope), ("trainingjob", Scope::Namespaced));
    assert_eq!(kind.columns, TrainingJob::COLUMNS);
    let keys = [
        Key {
            name: "trainingjob_owner",
            columns: &["owner"],
        },
        Key {
            name: "trainingjob_budget",
            columns: &["budget"],
        },
        Key {
            name: "trainingjob_phase",
            columns: &["phase"],
        },
    ];
    assert_eq!(kind.keys, keys);
}

#[test]
fn an_object_that_does_not_fit_its_type_is_a_problem_and_no_message_is_made() {
    let kind = Kind::of::<TrainingJob>("");
    let fitting = (kind.encode)(FULL);
    assert_eq!((fitting.proto, fitting.problems.len()), (None, 0));
    let wrong = (kind.encode)(&FULL.replace("\"ada\"", "17"));
    assert_eq!((&wrong.proto, wrong.problems.len()), (&None, 1));
    assert!(wrong.problems[0].message.contains("expected a string"), "{wrong:?}");
}

/// A root struct of one's own, in a table of another name.
#[derive(IndexedObject)]
#[indexed(table = "legacy_widget")]
#[indexed(column = "colour", path = colour?, key)]
struct Widget {
    colour: Option<String>,
}

#[test]
fn a_root_struct_names_its_table() {
    assert_eq!(Widget::TABLE, "legacy_widget");
    assert_eq!(
        Widget::KEYS,
        [Key {
            name: "legacy_widget_colour",
            columns: &["colour"]
        }]
    );
    let widget = Widget {
        colour: Some("red".to_owned()),
    };
    assert_eq!(
        widget.get_indexed_key_value_pairs()[0].value,
        Value::Text("red".to_owned())
    );
    let plain = Widget { colour: None };
    assert_eq!(plain.get_indexed_key_value_pairs()[0].value, Value::Null);
}
