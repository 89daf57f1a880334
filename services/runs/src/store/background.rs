//! What goes on by itself while the store is open: looks at the clock, compaction, checkpoints, and rows that are no
//! longer needed. Each of them tries again later where it fails.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{SqliteConnection, SqlitePool};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::commands::{ForgetBatches, GiveUpCrashed, Probe, PurgeDeleted, Shrink, Tick};
use super::compaction;
use super::connect;
use super::error::StoreError;
use super::files::{self, Files};
use super::health::Health;
use super::queue::Handle;
use super::settings::Settings;
use super::shared::Shared;

/// Between two looks at the clock.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Between two looks at the files, and two attempts to write where it failed.
const HEAL_EVERY: Duration = Duration::from_secs(1);
/// Between two looks at the size of the log.
const CHECKPOINT_EVERY: Duration = Duration::from_millis(500);
/// So much of the log is written back to the file at a time: not more, or the disk is busy for long.
const LOG_BYTES_STEP: u64 = 8 * 1024 * 1024;
/// From this size on, the log begins anew when the writer is idle.
const LOG_BYTES_MIN: u64 = 32 * 1024 * 1024;
/// From this size on, the log begins anew, though batches wait for it.
const LOG_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// What a page has in front of it in the log.
const FRAME_HEAD_BYTES: u64 = 24;
/// Between two looks for rows that are no longer needed.
const CLEAN_EVERY: Duration = Duration::from_secs(5);
/// Rows of the ledger that are deleted in one transaction, so that it stays short.
pub(super) const CLEAN_ROWS: i64 = 500;
/// Rows with bodies that are deleted in one transaction.
pub(super) const PURGED_ROWS: i64 = 100;
/// Pages that are given back in one transaction.
pub(super) const SHRUNK_PAGES: u32 = 128;
/// Before compaction goes on after a failure that every run would meet.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What the tasks work with.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) writer: Handle,
    pub(super) readers: SqlitePool,
    pub(super) shared: Arc<Shared>,
    pub(super) settings: Arc<Settings>,
    pub(super) options: SqliteConnectOptions,
    pub(super) folder: PathBuf,
    pub(super) files: Arc<Files>,
    pub(super) health: Health,
}

/// Starts all tasks. They end when the token is cancelled.
pub(super) fn start(parts: &Parts, tick: Tick, stop: &CancellationToken) -> Vec<tokio::task::JoinHandle<()>> {
    let until = |task: futures::future::BoxFuture<'static, ()>| {
        let stop = stop.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(task).await;
        })
    };
    vec![
        until(Box::pin(look(parts.clone(), tick))),
        until(Box::pin(compact(parts.clone()))),
        until(Box::pin(write_back(parts.clone()))),
        until(Box::pin(clean(parts.clone()))),
        until(Box::pin(heal(parts.clone()))),
    ]
}

async fn look(parts: Parts, tick: Tick) {
    let mut times = interval(LOOK_EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        match parts.writer.send_later(tick.clone()).await {
            Ok(report) => {
                parts.shared.meter.looked(parts.shared.now(), report.crashed.len());
                for run in report.crashed {
                    tracing::info!(%run, "Run has crashed: nothing was heard of it");
                }
            }
            // The writer has said so already.
            Err(refusal) => tracing::debug!("Cannot look for silent runs: {refusal}"),
        }
    }
}

/// Looks whether the files are there, and while nothing is written, whether something can be.
async fn heal(parts: Parts) {
    let mut times = interval(HEAL_EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        if let Err(error) = parts.files.check() {
            parts.health.fails(&error.reason());
        }
        if parts.health.is_failing() {
            probe(&parts.writer, &parts.folder, &parts.health).await;
        }
    }
}

/// Writes something, to see whether it works again. Why it does not is told by the health.
pub(super) async fn probe(writer: &Handle, folder: &std::path::Path, health: &Health) {
    let folder = folder.to_owned();
    let room = tokio::task::spawn_blocking(move || files::has_room(&folder)).await;
    match room {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            health.fails(&error.reason());
            return;
        }
        Err(_) => return,
    }
    if writer.send(Probe).await.is_ok() && health.works() {
        tracing::info!("The store of runs writes again");
    }
}

