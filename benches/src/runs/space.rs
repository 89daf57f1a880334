//! How much room points take: in chunks with their last encoding, in the file, and in memory while 1,000 runs are open.

use std::time::Duration;

use super::curves::{self, Shape};
use super::grpc::{Client, Unary};
use super::load::closed;
use super::server::{Server, file_bytes, stored_points, text};
use super::template::metric;
use super::throughput::RUNS;

const SEAL_MAX: Duration = Duration::from_secs(180);
/// For the service to give free pages back.
const SHRINK_AFTER: Duration = Duration::from_secs(10);
/// For as long as it takes.
const UNTIL_DONE: Duration = Duration::from_secs(3_600);

/// The shapes with their names.
pub const SHAPES: [(&str, Shape); 4] = [
    ("noise", Shape::Noise),
    ("32-bit floats", Shape::F32),
    ("bfloat16", Shape::Bf16),
    ("whole numbers", Shape::Integers),
];

/// Bytes a point of chunks with step and time, for a curve of so many points of each shape.
///
/// # Errors
/// Where the service fails.
pub async fn chunks(points: usize) -> Result<[f64; 4], String> {
    const SIZE: &str = "SELECT CAST(sum(length(body)) AS REAL) / sum(n) FROM chunk \
         WHERE run_no = (SELECT run_no FROM run WHERE run_id = ?1)";
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = Server::start(folder.path(), "normal").await?;
    let client = Client::new(server.grpc);
    let runs = client.open_runs("space", SHAPES.len()).await?;
    for (run, (_, shape)) in runs.iter().zip(SHAPES) {
        curves::log(&client, run, &metric(0), shape, points).await?;
        client.finish(run).await?;
    }
    server.sealed(SEAL_MAX).await?;
    let file = server.file().await?;
    let mut sizes = [0.0; 4];
    for (run, size) in runs.iter().zip(&mut sizes) {
        *size = sqlx::query_scalar(SIZE)
            .bind(run)
            .fetch_one(&file)
            .await
            .map_err(text)?;
    }
    Ok(sizes)
}

/// Bytes a point of the whole file after 100 runs with so many batches have ended, once they have their last encoding.
///
/// # Errors
/// Where the service fails.
pub async fn whole_file(batches: usize) -> Result<f64, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut server = Server::start(folder.path(), "normal").await?;
    let client = Client::new(server.grpc);
    let runs = client.open_runs("space", RUNS).await?;
    closed(Unary::all(server.grpc, &runs), UNTIL_DONE, batches).await?;
    for run in &runs {
        client.finish(run).await?;
    }
    server.sealed(SEAL_MAX).await?;
    tokio::time::sleep(SHRINK_AFTER).await;
    server.stop().await?;
    let points = stored_points(folder.path()).await?;
    Ok(file_bytes(folder.path()) as f64 / points as f64)
}

/// The most memory of the service in bytes while so many runs are open and each logs so many batches.
///
/// # Errors
/// Where the service fails.
pub async fn memory(runs: usize, batches: usize) -> Result<f64, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = Server::start(folder.path(), "normal").await?;
    let runs = Client::new(server.grpc).open_runs("memory", runs).await?;
    closed(Unary::all(server.grpc, &runs), UNTIL_DONE, batches).await?;
    Ok(server.usage().resident_bytes_max as f64)
}
