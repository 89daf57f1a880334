//! An API server without metadata storage: the cluster as it is. No finalizers, deletions are Kubernetes' own, and
//! what needs a database is refused with the reason.

use std::net::SocketAddr;

use kindex_api::operations::{Operations, RightsOf};
use kube::Client;
use serde_json::{Value, json};

use super::following::Watch;
use super::stage::{FINAL, Ground, MODELS, client_of, manifest, names, send, send_with, serve};

const APPLY: &str = "application/apply-patch+yaml";

/// A cluster with the kinds, and the server before it.
pub(super) struct Through {
    ground: Ground,
    pub(super) cluster: Client,
    pub(super) api: Client,
    pub(super) address: SocketAddr,
}

impl Through {
    pub(super) async fn begin() -> Self {
        let ground = Ground::embedded().await;
        let cluster = ground.with_kinds().await;
        let (registry, config) = (ground.registry(), ground.config());
        let reason = "enableMetadataStorage is not true";
        let operations = Operations::without_storage(registry, config, reason, RightsOf::Server).unwrap();
        let address = serve(operations, None, ground.stop()).await;
        Self {
            api: client_of(address),
            ground,
            cluster,
            address,
        }
    }

    async fn create(&self, name: &str) -> Value {
        let metadata = json!({"name": name, "labels": {"team": "risk"}, "annotations": {FINAL: "true"}});
        let (code, created) = send(&self.api, "POST", MODELS, &manifest(metadata, json!({}))).await;
        assert_eq!(code, 201, "{created}");
        created
    }

    /// Names in the cluster.
    async fn there(&self) -> Vec<String> {
        let (_, list) = send(&self.cluster, "GET", MODELS, &Value::Null).await;
        names(&list).into_iter().map(str::to_owned).collect()
    }

    pub(super) fn end(self) {
        self.ground.stop().cancel();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_gets_a_finalizer_and_deletions_are_those_of_kubernetes() {
    let through = Through::begin().await;
    let created = through.create("a").await;
    assert_eq!(created["metadata"]["finalizers"], Value::Null, "{created}");
    let applied = manifest(json!({"name": "applied"}), json!({"algorithm": "xgboost"})).to_string();
    let path = format!("{MODELS}/applied?fieldManager=tests");
    let (code, answer) = send_with(&through.api, "PATCH", &path, &[("content-type", APPLY)], applied).await;
    assert_eq!(
        (code, &answer["metadata"]["finalizers"]),
        (201, &Value::Null),
        "{answer}"
    );
    let path = format!("{MODELS}/a");
    let patch = json!({"metadata": {"labels": {"team": "fraud"}}});
    let (code, patched) = send(&through.api, "PATCH", &path, &patch).await;
    assert_eq!((code, &patched["metadata"]["labels"]["team"]), (200, &json!("fraud")));
    let (code, replaced) = send(&through.api, "PUT", &path, &patched).await;
    assert_eq!((code, &replaced["metadata"]["finalizers"]), (200, &Value::Null));

    let (code, answer) = send(&through.api, "DELETE", &path, &Value::Null).await;
    assert_eq!((code, &answer["status"]), (200, &json!("Success")), "{answer}");
    assert_eq!(through.there().await, ["applied"], "gone at once: no ingester is asked");
    for name in ["b", "c"] {
        through.create(name).await;
    }
    let (code, _) = send(
        &through.api,
        "DELETE",
        &format!("{MODELS}?labelSelector=team%3Drisk"),
        &Value::Null,
    )
    .await;
    assert_eq!(code, 200);
    assert_eq!(through.there().await, ["applied"]);
    through.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_watches_are_the_clusters_alone() {
    let through = Through::begin().await;
    for name in ["a", "b", "c"] {
        through.create(name).await;
    }
    let (_, first) = send(&through.api, "GET", &format!("{MODELS}?limit=2"), &Value::Null).await;
    assert_eq!(names(&first), ["a", "b"]);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (_, last) = send(
        &through.api,
        "GET",
        &format!("{MODELS}?limit=2&continue={token}"),
        &Value::Null,
    )
    .await;
    assert_eq!(names(&last), ["c"]);
    assert!(
        last["metadata"]["continue"].as_str().unwrap_or_default().is_empty(),
        "{last}"
    );

    let version = last["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = Watch::begin(&through.api, &format!("resourceVersion={version}")).await;
    let mut state = Watch::begin(&through.api, "").await;
    for name in ["a", "b", "c"] {
        assert_eq!(state.received().await, format!("ADDED {name}"));
    }
    send(&through.api, "DELETE", &format!("{MODELS}/b"), &Value::Null).await;
    for watch in [&mut watch, &mut state] {
        assert_eq!(watch.received().await, "DELETED b");
    }
    through.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_database_is_refused_with_the_reason() {
    let through = Through::begin().await;
    through.create("a").await;
    let time = "2026-01-01T00:00:00Z";
    for path in [
        format!("{MODELS}?includeDeleted=true"),
        format!("{MODELS}/a?includeDeleted=true"),
        format!("{MODELS}?at={time}"),
        format!("{MODELS}/a?at={time}"),
    ] {
        let (code, refused) = send(&through.api, "GET", &path, &Value::Null).await;
        assert_eq!(code, 400, "{path}: {refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains("metadata storage is off (enableMetadataStorage is not true)"),
            "{path}: {message}"
        );
    }
    let (code, absent) = send(&through.api, "GET", &format!("{MODELS}/absent"), &Value::Null).await;
    assert_eq!((code, &absent["reason"]), (404, &json!("NotFound")));
    through.end();
}
