//! Makes chunks of batches behind the back of answers: when a run has enough points, when it has ended, and when its
//! points have waited for long. A run that has ended gets the last, smaller encoding.

mod plan;

mod unit;

mod slices;

mod rewrite;

use sqlx::SqlitePool;

use super::backlog::Work;
use super::error::StoreError;
use super::health::Health;
use super::queue::Handle;
use super::settings::Settings;
use super::shared::Shared;
use super::statements::{chunks, runs};
use crate::refusal::Refusal;
use slices::TransactionLimits;

/// Why a step was not done.
#[derive(Debug, thiserror::Error)]
pub(super) enum CompactionError {
    /// It cannot be read, or what was read is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It cannot be written.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Does the most urgent step, if any is due; whether one was. A run whose step fails is put aside, so that others go
/// on.
///
/// # Errors
///
/// What every run would meet.
pub(super) async fn step(
    writer: &Handle,
    readers: &SqlitePool,
    shared: &Shared,
    settings: &Settings,
    health: &Health,
) -> Result<bool, CompactionError> {
    let Some(work) = shared.backlog.next(settings.compact_points, shared.now()) else {
        return Ok(false);
    };
    let done = match work {
        Work::Compact(run) => compact_run(writer, readers, shared, settings, run).await,
        Work::Seal(run) => seal_run(writer, readers, shared, run).await,
    };
    match done {
        Ok(()) => shared.backlog.succeeded(work.run()),
        Err(error) if health.is_failing() => return Err(error),
        Err(error) => put_aside(readers, shared, work.run(), &error.to_string()).await?,
    }
    Ok(true)
}

/// Has others go first. Where not even the row of the run can be read, it fails as for every run.
async fn put_aside(readers: &SqlitePool, shared: &Shared, run: i64, reason: &str) -> Result<(), CompactionError> {
    let mut connection = readers.acquire().await.map_err(StoreError::from)?;
    let Some(id) = runs::id(&mut connection, run).await.map_err(StoreError::from)? else {
        // It was deleted: its rows only wait to go.
        shared.backlog.empty(run);
        shared.backlog.sealed(run);
        return Ok(());
    };
    if shared.backlog.defer(run, id.clone(), reason, shared.now()) {
        tracing::warn!(run = %id, "Compaction of a run failed, retrying later while others go on: {reason}");
    }
    Ok(())
}

async fn compact_run(
    writer: &Handle,
    readers: &SqlitePool,
    shared: &Shared,
    settings: &Settings,
    run: i64,
) -> Result<(), CompactionError> {
    let limits = TransactionLimits::of(settings.compact_chunks);
    let units = rewrite::compact(readers, &shared.tail, run, settings.compact_points, limits).await?;
    if units.is_empty() {
        // What was counted is gone, as with a deleted run.
        shared.backlog.empty(run);
    }
    for unit in units {
        writer.send_later(unit).await?;
    }
    Ok(())
}

async fn seal_run(writer: &Handle, readers: &SqlitePool, shared: &Shared, run: i64) -> Result<(), CompactionError> {
    let mut connection = readers.acquire().await.map_err(StoreError::from)?;
    let points = chunks::backlog_points(&mut connection, run)
        .await
        .map_err(StoreError::from)?;
    drop(connection);
    if points > 0 {
        // They were not counted, and come first.
        shared.backlog.add(run, points as u64, shared.now());
        return Ok(());
    }
    let mut progress = Some(rewrite::START);
    while let Some(at) = progress {
        let (unit, next) = rewrite::seal(readers, run, at).await?;
        writer.send_later(unit).await?;
        progress = next;
    }
    shared.backlog.sealed(run);
    Ok(())
}
