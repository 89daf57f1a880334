//! What a request says of how it is to be done: it is handed on, and nothing that is misspelled is passed over.

use kindex_api::operations::Sizes;
use serde_json::{Value, json};

use super::stage::{MODELS, Stage, manifest, model, names, send, send_with};

const APPLY: [(&str, &str); 1] = [("content-type", "application/apply-patch+yaml")];

/// The body of a deletion says more than a parameter.
#[tokio::test(flavor = "multi_thread")]
async fn how_dependents_are_deleted_is_said_by_the_body_or_by_a_parameter() {
    let stage = Stage::on_sqlite().await;
    let body = json!({"propagationPolicy": "Foreground"});
    for (name, query, body, waits) in [
        ("a", "", &Value::Null, false),
        ("b", "?propagationPolicy=Foreground", &Value::Null, true),
        ("c", "?propagationPolicy=Background", &body, true),
    ] {
        stage.create(name, json!({}), json!({})).await;
        let (code, answer) = send(&stage.api, "DELETE", &format!("{}{query}", model(name)), body).await;
        let finalizers = answer["metadata"]["finalizers"].to_string();
        assert_eq!(
            (code, finalizers.contains("foregroundDeletion")),
            (200, waits),
            "{name}: {answer}"
        );
    }
    let orphan = json!({"orphanDependents": true});
    stage.create("d", json!({}), json!({})).await;
    let (_, answer) = send(&stage.api, "DELETE", &model("d"), &orphan).await;
    let finalizers = answer["metadata"]["finalizers"].to_string();
    assert!(finalizers.contains("orphan"), "{answer}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_that_is_none_changes_nothing() {
    let stage = Stage::on_sqlite().await;
    stage.create("live", json!({}), json!({})).await;
    stage.create_archived("gone", json!({}), json!({})).await;
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    for name in ["live", "gone"] {
        let path = format!("{}?dryRun=Some", model(name));
        for (method, body) in [("PATCH", &labels), ("DELETE", &Value::Null)] {
            let (code, refused) = send(&stage.api, method, &path, body).await;
            assert_eq!(code, 422, "{method} {name}: {refused}");
        }
    }
    let object = manifest(json!({"name": "new"}), json!({}));
    assert_eq!(
        send(&stage.api, "POST", &format!("{MODELS}?dryRun=Some"), &object)
            .await
            .0,
        422
    );
    let (_, list) = send(&stage.api, "GET", MODELS, &Value::Null).await;
    assert_eq!(names(&list), ["live", "gone"]);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_takes_fields_from_others_where_it_says_so() {
    let stage = Stage::on_sqlite().await;
    let apply = async |manager: &str, algorithm: &str| {
        let body = manifest(json!({"name": "a"}), json!({"algorithm": algorithm})).to_string();
        let path = format!("{}?fieldManager={manager}", model("a"));
        send_with(&stage.api, "PATCH", &path, &APPLY, body).await
    };
    assert_eq!(apply("first", "one").await.0, 201);
    let (code, refused) = apply("second", "two").await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    let (code, taken) = apply("second&force=true", "two").await;
    assert_eq!((code, &taken["spec"]["algorithm"]), (200, &json!("two")), "{taken}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_of_an_archived_object_are_treated_as_the_client_says() {
    let stage = Stage::on_sqlite().await;
    stage
        .create_archived("gone", json!({}), json!({"algorithm": "one"}))
        .await;
    let patch = json!({"spec": {"unknown": 1}});
    let path = |validation: &str| format!("{}?fieldValidation={validation}", model("gone"));
    let (code, refused) = send(&stage.api, "PATCH", &path("Strict"), &patch).await;
    assert_eq!(code, 400, "{refused}");
    let (code, pruned) = send(&stage.api, "PATCH", &path("Ignore"), &patch).await;
    assert_eq!((code, &pruned["spec"]), (200, &json!({"algorithm": "one"})), "{pruned}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_deleted_to_its_last_page_in_both_places() {
    let stage = Stage::on_sqlite().await;
    for number in 0..3 {
        stage.create(&format!("live-{number}"), json!({}), json!({})).await;
        stage
            .create_archived(&format!("gone-{number}"), json!({}), json!({}))
            .await;
    }
    let api = stage
        .served_by(Sizes {
            deleted: 1,
            ..Sizes::default()
        })
        .await;
    let dry = format!("{MODELS}?dryRun=All&fieldSelector=metadata.name%3Dlive-1");
    let (code, tried) = send(&api, "DELETE", &dry, &Value::Null).await;
    assert_eq!(
        (code, names(&tried)),
        (200, vec!["live-1"]),
        "of what is selected: {tried}"
    );
    let (code, done) = send(&api, "DELETE", MODELS, &Value::Null).await;
    assert_eq!((code, &done["status"]), (200, &json!("Success")), "{done}");
    for number in 0..3 {
        for name in ["live", "gone"] {
            stage.wait_until_deleted(&format!("{name}-{number}")).await;
        }
    }
    stage.end().await;
}

/// The cluster takes selectors of more requirements than SQL does.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_by_a_selector_that_one_of_the_two_places_refuses() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({}), json!({})).await;
    let selector = vec!["team!%3Dx"; 101].join(",");
    let path = format!("{MODELS}?labelSelector={selector}");
    assert_eq!(send(&stage.cluster, "GET", &path, &Value::Null).await.0, 200);
    let (code, refused) = send(&stage.api, "DELETE", &path, &Value::Null).await;
    assert_eq!(code, 400, "{refused}");
    let (_, kept) = send(&stage.cluster, "GET", &model("a"), &Value::Null).await;
    assert!(kept["metadata"]["deletionTimestamp"].is_null(), "{kept}");
    stage.end().await;
}

/// It was in the list, and somebody else has taken it away since.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_a_collection_that_is_gone_already_is_passed_over() {
    let stage = Stage::behind_a_proxy().await;
    for name in ["a", "b"] {
        stage.create(name, json!({}), json!({})).await;
    }
    let cluster = stage.cluster.clone();
    stage.ground.proxy.overtake("GET", &model("a"), async move {
        let released = json!({"metadata": {"finalizers": null}});
        assert_eq!(send(&cluster, "PATCH", &model("a"), &released).await.0, 200);
        assert_eq!(send(&cluster, "DELETE", &model("a"), &Value::Null).await.0, 200);
    });
    let (code, done) = send(&stage.api, "DELETE", MODELS, &Value::Null).await;
    assert_eq!((code, &done["status"]), (200, &json!("Success")), "{done}");
    assert!(stage.ground.proxy.has_overtaken());
    stage.wait_until_deleted("b").await;
    stage.end().await;
}

/// kube-apiserver puts another character in its place, so that what is stored is not what was checked.
#[tokio::test(flavor = "multi_thread")]
async fn half_of_a_surrogate_pair_is_refused_before_the_cluster_is_asked() {
    let stage = Stage::on_sqlite().await;
    let object = manifest(json!({"name": "new"}), json!({"algorithm": "half"})).to_string();
    let object = object.replace("half", "\\ud800");
    let headers = [("content-type", "application/json")];
    for (method, path) in [("POST", MODELS.to_owned()), ("PUT", model("new"))] {
        let (code, refused) = send_with(&stage.api, method, &path, &headers, object.clone()).await;
        let message = refused["message"].as_str().unwrap();
        assert_eq!(code, 400, "{refused}");
        assert!(
            message.contains("the escape \\ud800 is half of a surrogate pair"),
            "{refused}"
        );
    }
    stage.end().await;
}
