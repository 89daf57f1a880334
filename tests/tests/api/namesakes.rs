//! Objects of one name: which of them is read, and whose name is taken.

use jiff::Timestamp;
use kindex_generated::kinds::model;
use kindex_harness::wait::eventually;
use kindex_model::object::Object;
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_store::RowWrite;
use serde_json::{Value, json};

use super::stage::{MODELS, Stage, manifest, model, names, send};

/// Creates a model and deletes it; its uid.
async fn come_and_gone(stage: &Stage, name: &str) -> Value {
    let mut created = stage.create(name, json!({}), json!({})).await;
    let (code, answer) = send(&stage.api, "DELETE", &model(name), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    stage.wait_until_deleted(name).await;
    created["metadata"]["uid"].take()
}

async fn create_namespace(stage: &Stage, name: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let (code, answer) = send(&stage.cluster, "POST", "/api/v1/namespaces", &namespace).await;
    assert_eq!(code, 201, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_deleted_objects_of_a_name_the_last_is_read_and_each_by_its_uid() {
    let stage = Stage::on_sqlite().await;
    let before = Timestamp::now();
    let first = come_and_gone(&stage, "a").await;
    let last = come_and_gone(&stage, "a").await;
    create_namespace(&stage, "other").await;
    let get = async |path: &str, query: String| send(&stage.api, "GET", &format!("{path}?{query}"), &Value::Null).await;
    let (code, found) = get(&model("a"), "includeDeleted=true".to_owned()).await;
    assert_eq!((code, &found["metadata"]["uid"]), (200, &last), "{found}");
    for uid in [&first, &last] {
        let query = format!("uid={}", uid.as_str().unwrap());
        let (code, found) = get(&model("a"), query.clone()).await;
        assert_eq!((code, &found["metadata"]["uid"]), (200, uid), "{found}");
        for elsewhere in [model("b"), model("a").replace("default", "other")] {
            let (code, refused) = get(&elsewhere, query.clone()).await;
            assert_eq!(
                (code, &refused["reason"]),
                (404, &json!("NotFound")),
                "{elsewhere}: {refused}"
            );
        }
    }
    for (time, expected) in [(before, "was first seen at"), (Timestamp::now(), "was deleted at")] {
        let (code, refused) = get(&model("a"), format!("at={time}")).await;
        let message = refused["message"].as_str().unwrap();
        assert!(code == 404 && message.contains(expected), "{message}");
    }
    stage.end().await;
}

/// Nobody has told SQL of its end: it is not there, and no archived object.
#[tokio::test(flavor = "multi_thread")]
async fn a_live_row_without_its_object_is_not_found() {
    let stage = Stage::on_sqlite().await;
    let metadata = json!({"name": "a", "namespace": "default", "uid": "orphan", "resourceVersion": "1"});
    let text = manifest(metadata, json!({})).to_string();
    let write = RowWrite::Store {
        version: Version::project(&model::KIND, Object::parse_str(&text).unwrap()),
        life: Life::Live,
        revive: Revive::Never,
    };
    stage
        .store
        .write(&model::KIND, &[write], Timestamp::now())
        .await
        .unwrap();
    for query in ["", "?includeDeleted=true", "?uid=orphan"] {
        let (code, refused) = send(&stage.api, "GET", &format!("{}{query}", model("a")), &Value::Null).await;
        assert_eq!(
            (code, &refused["reason"]),
            (404, &json!("NotFound")),
            "{query}: {refused}"
        );
    }
    let (code, created) = send(&stage.api, "POST", MODELS, &manifest(json!({"name": "a"}), json!({}))).await;
    assert_eq!(code, 201, "its name is free: {created}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_says_that_the_name_of_one_of_its_objects_is_taken() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({}), json!({})).await;
    eventually("stored", async || stage.life("a").await == Some(Life::Live)).await;
    let again = manifest(json!({"name": "a"}), json!({}));
    let own = send(&stage.cluster, "POST", MODELS, &again).await;
    assert_eq!(own.0, 409);
    assert_eq!(send(&stage.api, "POST", MODELS, &again).await, own);
    stage.end().await;
}

/// Asked for together, so that one statement answers for both.
#[tokio::test(flavor = "multi_thread")]
async fn an_archived_object_takes_a_name_in_its_own_namespace_alone() {
    let stage = Stage::on_sqlite().await;
    create_namespace(&stage, "other").await;
    for number in 0..4 {
        stage
            .create_archived(&format!("m-{number}"), json!({}), json!({}))
            .await;
    }
    let creations = (0..20).flat_map(|number| {
        let object = manifest(json!({"name": format!("m-{number}")}), json!({}));
        ["default", "other"].map(|namespace| {
            let (object, path) = (object.clone(), MODELS.replace("default", namespace));
            let api = &stage.api;
            async move { (number, namespace, send(api, "POST", &path, &object).await.0) }
        })
    });
    for (number, namespace, code) in futures::future::join_all(creations).await {
        let is_taken = number < 4 && namespace == "default";
        assert_eq!(code, if is_taken { 409 } else { 201 }, "{namespace}/m-{number}");
    }
    stage.end().await;
}

/// SQL says that it is deleted; somebody's finalizer holds it in the cluster. Whoever lists later sees it there once.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_object_that_somebody_holds_is_listed_as_the_cluster_has_it() {
    let stage = Stage::on_sqlite().await;
    let metadata = json!({"name": "held", "finalizers": ["example.com/hold"]});
    let (code, answer) = send(&stage.api, "POST", MODELS, &manifest(metadata, json!({}))).await;
    assert_eq!(code, 201, "{answer}");
    eventually("stored", async || stage.life("held").await == Some(Life::Live)).await;
    let marked = json!({"metadata": {"annotations": {"michelangelo/Deleting": "true"}}});
    let (code, answer) = send(&stage.api, "PATCH", &model("held"), &marked).await;
    assert_eq!(code, 200, "{answer}");
    eventually("SQL has its end", async || {
        stage.life("held").await == Some(Life::Deleted)
    })
    .await;
    for api in [&stage.api, &stage.later] {
        for query in ["", "?includeDeleted=true"] {
            let (code, list) = send(api, "GET", &format!("{MODELS}{query}"), &Value::Null).await;
            assert_eq!((code, names(&list)), (200, vec!["held"]), "{query}: {list}");
        }
    }
    let (code, answer) = send(&stage.api, "DELETE", &model("held"), &Value::Null).await;
    assert_eq!(code, 200, "it is on its way: {answer}");
    let release = json!({"metadata": {"finalizers": null}});
    assert_eq!(send(&stage.cluster, "PATCH", &model("held"), &release).await.0, 200);
    stage.wait_until_deleted("held").await;
    stage.end().await;
}

/// A deletion that was asked for twice is asked for once: the second request changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_leaving_is_not_asked_to_leave_again() {
    let stage = Stage::on_sqlite().await;
    let metadata = json!({"name": "a", "finalizers": ["example.com/hold"]});
    let (code, answer) = send(&stage.api, "POST", MODELS, &manifest(metadata, json!({}))).await;
    assert_eq!(code, 201, "{answer}");
    let (code, first) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!(code, 200, "{first}");
    let before = &first["metadata"]["resourceVersion"];
    let (code, answer) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!(
        (code, &answer["metadata"]["resourceVersion"]),
        (200, before),
        "{answer}"
    );
    let (_, found) = send(&stage.cluster, "GET", &model("a"), &Value::Null).await;
    assert_eq!(&found["metadata"]["resourceVersion"], before);
    stage.end().await;
}
