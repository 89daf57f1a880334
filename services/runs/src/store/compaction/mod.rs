//! Makes chunks of batches behind the back of answers: when a run has enough points, when it has ended, and when its
//! points have waited for long. A run that has ended gets the last, smaller encoding.

mod plan;

mod unit;

mod slices;

mod rewrite;

use sqlx::SqlitePool;

use super::backlog::Work;
use super::error::StoreError;
use super::queue::Handle;
use super::settings::Settings;
use super::shared::Shared;
use super::statements::chunks;
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

/// Does the most urgent step, if any is due; whether one was.
pub(super) async fn step(
    writer: &Handle,
    readers: &SqlitePool,
    shared: &Shared,
    settings: &Settings,
) -> Result<bool, CompactionError> {
    match shared.backlog.next(settings.compact_points, shared.now()) {
        None => Ok(false),
        Some(Work::Compact(run)) => {
            compact_run(writer, readers, shared, settings, run).await?;
            Ok(true)
        }
        Some(Work::Seal(run)) => {
            seal_run(writer, readers, shared, run).await?;
            Ok(true)
        }
    }
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
