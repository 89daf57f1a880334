//! Objects that have only a `generateName`: the API server gives them a name that nothing live or archived has.

use std::sync::atomic::{AtomicU8, Ordering};

use kindex_api::operations::Suffix;
use kindex_query::Life;
use kube::Client;
use serde_json::{Value, json};

use super::stage::{MODELS, Stage, client_of, manifest, model, send, serve};

/// An API server whose generated names end in this.
async fn server(stage: &Stage, suffixes: fn() -> Suffix) -> Client {
    let operations = stage.operations().with_suffixes(suffixes);
    client_of(serve(operations, None, stage.ground.stop()).await)
}

async fn create_a_run(api: &Client) -> (u16, Value) {
    let run = manifest(json!({"generateName": "run-"}), json!({"algorithm": "xgboost"}));
    send(api, "POST", MODELS, &run).await
}

/// As if the new object replaced an archived one of the same name.
#[tokio::test(flavor = "multi_thread")]
async fn a_generated_name_is_that_of_no_archived_and_of_no_live_object() {
    static DRAWN: AtomicU8 = AtomicU8::new(0);
    let stage = Stage::on_sqlite().await;
    stage.create_archived("run-bbbbb", json!({}), json!({})).await;
    stage.create("run-ccccc", json!({}), json!({})).await;

    let api = server(&stage, || [DRAWN.fetch_add(1, Ordering::SeqCst); 5]).await;
    let (code, created) = create_a_run(&api).await;
    let metadata = &created["metadata"];
    assert_eq!((code, &metadata["name"]), (201, &json!("run-ddddd")), "{created}");
    assert_eq!(metadata["generateName"], "run-");
    assert_eq!(metadata["finalizers"], json!(["michelangelo/Ingester"]));
    assert_eq!(stage.life("run-bbbbb").await, Some(Life::Archived));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_every_generated_name_is_taken_nothing_is_created() {
    let stage = Stage::on_sqlite().await;
    stage.create_archived("run-bbbbb", json!({}), json!({})).await;

    let api = server(&stage, || [0; 5]).await;
    let (code, refused) = create_a_run(&api).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("AlreadyExists")), "{refused}");
    let (code, _) = send(&stage.cluster, "GET", &model("run-bbbbb"), &Value::Null).await;
    assert_eq!(code, 404);
    stage.end().await;
}
