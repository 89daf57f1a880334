//! `kindex versions start --wait` through what may happen meanwhile: the cluster is away, the migration is replaced.

use std::fs;

use kindex_harness::proxy::{Mode, Proxy};
use kindex_migrator::wire::StorageVersionMigration;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams};
use tokio::process::Command;

use super::stage::{Exited, Stage};

const WAITS: &str = "waiting until it has ended";

/// The kubeconfig of a stage, which leads through a proxy.
fn through(stage: &Stage) -> (Proxy, String) {
    let text = fs::read_to_string(stage.kubeconfig()).expect("a kubeconfig");
    let address = text.split("https://").nth(1).expect("a server");
    let address = address.split(['\n', '"', ',']).next().expect("a line").trim();
    let port = address
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .expect("a port");
    let proxy = Proxy::start(port);
    let path = stage.path("proxied.yaml");
    let proxied = text.replace(address, &format!("127.0.0.1:{}", proxy.port));
    fs::write(&path, proxied).expect("written");
    (proxy, path.display().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_away_for_a_moment_does_not_end_the_wait() {
    let Some(stage) = Stage::start().await else { return };
    stage.store_trials_in("v1").await;
    stage.create_trials(3).await;
    let (proxy, kubeconfig) = through(&stage);
    let start = ["versions", "start", "trials", "--wait", "--kubeconfig", &kubeconfig];
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_traps"));
        command
            .args(start)
            .current_dir(stage.directory.path())
            .kill_on_drop(true);
        command
    };
    proxy.set(Mode::Refuse);
    let dead = Exited::of(&command().output().await.expect("started"));
    dead.expect(1, &["does not answer", "is it the one of --kubeconfig?"]);
    dead.expect_none(&["CustomResourceDefinition", "migration.k8s.io"]);

    proxy.set(Mode::Pass);
    let waited = stage.follow(command(), WAITS, async |notes| {
        proxy.set(Mode::Refuse);
        notes.until("the cluster does not answer").await;
        proxy.set(Mode::Pass);
        stage.migrate().await;
    });
    waited
        .await
        .expect(0, &["every object is stored in the target version"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_gave_way_to_another_is_not_called_deleted() {
    let Some(stage) = Stage::start().await else { return };
    stage.store_trials_in("v1").await;
    stage.create_trials(3).await;
    let start = stage.command(&["versions", "start", "trials", "--wait"]);
    let waited = stage.follow(start, WAITS, async |notes| {
        let api: Api<StorageVersionMigration> = Api::all(stage.client.clone());
        let first = api.list(&ListParams::default()).await.expect("a list").items.remove(0);
        api.delete(&first.name_any(), &DeleteParams::default())
            .await
            .expect("deleted");
        let again = stage.command(&["versions", "start", "trials"]).output().await;
        Exited::of(&again.expect("started")).expect(0, &["is asked for"]);
        notes.until("gave way to").await;
        stage.migrate().await;
    });
    let exited = waited.await;
    exited.expect(0, &["every object is stored in the target version"]);
    exited.expect_none(&["was deleted"]);
}
