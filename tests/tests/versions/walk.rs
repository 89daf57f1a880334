//! From a thousand objects in an old version to a build without it, by commands.

use std::fs;

use kindex_harness::wait::eventually;
use kindex_migrator::cluster::reconcile::Memory;
use serde_json::json;

use super::stage::{Exited, GROUP, Stage};

const DROP: [&str; 4] = ["versions", "drop", "trials", "v1"];
const LOCK: &str = include_str!("../../fixtures/traps/schema/crds.lock");

#[tokio::test(flavor = "multi_thread")]
async fn an_old_version_is_dropped_once_nothing_is_stored_in_it_and_not_before() {
    let Some(stage) = Stage::start().await else { return };
    stage.store_trials_in("v1").await;
    stage.create_trials(1_000).await;
    stage.store_trials_in("v2").await;
    stage.archive("v1", 10).await;
    let mut memory = Memory::default();
    stage.reconcile(&mut memory).await;
    nothing_is_dropped_before(&stage).await;

    let waits = stage.command(&["versions", "start", "trials", "--wait"]).output();
    let (waited, ()) = tokio::join!(waits, stage.migrate());
    let waited = Exited::of(&waited.expect("started"));
    waited.expect(
        0,
        &[
            "is asked for",
            "every object is stored in the target version, 1000 objects, 1000 rewritten",
        ],
    );
    rows_stand_against_it_alone(&stage, &mut memory).await;

    stage.sql(&format!("UPDATE trial SET group_ver = '{GROUP}/v2'")).await;
    show(&stage).await.expect(0, &["safe to drop v1: yes"]);
    let lock = dropped_and_noted(&stage).await;
    builds_without_it(&stage, &lock);
}

async fn nothing_is_dropped_before(stage: &Stage) {
    let before = [
        "safe to drop v1: no, because status.storedVersions lists it; the StorageState lists Unknown",
        "no migration has run",
        "SQL has rows in it: 0 live, 10 archived, 0 deleted",
    ];
    show(stage).await.expect(1, &before);
    stage
        .run(&DROP)
        .await
        .expect(1, &["is not safe to drop", "nothing was changed"]);
    assert_eq!(stage.stored_versions().await, json!(["v1", "v2"]));
    check(stage, LOCK).await.expect(1, &["the StorageState lists Unknown"]);
}

async fn rows_stand_against_it_alone(stage: &Stage, memory: &mut Memory) {
    let exited = show(stage).await;
    exited.expect(
        1,
        &[
            "safe to drop v1: no, because SQL has rows in it",
            "safe to drop v2beta1: yes",
        ],
    );
    exited.expect_none(&["no migration has run"]);
    stage.run(&DROP).await.expect(1, &["SQL has rows in it"]);
    stage.reconcile(memory).await;
    show(stage).await.expect(1, &["StorageState [v2]"]);
    check(stage, LOCK).await.expect(0, &["Trial   yes"]);
    let without = LOCK.replace("version Trial traps.dev/v1 ", "version Trial traps.dev/v0 ");
    let missing = [
        "the cluster may hold objects in v1",
        "SQL has rows in traps.dev/v1: 0 live, 10 archived",
    ];
    check(stage, &without).await.expect(1, &missing);
}

/// Gives back the lock.
async fn dropped_and_noted(stage: &Stage) -> String {
    fs::write(stage.path("crds.lock"), LOCK).expect("written");
    let noted = ["versions", "drop", "trials", "v1", "--lock", "crds.lock"];
    stage
        .run(&noted)
        .await
        .expect(0, &["status.storedVersions is [v2]", "noted in crds.lock"]);
    assert_eq!(stage.stored_versions().await, json!(["v2"]));
    let lock = fs::read_to_string(stage.path("crds.lock")).expect("a lock");
    assert_eq!(
        lock.matches("\ndropped Trial traps.dev/v1 cluster=").count(),
        1,
        "{lock}"
    );
    stage
        .run(&noted)
        .await
        .expect(0, &["status.storedVersions does not list v1"]);
    assert_eq!(fs::read_to_string(stage.path("crds.lock")).expect("a lock"), lock);
    stage
        .run(&DROP)
        .await
        .expect(0, &["add this line", "dropped Trial traps.dev/v1 cluster="]);
    lock
}

