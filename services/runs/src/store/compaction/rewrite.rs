//! Reads batches of a run and makes chunks of them, or reads chunks and gives them their last encoding. What is read
//! never changes meanwhile, since only compaction changes chunks; so the transactions only write.

use std::collections::BTreeMap;
use std::sync::Arc;

use kindex_series::{Effort, Series, Stats, batch, chunk, in_step_order, merge};
use sqlx::SqlitePool;

use crate::store::error::StoreError;
use crate::store::statements::chunks::{self, Bounds, NewChunk, Stored};
use crate::store::tail::Tail;

use super::plan::{cut, plan};
use super::slices::{Rewritten, TransactionLimits, slices};
use super::unit::Unit;

/// Batches that become chunks together at most, however few points they have: a row of the ledger is changed for each.
const BATCHES_MAX: usize = 1_000;

/// Points of a metric, and the chunk that they are merged into.
struct Layer {
    metric: u32,
    old: Option<Bounds>,
    body: Option<Vec<u8>>,
    new: Series,
}

/// Reads the first batches of a run, to a number of points, and makes chunks of them: the transactions that write that,
/// in their order; none if there is no batch.
pub(super) async fn compact(
    readers: &SqlitePool,
    tail: &Tail,
    run: i64,
    points_max: u64,
    limits: TransactionLimits,
) -> Result<Vec<Unit>, StoreError> {
    let mut snapshot = readers.begin().await?;
    let mut taken = Vec::new();
    let mut bodies = Vec::new();
    let mut points = 0;
    let mut ordinal_max = 0;
    for (arrival, ordinal, accepted) in chunks::backlog(&mut snapshot, run, BATCHES_MAX as i64).await? {
        if points > 0 && points + accepted > points_max as i64 {
            break;
        }
        points += accepted;
        ordinal_max = ordinal_max.max(ordinal);
        let body = match tail.get(arrival) {
            Some(body) => body,
            None => chunks::body(&mut snapshot, arrival).await?.unwrap_or_default().into(),
        };
        taken.push((arrival, accepted));
        bodies.push((arrival, body));
    }
    if taken.is_empty() {
        return Ok(Vec::new());
    }
    let by_metric = blocking(move || by_metric(&bodies)).await?;
    let mut layers = Vec::new();
    for (metric, series) in by_metric {
        let (Some(min), Some(max)) = (series.steps.first(), series.steps.last()) else {
            continue;
        };
        let owners = chunks::owners(&mut snapshot, run, metric, (*min, *max)).await?;
        for rewrite in plan(&owners, &series) {
            let body = match rewrite.replaces {
                Some(old) => Some(chunks::chunk(&mut snapshot, old.chunk_no).await?),
                None => None,
            };
            layers.push(Layer {
                metric,
                old: rewrite.replaces,
                body,
                new: series.slice(rewrite.points),
            });
        }
    }
    snapshot.rollback().await?;
    let rewritten = blocking(move || encode(layers, ordinal_max)).await?;
    Ok(slices(run, rewritten, &taken, limits))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| match error.is_panic() {
        true => StoreError::Panicked,
        false => StoreError::Closed,
    })?
}

/// The points of each metric, the last write of each step.
fn by_metric(batches: &[(i64, Arc<[u8]>)]) -> Result<BTreeMap<u32, Series>, StoreError> {
    let mut arrived: BTreeMap<u32, Series> = BTreeMap::new();
    for (arrival, body) in batches {
        let body = batch::decode(body).map_err(|source| damaged("batch", *arrival, source))?;
        let split = body.columns.split(body.numbers.len());
        for (number, series) in body.numbers.iter().zip(split) {
            // 0 is a metric that was not admitted.
            if *number != 0 {
                arrived.entry(*number).or_default().extend(&series);
            }
        }
    }
    let ordered = arrived
        .into_iter()
        .map(|(number, series)| (number, in_step_order(series)));
    Ok(ordered.collect())
}

