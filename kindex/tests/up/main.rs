//! `kindex up` as a user runs it: the real binary, a real kubectl, files in a
//! temporary directory. Everything is observed from outside.

mod adopt;
mod against;
mod aggregated;
mod api;
mod backfill;
mod chart;
mod exposure;
mod history;
mod manners;
mod metrics;
mod orphans;
mod own_repository;
mod plan;
mod process;
mod purge;
mod quarantine;
mod query;
mod readiness;
mod reference;
mod restore;
mod site;
mod status;
mod traces;
mod verify;
mod walk;

use process::{Running, kubectl_is_there, wait_for};
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
    let run = Running::once_on(site, &[], &["--samples", "--once"]);
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