async fn show(stage: &Stage) -> Exited {
    stage.run(&["versions", "--kind", "trials", "--exit-code"]).await
}

async fn check(stage: &Stage, lock: &str) -> Exited {
    fs::write(stage.path("target.lock"), lock).expect("written");
    stage
        .run(&["versions", "check", "--kind", "trials", "--target", "target.lock"])
        .await
}

/// A declaration of the new version alone, with the lock of the old ones.
fn builds_without_it(stage: &Stage, noted: &str) {
    let root = stage.path("next");
    fs::create_dir_all(root.join("schema")).expect("a directory");
    let platform = "[platform]\ngroup = \"traps.dev\"\nversion = \"v2\"\nfinalizer = \"traps.dev/finalizer\"\n\
                    deleting = \"traps.dev/deleting\"\nimmutable = \"traps.dev/immutable\"\ndatabase = \"traps\"\n";
    let trial = "[kinds.Trial]\ndoc = \"An attempt.\"\nfields = { spec = { algorithm = \"string\" } }\n";
    fs::write(root.join("crds.toml"), format!("{platform}{trial}")).expect("written");
    let generate = |versions: &str| {
        fs::write(root.join("schema/crds.lock"), versions).expect("written");
        kindex_codegen::generate(&root).map(drop)
    };
    let facts = |lock: &str| {
        let mut facts: Vec<&str> = lock.lines().filter(|line| line.contains(" Trial ")).collect();
        facts.retain(|line| !line.contains("v2beta1") && (line.starts_with("version") || line.starts_with("dropped")));
        facts.join("\n") + "\n"
    };
    let refused = generate(&facts(LOCK)).expect_err("v1 may be stored").to_string();
    assert!(refused.contains("version v1 of kind Trial is removed"), "{refused}");
    if let Err(errors) = generate(&facts(noted)) {
        panic!("{errors}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_fails_or_is_stopped_fails_the_command() {
    let Some(stage) = Stage::start().await else { return };
    stage.store_trials_in("v1").await;
    stage.create_trials(1).await;
    let start = ["versions", "start", "trials", "--wait"];
    let stops = async {
        eventually("a migration is there and stopped", async || {
            let stopped = stage
                .command(&["versions", "stop", "trials"])
                .output()
                .await
                .expect("started");
            Exited::of(&stopped).text.contains("is stopped")
        })
        .await;
    };
    let (waited, ()) = tokio::join!(stage.command(&start).output(), stops);
    Exited::of(&waited.expect("started")).expect(1, &["was deleted before it ended"]);

    let started = stage.command(&start[..3]).output().await.expect("started");
    Exited::of(&started).expect(0, &["is asked for"]);
    let late = stage
        .command(&["versions", "start", "trials", "--wait", "--timeout", "0"])
        .output();
    Exited::of(&late.await.expect("started")).expect(1, &["is under way already", "has not ended in time"]);
    let refused = "default/trial-0: denied by a webhook";
    let waited = stage.wait_while(&start, "is under way already", stage.fail_migration());
    waited.await.expect(1, &[refused, "failed: ObjectsRefused"]);
    let shown = stage
        .command(&["versions", "--kind", "trials"])
        .output()
        .await
        .expect("started");
    let reasons = ["no database is configured", "SQL was not asked"];
    Exited::of(&shown).expect(0, &reasons);
    stage.store_trials_in("v2").await;
    let shown = stage
        .command(&["versions", "--kind", "trials", "--no-sql"])
        .output()
        .await
        .expect("started");
    let reasons = ["failed: some are refused; 1 objects cannot be written, such as default/trial-0"];
    Exited::of(&shown).expect(0, &reasons);
    Exited::of(&shown).expect_none(&["SQL was not asked"]);
}
