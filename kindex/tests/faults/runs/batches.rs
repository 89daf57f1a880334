//! The runs service is killed at any moment while training jobs write: batches out of order, batches that are sent
//! twice, compaction, ends and checkpoints under way. Every batch that was answered is there, once, and after each kill
//! what is stored agrees with itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use kindex_harness::wait::wait_until;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::server::{Server, read, send};
use crate::times;

/// Jobs that write at the same time.
const JOBS: u64 = 4;
/// Batches of a run.
const BATCHES: u64 = 60;
/// Points of a batch.
const POINTS: u64 = 400;
const NAMES: [&str; 4] = ["loss", "acc", "lr", "grad"];

/// Name, step and value of the points of a batch; no two batches of a run have a step of a name in common.
fn points(batch: u64) -> impl Iterator<Item = (&'static str, u64, f64)> {
    let each = POINTS / NAMES.len() as u64;
    (0..POINTS).map(move |k| {
        let step = batch * each + k / NAMES.len() as u64;
        (NAMES[k as usize % NAMES.len()], step, (batch * POINTS + k) as f64 / 8.0)
    })
}

fn body(run: &str, batch: u64) -> Value {
    let metrics: Vec<Value> = points(batch)
        .map(|(name, step, value)| json!({ "name": name, "step": step, "value": value }))
        .collect();
    // Swapped in pairs: every second batch waits for the one before it.
    let sequence = if batch.is_multiple_of(2) { batch + 2 } else { batch };
    json!({ "run_id": run, "batch_id": format!("{run}-{batch}"), "seq": sequence, "metrics": metrics })
}

/// A training job after the other; the runs that were written, all of which have ended.
fn work(address: SocketAddr, job: u64, answered: &AtomicU64, stop: &AtomicBool) -> Vec<String> {
    let mut chance = StdRng::seed_from_u64(job);
    let mut runs = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let run = format!("job-{job}-{}", runs.len());
        send(address, "/api/v1/runs", &json!({ "project": "vision", "run_id": run }));
        for batch in 0..BATCHES {
            let body = body(&run, batch);
            send(address, "/api/v1/ingest/batch", &body);
            answered.fetch_add(1, Ordering::SeqCst);
            // As after an answer that was lost.
            if chance.random_range(0..5) == 0 {
                let again = send(address, "/api/v1/ingest/batch", &body);
                assert_eq!(again["duplicate"], json!(true), "{again}");
            }
        }
        send(
            address,
            &format!("/api/v1/runs/{run}/finish"),
            &json!({ "status": "finished" }),
        );
        runs.push(run);
    }
    runs
}

/// Every point of a run, once, with its value.
fn judge(address: SocketAddr, run: &str) {
    let shown = read(address, &format!("/api/v1/runs/{run}"));
    assert_eq!(shown["metrics_count"], json!(BATCHES * POINTS), "{run}: {shown}");
    assert_eq!(shown["status"], json!("finished"), "{run}");
    for name in NAMES {
        let series = read(
            address,
            &format!("/api/v1/runs/{run}/metrics?names={name}&max_points=10000"),
        );
        let stored: Vec<(u64, f64)> = series["series"][0]["points"]
            .as_array()
            .expect("points")
            .iter()
            .map(|point| {
                (
                    point["step"].as_u64().expect("a step"),
                    point["mean"].as_f64().expect("a value"),
                )
            })
            .collect();
        let sent: Vec<(u64, f64)> = (0..BATCHES)
            .flat_map(points)
            .filter(|point| point.0 == name)
            .map(|(_, step, value)| (step, value))
            .collect();
        assert!(
            stored == sent,
            "{run}, {name}: {} points are stored, {} were sent",
            stored.len(),
            sent.len()
        );
    }
}

fn kill_again_and_again(durability: &str, kills: usize) {
    let server = Server::new(&["--durability", durability]);
    let answered = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let jobs: Vec<JoinHandle<Vec<String>>> = (0..JOBS)
        .map(|job| {
            let (address, answered, stop) = (server.rest, Arc::clone(&answered), Arc::clone(&stop));
            thread::spawn(move || work(address, job, &answered, &stop))
        })
        .collect();
    let mut chance = StdRng::seed_from_u64(kills as u64);
    for _ in 0..kills {
        server.start();
        let until = answered.load(Ordering::SeqCst) + chance.random_range(1..60);
        wait_until("an answer", || match answered.load(Ordering::SeqCst) {
            enough if enough >= until => Ok(()),
            few => Err(format!("{few} of {until} batches are answered")),
        });
        server.kill();
        server.verify();
    }
    server.start();
    stop.store(true, Ordering::SeqCst);
    let runs: Vec<String> = jobs
        .into_iter()
        .flat_map(|job| job.join().expect("a job ends"))
        .collect();
    for run in &runs {
        judge(server.rest, run);
    }
    server.verify();
    println!(
        "faults: runs, {durability}: {kills} × kill, {} runs, {} batches answered: 0 points lost, 0 doubled",
        runs.len(),
        answered.load(Ordering::SeqCst),
    );
}

#[test]
fn kills_of_the_runs_service_lose_and_double_nothing() {
    kill_again_and_again("normal", times(100, 6));
}

#[test]
fn kills_of_the_runs_service_lose_and_double_nothing_with_full_durability() {
    kill_again_and_again("full", times(100, 4));
}
