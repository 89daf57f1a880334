//! What nobody could see is no yes: a cluster without the kind, a lock without versions, no cluster, no database.

use std::fs;
use std::process::Command;

use kindex_migrator::cluster::reconcile::Memory;

use super::stage::{Exited, Stage};

const LOCK: &str = include_str!("../../fixtures/traps/schema/crds.lock");

async fn check(stage: &Stage, lock: &str) -> Exited {
    fs::write(stage.path("target.lock"), lock).expect("written");
    let check = ["versions", "check", "--kind", "trials", "--target", "target.lock"];
    stage.run(&check).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_seen_is_not_called_safe() {
    let Some(stage) = Stage::start().await else { return };
    let absent = "the cluster has no CustomResourceDefinition of the kind";
    check(&stage, LOCK).await.expect(1, &["Trial   no", absent]);
    let drop = ["versions", "drop", "trials", "v1"];
    stage.run(&drop).await.expect(1, &["is not safe to drop", absent]);

    stage.store_trials_in("v2").await;
    let no_state = "no StorageState says in which versions objects are stored";
    check(&stage, LOCK).await.expect(1, &["Trial   no", no_state]);
    stage.run(&drop).await.expect(1, &["is not safe to drop", no_state]);

    stage.reconcile(&mut Memory::default()).await;
    check(&stage, LOCK).await.expect(1, &["the StorageState lists Unknown"]);
    let start = stage.command(&["versions", "start", "trials"]).output().await;
    Exited::of(&start.expect("started")).expect(0, &["is asked for"]);
    stage.migrate().await;
    stage.reconcile(&mut Memory::default()).await;
    check(&stage, LOCK).await.expect(0, &["Trial   yes"]);
    let undeclared = "the target declares no version of kind Trial";
    check(&stage, "").await.expect(1, &["Trial   no", undeclared]);
    stage.sql("DROP TABLE trial").await;
    check(&stage, LOCK).await.expect(1, &["error: "]);
}

#[test]
fn without_cluster_and_database_nothing_is_safe() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("target.lock"), LOCK).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_traps"));
    command.args([
        "versions",
        "check",
        "--kind",
        "trials",
        "--kind",
        "Trial",
        "--target",
        "target.lock",
    ]);
    command
        .current_dir(directory.path())
        .env_remove("KUBECONFIG")
        .env("HOME", directory.path());
    let exited = Exited::of(&command.output().expect("started"));
    exited.expect(1, &["the cluster was not asked; SQL was not asked", "note: no cluster"]);
    assert_eq!(exited.text.matches("error: ").count(), 1, "{}", exited.text);
    assert_eq!(exited.text.matches("Trial   no").count(), 1, "{}", exited.text);
}
