//! Many creations at once, each of which names an object: they share statements, and each hears of its own.

use futures::future::join_all;
use kindex_generated::kinds::{pipeline, pipeline_run};
use kindex_harness::wait::eventually;
use kindex_model::kind::Kind;
use kindex_query::Life;
use serde_json::{Value, json};

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

/// As if what is under a name were told to whoever asks for another one.
#[tokio::test(flavor = "multi_thread")]
async fn creations_at_once_are_refused_for_what_they_name_themselves() {
    let stage = Stage::of_kinds(KINDS).await;
    for name in ["going", "kept"] {
        archive(&stage, name).await;
    }
    let operations = stage.operations().with_graph(true);
    let api = client_of(serve(operations, None, stage.ground.stop()).await);
    let going = format!("{}/going", path(&pipeline::KIND));
    let (code, answer) = send(&api, "DELETE", &going, &Value::Null).await;
    assert_eq!(code, 202, "a tombstone that nobody ends here: {answer}");

    let named = ["going", "kept", "absent"].into_iter().cycle().take(60).zip(0..);
    let creations = named.map(|(name, number)| {
        let spec = json!({"pipeline": {"namespace": "default", "name": name}});
        let run = object(&pipeline_run::KIND, json!({"name": format!("r{number}")}), spec);
        let api = api.clone();
        async move {
            let (code, answer) = send(&api, "POST", &path(&pipeline_run::KIND), &run).await;
            (name, code, answer)
        }
    });
    for (name, code, answer) in join_all(creations).await {
        let expected = if name == "going" { 409 } else { 201 };
        assert_eq!(code, expected, "{name}: {answer}");
    }
    stage.end().await;
}
