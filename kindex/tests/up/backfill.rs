//! `kindex backfill` as it is typed, with a cluster and without an ingester.

use serde_json::Value;

use super::process::Running;
use super::site::{Site, on_clusters};

/// The sums of a report over all kinds.
fn sum(report: &Value, field: &str) -> u64 {
    let kinds = report.as_array().expect("a list of kinds");
    kinds.iter().map(|kind| kind[field].as_u64().expect("a number")).sum()
}

fn backfill(run: &Running, more: &[&str]) -> Value {
    let output = run.command(&[&["backfill", "--output", "json"], more].concat());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

on_clusters!(an_empty_database_is_filled_and_a_second_run_writes_nothing,);

fn an_empty_database_is_filled_and_a_second_run_writes_nothing(site: &Site) {
    let run = Running::samples_without_ingester_on(site);
    for file in ["kindex.db", "kindex.db-wal", "kindex.db-shm"] {
        // The files beside the database come and go.
        let _absent = std::fs::remove_file(run.data_dir().join(file));
    }
    let address = format!("sqlite:{}", run.data_dir().join("kindex.db").display());
    let first = backfill(&run, &["--database", &address]);
    assert_eq!((sum(&first, "objects"), sum(&first, "inserted")), (13, 13));
    let verified = run.command(&["verify", "--settle", "0"]);
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stdout)
    );

    let second = backfill(&run, &[]);
    assert_eq!((sum(&second, "unchanged"), sum(&second, "inserted")), (13, 0));
    assert_eq!(sum(&second, "updated"), 0);

    run.plant("DELETE FROM model_labels; DELETE FROM model_annotations; DELETE FROM model");
    run.plant("UPDATE pipeline SET res_version = res_version - 1");
    let healed = backfill(&run, &["--objects-per-second", "1000"]);
    assert_eq!((sum(&healed, "inserted"), sum(&healed, "updated")), (1, 1));
    let verified = run.command(&["verify", "--settle", "0"]);
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stdout)
    );
}

#[test]
fn a_rate_of_nothing_is_a_usage_error() {
    let run = Running::samples_without_ingester();
    let output = run.command(&["backfill", "--objects-per-second", "0"]);
    assert_eq!(output.status.code(), Some(2));
}
