//! What is not done behind kube-apiserver's aggregation layer, where the cluster sees the server instead of the caller.

use kube::Client;
use serde_json::{Value, json};

use super::rights::{FIRST, secure};
use super::stage::{FINAL, MODELS, Stage, manifest, send, send_with};

const HOLD: &str = "example.com/hold";

/// A patch of somebody who may do everything, as kube-apiserver hands it on.
async fn patch(proxy: &Client, name: &str, media: &str, patch: &Value) -> (u16, Value) {
    let path = format!("{}/{name}", MODELS.replace("/apis/", "/apis/archive."));
    let headers = [("x-remote-user", "root"), ("content-type", media)];
    send_with(proxy, "PATCH", &path, &headers, patch.to_string()).await
}

async fn finalizers(stage: &Stage, name: &str) -> Vec<Value> {
    let (_, found) = send(&stage.cluster, "GET", &format!("{MODELS}/{name}"), &Value::Null).await;
    found["metadata"]["finalizers"].as_array().cloned().unwrap_or_default()
}

async fn create(stage: &Stage, name: &str, annotations: Value) {
    let metadata = json!({"name": name, "annotations": annotations});
    let (code, answer) = send(&stage.cluster, "POST", MODELS, &manifest(metadata, json!({}))).await;
    assert_eq!(code, 201, "{answer}");
}

/// As if whoever may change an object took references off it by way of the server's own rights.
#[tokio::test(flavor = "multi_thread")]
async fn finalizers_of_live_objects_are_changed_in_their_own_group_alone() {
    let stage = Stage::with_rights().await;
    create(&stage, "live", json!({})).await;
    let hold = json!({"metadata": {"finalizers": [HOLD]}});
    let (code, answer) = send(&stage.cluster, "PATCH", &format!("{MODELS}/live"), &hold).await;
    assert_eq!(code, 200, "{answer}");

    let proxy = secure(&stage, Some(FIRST));
    let merge = "application/merge-patch+json";
    let json_patch = "application/json-patch+json";
    for (media, change) in [
        (merge, json!({"metadata": {"finalizers": null}})),
        (
            merge,
            json!({"metadata": {"finalizers": ["example.com/other"], "labels": {"a": "b"}}}),
        ),
        (json_patch, json!([{"op": "remove", "path": "/metadata/finalizers"}])),
        (json_patch, json!([{"op": "remove", "path": "/metadata/finalizers/0"}])),
    ] {
        let (code, refused) = patch(&proxy, "live", media, &change).await;
        assert_eq!(
            (code, &refused["reason"]),
            (403, &json!("Forbidden")),
            "{change}: {refused}"
        );
        let kept = finalizers(&stage, "live").await;
        assert!(kept.contains(&json!(HOLD)), "{change}: {kept:?}");
    }
    let apply = manifest(json!({"name": "live"}), json!({}));
    let (code, refused) = patch(&proxy, "live", "application/apply-patch+yaml", &apply).await;
    assert_eq!(code, 415, "{refused}");
    let (code, changed) = patch(&proxy, "live", merge, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(
        (code, &changed["metadata"]["labels"]["a"]),
        (200, &json!("b")),
        "{changed}"
    );
    stage.end().await;
}

/// As if a patch of an archived object were refused as well, of which the cluster knows nothing.
#[tokio::test(flavor = "multi_thread")]
async fn finalizers_of_archived_objects_are_changed_behind_the_front_proxy_too() {
    let stage = Stage::with_rights().await;
    create(&stage, "gone", json!({FINAL: "true"})).await;
    stage.wait_until_archived("gone").await;
    let proxy = secure(&stage, Some(FIRST));
    let hold = json!({"metadata": {"finalizers": [HOLD]}});
    let (code, changed) = patch(&proxy, "gone", "application/merge-patch+json", &hold).await;
    assert_eq!(
        (code, &changed["metadata"]["finalizers"]),
        (200, &json!([HOLD])),
        "{changed}"
    );
    let (code, absent) = patch(&proxy, "absent", "application/merge-patch+json", &hold).await;
    assert_eq!((code, &absent["reason"]), (404, &json!("NotFound")), "{absent}");
    stage.end().await;
}
