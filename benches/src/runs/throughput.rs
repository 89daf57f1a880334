//! As many points as are answered: 100 runs, each with one batch of 1,000 points on its way, and MLflow with the same
//! points. The service is then killed and started again on what it has answered.

use std::time::Duration;

use super::grpc::{Client, Unary};
use super::http::Json;
use super::load::{Answered, closed};
use super::mlflow::{LogBatch, Mlflow};
use super::server::{Server, stored_points};
use super::template::METRICS;

/// Runs at once.
pub const RUNS: usize = 100;
/// Clients of MLflow at once: more make its writers wait for each other.
const MLFLOW_CLIENTS: usize = 4;

/// Over what batches come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// gRPC, one call for each batch.
    Grpc,
    /// JSON over HTTP/1.1.
    Json,
}

/// What one measurement comes to.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    /// Points a second that were answered.
    pub rate: f64,
    /// Points a second of processor time of the server, compaction included.
    pub rate_of_processor: f64,
    /// Points that were compacted a second meanwhile.
    pub compacted: f64,
    /// Points that wait for compaction at the end.
    pub backlog: f64,
    /// How often the server had no room.
    pub full: usize,
    /// Seconds of a start after `kill -9`, for each 10 million points in the file.
    pub start: f64,
}

/// Measures the service.
///
/// # Errors
/// Where it fails, or has lost what it answered.
pub async fn measure(transport: Transport, durability: &str, time: Duration) -> Result<Throughput, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = Server::start(folder.path(), durability).await?;
    let runs = Client::new(server.grpc).open_runs("load", RUNS).await?;
    let before = server.usage().processor;
    let answered = match transport {
        Transport::Grpc => closed(Unary::all(server.grpc, &runs), time, usize::MAX).await?,
        Transport::Json => closed(Json::all(server.rest, &runs), time, usize::MAX).await?,
    };
    let processor = server.usage().processor.saturating_sub(before);
    let backlog = server.backlog()?;
    drop(server);
    let stored = stored_points(folder.path()).await?;
    if stored != answered.points {
        return Err(format!(
            "{} points were answered and {stored} are stored",
            answered.points
        ));
    }
    let server = Server::start(folder.path(), durability).await?;
    Ok(Throughput {
        rate: answered.rate(),
        rate_of_processor: of_processor(&answered, processor),
        compacted: (answered.points as f64 - backlog) / answered.took.as_secs_f64(),
        backlog,
        full: answered.full,
        start: server.start.as_secs_f64() * 1e7 / stored as f64,
    })
}

/// Points a second of MLflow, and of its processor time.
///
/// # Errors
/// Where it fails.
pub async fn measure_mlflow(mlflow: &Mlflow, time: Duration) -> Result<(f64, f64, usize), String> {
    let runs = mlflow.open_runs(MLFLOW_CLIENTS).await?;
    let before = mlflow.processor();
    let answered = closed(LogBatch::all(mlflow.address, &runs, METRICS), time, usize::MAX).await?;
    let processor = mlflow.processor().saturating_sub(before);
    Ok((answered.rate(), of_processor(&answered, processor), answered.points))
}

fn of_processor(answered: &Answered, processor: Duration) -> f64 {
    answered.points as f64 / processor.as_secs_f64().max(0.01)
}
