//! Watches over gRPC: no move to SQL is told as a deletion, and bookmarks say how far a watch has come.

use kindex_generated::kinds::model;
use serde_json::{Value, json};

use super::client::Client;
use crate::api::stage::{FINAL, Stage, model, send};

async fn version(client: &Client) -> Value {
    let mut list = client.call(&model::KIND, "List*", json!({})).await.unwrap();
    list["modelList"]["metadata"]["resourceVersion"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_is_no_deletion() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    stage.create("evicted", json!({}), json!({})).await;
    stage.create("deleted", json!({}), json!({})).await;
    let options = json!({"resourceVersion": version(&client).await});
    let request = json!({"namespace": "default", "listOptions": options});
    let mut watch = client.watch(&model::KIND, request).await.unwrap();
    let patch = json!({"metadata": {"annotations": {FINAL: "true"}}});
    send(&stage.api, "PATCH", &model("evicted"), &patch).await;
    stage.wait_until_archived("evicted").await;
    let at = json!({"namespace": "default", "name": "deleted"});
    client.call(&model::KIND, "Delete*", at).await.unwrap();
    stage.wait_until_deleted("deleted").await;
    stage.create("last", json!({}), json!({})).await;
    let mut received: Vec<String> = Vec::new();
    loop {
        let event = watch.next().await.unwrap().unwrap();
        let name = event["model"]["metadata"]["name"].as_str().unwrap();
        if name == "last" {
            break;
        }
        let line = format!("{} {name}", event["type"].as_str().unwrap());
        if received.last() != Some(&line) {
            received.push(line);
        }
    }
    assert_eq!(received, ["MODIFIED evicted", "MODIFIED deleted", "DELETED deleted"]);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bookmark_has_the_version_and_a_watch_ends_when_it_was_asked_to() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let version = version(&client).await;
    let options = json!({"resourceVersion": version, "allowWatchBookmarks": true, "timeoutSeconds": 3});
    let mut watch = client
        .watch(&model::KIND, json!({"listOptions": options}))
        .await
        .unwrap();
    let bookmark = watch.next().await.unwrap().unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    let reached = bookmark["model"]["metadata"]["resourceVersion"].as_str().unwrap();
    assert!(reached.parse::<u64>().is_ok(), "{bookmark}");
    assert_eq!(
        watch.next().await.unwrap(),
        None,
        "the end that was asked for is not an error"
    );

    let refused = client
        .watch(&model::KIND, json!({"listOptions": {"timeoutSeconds": -1}}))
        .await;
    assert_eq!(
        refused.err().map(|status| status.code()),
        Some(tonic::Code::InvalidArgument)
    );
    stage.end().await;
}
