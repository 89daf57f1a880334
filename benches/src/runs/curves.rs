//! Long curves of one metric with times, as training jobs log them, to be read again.

use std::time::Duration;

use bytes::Bytes;
use kindex_runs::wire::MetricColumns;
use kindex_runs::wire::v1::{LogMetricsRequest, RunId};
use prost::Message as _;
use prost_types::Timestamp;

use super::grpc::Client;
use super::load::Refused;
use super::template::Random;

/// Points of a batch.
const BATCH_POINTS: usize = 10_000;
/// Before a batch that was refused for want of room is sent again.
const PAUSE: Duration = Duration::from_millis(5);

/// What its values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Doubles with noise in every bit.
    Noise,
    /// Doubles that were single precision.
    F32,
    /// Doubles that were bfloat16.
    Bf16,
    /// Whole numbers below a thousand.
    Integers,
}

impl Shape {
    fn of(self, loss: f64, random: &mut Random) -> f64 {
        match self {
            Self::Noise => loss,
            Self::F32 => f64::from(loss as f32),
            Self::Bf16 => f64::from(f32::from_bits((loss as f32).to_bits() & 0xffff_0000)),
            Self::Integers => (random.number() % 1_000) as f64,
        }
    }
}

/// The batches of a loss that falls with noise, logged about ten times a second with times in microseconds.
fn batches(run: &str, metric: &str, shape: Shape, points: usize) -> Vec<(Bytes, usize)> {
    const BEGIN: i64 = 1_790_000_000_000_000_000;
    let mut random = Random(points as u64);
    let mut time = BEGIN;
    let mut made = Vec::new();
    let mut columns = MetricColumns::default();
    for step in 0..points {
        time += 100_000_000 + (random.number() % 4_000) as i64 * 1_000;
        let loss = 2.5 * (-(step as f64) / 3_000.0).exp() + 0.1 * random.fraction() + 0.05;
        let at = Timestamp {
            seconds: time / 1_000_000_000,
            nanos: (time % 1_000_000_000) as i32,
        };
        columns.push(metric, step as i64, shape.of(loss, &mut random), Some(at));
        if columns.len() == BATCH_POINTS || step + 1 == points {
            let count = columns.len();
            let request = LogMetricsRequest {
                run_id: Some(RunId { value: run.to_owned() }),
                metrics: Some(std::mem::take(&mut columns)),
                batch_id: format!("{metric}-{step}"),
                sequence: None,
            };
            made.push((request.encode_to_vec().into(), count));
        }
    }
    made
}

/// Logs a curve of a run.
///
/// # Errors
/// Where the server refuses.
pub async fn log(client: &Client, run: &str, metric: &str, shape: Shape, points: usize) -> Result<(), String> {
    for (message, count) in batches(run, metric, shape, points) {
        loop {
            match client.log(message.clone(), count).await {
                Ok(()) => break,
                Err(Refused::Full) => tokio::time::sleep(PAUSE).await,
                Err(Refused::Failed(why)) => return Err(why),
            }
        }
    }
    Ok(())
}
