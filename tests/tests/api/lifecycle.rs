//! One object from its creation to its end through the API server: what the cluster and SQL have of it.

use kindex_harness::wait::eventually;
use kindex_query::Life;
use serde_json::{Value, json};

use super::stage::{MODELS, Stage, manifest, model, send, send_with};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_created_gets_the_finalizer_and_what_is_deleted_is_stored_first() {
    let stage = Stage::on_sqlite().await;
    let created = stage.create("a", json!({}), json!({"algorithm": "xgboost"})).await;
    assert_eq!(created["metadata"]["finalizers"], json!(["michelangelo/Ingester"]));
    let (code, found) = send(&stage.api, "GET", &model("a"), &Value::Null).await;
    assert_eq!((code, &found["metadata"]["uid"]), (200, &created["metadata"]["uid"]));

    let (code, answer) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    assert!(
        answer["metadata"]["deletionTimestamp"].is_string(),
        "a tombstone at once: {answer}"
    );
    assert!(
        answer["metadata"]["annotations"]["michelangelo/Deleting"].is_null(),
        "{answer}"
    );
    stage.wait_until_deleted("a").await;
    let (code, _) = send(&stage.api, "GET", &model("a"), &Value::Null).await;
    assert_eq!(code, 404);
    let (code, last) = send(
        &stage.api,
        "GET",
        &format!("{}?includeDeleted=true", model("a")),
        &Value::Null,
    )
    .await;
    assert_eq!((code, &last["metadata"]["uid"]), (200, &created["metadata"]["uid"]));
    assert!(last["metadata"]["deletionTimestamp"].is_string(), "{last}");
    let (code, _) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!(code, 404);
    stage.end().await;
}

/// Projects neither refer to anything here nor does anything refer to them.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_waits_for_is_deleted_by_the_annotation() {
    let stage = Stage::on_sqlite().await;
    let projects = MODELS.replace("models", "projects");
    let project = json!({"apiVersion": "michelangelo.api/v2", "kind": "Project", "metadata": {"name": "a"}});
    let (code, created) = send(&stage.api, "POST", &projects, &project).await;
    assert_eq!(code, 201, "{created}");
    let path = format!("{projects}/a");
    let (code, answer) = send(&stage.api, "DELETE", &path, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(answer["metadata"]["annotations"]["michelangelo/Deleting"], "true");
    assert!(
        answer["metadata"]["deletionTimestamp"].is_null(),
        "it is not Terminating"
    );
    eventually("gone", async || {
        send(&stage.api, "GET", &path, &Value::Null).await.0 == 404
    })
    .await;
    stage.end().await;
}

