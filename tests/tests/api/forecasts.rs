//! What a dry run of the deletion of a collection says of the objects that would be deleted with it, and of those that
//! would be waited for.

use kindex_generated::kinds::{pipeline, pipeline_run};
use kindex_harness::wait::eventually;
use kindex_model::kind::Kind;
use kindex_query::Life;
use kube::client::Body;
use serde_json::{Value, json};

use super::stage::{FINAL, Stage, send};

const OBJECTS: &str = "/apis/michelangelo.api/v2/namespaces/default";

async fn create(stage: &Stage, kind: &'static Kind, metadata: Value, spec: Value) {
    let body = json!({"apiVersion": "michelangelo.api/v2", "kind": kind.name, "metadata": metadata, "spec": spec});
    let (code, created) = send(&stage.api, "POST", &format!("{OBJECTS}/{}", kind.plural), &body).await;
    assert_eq!(code, 201, "{created}");
}

async fn life(stage: &Stage, kind: &'static Kind, name: &str) -> Option<Life> {
    let rows = stage.store.rows_of_name(kind, "default", name).await.unwrap();
    rows.first().map(|row| row.life)
}

/// The warnings of a dry run.
async fn tried(stage: &Stage, more: &str) -> Vec<String> {
    let request = http::Request::delete(format!("{OBJECTS}/pipelines?dryRun=All{more}"));
    let request = request.body(Body::empty()).unwrap();
    let response = stage.api.send(request).await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    let warnings = response.headers().get_all("warning").iter();
    warnings.map(|warning| warning.to_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_of_a_collection_says_what_would_go_along() {
    let stage = Stage::of_all_kinds().await;
    let names = |pipeline: &str| json!({"pipeline": {"name": pipeline, "namespace": "default"}});
    // The twenty that are looked at, and one more.
    for number in 0..21 {
        create(
            &stage,
            &pipeline::KIND,
            json!({"name": format!("p{number:02}")}),
            json!({}),
        )
        .await;
    }
    let archived = json!({"name": "gone", "annotations": {FINAL: "true"}});
    create(&stage, &pipeline::KIND, archived, json!({})).await;
    for (run, pipeline) in [("live", "p00"), ("of-archived", "gone"), ("unseen", "p20")] {
        create(&stage, &pipeline_run::KIND, json!({"name": run}), names(pipeline)).await;
        eventually("stored", async || {
            life(&stage, &pipeline_run::KIND, run).await == Some(Life::Live)
        })
        .await;
    }
    eventually("archived", async || {
        let (code, _) = send(
            &stage.cluster,
            "GET",
            &format!("{OBJECTS}/pipelines/gone"),
            &Value::Null,
        )
        .await;
        code == 404 && life(&stage, &pipeline::KIND, "gone").await == Some(Life::Archived)
    })
    .await;

    let first = "pipeline/default/p00: pipelinerun/default/live would be deleted first";
    let warnings = tried(&stage, "").await;
    let [more, of_first] = warnings.as_slice() else {
        panic!("{warnings:?}")
    };
    assert!(more.contains("more than 20 objects would be deleted"), "{more}");
    assert!(of_first.contains(first), "{of_first}");

    let warnings = tried(&stage, "&fieldSelector=metadata.name%3Dgone").await;
    let of_archived = "pipeline/default/gone: pipelinerun/default/of-archived would be deleted first";
    assert!(
        warnings.len() == 1 && warnings[0].contains(of_archived),
        "as for live ones: {warnings:?}"
    );
    let none = tried(&stage, "&fieldSelector=metadata.name%3Dp01").await;
    assert!(none.is_empty(), "{none:?}");
    let (_, there) = send(&stage.cluster, "GET", &format!("{OBJECTS}/pipelines/p00"), &Value::Null).await;
    assert!(
        there["metadata"]["uid"].is_string() && there["metadata"]["deletionTimestamp"].is_null(),
        "{there}"
    );
    stage.end().await;
}
