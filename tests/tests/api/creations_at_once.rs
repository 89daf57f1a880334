//! Many creations at once, each of which names an object: they share statements, and each hears of its own.

use futures::future::join_all;
use kindex_generated::kinds::{pipeline, pipeline_run};
use kindex_harness::wait::eventually;
use kindex_model::kind::Kind;
use kindex_query::Life;
use kube::Client;
use serde_json::{Value, json};

use super::by_hand::alter;
use super::stage::{FINAL, Stage, client_of, send, serve};

static KINDS: &[&Kind] = &[&pipeline::KIND, &pipeline_run::KIND];

fn path(kind: &Kind) -> String {
    format!("/apis/{}/namespaces/default/{}", kind.api_version(), kind.plural)
}

fn object(kind: &Kind, metadata: Value, spec: Value) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.name, "metadata": metadata, "spec": spec})
}

async fn archive(stage: &Stage, name: &str) {
    let metadata = json!({"name": name, "annotations": {FINAL: "true"}});
    let pipeline = object(&pipeline::KIND, metadata, json!({}));
    let (code, answer) = send(&stage.api, "POST", &path(&pipeline::KIND), &pipeline).await;
    assert_eq!(code, 201, "{answer}");
    eventually(&format!("{name} is archived"), async || {
        let row = stage.store.get_by_name(&pipeline::KIND, "default", name).await.unwrap();
        let at = format!("{}/{name}", path(&pipeline::KIND));
        let (code, _) = send(&stage.cluster, "GET", &at, &Value::Null).await;
        code == 404 && row.is_some_and(|row| row.life == Life::Archived)
    })
    .await;
}

/// An API server with the deletion graph.
async fn with_graph(stage: &Stage) -> Client {
    let operations = stage.operations().with_graph(true);
    client_of(serve(operations, None, stage.ground.stop()).await)
}

/// Each name with the answers to creations that name it, all sent at once.
async fn named_by_runs(api: &Client, names: [&'static str; 3]) -> Vec<(&'static str, u16, Value)> {
    let named = names.into_iter().cycle().take(60).zip(0..);
    let creations = named.map(|(name, number)| {
        let spec = json!({"pipeline": {"namespace": "default", "name": name}});
        let run = object(&pipeline_run::KIND, json!({"name": format!("r{number}")}), spec);
        async move {
            let (code, answer) = send(api, "POST", &path(&pipeline_run::KIND), &run).await;
            (name, code, answer)
        }
    });
    join_all(creations).await
}

/// As if what is under a name were told to whoever asks for another one.
#[tokio::test(flavor = "multi_thread")]
async fn creations_at_once_are_refused_for_what_they_name_themselves() {
    let stage = Stage::of_kinds(KINDS).await;
    for name in ["going", "kept"] {
        archive(&stage, name).await;
    }
    let api = with_graph(&stage).await;
    let going = format!("{}/going", path(&pipeline::KIND));
    let (code, answer) = send(&api, "DELETE", &going, &Value::Null).await;
    assert_eq!(code, 202, "a tombstone that nobody ends here: {answer}");

    for (name, code, answer) in named_by_runs(&api, ["going", "kept", "absent"]).await {
        let expected = if name == "going" { 409 } else { 201 };
        assert_eq!(code, expected, "{name}: {answer}");
    }
    stage.end().await;
}

/// As if one row that cannot be read failed every creation beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_refuses_only_the_creations_that_name_it() {
    let stage = Stage::of_kinds(KINDS).await;
    for name in ["broken", "kept"] {
        archive(&stage, name).await;
    }
    alter(&stage, "UPDATE pipeline SET json = '{}' WHERE name = 'broken'").await;
    let api = with_graph(&stage).await;
    for (name, code, answer) in named_by_runs(&api, ["broken", "kept", "absent"]).await {
        let expected = if name == "broken" { 500 } else { 201 };
        assert_eq!(code, expected, "{name}: {answer}");
    }
    stage.end().await;
}
