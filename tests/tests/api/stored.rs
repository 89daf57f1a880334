//! Archived objects through the API server: they are read, changed and deleted like live ones.

use kindex_harness::wait::eventually;
use kindex_query::Life;
use serde_json::{Value, json};

use super::stage::{FINAL, MODELS, Stage, manifest, model, names, send, send_with};

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_object_is_read_and_its_name_is_taken() {
    let stage = Stage::on_sqlite().await;
    let created = stage
        .create_archived("a", json!({"team": "x"}), json!({"algorithm": "one"}))
        .await;
    let (code, found) = send(&stage.api, "GET", &model("a"), &Value::Null).await;
    assert_eq!((code, &found["metadata"]["uid"]), (200, &created["metadata"]["uid"]));
    assert!(
        found["metadata"]["deletionTimestamp"].is_null(),
        "it looks as if it lived: {found}"
    );
    let (_, status) = send(&stage.api, "GET", &format!("{}/status", model("a")), &Value::Null).await;
    assert_eq!(status, found);

    let again = manifest(json!({"name": "a"}), json!({}));
    let (code, refused) = send(&stage.api, "POST", MODELS, &again).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("AlreadyExists")), "{refused}");
    let apply = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{}?fieldManager=me", model("a"));
    let (code, refused) = send_with(&stage.api, "PATCH", &path, &apply, again.to_string()).await;
    assert_eq!(code, 400, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("archived"), "{refused}");

    let (code, _) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!((code, stage.life("a").await), (200, Some(Life::Deleted)));
    let (code, anew) = send(&stage.api, "POST", MODELS, &again).await;
    assert_eq!(code, 201, "{anew}");
    assert_ne!(anew["metadata"]["uid"], created["metadata"]["uid"]);
    stage.end().await;
}

