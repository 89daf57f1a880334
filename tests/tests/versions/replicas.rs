//! Two replicas of the migrator under one lease: one works, the other carries on when it is killed.

use std::process::Stdio;

use kindex_harness::ports::reserve;
use kindex_harness::wait::eventually;
use kindex_migrator::wire::StorageVersionMigration;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use tokio::process::Child;

use super::stage::Stage;

const OBJECTS: usize = 300;

struct Webhook {
    url: String,
    _process: Child,
}

impl Webhook {
    /// A replica that answers the conversion webhook and migrates nothing.
    fn start(stage: &Stage) -> Self {
        let port = reserve();
        let url = format!("https://127.0.0.1:{port}/convert");
        let listen = format!("127.0.0.1:{port}");
        let process = start(stage, &url, &["--webhook-only", "--listen", &listen]);
        Self { url, _process: process }
    }

    /// A replica that migrates when it has the lease, slowly.
    fn replica(&self, stage: &Stage) -> Child {
        let flags = ["--settle", "0", "--rate", "100", "--lease-namespace", "default"];
        let flags = [&flags[..], &["--lease-seconds", "3", "--listen", "127.0.0.1:0"]].concat();
        start(stage, &self.url, &flags)
    }
}

fn start(stage: &Stage, url: &str, flags: &[&str]) -> Child {
    let mut command = stage.command(&["migrator", "--tls-secret", "default/webhook"]);
    command.args(["--webhook-address", url, "--health-addr", "127.0.0.1:0"]);
    let quiet = command.args(flags).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.spawn().expect("started")
}

/// The status of the only migration.
async fn status(stage: &Stage) -> Value {
    let api: Api<StorageVersionMigration> = Api::all(stage.client.clone());
    let found = api.list(&ListParams::default()).await.expect("a list").items;
    found.first().map_or(Value::Null, |migration| json!(migration.status))
}

/// Whether the only migration has this condition.
async fn is(stage: &Stage, condition: &str) -> bool {
    let status = status(stage).await;
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let mut conditions = conditions.iter();
    conditions.any(|one| one["type"] == condition && one["status"] == "True")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_carries_on_what_another_began_that_was_killed() {
    let Some(stage) = Stage::start().await else { return };
    stage.store_trials_in("v1").await;
    stage.create_trials(OBJECTS).await;
    let webhook = Webhook::start(&stage);
    let mut first = webhook.replica(&stage);
    eventually("a migration under way", async || is(&stage, "Running").await).await;
    let _second = webhook.replica(&stage);
    first.kill().await.expect("killed");
    assert!(!is(&stage, "Succeeded").await, "it was killed before the end");
    eventually("the end of the migration", async || is(&stage, "Succeeded").await).await;
    assert_eq!(status(&stage).await["pass"]["unchanged"], OBJECTS);
}
