//! Bytes that are no messages, and messages with a few bytes wrong, in every call.

use kindex_generated::kinds::model;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tonic::Code;

use super::client::{Body, Client, encoded};
use crate::api::stage::{MODELS, Stage, send};

const ROUNDS: usize = 300;

/// A whole request of each call, which leaves no trace where it is understood.
fn requests() -> Vec<(&'static str, Value)> {
    let model = json!({"typeMeta": {"kind": "Model"}, "metadata": {"name": "m", "namespace": "default", "labels": {"a": "b"}},
        "spec": {"algorithm": "a", "kind": 1}});
    let options = json!({"dryRun": ["All"]});
    let at = json!({"name": "m", "namespace": "default"});
    let text = |text: &str| json!({"@type": "type.googleapis.com/google.protobuf.StringValue", "value": text});
    let criterion = json!({"fieldName": "algorithm", "operator": 1, "matchValue": text("a")});
    let ext = json!({"orderBy": [{"field": "name", "dir": 2}], "pagination": {"limit": 1},
        "operation": {"criterion": [criterion], "subOperations": [{"criterion": [criterion]}]}});
    vec![
        ("Create*", json!({"model": model, "createOptions": options})),
        ("Get*", at.clone()),
        ("Update*", json!({"model": model, "updateOptions": options})),
        ("Update*Status", json!({"model": model, "updateOptions": options})),
        (
            "Delete*",
            json!({"name": "m", "namespace": "default", "deleteOptions": options}),
        ),
        (
            "Delete*Collection",
            json!({"namespace": "default", "deleteOptions": options}),
        ),
        (
            "List*",
            json!({"namespace": "default", "listOptions": {"limit": 1}, "listOptionsExt": ext}),
        ),
        (
            "Watch*",
            json!({"namespace": "default", "listOptions": {"labelSelector": "a=b"}}),
        ),
    ]
}

fn spoilt(random: &mut StdRng, whole: &[u8]) -> Vec<u8> {
    let mut bytes = if random.random_bool(0.3) {
        let length = random.random_range(0..64);
        (0..length).map(|_| random.random()).collect()
    } else {
        whole.to_vec()
    };
    for _ in 0..random.random_range(0..4) {
        if let Some(last) = bytes.len().checked_sub(1) {
            bytes[random.random_range(0..=last)] = random.random();
        }
    }
    if random.random_bool(0.2) {
        bytes.truncate(random.random_range(0..=bytes.len()));
    }
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn no_bytes_in_any_call_do_harm() {
    let stage = Stage::on_sqlite().await;
    let mut client = Client::plain(stage.address).await;
    // A watch that is understood ends with it.
    client.metadata.insert("grpc-timeout", "5S".parse().unwrap());
    let mut brief = client.clone();
    brief.metadata.insert("grpc-timeout", "20m".parse().unwrap());
    let mut random = StdRng::seed_from_u64(5);
    for (call, request) in requests() {
        let whole = encoded(&client.method(&model::KIND, call), &request);
        for _ in 0..ROUNDS {
            let bytes = spoilt(&mut random, &whole);
            let client = if call == "Watch*" { &brief } else { &client };
            let Err(status) = client.answered(&model::KIND, call, Body::Bytes(&bytes)).await else {
                continue;
            };
            let is_known = match status.code() {
                Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition | Code::OutOfRange => true,
                Code::DeadlineExceeded | Code::Cancelled => call == "Watch*",
                _ => false,
            };
            assert!(is_known, "{call} {bytes:?}: {status:?}");
        }
    }
    let (_, list) = send(&stage.cluster, "GET", MODELS, &Value::Null).await;
    for object in list["items"].as_array().unwrap() {
        assert_eq!(object["kind"], "Model", "only what could be read was created");
    }
    stage.end().await;
}
