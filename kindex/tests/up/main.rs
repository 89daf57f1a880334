//! `kindex up` as a user runs it: the real binary, a real kubectl, files in a
//! temporary directory. Everything is observed from outside.

mod plan;
mod query;
mod site;
mod workspace;

mod process;

mod api;
mod deletion;
mod events;

mod one_cluster;

mod add_a_kind;
mod adopt;
mod against;
mod aggregated;
mod archived_holders;
mod archived_targets;
mod backfill;
mod bounds;
mod chart;
mod configured;
mod corpus;
mod cycles;
mod deletion_off;
mod doubts;
mod exposure;
mod graph;
mod held;
mod history;
mod manners;
mod metrics;
mod moves;
mod nats;
mod notify;
mod orphans;
mod outage;
mod own_repository;
mod peers;
mod platform;
mod purge;
mod quarantine;
mod readiness;
mod reference;
mod releases;
mod restore;
mod restored_database;
mod runs;
mod status;
mod storage_versions;
mod three_services;
mod tombstones;
mod traces;
mod unserved;
mod verify;
mod verify_references;
mod why;
mod wrong_database;

use std::process::Command;

use process::{KINDEX, Running, kubectl_is_there, wait_for};
use site::{Site, on_clusters};

const MODEL: &str = r#"
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: fraud, namespace: default, labels: {team: risk}}
spec: {algorithm: xgboost, trainingFramework: sklearn, owner: {name: ada}}
"#;

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

on_clusters!(
    samples_once_stores_all_kinds_and_exits,
    an_object_becomes_a_row_and_its_deletion_a_soft_deleted_row,
    a_restart_keeps_everything_and_a_kill_loses_nothing,
);

fn samples_once_stores_all_kinds_and_exits(site: &Site) {
    let mut run = Running::once_on(site, &[], &["--samples", "--once"]);
    let output = run.finish();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    for kind in [
        "Project",
        "ModelFamily",
        "Model",
        "Pipeline",
        "PipelineRun",
        "InferenceServer",
        "Revision",
        "Cluster",
        "RayCluster",
        "RayJob",
        "TriggerRun",
        "Deployment",
        "SparkJob",
    ] {
        assert!(
            text.lines()
                .any(|line| line.split_whitespace().take(3).eq([kind, "1", "1"])),
            "{kind} in:\n{text}"
        );
    }
}

fn an_object_becomes_a_row_and_its_deletion_a_soft_deleted_row(site: &Site) {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start_on(site, &[]);
    run.kubectl(&["apply", "-f", "-"], MODEL);
    wait_for("the row", || run.get(&["models", "-o", "wide"]).contains("xgboost"));

    run.kubectl(
        &[
            "patch",
            "model",
            "fraud",
            "--type=merge",
            "-p",
            r#"{"spec":{"algorithm":"lightgbm"}}"#,
        ],
        "",
    );
    wait_for("the new algorithm", || {
        run.get(&["models", "-o", "wide"]).contains("lightgbm")
    });

    // The finalizer blocks this until SQL holds the final version; kubectl waits for it.
    run.kubectl(&["delete", "model", "fraud"], "");
    wait_for("the soft delete", || {
        run.get(&["models", "--deleted"]).contains("deleted")
    });
    assert!(
        !run.get(&["models"]).contains("fraud"),
        "a deleted object is not listed"
    );
}

fn a_restart_keeps_everything_and_a_kill_loses_nothing(site: &Site) {
    if !kubectl_is_there() {
        return;
    }
    let mut run = Running::start_on(site, &[]);
    run.kubectl(&["apply", "-f", "-"], MODEL);
    run.kill();
    run.restart();
    assert!(run.kubectl(&["get", "models"], "").contains("fraud"));
    wait_for("the row", || run.get(&["models"]).contains("fraud"));
}

/// The lines below "Try next:" that need no cluster work as they stand, and the documentation's questions find rows.
#[test]
fn what_is_suggested_once_the_samples_are_stored_works_then() {
    let directory = tempfile::tempdir().expect("a directory");
    let kindex = |words: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", words]).current_dir(directory.path());
        // As a person who has a program, and no checkout.
        command.env_remove("CARGO").output().expect("a shell runs")
    };
    let up = "up --data-dir 'of a run' --samples --once --timeout 240 --api-addr 127.0.0.1:0 --health-addr 127.0.0.1:0 --listen 127.0.0.1:0 --runs-grpc-addr 127.0.0.1:0 --runs-rest-addr 127.0.0.1:0";
    let output = kindex(&format!("{KINDEX} {up}"));
    let text = text_of(&output.stdout);
    assert!(output.status.success(), "{text}{}", text_of(&output.stderr));
    let (_, steps) = text.split_once("Try next:\n").expect("suggestions at the end");
    let alone: Vec<&str> = steps
        .lines()
        .filter(|line| line.contains(" get ") && !line.contains("kubectl"))
        .collect();
    assert_eq!(alone.len(), 2, "{text}");
    let questions = [
        format!("{KINDEX} get pipelineruns --data-dir 'of a run' --where state=PIPELINE_RUN_STATE_FAILED"),
        format!("{KINDEX} query failed-runs --data-dir 'of a run' -p namespace=ingester-test"),
    ];
    for words in alone.into_iter().chain(questions.iter().map(String::as_str)) {
        let output = kindex(words);
        let (rows, stderr) = (text_of(&output.stdout), text_of(&output.stderr));
        assert!(output.status.success() && !rows.is_empty(), "{words}: {rows}{stderr}");
    }
}

#[test]
fn a_port_in_use_is_a_usage_error_with_a_hint() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let output = Running::once(&["--api-addr", &address]).finish();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(
        text.contains(&format!("cannot listen on {address}")) && text.contains("hint:"),
        "{text}"
    );
}