fn damaged(what: &str, number: i64, source: kindex_series::DecodeError) -> StoreError {
    StoreError::Damaged {
        what: format!("the {what} {number}"),
        source,
    }
}

fn encode(layers: Vec<Layer>, ordinal_max: i64) -> Result<Vec<Rewritten>, StoreError> {
    let mut encoder = chunk::Encoder::new(Effort::Live);
    let mut decoder = chunk::Decoder::default();
    let mut rewritten = Vec::with_capacity(layers.len());
    for layer in layers {
        let merged = match (&layer.body, layer.old) {
            (Some(body), Some(old)) => {
                let older = decoder
                    .decode(body)
                    .map_err(|source| damaged("chunk", old.chunk_no, source))?;
                merge(&older, &layer.new)
            }
            _ => layer.new,
        };
        rewritten.push(Rewritten {
            removed: layer.old.map(|old| (old.chunk_no, old.n)),
            added: encoded(&mut encoder, layer.metric, &merged, ordinal_max),
        });
    }
    Ok(rewritten)
}

fn encoded(encoder: &mut chunk::Encoder, metric: u32, series: &Series, ordinal_max: i64) -> Vec<NewChunk> {
    let parts = cut(series.len()).map(|range| series.slice(range));
    let chunks = parts.filter_map(|part| {
        Some(NewChunk {
            metric,
            stats: Stats::of(&part)?,
            ordinal_max,
            body: encoder.encode(&part),
        })
    });
    chunks.collect()
}

/// How far the last encoding of a run has come: the metric and the first step of the last chunk that was read.
pub(super) type Progress = (u32, i64);

/// Before the first chunk.
pub(super) const START: Progress = (0, i64::MIN);

/// Chunks that get their last encoding together.
const SEALED_CHUNKS_MAX: i64 = 32;

/// Reads some chunks of a run that has ended and encodes them for good. The second value is where to go on; none at the
/// end of the run.
pub(super) async fn seal(
    readers: &SqlitePool,
    run: i64,
    progress: Progress,
) -> Result<(Unit, Option<Progress>), StoreError> {
    let mut connection = readers.acquire().await?;
    let old = chunks::after(&mut connection, run, progress, SEALED_CHUNKS_MAX).await?;
    drop(connection);
    let is_full = old.len() as i64 == SEALED_CHUNKS_MAX;
    let next = old
        .last()
        .filter(|_| is_full)
        .map(|last| (last.metric_no, last.step_min));
    let removed = old.iter().map(|chunk| chunk.chunk_no).collect();
    let removed_points = old.iter().map(|chunk| chunk.n).sum();
    let added = blocking(move || sealed(&old)).await?;
    let unit = Unit {
        removed,
        removed_points,
        added,
        is_sealed: next.is_none(),
        ..Unit::of(run)
    };
    Ok((unit, next))
}

fn sealed(old: &[Stored]) -> Result<Vec<NewChunk>, StoreError> {
    let mut decoder = chunk::Decoder::default();
    let mut encoder = chunk::Encoder::new(Effort::Sealed);
    let mut added = Vec::new();
    for of_metric in old.chunk_by(|a, b| a.metric_no == b.metric_no) {
        let mut series = Series::default();
        let mut ordinal_max = 0;
        for stored in of_metric {
            let decoded = decoder.decode(&stored.body);
            series.extend(&decoded.map_err(|source| damaged("chunk", stored.chunk_no, source))?);
            ordinal_max = ordinal_max.max(stored.apply_ordinal_max);
        }
        added.extend(encoded(&mut encoder, of_metric[0].metric_no, &series, ordinal_max));
    }
    Ok(added)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if the store were closed, which would be a reason to stop.
    #[tokio::test]
    async fn a_panic_is_a_failure_of_one_run() {
        let done = blocking(|| -> Result<(), StoreError> { panic!("a defect of a test") }).await;
        assert!(matches!(done, Err(StoreError::Panicked)));
    }
}
