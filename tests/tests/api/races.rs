//! What happens in the cluster between two requests of one verb: each step is about the object that the one before saw.

use kube::Client;
use serde_json::{Value, json};

use super::stage::{MODELS, Stage, manifest, model, send};

/// Another object has the name from now on.
async fn replace(cluster: Client, name: &'static str) {
    // Nobody holds the one before.
    let released = json!({"metadata": {"finalizers": null}});
    let (code, answer) = send(&cluster, "PATCH", &model(name), &released).await;
    assert_eq!(code, 200, "{answer}");
    let (code, answer) = send(&cluster, "DELETE", &model(name), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let metadata = json!({"name": name, "labels": {"is": "another"}});
    let (code, answer) = send(&cluster, "POST", MODELS, &manifest(metadata, json!({}))).await;
    assert_eq!(code, 201, "{answer}");
}

async fn relabel(cluster: Client, name: &'static str) {
    let patch = json!({"metadata": {"labels": {"is": "changed"}}});
    let (code, answer) = send(&cluster, "PATCH", &model(name), &patch).await;
    assert_eq!(code, 200, "{answer}");
}

/// What is there of the name is this, and nobody asked for its end.
async fn stays(stage: &Stage, name: &str, is: &str) {
    assert!(stage.ground.proxy.has_overtaken());
    let (code, found) = send(&stage.cluster, "GET", &model(name), &Value::Null).await;
    assert_eq!((code, &found["metadata"]["labels"]["is"]), (200, &json!(is)), "{found}");
    let annotations = &found["metadata"]["annotations"];
    assert!(annotations["michelangelo/Deleting"].is_null(), "{found}");
    assert!(found["metadata"]["deletionTimestamp"].is_null(), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_of_the_object_that_was_there_when_it_began() {
    let stage = Stage::behind_a_proxy().await;
    let proxy = &stage.ground.proxy;
    stage.create("a", json!({}), json!({})).await;
    proxy.overtake("DELETE", &model("a"), replace(stage.cluster.clone(), "a"));
    let (code, refused) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    stays(&stage, "a", "another").await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_precondition_holds_until_the_deletion_is_asked_for() {
    let stage = Stage::behind_a_proxy().await;
    let proxy = &stage.ground.proxy;
    stage.create("a", json!({}), json!({})).await;
    let (_, found) = send(&stage.api, "GET", &model("a"), &Value::Null).await;
    proxy.overtake("DELETE", &model("a"), relabel(stage.cluster.clone(), "a"));
    let options = json!({"preconditions": {"resourceVersion": found["metadata"]["resourceVersion"]}});
    let (code, refused) = send(&stage.api, "DELETE", &model("a"), &options).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    stays(&stage, "a", "changed").await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_of_the_objects_that_its_list_had() {
    let stage = Stage::behind_a_proxy().await;
    let proxy = &stage.ground.proxy;
    stage.create("a", json!({}), json!({})).await;
    proxy.overtake("GET", &model("a"), replace(stage.cluster.clone(), "a"));
    let (code, done) = send(&stage.api, "DELETE", MODELS, &Value::Null).await;
    assert_eq!((code, &done["status"]), (200, &json!("Success")), "{done}");
    stays(&stage, "a", "another").await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_object_whose_name_is_taken_while_it_is_changed_stays_as_it_is() {
    let stage = Stage::behind_a_proxy().await;
    let proxy = &stage.ground.proxy;
    let before = stage.create_archived("a", json!({"is": "archived"}), json!({})).await;
    let cluster = stage.cluster.clone();
    proxy.overtake("POST", MODELS, async move {
        let metadata = json!({"name": "a", "labels": {"is": "another"}});
        let (code, answer) = send(&cluster, "POST", MODELS, &manifest(metadata, json!({}))).await;
        assert_eq!(code, 201, "{answer}");
    });
    let patch = json!({"spec": {"algorithm": "two"}});
    let (code, refused) = send(&stage.api, "PATCH", &model("a"), &patch).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    stays(&stage, "a", "another").await;
    let uid = before["metadata"]["uid"].as_str().unwrap();
    let (code, archived) = send(&stage.api, "GET", &format!("{}?uid={uid}", model("a")), &Value::Null).await;
    assert_eq!(
        (code, &archived["spec"]["algorithm"]),
        (200, &Value::Null),
        "{archived}"
    );
    stage.end().await;
}
