//! The callers' own rights, as the metadata of a call says who it is.

use kindex_api::operations::RightsOf;
use kindex_generated::kinds::model;
use kindex_harness::wait::eventually;
use kindex_query::Life;
use serde_json::{Value, json};
use tonic::Code;

use super::client::Client;
use crate::api::real::grant;
use crate::api::stage::{FINAL, Stage, send};

fn named(namespace: &str, name: &str) -> Value {
    json!({"model": {"metadata": {"name": name, "namespace": namespace, "annotations": {FINAL: "true"}},
        "spec": {"algorithm": "one"}}})
}

fn at(namespace: &str, name: &str) -> Value {
    json!({"namespace": namespace, "name": name})
}

/// Whether a model is archived.
async fn is_archived(stage: &Stage, namespace: &str, name: &str) -> bool {
    let path = format!("/apis/michelangelo.api/v2/namespaces/{namespace}/models/{name}");
    if send(&stage.cluster, "GET", &path, &Value::Null).await.0 != 404 {
        return false;
    }
    let rows = stage.store.rows_of_name(&model::KIND, namespace, name).await.unwrap();
    rows.first().is_some_and(|row| row.life == Life::Archived)
}

/// Every call about a namespace.
fn calls(namespace: &str, name: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("Create*", named(namespace, "new")),
        ("Get*", at(namespace, name)),
        ("Get*", at(namespace, "no-such")),
        ("Update*", named(namespace, name)),
        ("Update*Status", named(namespace, name)),
        ("Delete*", at(namespace, name)),
        ("Delete*Collection", json!({"namespace": namespace})),
        ("List*", json!({"namespace": namespace})),
        (
            "List*",
            json!({"namespace": namespace, "listOptionsExt": {"pagination": {"limit": 1}}}),
        ),
        ("List*", json!({})),
    ]
}

/// All of it refused with this code, and nothing told of what is there.
async fn all_refused(client: &Client, namespace: &str, name: &str, code: Code) {
    for (call, request) in calls(namespace, name) {
        let status = client.call(&model::KIND, call, request.clone()).await;
        let status = status.expect_err(&format!("{call} {request}"));
        assert_eq!(status.code(), code, "{call} {request}: {status:?}");
    }
    let watch = client.watch(&model::KIND, json!({"namespace": namespace})).await;
    assert_eq!(watch.err().map(|status| status.code()), Some(code));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_rights_learns_nothing() {
    let stage = Stage::with_rights().await;
    let client = Client::plain(stage.address).await;
    let root = client.with_token("root-token");
    let jane = client.with_token("jane-token");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    send(&stage.cluster, "POST", "/api/v1/namespaces", &namespace).await;
    root.call(&model::KIND, "Create*", named("other", "theirs"))
        .await
        .unwrap();
    jane.call(&model::KIND, "Create*", named("default", "mine"))
        .await
        .unwrap();
    stage.wait_until_archived("mine").await;
    eventually("the other is archived, too", async || {
        is_archived(&stage, "other", "theirs").await
    })
    .await;

    all_refused(&client, "default", "mine", Code::Unauthenticated).await;
    all_refused(&client.with_token("nonsense"), "default", "mine", Code::Unauthenticated).await;
    all_refused(&jane, "other", "theirs", Code::PermissionDenied).await;
    let mine = jane
        .call(&model::KIND, "List*", json!({"namespace": "default"}))
        .await
        .unwrap();
    assert_eq!(mine["modelList"]["items"][0]["metadata"]["name"], "mine");

    let mut as_jane = root.clone();
    as_jane.metadata.insert("impersonate-user", "jane".parse().unwrap());
    as_jane.call(&model::KIND, "Get*", at("default", "mine")).await.unwrap();
    all_refused(&as_jane, "other", "theirs", Code::PermissionDenied).await;
    jane.call(&model::KIND, "Delete*", at("default", "mine")).await.unwrap();
    root.call(&model::KIND, "Get*", at("other", "theirs")).await.unwrap();
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_kube_apiserver_have_their_rights_over_tls() {
    let Some(stage) = Stage::on_control_plane(RightsOf::Caller).await else {
        return;
    };
    let verbs = json!(["get", "list", "watch", "create", "update", "delete"]);
    grant(&stage, "team-a", "alice", verbs.clone()).await;
    grant(&stage, "team-b", "bob", verbs).await;
    let client = Client::secure(stage.secure).await;
    let alice = client.with_token(&stage.ground.token("alice"));
    let bob = client.with_token(&stage.ground.token("bob"));
    alice.call(&model::KIND, "Create*", named("team-a", "a")).await.unwrap();
    eventually("a is archived", async || is_archived(&stage, "team-a", "a").await).await;
    let mut got = alice.call(&model::KIND, "Get*", at("team-a", "a")).await.unwrap();
    got["model"]["spec"]["algorithm"] = json!("two");
    let updated = alice.call(&model::KIND, "Update*", got).await.unwrap();
    assert_eq!(updated["model"]["spec"]["algorithm"], "two");
    all_refused(&bob, "team-a", "a", Code::PermissionDenied).await;
    all_refused(&client, "team-a", "a", Code::Unauthenticated).await;

    let mut watch = bob.watch(&model::KIND, json!({"namespace": "team-b"})).await.unwrap();
    let mut live = named("team-b", "b");
    live["model"]["metadata"]["annotations"] = json!({});
    bob.call(&model::KIND, "Create*", live).await.unwrap();
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!(
        (&event["type"], &event["model"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("b"))
    );
    stage.end().await;
}