/// A cluster passes over such fields, and would create another object of the name.
#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_an_archived_object_is_taken_beside_fields_that_are_null_or_there_twice() {
    let stage = Stage::on_sqlite().await;
    stage.create_archived("a", json!({}), json!({})).await;
    let headers = [("content-type", "application/json")];
    for metadata in [r#"{"name":"a","uid":null}"#, r#"{"name":"a","uid":"1","uid":"2"}"#] {
        let again = manifest(json!("all of it"), json!({})).to_string();
        let again = again.replace("\"all of it\"", metadata);
        let (code, refused) = send_with(&stage.api, "POST", MODELS, &headers, again).await;
        assert_eq!((code, &refused["reason"]), (409, &json!("AlreadyExists")), "{refused}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_object_is_changed_under_the_version_that_was_read() {
    let stage = Stage::on_sqlite().await;
    stage
        .create_archived("a", json!({"team": "x"}), json!({"algorithm": "one"}))
        .await;
    let (_, read) = send(&stage.api, "GET", &model("a"), &Value::Null).await;

    let patch = json!({"metadata": {"labels": {"team": "y"}}, "spec": {"algorithm": "two"}});
    let (code, patched) = send(&stage.api, "PATCH", &model("a"), &patch).await;
    assert_eq!((code, &patched["spec"]["algorithm"]), (200, &json!("two")), "{patched}");
    assert_eq!(patched["metadata"]["annotations"][FINAL], "true");
    let generation = |object: &Value| object["metadata"]["generation"].as_i64();
    assert_eq!(generation(&patched), generation(&read).map(|number| number + 1));
    assert_ne!(
        patched["metadata"]["resourceVersion"],
        read["metadata"]["resourceVersion"]
    );

    let (code, refused) = send(&stage.api, "PUT", &model("a"), &read).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    let mut current = patched.clone();
    current["spec"]["algorithm"] = "three".into();
    let (code, replaced) = send(&stage.api, "PUT", &model("a"), &current).await;
    assert_eq!(
        (code, &replaced["spec"]["algorithm"]),
        (200, &json!("three")),
        "{replaced}"
    );

    let (_, list) = send(
        &stage.api,
        "GET",
        &format!("{MODELS}?labelSelector=team%3Dy"),
        &Value::Null,
    )
    .await;
    assert_eq!(names(&list), ["a"]);
    let json_patch = json!([{"op": "test", "path": "/spec/algorithm", "value": "one"}]).to_string();
    let headers = [("content-type", "application/json-patch+json")];
    let (code, refused) = send_with(&stage.api, "PATCH", &model("a"), &headers, json_patch).await;
    assert_eq!(code, 422, "{refused}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_the_cluster_would_refuse_is_refused_in_sql_too() {
    let stage = Stage::on_sqlite().await;
    stage.create_archived("a", json!({}), json!({"algorithm": "one"})).await;
    let (_, before) = send(&stage.api, "GET", &model("a"), &Value::Null).await;
    for (patch, expected) in [
        (json!({"spec": {"algorithm": 7}}), 422),
        (json!({"metadata": {"labels": {"a b": "c"}}}), 422),
        (json!({"metadata": {"name": "b"}}), 400),
        (json!({"metadata": {"uid": "b"}}), 409),
        (json!({"metadata": {"resourceVersion": "1"}}), 409),
    ] {
        let (code, refused) = send(&stage.api, "PATCH", &model("a"), &patch).await;
        assert_eq!(code, expected, "{patch}: {refused}");
    }
    let dry = format!("{}?dryRun=All", model("a"));
    let (code, tried) = send(&stage.api, "PATCH", &dry, &json!({"spec": {"algorithm": "two"}})).await;
    assert_eq!((code, &tried["spec"]["algorithm"]), (200, &json!("two")), "{tried}");
    let (_, after) = send(&stage.api, "GET", &model("a"), &Value::Null).await;
    assert_eq!(after, before);
    let (code, pruned) = send(&stage.api, "PATCH", &model("a"), &json!({"spec": {"unknown": 1}})).await;
    assert_eq!((code, &pruned["spec"]), (200, &json!({"algorithm": "one"})), "{pruned}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_deleted_in_both_places_by_its_selectors_alone() {
    let stage = Stage::on_sqlite().await;
    for (name, team) in [("live-x", "x"), ("live-y", "y")] {
        stage.create(name, json!({"team": team}), json!({})).await;
    }
    for (name, team) in [("gone-x", "x"), ("gone-y", "y")] {
        stage.create_archived(name, json!({"team": team}), json!({})).await;
    }
    for query in [
        "labelselector=team%3Dx",
        "labelSelector=team%3Dx&limit=1",
        "selector=team%3Dx",
    ] {
        let (code, refused) = send(&stage.api, "DELETE", &format!("{MODELS}?{query}"), &Value::Null).await;
        assert_eq!(code, 400, "{query}: {refused}");
    }
    let all = "/apis/michelangelo.api/v2/models";
    let (code, _) = send(&stage.api, "DELETE", all, &Value::Null).await;
    assert_eq!(code, 405);

    let (code, done) = send(
        &stage.api,
        "DELETE",
        &format!("{MODELS}?labelSelector=team%3Dx"),
        &Value::Null,
    )
    .await;
    assert_eq!((code, &done["status"]), (200, &json!("Success")), "{done}");
    let (_, kept) = send(&stage.api, "GET", &model("live-y"), &Value::Null).await;
    assert!(
        kept["metadata"]["deletionTimestamp"].is_null(),
        "it was not asked for: {kept}"
    );
    stage.wait_until_deleted("live-x").await;
    assert_eq!(stage.life("gone-x").await, Some(Life::Deleted));
    let (_, list) = send(&stage.api, "GET", MODELS, &Value::Null).await;
    let mut left = names(&list);
    left.sort_unstable();
    assert_eq!(left, ["gone-y", "live-y"]);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_creations_at_once_those_of_archived_names_alone_are_refused() {
    let stage = Stage::on_sqlite().await;
    for number in [0, 7, 20] {
        stage
            .create_archived(&format!("m-{number:02}"), json!({}), json!({}))
            .await;
    }
    let creations = (0..40).map(|number| {
        let (client, object) = (
            &stage.api,
            manifest(json!({"name": format!("m-{number:02}")}), json!({})),
        );
        async move { send(client, "POST", MODELS, &object).await.0 }
    });
    for (number, code) in futures::future::join_all(creations).await.into_iter().enumerate() {
        let expected = if [0, 7, 20].contains(&number) { 409 } else { 201 };
        assert_eq!(code, expected, "m-{number:02}");
    }
    // A name is free again once its object is deleted, wherever it lived.
    for name in ["m-07", "m-08"] {
        let (code, _) = send(&stage.api, "DELETE", &model(name), &Value::Null).await;
        assert_eq!(code, 200);
        stage.wait_until_deleted(name).await;
        let again = manifest(json!({"name": name}), json!({}));
        assert_eq!(send(&stage.api, "POST", MODELS, &again).await.0, 201, "{name}");
    }
    stage.end().await;
}

/// What every object is: live or archived, and to be deleted.
async fn remaining(stage: &Stage, namespace: &str) -> Vec<(String, bool)> {
    let path = MODELS.replace("default", namespace);
    let (code, list) = send(&stage.api, "GET", &path, &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let items = list["items"].as_array().unwrap().iter();
    let mut remaining: Vec<_> = items
        .map(|item| {
            let metadata = &item["metadata"];
            let leaves = metadata["deletionTimestamp"].is_string();
            (metadata["name"].as_str().unwrap().to_owned(), leaves)
        })
        .collect();
    remaining.sort_unstable();
    remaining
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_deletes_nothing_and_a_collection_ends_at_its_namespace_and_its_fields() {
    let stage = Stage::on_sqlite().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    send(&stage.cluster, "POST", "/api/v1/namespaces", &namespace).await;
    for name in ["live-a", "live-b"] {
        stage.create(name, json!({}), json!({})).await;
    }
    for name in ["gone-a", "gone-b"] {
        stage.create_archived(name, json!({}), json!({})).await;
    }
    let elsewhere = MODELS.replace("default", "other");
    let metadata = json!({"name": "gone-a", "annotations": {FINAL: "true"}});
    let (code, answer) = send(&stage.api, "POST", &elsewhere, &manifest(metadata, json!({}))).await;
    assert_eq!(code, 201, "{answer}");
    eventually("it is archived as well", async || {
        send(&stage.cluster, "GET", &format!("{elsewhere}/gone-a"), &Value::Null)
            .await
            .0
            == 404
    })
    .await;

    let all = ["gone-a", "gone-b", "live-a", "live-b"].map(|name| (name.to_owned(), false));
    for path in [model("live-a"), model("gone-a"), MODELS.to_owned()] {
        let (code, answer) = send(&stage.api, "DELETE", &format!("{path}?dryRun=All"), &Value::Null).await;
        assert_eq!(code, 200, "{path}: {answer}");
        assert_eq!(remaining(&stage, "default").await, all, "{path}");
    }
    for preconditions in [json!({"uid": "another"}), json!({"resourceVersion": "1"})] {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions});
        for (name, policy) in [
            ("live-a", json!(null)),
            ("live-a", json!("Orphan")),
            ("gone-a", json!(null)),
        ] {
            let mut options = options.clone();
            options["propagationPolicy"] = policy;
            let (code, answer) = send(&stage.api, "DELETE", &model(name), &options).await;
            assert_eq!(code, 409, "{name} {options}: {answer}");
        }
    }
    assert_eq!(remaining(&stage, "default").await, all);

    let one = |name: &str| format!("{MODELS}?fieldSelector=metadata.name%3D{name}");
    for name in ["gone-a", "live-a"] {
        let (code, answer) = send(&stage.api, "DELETE", &one(name), &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
    }
    stage.wait_until_deleted("live-a").await;
    assert_eq!(
        remaining(&stage, "default").await,
        ["gone-b", "live-b"].map(|name| (name.to_owned(), false))
    );
    assert_eq!(remaining(&stage, "other").await, [("gone-a".to_owned(), false)]);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn how_a_client_wants_to_write_is_handed_on() {
    let stage = Stage::on_sqlite().await;
    let object = manifest(json!({"name": "a"}), json!({"unknown": 1}));
    let (code, answer) = send(&stage.api, "POST", &format!("{MODELS}?fieldValidation=Strict"), &object).await;
    assert_eq!(code, 400, "{answer}");
    let (code, answer) = send(&stage.api, "POST", &format!("{MODELS}?dryRun=All"), &object).await;
    assert_eq!(code, 201, "{answer}");
    let (code, answer) = send(&stage.api, "POST", &format!("{MODELS}?fieldManager=first"), &object).await;
    assert_eq!(code, 201, "nothing was created before: {answer}");
    assert_eq!(answer["metadata"]["managedFields"][0]["manager"], "first", "{answer}");
    stage.end().await;
}
