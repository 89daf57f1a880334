//! The whole way to dropping a version on kube-apiserver by the program alone: its migrator makes the certificate of
//! its conversion webhook, converts between two shapes, and migrates what people start.

use std::process::Stdio;

use kindex_harness::ports::reserve;
use kindex_harness::wait::eventually;
use kube::core::ApiResource;
use kube::{Api, api::DynamicObject};
use serde_json::{Value, json};
use tokio::process::Child;

use super::stage::{Exited, GROUP, NAME, Stage};

const OBJECTS: usize = 1_000;
const EMITTED: &str = include_str!("../../fixtures/traps/schema/crds/trials.yaml");

/// The emitted definition, while the release before still stores its version.
fn stored_in_v1() -> Value {
    let mut definition: Value = serde_saphyr::from_str(EMITTED).expect("YAML");
    let versions = definition["spec"]["versions"].as_array_mut().expect("versions");
    for version in versions {
        version["storage"] = json!(version["name"] == "v1");
    }
    definition
}

/// The migrator, with a certificate of its own.
fn migrator(stage: &Stage) -> Child {
    let port = reserve();
    let address = format!("https://127.0.0.1:{port}/convert");
    let listen = format!("127.0.0.1:{port}");
    let mut command = stage.command(&[
        "migrator",
        "--no-trigger",
        "--settle",
        "0",
        "--lease-namespace",
        "default",
    ]);
    command.args(["--tls-secret", "default/webhook", "--webhook-address", &address]);
    command.args(["--listen", &listen, "--health-addr", "127.0.0.1:0"]);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.spawn().expect("started")
}

async fn definition(stage: &Stage) -> Value {
    let api = stage.definitions();
    api.get(NAME).await.expect("a definition").data
}

async fn spec(stage: &Stage, version: &str, name: &str) -> Value {
    let trials = ApiResource {
        group: GROUP.to_owned(),
        version: version.to_owned(),
        api_version: format!("{GROUP}/{version}"),
        kind: "Trial".to_owned(),
        plural: "trials".to_owned(),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(stage.client.clone(), "default", &trials);
    api.get(name).await.expect("converted").data["spec"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_dropped_behind_a_webhook_whose_certificate_kindex_makes() {
    let Some(stage) = Stage::start().await else { return };
    stage.define(&stored_in_v1()).await;
    stage.wait_until_stored_in("v1").await;
    stage
        .create_trials_of(OBJECTS, json!({"method": "grid", "hours": 2}))
        .await;
    let _migrator = migrator(&stage);
    eventually("the webhook in the definition", async || {
        !definition(&stage).await["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].is_null()
    })
    .await;
    stage.store_in_other_version("v2").await;
    stage.wait_until_stored_in("v2").await;
    eventually("the state after the change", async || {
        stage
            .run(&["versions", "--kind", "trials"])
            .await
            .text
            .contains("StorageState [")
    })
    .await;
    assert_eq!(spec(&stage, "v2", "trial-7").await["algorithm"], "grid");
    assert_eq!(spec(&stage, "v2", "trial-7").await["seconds"], 7_200);

    let show = ["versions", "--kind", "trials", "--exit-code"];
    let drop = ["versions", "drop", "trials", "v1"];
    stage
        .run(&show)
        .await
        .expect(1, &["safe to drop v1: no, because status.storedVersions lists it"]);
    stage
        .run(&drop)
        .await
        .expect(1, &["is not safe to drop", "nothing was changed"]);
    assert_eq!(stage.stored_versions().await, json!(["v1", "v2"]));

    let start = stage
        .command(&["versions", "start", "trials", "--wait", "--timeout", "240"])
        .output()
        .await;
    Exited::of(&start.expect("started")).expect(
        0,
        &["every object is stored in the target version, 1000 objects, 1000 rewritten"],
    );
    stage.run(&show).await.expect(0, &["safe to drop v1: yes"]);
    stage.run(&drop).await.expect(0, &["status.storedVersions is [v2]"]);
    assert_eq!(stage.stored_versions().await, json!(["v2"]));
    assert_eq!(spec(&stage, "v1", "trial-7").await["method"], "grid");
}