/// SQL has its final version all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_without_our_finalizer_gets_it_before_its_tombstone() {
    let stage = Stage::on_sqlite().await;
    let metadata = json!({"name": "a", "finalizers": ["example.com/hold"]});
    let (code, created) = send(&stage.cluster, "POST", MODELS, &manifest(metadata, json!({}))).await;
    assert_eq!(code, 201, "{created}");
    let (code, answer) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    assert!(answer["metadata"]["deletionTimestamp"].is_string(), "{answer}");
    let finalizers = answer["metadata"]["finalizers"].to_string();
    assert!(finalizers.contains("michelangelo/Ingester"), "{finalizers}");
    let release = json!({"metadata": {"finalizers": ["michelangelo/Ingester"]}});
    let (code, answer) = send(&stage.cluster, "PATCH", &model("a"), &release).await;
    assert_eq!(code, 200, "{answer}");
    stage.wait_until_deleted("a").await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn preconditions_and_propagation_of_a_deletion_are_kept() {
    let stage = Stage::on_sqlite().await;
    let created = stage.create("a", json!({}), json!({})).await;
    let version = created["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse::<u64>()
        .unwrap();
    for (field, value) in [
        ("uid", "other".to_owned()),
        ("resourceVersion", (version + 1000).to_string()),
    ] {
        let options = json!({"preconditions": {field: value}});
        let (code, answer) = send(&stage.api, "DELETE", &model("a"), &options).await;
        assert_eq!((code, &answer["reason"]), (409, &json!("Conflict")), "{answer}");
    }
    let (_, dry) = send(
        &stage.api,
        "DELETE",
        &format!("{}?dryRun=All", model("a")),
        &Value::Null,
    )
    .await;
    assert_eq!(dry["metadata"]["name"], "a");
    assert_ne!(stage.life("a").await, Some(Life::Deleted));

    let options = json!({"propagationPolicy": "Foreground", "preconditions": {"uid": created["metadata"]["uid"]}});
    let (code, answer) = send(&stage.api, "DELETE", &model("a"), &options).await;
    assert_eq!(code, 200, "{answer}");
    assert!(
        answer["metadata"]["deletionTimestamp"].is_string(),
        "the cluster deletes it: {answer}"
    );
    let finalizers = answer["metadata"]["finalizers"].to_string();
    assert!(finalizers.contains("foregroundDeletion"), "{finalizers}");
    stage.wait_until_deleted("a").await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_side_apply_creates_with_a_finalizer_that_its_manager_does_not_own() {
    let stage = Stage::on_sqlite().await;
    let path = format!("{}?fieldManager=me", model("a"));
    let apply = async |algorithm: &str| {
        let body = manifest(json!({"name": "a"}), json!({"algorithm": algorithm})).to_string();
        let headers = [("content-type", "application/apply-patch+yaml")];
        send_with(&stage.api, "PATCH", &path, &headers, body).await
    };
    let (code, created) = apply("one").await;
    assert_eq!(code, 201, "{created}");
    for _ in 0..2 {
        let (code, changed) = apply("two").await;
        assert_eq!((code, &changed["spec"]["algorithm"]), (200, &json!("two")), "{changed}");
        assert_eq!(changed["metadata"]["finalizers"], json!(["michelangelo/Ingester"]));
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_keeps_the_finalizer() {
    let stage = Stage::on_sqlite().await;
    let created = stage.create("a", json!({}), json!({"algorithm": "one"})).await;
    let version = &created["metadata"]["resourceVersion"];
    let body = manifest(
        json!({"name": "a", "resourceVersion": version}),
        json!({"algorithm": "two"}),
    );
    let (code, replaced) = send(&stage.api, "PUT", &model("a"), &body).await;
    assert_eq!(
        (code, &replaced["spec"]["algorithm"]),
        (200, &json!("two")),
        "{replaced}"
    );
    assert_eq!(replaced["metadata"]["finalizers"], json!(["michelangelo/Ingester"]));
    let (code, refused) = send(&stage.api, "PUT", &model("a"), &body).await;
    assert_eq!(
        (code, &refused["reason"]),
        (409, &json!("Conflict")),
        "an old version: {refused}"
    );
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_of_a_kind_with_history_is_read_at_a_moment() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({}), json!({"algorithm": "one"})).await;
    eventually("stored", async || stage.life("a").await == Some(Life::Live)).await;
    let between = jiff::Timestamp::now();
    let (code, _) = send(&stage.api, "PATCH", &model("a"), &json!({"spec": {"algorithm": "two"}})).await;
    assert_eq!(code, 200);
    let past = async |path: &str| send(&stage.api, "GET", &format!("{path}?at={between}"), &Value::Null).await;
    eventually("the second version is stored", async || {
        let now = jiff::Timestamp::now();
        let path = format!("{}?at={now}", model("a"));
        send(&stage.api, "GET", &path, &Value::Null).await.1["spec"]["algorithm"] == "two"
    })
    .await;
    let (code, found) = past(&model("a")).await;
    assert_eq!((code, &found["spec"]["algorithm"]), (200, &json!("one")), "{found}");
    let (code, list) = past(MODELS).await;
    assert_eq!(
        (code, &list["items"][0]["spec"]["algorithm"]),
        (200, &json!("one")),
        "{list}"
    );

    let projects = MODELS.replace("models", "projects");
    let (code, refused) = past(&projects).await;
    assert_eq!(code, 400, "{refused}");
    assert!(
        refused["message"].as_str().unwrap().contains("keeps no history"),
        "{refused}"
    );
    let (code, refused) = send(&stage.api, "GET", &format!("{MODELS}?at=yesterday"), &Value::Null).await;
    assert_eq!(code, 400, "{refused}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_else_is_the_clusters() {
    let stage = Stage::on_sqlite().await;
    for path in [
        "/version",
        "/apis",
        "/apis/michelangelo.api/v2",
        "/openapi/v3",
        "/api/v1/namespaces/default",
        "/apis/michelangelo.api/v2/namespaces/default/nothings",
        "/nowhere",
    ] {
        let own = send(&stage.api, "GET", path, &Value::Null).await;
        let clusters = send(&stage.cluster, "GET", path, &Value::Null).await;
        assert_eq!(own, clusters, "{path}");
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    let (code, answer) = send(&stage.api, "POST", "/api/v1/namespaces", &namespace).await;
    assert_eq!(code, 201, "{answer}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kubernetes_refuses_is_refused() {
    let stage = Stage::on_sqlite().await;
    let huge = "x".repeat(3 * 1024 * 1024);
    let json = [("content-type", "application/json")];
    let refusals = [
        ("POST", MODELS.to_owned(), &json[..], "{".to_owned(), 400),
        ("POST", MODELS.to_owned(), &json, "[]".to_owned(), 400),
        ("POST", MODELS.to_owned(), &json, format!("{{\"a\":\"{huge}\"}}"), 413),
        (
            "POST",
            MODELS.to_owned(),
            &[("content-type", "text/csv")],
            "a,b".to_owned(),
            415,
        ),
        ("GET", MODELS.to_owned(), &[("accept", "text/csv")], String::new(), 406),
        ("GET", format!("{MODELS}?limit=many"), &json, String::new(), 400),
        (
            "GET",
            format!("{MODELS}?labelSelector=a%3Db%3Dc"),
            &json,
            String::new(),
            400,
        ),
        (
            "GET",
            format!("{MODELS}?fieldSelector=spec.nothing%3Da"),
            &json,
            String::new(),
            400,
        ),
        ("GET", format!("{MODELS}?continue=nonsense"), &json, String::new(), 400),
        ("PUT", MODELS.to_owned(), &json, "{}".to_owned(), 405),
        (
            "PATCH",
            model("a"),
            &[("content-type", "text/csv")],
            "{}".to_owned(),
            415,
        ),
    ];
    for (method, path, headers, body, expected) in refusals {
        let (code, answer) = send_with(&stage.api, method, &path, headers, body).await;
        let shown = answer.to_string();
        assert_eq!(code, expected, "{method} {path}: {shown:.300}");
        assert_eq!(
            (&answer["kind"], &answer["code"]),
            (&json!("Status"), &json!(expected)),
            "{shown:.300}"
        );
    }
    let unknown = manifest(json!({"name": "a"}), json!({"algorithm": 7}));
    let (code, answer) = send(&stage.api, "POST", MODELS, &unknown).await;
    assert_eq!((code, &answer["reason"]), (422, &json!("Invalid")), "{answer}");
    stage.end().await;
}
