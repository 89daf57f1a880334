//! What a dry run says of a deletion over gRPC, in the metadata of the answer: the same as over HTTP.

use kindex_generated::kinds::pipeline;
use kindex_kube_api::headers::warning_text;
use serde_json::{Value, json};

use super::client::{Body, Client};
use crate::api::reference_tree::pipeline_with_holders;
use crate::api::stage::{Stage, send};

const PIPELINES: &str = "/apis/michelangelo.api/v2/namespaces/default/pipelines";

/// The warnings of a dry run over HTTP.
async fn over_http(stage: &Stage, rest: &str) -> Vec<String> {
    let request = http::Request::delete(format!("{PIPELINES}{rest}"));
    let request = request.body(kube::client::Body::empty()).unwrap();
    let response = stage.api.send(request).await.unwrap();
    let warnings = response.headers().get_all("warning").iter();
    warnings
        .map(|warning| warning_text(warning.to_str().unwrap()).unwrap())
        .collect()
}

/// Those of a call.
async fn over_grpc(client: &Client, call: &str, request: Value) -> Vec<String> {
    let answered = client.answered(&pipeline::KIND, call, Body::Json(&request)).await;
    let (_, metadata) = answered.unwrap();
    let warnings = metadata.get_all("warning").iter();
    warnings.map(|warning| warning.to_str().unwrap().to_owned()).collect()
}

/// Of a pipeline with a run in the cluster, one archived, and a model that holds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_what_a_deletion_would_come_to_as_over_http() {
    let stage = Stage::of_all_kinds().await;
    pipeline_with_holders(&stage).await;
    let client = Client::plain(stage.address).await;
    let options = json!({"dryRun": ["All"]});
    let one = json!({"namespace": "default", "name": "p", "deleteOptions": options});
    let all = json!({"namespace": "default", "deleteOptions": options});
    for (call, request, rest) in [
        ("Delete*", one, "/p?dryRun=All"),
        ("Delete*Collection", all, "?dryRun=All"),
    ] {
        let warnings = over_grpc(&client, call, request).await;
        let waits = "pipeline/default/p: waits for model/default/m, which somebody has to delete";
        assert!(
            warnings.len() == 3 && warnings[0].starts_with(waits),
            "{call}: {warnings:?}"
        );
        assert_eq!(warnings, over_http(&stage, rest).await, "{call}");
    }
    let (code, there) = send(&stage.cluster, "GET", &format!("{PIPELINES}/p"), &Value::Null).await;
    assert!(
        code == 200 && there["metadata"]["deletionTimestamp"].is_null(),
        "{there}"
    );
    stage.end().await;
}
