//! Watches: the cluster's events, but for those of an object's move to SQL.

use futures::{AsyncBufReadExt, StreamExt};
use serde_json::{Value, json};

use super::stage::{FINAL, MODELS, Stage, model, send};

/// What a watch from a list's version tells until `last` is created, as `TYPE name` without repetitions.
async fn received(stage: &Stage, query: &str, change: impl AsyncFnOnce()) -> Vec<String> {
    let (_, list) = send(&stage.api, "GET", MODELS, &Value::Null).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{MODELS}?watch=true&timeoutSeconds=240&resourceVersion={version}&{query}");
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let mut lines = stage.api.request_stream(request).await.unwrap().lines();
    change().await;
    stage.create("last", json!({"team": "x"}), json!({})).await;
    let mut received: Vec<String> = Vec::new();
    while let Some(line) = lines.next().await {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
        if name == "last" {
            return received;
        }
        let event = format!("{} {name}", event["type"].as_str().unwrap());
        if received.last() != Some(&event) {
            received.push(event);
        }
    }
    panic!("the watch ended early, after {received:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_is_no_deletion() {
    let stage = Stage::on_sqlite().await;
    stage.create("evicted", json!({"team": "x"}), json!({})).await;
    stage.create("deleted", json!({"team": "x"}), json!({})).await;
    let events = received(&stage, "", async || {
        let patch = json!({"metadata": {"annotations": {FINAL: "true"}}});
        send(&stage.api, "PATCH", &model("evicted"), &patch).await;
        stage.wait_until_archived("evicted").await;
        send(&stage.api, "DELETE", &model("deleted"), &Value::Null).await;
        stage.wait_until_deleted("deleted").await;
    })
    .await;
    assert_eq!(events, ["MODIFIED evicted", "MODIFIED deleted", "DELETED deleted"]);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_leaves_the_selector_is_deleted_for_the_watcher() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({"team": "x"}), json!({})).await;
    let events = received(&stage, "labelSelector=team%3Dx", async || {
        let patch = json!({"metadata": {"labels": {"team": "y"}}});
        send(&stage.api, "PATCH", &model("a"), &patch).await;
    })
    .await;
    assert_eq!(events, ["DELETED a"]);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_tells_in_tables() {
    let stage = Stage::on_sqlite().await;
    let (_, list) = send(&stage.api, "GET", MODELS, &Value::Null).await;
    for name in ["a", "b"] {
        stage.create(name, json!({}), json!({"algorithm": name})).await;
    }
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{MODELS}?watch=true&timeoutSeconds=240&resourceVersion={version}&allowWatchBookmarks=true");
    let request = http::Request::get(path).header("accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
    let request = request.body(Vec::new()).unwrap();
    let mut lines = stage.api.request_stream(request).await.unwrap().lines();
    let mut added: Vec<Value> = Vec::new();
    while added.len() < 2 {
        let line = lines.next().await.expect("the watch goes on").unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["type"] == "ADDED" {
            added.push(event);
        }
    }
    assert_eq!(added[0]["object"]["rows"][0]["cells"][1], "a");
    assert!(added[0]["object"]["columnDefinitions"].is_array());
    assert_eq!(added[1]["object"]["rows"][0]["cells"][1], "b");
    assert!(
        added[1]["object"]["columnDefinitions"].is_null(),
        "the columns are said once"
    );
    drop(lines);
    stage.end().await;
}
