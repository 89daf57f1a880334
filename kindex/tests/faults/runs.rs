//! The runs service is killed at any moment while training jobs write: batches out of order, batches that are sent
//! twice, compaction, ends and checkpoints under way. Every batch that was answered is there, once, and after each kill
//! what is stored agrees with itself.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use kindex_harness::ports;
use kindex_harness::scrape;
use kindex_harness::wait::{WAIT_MAX, wait_until};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::ingester::KINDEX;
use super::times;

/// Jobs that write at the same time.
const JOBS: u64 = 4;
/// Batches of a run.
const BATCHES: u64 = 60;
/// Points of a batch.
const POINTS: u64 = 400;
const NAMES: [&str; 4] = ["loss", "acc", "lr", "grad"];

/// `kindex runs serve` through all its lives, at the same addresses.
struct Server {
    folder: TempDir,
    rest: SocketAddr,
    flags: Vec<String>,
    child: Option<Child>,
}

impl Server {
    fn new(durability: &str) -> Self {
        let address = || SocketAddr::from(([127, 0, 0, 1], ports::reserve()));
        let rest = address();
        let flags = [
            ("--grpc-addr", address().to_string()),
            ("--rest-addr", rest.to_string()),
            ("--health-addr", address().to_string()),
            ("--durability", durability.to_owned()),
        ];
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            rest,
            flags: flags
                .into_iter()
                .flat_map(|(flag, value)| [flag.to_owned(), value])
                .collect(),
            child: None,
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    fn start(&mut self) {
        let log = File::options()
            .append(true)
            .create(true)
            .open(self.folder.path().join("log"));
        let child = Command::new(KINDEX)
            .args(["runs", "serve", "--data-dir"])
            .arg(self.data())
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("the log is writable"))
            .spawn();
        self.child = Some(child.expect("kindex starts"));
    }

    fn kill(&mut self) {
        let mut child = self.child.take().expect("it was started");
        child.kill().expect("it runs");
        child.wait().expect("it was started");
    }

    /// `kindex runs verify`, as a person runs it.
    fn verify(&self) {
        let verified = Command::new(KINDEX)
            .args(["runs", "verify", "-o", "json", "--data-dir"])
            .arg(self.data())
            .output()
            .expect("kindex starts");
        let shown = String::from_utf8_lossy(&verified.stdout);
        assert!(
            verified.status.success(),
            "{shown}{}",
            String::from_utf8_lossy(&verified.stderr)
        );
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
    }
}

fn post(address: SocketAddr, path: &str, body: &Value) -> io::Result<(u16, String)> {
    let body = body.to_string();
    let mut stream = TcpStream::connect_timeout(&address, WAIT_MAX)?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let odd = || io::Error::other(format!("no HTTP answer: {answer}"));
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(odd)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((status.ok_or_else(odd)?, body.to_owned()))
}

/// Sends a request until it is answered. A server that is away or busy is asked again; any other refusal is a failure.
fn send(address: SocketAddr, path: &str, body: &Value) -> Value {
    let text = wait_until(path, || match post(address, path, body) {
        Ok((200, text)) => Ok(text),
        Ok((429 | 503, text)) => Err(text),
        Ok((status, text)) => panic!("{path} is answered {status}: {text}"),
        Err(error) => Err(error.to_string()),
    });
    serde_json::from_str(&text).expect("an answer is JSON")
}

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
    let read = |path: String| -> Value {
        let (status, text) = scrape::get(address, &path).expect("the service answers");
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).expect("an answer is JSON")
    };
    let shown = read(format!("/api/v1/runs/{run}"));
    assert_eq!(shown["metrics_count"], json!(BATCHES * POINTS), "{run}: {shown}");
    assert_eq!(shown["status"], json!("finished"), "{run}");
    for name in NAMES {
        let series = read(format!("/api/v1/runs/{run}/metrics?names={name}&max_points=10000"));
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
    let mut server = Server::new(durability);
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
