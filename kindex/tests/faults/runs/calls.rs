//! The service is killed while files are finalized, runs end, and crashed runs are resumed: what was answered holds,
//! and what was not can be asked again.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use kindex_harness::wait::wait_until;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::server::{Server, ask, read, send, until_answered};
use crate::times;

/// Jobs of each sort at the same time.
const JOBS: u64 = 2;

/// A file, and its MD5.
static CONTENT: [u8; 40_000] = [b'x'; 40_000];
const MD5: &str = "33766cd480de06a6b2e053eb8f67583e";

/// The path of an address.
fn path(url: &Value) -> String {
    let url = url.as_str().expect("an address");
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest[rest.find('/').expect("a path")..].to_owned()
}

/// Opens an upload, sends the file and has it checked; its answer comes once more if it is lost.
fn upload(address: SocketAddr, run: &str) {
    let metadata = json!({
        "name": "weights/last.bin", "type": "ARTIFACT_TYPE_MODEL", "mime_type": "application/x-pt",
        "size_bytes": CONTENT.len(),
    });
    let announced = json!({ "metadata": metadata, "expected_size_bytes": CONTENT.len() });
    // An upload that nobody finalizes is swept later.
    let opened = send(address, &format!("/api/v1/runs/{run}/artifacts"), &announced);
    let headers: Vec<(String, String)> = opened["required_headers"]
        .as_object()
        .expect("headers")
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().expect("text").to_owned()))
        .collect();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    let to = path(&opened["presigned_url"]);
    until_answered("the file", || ask(address, "PUT", &to, &headers, &CONTENT));
    let upload_id = opened["upload_id"].as_str().expect("an id");
    let claimed = json!({ "actual_size_bytes": CONTENT.len(), "md5_checksum": MD5 });
    send(address, &format!("/api/v1/artifacts/{upload_id}/finalize"), &claimed);
}

/// Runs that end with a file each; those that were written.
fn end(address: SocketAddr, job: u64, answered: &AtomicU64, stop: &AtomicBool) -> Vec<String> {
    let mut runs = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let run = format!("end-{job}-{}", runs.len());
        send(address, "/api/v1/runs", &json!({ "project": "vision", "run_id": run }));
        upload(address, &run);
        answered.fetch_add(1, Ordering::SeqCst);
        send(
            address,
            &format!("/api/v1/runs/{run}/finish"),
            &json!({ "status": "failed", "exit_code": 3 }),
        );
        answered.fetch_add(1, Ordering::SeqCst);
        runs.push(run);
    }
    runs
}

/// A run that crashes and is resumed again and again by the last token that its trainer has; how often.
fn resume(address: SocketAddr, job: u64, answered: &AtomicU64, stop: &AtomicBool) -> u64 {
    let run = format!("resume-{job}");
    let mut opening = json!({ "project": "vision", "run_id": run });
    let mut resumed = 0;
    while !stop.load(Ordering::SeqCst) {
        let opened = send(address, "/api/v1/runs", &opening);
        answered.fetch_add(1, Ordering::SeqCst);
        // Every third trainer dies before it has stored the token that it gets.
        if resumed % 3 != 1 {
            opening["resume_token"] = opened["resume_token"].clone();
        }
        let path = format!("/api/v1/runs/{run}");
        wait_until("silence", || match read(address, &path)["status"].as_str() {
            Some("crashed") => Ok(()),
            _ if stop.load(Ordering::SeqCst) => Ok(()),
            other => Err(format!("{other:?}")),
        });
        resumed += 1;
    }
    resumed
}

fn judge(address: SocketAddr, run: &str) {
    let shown = read(address, &format!("/api/v1/runs/{run}"));
    assert_eq!(
        (&shown["status"], &shown["artifact_count"]),
        (&json!("failed"), &json!(1)),
        "{run}: {shown}"
    );
    let found = read(address, &format!("/api/v1/runs/{run}/artifacts/weights%2Flast.bin/url"));
    let from = path(&found["presigned_url"]);
    let file = until_answered("the file", || ask(address, "GET", &from, &[], b""));
    assert!(file.as_bytes() == CONTENT, "{run}: {} bytes", file.len());
}

/// Kills the server again and again, each time after some more answers.
fn kill(server: &Server, kills: usize, answers_max: u64, answered: &AtomicU64) {
    let mut chance = StdRng::seed_from_u64(kills as u64);
    let wait_for = |until: u64| {
        wait_until("answers", || match answered.load(Ordering::SeqCst) {
            enough if enough >= until => Ok(()),
            few => Err(format!("{few} of {until} calls are answered")),
        });
    };
    for _ in 0..kills {
        server.start();
        wait_for(answered.load(Ordering::SeqCst) + chance.random_range(1..=answers_max));
        server.kill();
        server.verify();
    }
    server.start();
    wait_for(answered.load(Ordering::SeqCst) + answers_max);
}

/// Jobs at work while the server is killed; what they give back when they are told to stop.
fn under_kills<T: Send>(
    server: &Server,
    (kills, answers_max): (usize, u64),
    job: impl Fn(SocketAddr, u64, &AtomicU64, &AtomicBool) -> T + Sync,
) -> Vec<T> {
    let (answered, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let (answered, stop, job) = (&answered, &stop, &job);
        let jobs: Vec<_> = (0..JOBS)
            .map(|number| scope.spawn(move || job(server.rest, number, answered, stop)))
            .collect();
        kill(server, kills, answers_max, answered);
        stop.store(true, Ordering::SeqCst);
        jobs.into_iter().map(|job| job.join().expect("a job ends")).collect()
    })
}

#[test]
fn kills_while_files_are_finalized_and_runs_end_break_no_answer() {
    let server = Server::new(&[]);
    let kills = times(100, 5);
    let runs: Vec<String> = under_kills(&server, (kills, 30), end).into_iter().flatten().collect();
    for run in &runs {
        judge(server.rest, run);
    }
    server.verify();
    println!(
        "faults: runs: {kills} × kill, {} ends with files: no answer broken",
        runs.len()
    );
}

#[test]
fn kills_while_crashed_runs_are_resumed_lock_no_trainer_out() {
    let server = Server::new(&["--crash-after", "1"]);
    let kills = times(100, 3);
    let resumed: u64 = under_kills(&server, (kills, 3), resume).into_iter().sum();
    server.verify();
    assert!(resumed > 0);
    println!("faults: runs: {kills} × kill, {resumed} resumes: nobody is locked out");
}
