//! `/healthz` and `/readyz` of a running kindex: each reason for which it does not do its
//! work is said, and taken back when it is over.

use std::fs;

use kindex_harness::ports::Closed;
use kindex_harness::scrape;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use super::process::{Running, wait_for};
use super::site::{Site, on_clusters};

on_clusters!(
    a_process_that_does_its_work_is_alive_and_ready,
    a_closed_gate_is_a_reason_and_the_process_is_alive,
);

fn a_process_that_does_its_work_is_alive_and_ready(site: &Site) {
    let run = Running::start_on(site, &[]);
    assert_eq!(run.request("/healthz"), (200, "ok\n".to_owned()));
    wait_for("readiness", || run.request("/readyz") == (200, "ok\n".to_owned()));
    wait_for("the metric", || {
        run.request("/metrics").1.contains("\nkindex_ready 1\n")
    });
}

fn a_closed_gate_is_a_reason_and_the_process_is_alive(site: &Site) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = directory.path().join("kindex.yaml");
    fs::write(&config, "metadataStorage:\n  enableMetadataStorage: false\n").expect("writable");
    let run = Running::start_on(site, &["--config", &config.display().to_string()]);
    let (status, reason) = run.request("/readyz");
    assert!(
        status == 503 && reason.contains("enableMetadataStorage"),
        "{status}: {reason}"
    );
    assert_eq!(run.request("/healthz").0, 200);
    assert!(run.request("/metrics").1.contains("\nkindex_ready 0\n"));
}

#[test]
fn a_database_that_is_down_is_a_reason() {
    let closed = Closed::take();
    let address = format!("mysql://root@{}/kindex", closed.address);
    let run = Running::start(&["--database", &address]);
    wait_for("the reason", || {
        let (status, reason) = run.request("/readyz");
        status == 503 && reason.starts_with("database: ") && reason.contains("refused")
    });
    assert!(run.request("/metrics").1.contains("\nkindex_database_ready 0\n"));
    let api = run.api().expect("it opens a port");
    let (status, _) = scrape::get(api, "/apis/michelangelo.api/v2/models").expect("it answers");
    assert_eq!(status, 503);
    // What it has written is read a moment later.
    wait_for("the outage in the log", || run.log().contains("cannot be reached"));
    let log = run.log();
    let reported = log
        .lines()
        .filter(|line| line.contains(" WARN ") || line.contains(" ERROR "));
    let reported: Vec<&str> = reported.collect();
    assert!(
        matches!(reported[..], [line] if line.contains("cannot be reached")),
        "once, by the store: {log}"
    );
}

#[test]
fn a_schema_of_another_version_is_a_reason() {
    let mut run = Running::start(&[]);
    wait_for("readiness", || run.request("/readyz").0 == 200);
    run.kill();
    let database = run.data_dir().join("kindex.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let options = SqliteConnectOptions::new().filename(database);
        let mut connection = SqliteConnection::connect_with(&options)
            .await
            .expect("the database opens");
        let newer = "UPDATE kindex_schema SET version = 1000000";
        let done = sqlx::query(newer).execute(&mut connection).await.expect("updated");
        assert_eq!(done.rows_affected(), 1);
        connection.close().await.expect("closed");
    });
    run.restart();
    wait_for("the reason", || {
        let (status, reason) = run.request("/readyz");
        status == 503 && reason.contains("schema") && reason.contains("1000000")
    });
}
