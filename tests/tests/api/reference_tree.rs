//! The tree of who holds an object, in the cluster and of a SQL-only kind.

use kindex_generated::kinds::{model, pipeline, pipeline_run};
use kindex_harness::wait::eventually;
use kindex_query::Life;
use serde_json::{Value, json};

use super::references::{get, put, stored};
use super::sql_only_graph::TARGETS;
use super::stage::{FINAL, Stage, client_of, send, serve};

const OBJECTS: &str = "/apis/michelangelo.api/v2/namespaces/default";

/// A pipeline with a run in the cluster, one archived, and a model that holds it. The uid of the model.
pub(super) async fn pipeline_with_holders(stage: &Stage) -> String {
    let create = async |plural: &str, kind: &str, metadata: Value, spec: Value| {
        let body = json!({"apiVersion": "michelangelo.api/v2", "kind": kind, "metadata": metadata, "spec": spec});
        let (code, created) = send(&stage.api, "POST", &format!("{OBJECTS}/{plural}"), &body).await;
        assert_eq!(code, 201, "{created}");
        created
    };
    create("pipelines", "Pipeline", json!({"name": "p"}), json!({})).await;
    let names_it = json!({"pipeline": {"name": "p", "namespace": "default"}});
    create("pipelineruns", "PipelineRun", json!({"name": "live"}), names_it.clone()).await;
    let archived = json!({"name": "archived", "annotations": {FINAL: "true"}});
    create("pipelineruns", "PipelineRun", archived, names_it).await;
    let holder = create("models", "Model", json!({"name": "m"}), json!({})).await;
    stored(stage, "m").await;
    let uid = holder["metadata"]["uid"].as_str().unwrap();
    let path = format!("/api/v1/pipelines/default/p/references/model.michelangelo.api/{uid}");
    let (code, answer) = put(stage, &path).await;
    assert_eq!(code, 200, "{answer}");
    let life = async |name: &str| {
        let rows = stage
            .store
            .rows_of_name(&pipeline_run::KIND, "default", name)
            .await
            .unwrap();
        rows.first().map(|row| row.life)
    };
    eventually("both are stored", async || {
        (life("archived").await, life("live").await) == (Some(Life::Archived), Some(Life::Live))
    })
    .await;
    uid.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tree_has_holders_by_reference_and_by_field_live_and_archived() {
    shows_all_holders(Stage::of_all_kinds().await).await;
    shows_all_holders(Stage::of_kinds(TARGETS).await).await;
}

async fn shows_all_holders(stage: Stage) {
    let uid = pipeline_with_holders(&stage).await;
    let (code, tree) = get(&stage, "/api/v1/pipelines/default/p/references?resolve=true").await;
    assert_eq!(code, 200, "{tree}");
    let shown = |holder: &Value| {
        let text = |field: &str| holder[field].as_str().unwrap_or_default().to_owned();
        let field = holder["fields"][0]["onDelete"].as_str().unwrap_or_default().to_owned();
        (text("name"), text("state"), holder["holds"] == true, field)
    };
    let holders: Vec<_> = tree["holders"].as_array().unwrap().iter().map(shown).collect();
    let expected = [
        ("m", "Live", true, ""),
        ("archived", "Archived", false, "cascade"),
        ("live", "Live", false, "cascade"),
    ];
    let expected =
        expected.map(|(name, state, holds, field)| (name.to_owned(), state.to_owned(), holds, field.to_owned()));
    assert_eq!(holders, expected, "{tree}");
    // The same by the name that its own references have.
    let by_name = format!("/api/v1/references/model.michelangelo.api/{uid}");
    let (code, alone) = get(&stage, &by_name).await;
    assert_eq!((code, &alone["name"]), (200, &json!("m")), "{alone}");
    // What a deletion comes to is told by a dry run.
    let request = http::Request::delete(format!("{OBJECTS}/pipelines/p?dryRun=All"));
    let request = request.body(kube::client::Body::empty()).unwrap();
    let response = stage.api.send(request).await.unwrap();
    let warnings: Vec<&str> = response
        .headers()
        .get_all("warning")
        .iter()
        .map(|warning| warning.to_str().unwrap())
        .collect();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].contains("waits for model/default/m"), "{warnings:?}");
    assert!(
        warnings[1].contains("pipelinerun/default/archived would be deleted first"),
        "{warnings:?}"
    );
    let (_, there) = get(&stage, &format!("{OBJECTS}/pipelines/p")).await;
    assert!(there["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(
        stage
            .store
            .get_by_name(&model::KIND, "default", "m")
            .await
            .unwrap()
            .map(|row| row.life),
        Some(Life::Live)
    );
    stage.end().await;
}

/// As if it had begun because others hold it, or as if nobody knew until `kindex deletion` comes to it.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_phase_of_an_archived_object_says_that_its_deletion_was_requested() {
    let stage = Stage::of_all_kinds().await;
    let metadata = json!({"name": "p", "annotations": {FINAL: "true"}});
    let body = json!({"apiVersion": "michelangelo.api/v2", "kind": "Pipeline", "metadata": metadata, "spec": {}});
    let (code, created) = send(&stage.api, "POST", &format!("{OBJECTS}/pipelines"), &body).await;
    assert_eq!(code, 201, "{created}");
    let path = format!("{OBJECTS}/pipelines/p");
    eventually("it is archived", async || {
        let (code, _) = send(&stage.cluster, "GET", &path, &Value::Null).await;
        let row = stage.store.get_by_name(&pipeline::KIND, "default", "p").await.unwrap();
        code == 404 && row.is_some_and(|row| row.life == Life::Archived)
    })
    .await;
    let operations = stage.operations().with_graph(true);
    let api = client_of(serve(operations, None, stage.ground.stop()).await);
    let (code, answer) = send(&api, "DELETE", &path, &Value::Null).await;
    assert_eq!(code, 202, "{answer}");
    let tree = "/api/v1/pipelines/default/p/references?resolve=true";
    let (code, tree) = send(&api, "GET", tree, &Value::Null).await;
    let phases = tree["phases"].as_array().cloned().unwrap_or_default();
    assert_eq!((code, phases.len()), (200, 1), "{tree}");
    assert_eq!(
        (&phases[0]["type"], &phases[0]["reason"]),
        (&json!("Deleting"), &json!("Requested")),
        "{tree}"
    );
    stage.end().await;
}
