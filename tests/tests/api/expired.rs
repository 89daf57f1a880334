//! Tokens and versions that the cluster has forgotten, and what goes on without it.

use jiff::Timestamp;
use kindex_api::operations::RightsOf;
use kindex_cluster::ClusterOptions;
use kindex_tests::embedded::Embedded;
use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::following::label;
use super::stage::{Ground, MODELS, Stage, names, send};

/// Events that the cluster keeps.
const HISTORY: u64 = 50;

impl Stage {
    /// On SQLite, over a cluster that soon forgets.
    async fn with_a_short_history() -> Self {
        let stop = CancellationToken::new();
        let options = ClusterOptions {
            history_max: HISTORY,
            ..ClusterOptions::default()
        };
        let (cluster, _) = Embedded::serve(options, stop.clone().cancelled_owned()).await;
        let ground = Ground::of(tempfile::tempdir().unwrap(), stop, cluster.config());
        let address = ground.sqlite();
        Self::on(ground, &address, None, RightsOf::Server).await
    }

    /// Until the cluster has forgotten all that was.
    async fn make_the_cluster_forget(&self) {
        for number in 0..2 * HISTORY {
            label(&self.cluster, "live-a", json!({"n": number.to_string()})).await;
        }
    }
}

async fn page(client: &Client, token: &str) -> (u16, Value) {
    send(
        client,
        "GET",
        &format!("{MODELS}?limit=2&continue={token}"),
        &Value::Null,
    )
    .await
}

async fn first_token(client: &Client, expected: [&str; 2]) -> String {
    let (code, first) = page(client, "").await;
    assert_eq!((code, names(&first)), (200, expected.to_vec()));
    first["metadata"]["continue"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_in_the_clusters_part_of_a_list_expires_with_its_version() {
    let stage = Stage::with_a_short_history().await;
    for name in ["live-a", "live-b", "live-c"] {
        stage.create(name, json!({}), json!({})).await;
    }
    let token = first_token(&stage.api, ["live-a", "live-b"]).await;
    stage.make_the_cluster_forget().await;
    for client in [&stage.api, &stage.later] {
        let (code, refused) = page(client, &token).await;
        assert_eq!((code, &refused["reason"]), (410, &json!("Expired")), "{refused}");
    }
    first_token(&stage.api, ["live-a", "live-b"]).await;
    stage.end().await;
}

/// What left the cluster long before the list began is SQL's, whatever the cluster still knows. What left it at about
/// that time is looked for in the list's version of the cluster, by servers that have not seen that.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_in_sqls_part_expires_where_an_object_left_the_cluster_at_the_time_of_the_list() {
    let stage = Stage::with_a_short_history().await;
    for name in ["live-a", "live-b"] {
        stage.create(name, json!({}), json!({})).await;
    }
    for name in ["gone-a", "gone-b"] {
        stage.create_archived(name, json!({}), json!({})).await;
    }
    let recent = first_token(&stage.api, ["live-a", "live-b"]).await;
    let an_hour_later = first_token(&stage.later, ["live-a", "live-b"]).await;
    stage.make_the_cluster_forget().await;
    let other = stage.served_at(Timestamp::now).await;
    for (client, token) in [
        (&stage.api, &recent),
        (&stage.api, &an_hour_later),
        (&other, &an_hour_later),
    ] {
        let (code, last) = page(client, token).await;
        assert_eq!((code, names(&last)), (200, vec!["gone-a", "gone-b"]), "{last}");
    }
    let (code, refused) = page(&other, &recent).await;
    assert_eq!((code, &refused["reason"]), (410, &json!("Expired")), "{refused}");
    stage.end().await;
}

/// In each form, since clients look for a Status.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_from_a_forgotten_version_ends_with_the_reason() {
    let stage = Stage::with_a_short_history().await;
    stage.create("live-a", json!({}), json!({})).await;
    let (_, list) = send(&stage.api, "GET", MODELS, &Value::Null).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    stage.make_the_cluster_forget().await;
    for form in [
        "",
        ";as=Table;g=meta.k8s.io;v=v1",
        ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    ] {
        let path = format!("{MODELS}?watch=true&resourceVersion={version}");
        let request = http::Request::get(path).header("accept", format!("application/json{form}"));
        let text = stage.api.request_text(request.body(Vec::new()).unwrap()).await.unwrap();
        let event: Value = serde_json::from_str(&text).unwrap();
        let status = &event["object"];
        assert_eq!(
            (&event["type"], &status["kind"], &status["code"]),
            (&json!("ERROR"), &json!("Status"), &json!(410)),
            "{form}: {text}"
        );
    }
    stage.end().await;
}
