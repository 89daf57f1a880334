//! A service whose disk or files fail is not ready, says why, and is ready again by itself.

use std::fs::File;
use std::io::{ErrorKind, Write as _};

use kindex_harness::require::require;
use kindex_harness::scrape;
use kindex_harness::wait::wait_until;
use serde_json::{Value, json};

use super::server::{Server, post, read, send};

fn until_ready(server: &Server, expected: u16) -> String {
    wait_until("readiness", || match scrape::get(server.health, "/readyz") {
        Ok((status, text)) if status == expected => Ok(text),
        other => Err(format!("{other:?}")),
    })
}

fn batch(number: u64) -> Value {
    let points = (0..200).map(|k| json!({ "name": "loss", "step": number * 200 + k, "value": k as f64 / 7.0 }));
    json!({ "run_id": "r", "batch_id": number.to_string(), "metrics": points.collect::<Vec<_>>() })
}

#[test]
fn a_service_whose_file_is_gone_is_not_ready_until_it_is_back() {
    let server = Server::new(&[]);
    server.start();
    send(
        server.rest,
        "/api/v1/runs",
        &json!({ "project": "vision", "run_id": "r" }),
    );
    until_ready(&server, 200);
    send(server.rest, "/api/v1/ingest/batch", &batch(1));
    let (file, aside) = (server.data().join("runs.db"), server.folder.path().join("aside"));
    std::fs::rename(&file, &aside).expect("moved");
    let why = until_ready(&server, 503);
    assert!(why.contains("runs.db") && why.contains("put it back"), "{why}");
    let (status, text) = post(server.rest, "/api/v1/ingest/batch", &batch(2)).expect("an answer");
    assert_eq!(status, 503, "{text}");
    std::fs::rename(&aside, &file).expect("moved back");
    until_ready(&server, 200);
    send(server.rest, "/api/v1/ingest/batch", &batch(2));
    server.kill();
    server.verify();
    server.start();
    assert_eq!(read(server.rest, "/api/v1/runs/r")["metrics_count"], json!(400));
}

/// Takes all that is left of a disk.
fn fill(server: &Server) -> std::path::PathBuf {
    let path = server.data_within().join("filler");
    let mut file = File::create(&path).expect("made");
    let full = loop {
        if let Err(error) = file.write_all(&[0; 4096]) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    path
}

#[test]
fn a_service_on_a_full_disk_loses_nothing_and_goes_on_when_there_is_room() {
    if !require("mount", Server::may_mount()) {
        return;
    }
    let server = Server::on_disk_of("32m");
    server.start();
    send(
        server.rest,
        "/api/v1/runs",
        &json!({ "project": "vision", "run_id": "r" }),
    );
    let mut stored = 0;
    for round in 0..3 {
        send(server.rest, "/api/v1/ingest/batch", &batch(stored));
        stored += 1;
        let filler = fill(&server);
        let refused = loop {
            let (status, text) = post(server.rest, "/api/v1/ingest/batch", &batch(stored)).expect("an answer");
            if status != 200 {
                assert_eq!(status, 503, "{text}");
                break text;
            }
            stored += 1;
        };
        assert!(refused.contains("DISK_FULL"), "{refused}");
        let why = until_ready(&server, 503);
        assert!(why.contains("make room"), "{why}");
        let shown = read(server.rest, "/api/v1/runs/r");
        assert_eq!(
            shown["metrics_count"],
            json!(stored * 200),
            "round {round}: reading goes on"
        );
        std::fs::remove_file(filler).expect("removed");
        until_ready(&server, 200);
        send(server.rest, "/api/v1/ingest/batch", &batch(stored));
        stored += 1;
        let shown = read(server.rest, "/api/v1/runs/r");
        assert_eq!(shown["metrics_count"], json!(stored * 200), "round {round}");
    }
    server.verify();
}

#[test]
fn a_service_whose_disk_can_no_longer_be_written_says_so_and_has_all_that_it_answered_on_the_next_one() {
    if !require("mount", Server::may_mount_files()) {
        return;
    }
    let server = Server::on_disk_in_a_file();
    server.start();
    send(
        server.rest,
        "/api/v1/runs",
        &json!({ "project": "vision", "run_id": "r" }),
    );
    for number in 0..10 {
        send(server.rest, "/api/v1/ingest/batch", &batch(number));
    }
    server.break_disk();
    let (status, text) = post(server.rest, "/api/v1/ingest/batch", &batch(10)).expect("an answer");
    assert_eq!(status, 503, "{text}");
    wait_until("the reason", || match scrape::get(server.health, "/readyz") {
        Ok((503, text)) if text.contains("make the directory of the runs writable") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let (_, text) = post(server.rest, "/api/v1/ingest/batch", &batch(10)).expect("an answer");
    assert!(text.contains("Nothing was stored"), "{text}");
    let count = |server: &Server| read(server.rest, "/api/v1/runs/r")["metrics_count"].clone();
    assert_eq!(count(&server), json!(2000), "reading goes on");
    server.kill();

    let (is_well, said) = server.try_read_only();
    let data = server.data().display().to_string();
    assert!(!is_well && said.contains(&data), "{said}");
    assert!(
        said.contains("Read-only file system") && said.contains("may you write to it"),
        "{said}"
    );

    server.start();
    until_ready(&server, 200);
    assert_eq!(count(&server), json!(2000));
    send(server.rest, "/api/v1/ingest/batch", &batch(10));
    assert_eq!(count(&server), json!(2200));
    server.verify();
}