async fn compact(parts: Parts) {
    loop {
        let Parts {
            writer,
            readers,
            shared,
            settings,
            health,
            ..
        } = &parts;
        match compaction::step(writer, readers, shared, settings, health).await {
            Ok(true) => {}
            // What has waited for long gives no signal.
            Ok(false) => {
                let _late = tokio::time::timeout(CLEAN_EVERY, shared.wake.notified()).await;
            }
            Err(error) => {
                tracing::warn!("Compaction failed and is tried again: {error}");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

/// What is known of the log.
#[derive(Default)]
struct Log {
    connection: Option<SqliteConnection>,
    /// Bytes of it that are in the file.
    written_back: u64,
}

/// The log is written back by a connection of its own, while batches are written. Only for the log to begin anew does
/// the writer wait for the disk: for a last, small part.
async fn write_back(parts: Parts) {
    let mut log = Log::default();
    let mut times = interval(CHECKPOINT_EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        if let Err(error) = log.look(&parts).await {
            log.connection = None;
            tracing::warn!("Checkpoint failed and is tried again: {error}");
        }
    }
}

impl Log {
    async fn look(&mut self, parts: &Parts) -> Result<(), StoreError> {
        let bytes = log_bytes(&parts.folder);
        if bytes < self.written_back {
            // It has begun anew.
            self.written_back = 0;
        }
        if bytes >= self.written_back + LOG_BYTES_STEP {
            self.written_back = self.checkpoint(&parts.options).await?;
        }
        if begins_anew(bytes, parts.writer.is_idle()) {
            self.written_back = self.checkpoint(&parts.options).await?;
            parts.writer.checkpoint().await?;
        }
        Ok(())
    }

    /// Writes back what nobody needs any more in the log; how many of its bytes are in the file then.
    async fn checkpoint(&mut self, options: &SqliteConnectOptions) -> Result<u64, StoreError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect::writer(options).await?,
        };
        let (_, _, frames): (i64, i64, i64) = sqlx::query_as("PRAGMA wal_checkpoint(PASSIVE)")
            .fetch_one(&mut connection)
            .await?;
        self.connection = Some(connection);
        Ok(frames.max(0) as u64 * (u64::from(connect::PAGE_BYTES) + FRAME_HEAD_BYTES))
    }
}

/// Whether the log is to begin anew.
fn begins_anew(bytes: u64, is_idle: bool) -> bool {
    bytes >= LOG_BYTES_MAX || (is_idle && bytes >= LOG_BYTES_MIN)
}

fn log_bytes(folder: &std::path::Path) -> u64 {
    std::fs::metadata(connect::log(folder)).map_or(0, |metadata| metadata.len())
}

async fn clean(parts: Parts) {
    let mut times = interval(CLEAN_EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        while let Ok(true) = parts.writer.send_later(PurgeDeleted { limit: PURGED_ROWS }).await {}
        while let Ok(1..) = parts.writer.send_later(ForgetBatches { limit: CLEAN_ROWS }).await {}
        // Tried again the next time.
        let _tried = parts.writer.send_later(GiveUpCrashed { limit: CLEAN_ROWS }).await;
        let mut shrink = Shrink::begin(SHRUNK_PAGES);
        while let Ok(true) = parts.writer.send_later(shrink).await {
            shrink = Shrink::go_on(SHRUNK_PAGES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_begins_anew_when_nobody_waits_and_before_it_is_too_large() {
        assert!(!begins_anew(LOG_BYTES_MIN - 1, true));
        assert!(begins_anew(LOG_BYTES_MIN, true));
        assert!(!begins_anew(LOG_BYTES_MAX - 1, false));
        assert!(begins_anew(LOG_BYTES_MAX, false));
    }
}
