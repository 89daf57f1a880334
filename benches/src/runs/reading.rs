//! How long reads take: a long curve as 1,000 points, 50 curves at once, and the whole history of the long curve from
//! MLflow.

use std::time::{Duration, Instant};

use kindex_runs::wire::v1::{GetMetricsRequest, RunId};

use super::curves::{self, Shape};
use super::grpc::Client;
use super::http;
use super::load::closed;
use super::mlflow::{LogBatch, Mlflow};
use super::server::Server;
use super::template::{BATCH_POINTS, METRICS, metric};

/// Points of each answered curve.
const SHOWN: usize = 1_000;
const READS: usize = 200;
const READS_OF_MANY: usize = 40;
const HISTORIES: usize = 5;
/// Each of the 50 curves has this share of the points of the long one.
const SHARE: f64 = 0.12;
const SEAL_MAX: Duration = Duration::from_secs(120);
/// For as long as it takes.
const UNTIL_DONE: Duration = Duration::from_secs(3_600);

/// What one measurement comes to.
#[derive(Debug)]
pub struct Reading {
    /// A curve as 1,000 points.
    pub one: Vec<Duration>,
    /// 50 curves of a run, each as 1,000 points.
    pub many: Vec<Duration>,
    /// Points of each of those.
    pub many_points: usize,
}

/// Measures the service with a curve of so many points.
///
/// # Errors
/// Where it fails.
pub async fn measure(points: usize) -> Result<Reading, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = Server::start(folder.path(), "normal").await?;
    let client = Client::new(server.grpc);
    let runs = client.open_runs("reading", 2).await?;
    curves::log(&client, &runs[0], &metric(0), Shape::F32, points).await?;
    let many_points = (points as f64 * SHARE) as usize;
    for number in 0..METRICS {
        curves::log(&client, &runs[1], &metric(number), Shape::F32, many_points).await?;
    }
    for run in &runs {
        client.finish(run).await?;
    }
    server.sealed(SEAL_MAX).await?;
    Ok(Reading {
        one: reads(&client, &runs[0], 1, points, READS).await?,
        many: reads(&client, &runs[1], METRICS, many_points, READS_OF_MANY).await?,
        many_points,
    })
}

async fn reads(client: &Client, run: &str, names: usize, points: usize, count: usize) -> Result<Vec<Duration>, String> {
    let request = GetMetricsRequest {
        run_ids: vec![RunId { value: run.to_owned() }],
        metric_names: (0..names).map(metric).collect(),
        max_points: SHOWN as i32,
        ..GetMetricsRequest::default()
    };
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        let (series, all) = client.metrics(&request).await?;
        times.push(begun.elapsed());
        let shown: usize = series.values().sum();
        if all != (names * points) as i64 || shown != names * points.min(SHOWN) {
            return Err(format!("{shown} points of {all} were read"));
        }
    }
    Ok(times)
}

/// How long MLflow takes for the history of a metric with so many points.
///
/// # Errors
/// Where it fails.
pub async fn measure_mlflow(mlflow: &Mlflow, points: usize) -> Result<Vec<Duration>, String> {
    let runs = mlflow.open_runs(1).await?;
    let batches = points.div_ceil(BATCH_POINTS);
    closed(LogBatch::all(mlflow.address, &runs, 1), UNTIL_DONE, batches).await?;
    let client = http::Client::new(mlflow.address);
    let mut times = Vec::with_capacity(HISTORIES);
    for _ in 0..HISTORIES {
        let (took, found) = mlflow.history(&client, &runs[0], &metric(0)).await?;
        if found != batches * BATCH_POINTS {
            return Err(format!("its history has {found} of {} points", batches * BATCH_POINTS));
        }
        times.push(took);
    }
    Ok(times)
}
