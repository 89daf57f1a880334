//! A cluster that is built anew under a database full of rows: it is refused before somebody says that the database
//! follows it, no row is closed before somebody says that the objects are really gone, and then all of them can be
//! brought back.

use std::fs;

use serde_json::Value;

use super::one_cluster::refused_for;
use super::process::{Running, kubectl_is_there, wait_for};
use super::text_of;

const MODELS: &str = r#"
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: a, namespace: default}
spec: {algorithm: xgboost}
---
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: b, namespace: default}
spec: {algorithm: yolo}
---
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: c, namespace: default}
spec: {algorithm: zip}
"#;

fn is_held(run: &Running) -> bool {
    let (status, reasons) = run.request("/readyz");
    status == 503
        && reasons.contains("Model: 3 of 3 live rows have no object")
        && reasons.contains("--allow-orphans Model=3")
        && run
            .request("/metrics")
            .1
            .contains("kindex_ingester_held_orphans{kind=\"Model\"} 3\n")
}

#[test]
fn rows_of_a_lost_cluster_are_held_until_they_are_allowed_to_go_and_then_come_back() {
    if !kubectl_is_there() {
        return;
    }
    let mut run = Running::start(&[]);
    run.kubectl(&["apply", "-f", "-"], MODELS);
    let rows = |run: &Running, state: &str| run.get(&["models", "--deleted"]).matches(state).count();
    wait_for("the rows", || {
        run.command(&["get", "models"]).status.success() && rows(&run, "live") == 3
    });

    run.kill();
    for file in ["cluster.db", "cluster.db-wal", "cluster.db-shm"] {
        // The files beside the database come and go.
        let _absent = fs::remove_file(run.data_dir().join(file));
    }
    // Versions of the new cluster may be beyond those of the old one: nothing but a list tells them apart.
    run.execute("DELETE FROM kindex_checkpoint");
    let config = run.data_dir().join("kindex.yaml");
    let database = run.data_dir().join("kindex.db");
    let text = format!(
        "metadataStorage: {{enableMetadataStorage: true}}\nsqlite: {{path: {}}}\n\
         ingester: {{maxOrphansMap: {{model: 1}}, maxOrphanPercent: 60}}\n",
        database.display()
    );
    fs::write(&config, text).expect("writable");
    let config = config.display().to_string();
    let uid = refused_for(&run.finish_with(&["--config", &config]));
    let flags = ["--config", &config, "--follow-cluster", &uid];
    run.restart_with(&flags);
    wait_for("the reason", || is_held(&run));
    assert_eq!(rows(&run, "live"), 3);
    wait_for("the state", || {
        let output = run.command(&["status", "--kind", "models", "--output", "json"]);
        let kinds: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let held = kinds
            .first()
            .is_some_and(|kind| kind["state"] == "holds-orphans" && kind["heldOrphans"] == 3);
        held && output.status.code() == Some(1)
    });
    // Whether the position was saved or not when it is killed: the next start knows.
    run.kill();
    run.restart();
    wait_for("the reason", || is_held(&run));
    run.kill();
    run.restart_with(&[&flags[..], &["--allow-orphans", "model=3"]].concat());
    wait_for("readiness", || run.request("/readyz").0 == 200);
    wait_for("the closed rows", || rows(&run, "deleted") == 3);

    let restored = run.command(&["restore", "models", "--deleted", "-o", "json"]);
    assert!(restored.status.success(), "{}", text_of(&restored.stderr));
    let lines: Vec<Value> = serde_json::from_slice(&restored.stdout).expect("a list");
    assert!(
        lines.len() == 3 && lines.iter().all(|line| line["outcome"] == "restored"),
        "{lines:?}"
    );
    wait_for("a settled state", || {
        run.command(&["verify", "--kind", "models"]).status.success()
    });
    assert_eq!((rows(&run, "live"), rows(&run, "deleted")), (3, 3));
}

#[test]
fn an_allowance_for_a_kind_that_does_not_exist_is_a_usage_error() {
    for (allowed, message) in [("modle=3", "unknown kind"), ("model=many", "a kind and a number")] {
        let output = Running::once(&["--once", "--allow-orphans", allowed]).finish();
        assert_eq!(output.status.code(), Some(2));
        assert!(text_of(&output.stderr).contains(message), "{}", text_of(&output.stderr));
    }
}
