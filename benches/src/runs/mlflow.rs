//! MLflow's tracking server on SQLite, with clients that send whole batches to its REST API.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use kindex_harness::ports;
use serde_json::json;

use super::http::Client;
use super::load::{Answer, Refused, Sender};
use super::template::{BATCH_POINTS, METRICS, Random, metric};

/// Processes of the server: one for each core of the machine that the figures are of.
const WORKERS: &str = "2";
/// It loads for long before it answers.
const START_MAX: Duration = Duration::from_secs(240);

/// A running server with all its processes.
pub struct Mlflow {
    child: Child,
    file: PathBuf,
    /// Its address.
    pub address: SocketAddr,
}

/// The folder with the environment.
fn environment() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/mlflow");
    std::env::var_os("KINDEX_BENCH_MLFLOW").map_or(target, PathBuf::from)
}

impl Mlflow {
    /// Starts it with an empty file in a folder, and waits for its first answer.
    ///
    /// # Errors
    /// Where it is not installed, or does not answer in time.
    pub async fn start(folder: &Path) -> Result<Self, String> {
        let program = environment().join("bin/mlflow");
        if !program.is_file() {
            return Err("MLflow is not installed: run benches/mlflow/install target/tools/mlflow".to_owned());
        }
        let file = folder.join("mlflow.db");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::reserve()));
        let child = Command::new(program)
            .args(["server", "--workers", WORKERS, "--host", "127.0.0.1"])
            .args(["--port", &address.port().to_string()])
            .args(["--backend-store-uri", &format!("sqlite:///{}", file.display())])
            .env("MLFLOW_DISABLE_TELEMETRY", "true")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A group of its own, so that its workers are found and end with it.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("MLflow does not start: {error}"))?;
        let mlflow = Self { child, file, address };
        let client = Client::new(address);
        let begun = Instant::now();
        while !matches!(client.call("/health", None).await, Ok((status, _)) if status.is_success()) {
            if begun.elapsed() > START_MAX {
                return Err("MLflow does not answer".to_owned());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(mlflow)
    }

    /// Opens so many runs.
    ///
    /// # Errors
    /// Where the server refuses.
    pub async fn open_runs(&self, count: usize) -> Result<Vec<String>, String> {
        let client = Client::new(self.address);
        let mut runs = Vec::with_capacity(count);
        for _ in 0..count {
            let path = "/api/2.0/mlflow/runs/create";
            let answer = client.json(path, Some(&json!({"experiment_id": "0"}))).await?;
            let run = answer["run"]["info"]["run_id"].as_str().ok_or("a run without an id")?;
            runs.push(run.to_owned());
        }
        Ok(runs)
    }

    /// Time of processors of all its processes so far.
    pub fn processor(&self) -> Duration {
        let group = self.child.id().to_string();
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let of_group = ids.filter(|id| group_of(*id).as_deref() == Some(&*group));
        of_group
            .filter_map(crate::child::usage)
            .map(|usage| usage.processor)
            .sum()
    }

    /// Bytes of its file, with its log.
    pub fn file_bytes(&self) -> u64 {
        let log = PathBuf::from(format!("{}-wal", self.file.display()));
        [&self.file, &log]
            .iter()
            .filter_map(|path| Some(std::fs::metadata(path).ok()?.len()))
            .sum()
    }

    /// How long it takes to answer with all points of a metric of a run, and how many they are.
    ///
    /// # Errors
    /// Where the server refuses.
    pub async fn history(&self, client: &Client, run: &str, metric: &str) -> Result<(Duration, usize), String> {
        let path = format!("/api/2.0/mlflow/metrics/get-history?run_id={run}&metric_key={metric}");
        let begun = Instant::now();
        let answer = client.json(&path, None).await?;
        let points = answer["metrics"].as_array().map_or(0, Vec::len);
        Ok((begun.elapsed(), points))
    }
}

impl Drop for Mlflow {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        // It may have ended by itself.
        let _killed = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _status = self.child.wait();
    }
}

/// The group of a process. See proc(5): the third field after the name in parentheses.
fn group_of(process: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let field = stat.rsplit_once(')')?.1.split_whitespace().nth(2)?;
    Some(field.to_owned())
}

/// Sends batches of a run to `log-batch`.
pub struct LogBatch {
    client: Client,
    run: String,
    names: Vec<String>,
    step: usize,
    random: Random,
    body: Bytes,
}

impl LogBatch {
    /// For each of these runs one, with points of these metrics.
    pub fn all(server: SocketAddr, runs: &[String], metrics: usize) -> Vec<Self> {
        let client = Client::new(server);
        let senders = runs.iter().zip(0..).map(|(run, seed)| Self {
            client: client.clone(),
            run: run.clone(),
            names: (0..metrics.min(METRICS)).map(metric).collect(),
            step: 0,
            random: Random(seed),
            body: Bytes::new(),
        });
        senders.collect()
    }

    fn batch(&mut self) -> Bytes {
        let mut text = format!(r#"{{"run_id":"{}","metrics":["#, self.run);
        for point in 0..BATCH_POINTS / self.names.len() * self.names.len() {
            let place = point % self.names.len();
            if point > 0 {
                text.push(',');
            }
            if place == 0 {
                self.step += 1;
            }
            let (name, step, value) = (&self.names[place], self.step, self.random.fraction());
            let time = 1_790_000_000_000_u64 + 100 * step as u64;
            // Text always has room for more.
            let _written = write!(
                text,
                r#"{{"key":"{name}","step":{step},"value":{value},"timestamp":{time}}}"#
            );
        }
        text.push_str("]}");
        text.into()
    }
}

impl Sender for LogBatch {
    fn next(&mut self) -> Answer {
        self.body = self.batch();
        self.again()
    }

    fn again(&mut self) -> Answer {
        let (client, body) = (self.client.clone(), self.body.clone());
        Box::pin(async move {
            let answer = client.call("/api/2.0/mlflow/runs/log-batch", Some(body)).await;
            let (status, answer) = answer.map_err(Refused::Failed)?;
            if status.is_success() {
                return Ok(());
            }
            Err(Refused::Failed(format!(
                "{status}: {}",
                String::from_utf8_lossy(&answer)
            )))
        })
    }

    fn points(&self) -> usize {
        BATCH_POINTS
    }
}
