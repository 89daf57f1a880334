//! A batch: points alone over gRPC, with parameters and tags over REST.

use super::points::{AcceptedPoints, Oversized, keep};
use super::{field, hash, texts};
use crate::domain::Batch;
use crate::refusal::Refusal;
use crate::wire::MetricColumns;
use crate::wire::v1::{LogMetricsRequest, RunId};

/// A batch as it was sent.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// The run.
    pub run_id: String,
    /// The same on every retry.
    pub batch_id: String,
    /// Its place among the batches of the run.
    pub sequence: Option<i64>,
    /// Points.
    pub points: MetricColumns,
    /// Names and values of parameters.
    pub params: Vec<(String, String)>,
    /// Keys and values of tags.
    pub tags: Vec<(String, String)>,
}

/// A batch of gRPC.
///
/// # Errors
/// As [`batch`].
pub fn log_metrics(request: LogMetricsRequest, received_at: i64, oversized: Oversized) -> Result<Batch, Refusal> {
    let sent = Sent {
        run_id: request.run_id.map(|run| run.value).unwrap_or_default(),
        batch_id: request.batch_id,
        sequence: request.sequence,
        points: request.metrics.unwrap_or_default(),
        ..Sent::default()
    };
    batch(sent, received_at, oversized)
}

/// What is kept of a batch.
///
/// # Guarantees
/// Each point of the request is in `points`, or counted in `dropped` and told by a warning.
///
/// # Errors
/// No run, no id of the batch, ids that do not fit, too many parameters or tags, and a batch over its limits where
/// those are refused.
pub fn batch(sent: Sent, received_at: i64, oversized: Oversized) -> Result<Batch, Refusal> {
    let run = field::run_id(Some(&RunId { value: sent.run_id }))?;
    let batch_id = field::batch_id(&sent.batch_id)?;
    let sequence = field::sequence(sent.sequence)?;
    let payload_hash = hash::of(&sent.points, &sent.params, &sent.tags);
    // Each id takes its length, a key and the length of the length, and the run's is in a message of its own.
    let others = run.as_str().len() + 4 + batch_id.as_str().len() + 2 + sequence.map_or(0, |_| 10) + 5;
    let AcceptedPoints { points, mut warnings } = keep(&sent.points, others, received_at, oversized)?;
    let params = texts::params("params", sent.params, &mut warnings)?;
    let tags = texts::tags(sent.tags, &mut warnings)?;
    let count = sent.points.len() as u64;
    Ok(Batch {
        run,
        batch_id,
        payload_hash,
        sequence,
        dropped: count - points.len() as u64,
        points,
        params,
        tags,
        warnings,
        sent: count,
        received_at,
    })
}
