//! Runs in a SQLite file of their own: a ledger row for each batch, written by one writer that commits in groups, and
//! chunks of series that are made of them later. An answer comes after the commit, a refused or failed call leaves
//! nothing behind. Knows no transport.

mod error;

mod row;

mod settings;

mod meter;

mod disk;

mod connect;

mod files;

mod health;

mod schema;

mod cache;

mod statements;

mod transaction;

mod queue;

mod writer;

mod commands;

mod tail;

mod backlog;

mod shared;

mod compaction;

mod background;

mod read;

pub mod verify;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sqlx::SqlitePool;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::domain::{
    Batch, Clock, FinishRun, Finished, HeartbeatAnswer, Logged, MetricName, NewRun, Opened, ParamsChange, ParamsLogged,
    ProjectName, Run, RunId, RunIds, TagsChange, TagsLogged, nanos,
};
use crate::lifecycle::Watch;
use crate::refusal::Refusal;

pub use commands::TickReport;
pub use connect::readers;
pub use disk::Disk;
pub use error::StoreError;
pub use meter::Meter;
pub use read::{NamedSeries, SeriesRequest};
pub use settings::{Durability, Faults, Settings};
pub use transaction::{Command, Failure, Tx};

use background::Parts;
use commands::{
    DeleteRun, Finish, ForgetBatches, GiveUpCrashed, Heartbeat, LogBatch, LogParams, LogTags, Open, PurgeDeleted,
    Shrink, Tick,
};
use files::Files;
use health::Health;
use queue::Handle;
use shared::Shared;
use writer::Writer;

/// What is measured of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStats {
    /// Points that are not in chunks.
    pub backlog_points: u64,
    /// Runs whose compaction has failed.
    pub deferred_runs: usize,
    /// Bytes of batches in memory.
    pub tail_bytes: usize,
    /// Bytes that wait for the writer.
    pub queue_bytes: usize,
    /// Points that may be outside of chunks, over all runs.
    pub backlog_points_max: u64,
    /// Bytes that may wait for the writer.
    pub queue_bytes_max: usize,
    /// Bytes of batches that may be held, over all runs.
    pub held_bytes_max: u64,
}

/// A handle to the store; clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    writer: Handle,
    readers: SqlitePool,
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    tick: Tick,
    folder: PathBuf,
    health: Health,
    ids: Mutex<RunIds>,
    /// Only one step of compaction at a time.
    compaction: tokio::sync::Mutex<()>,
    stop: CancellationToken,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Store {
    /// Opens or creates the store in a folder, and starts its tasks.
    ///
    /// # Errors
    ///
    /// Where the folder cannot be used, another process has it, or the file is of a newer version.
    pub async fn open(folder: &Path, settings: Settings, clock: Clock) -> Result<Self, StoreError> {
        let lock = connect::claim(folder)?;
        let settings = Arc::new(settings);
        let options = connect::writer_options(folder, settings.durability);
        let mut connection = connect::writer(&options).await?;
        schema::migrate(&mut connection).await?;
        let readers = connect::readers(folder).await?;
        let shared = Arc::new(Shared::new(&settings, Arc::clone(&clock)));
        shared.rebuild(&readers).await?;
        let tx = Tx::new(connection, Arc::clone(&settings));
        let watch = Watch::begin(nanos(clock()).unwrap_or(0));
        let (files, health) = (Arc::new(Files::opened(folder)?), Health::new());
        let writer = Writer::new(writer::Parts {
            tx,
            options: options.clone(),
            settings: Arc::clone(&settings),
            clock,
            observer: Arc::clone(&shared),
            files: Arc::clone(&files),
            health: health.clone(),
            meter: shared.meter.clone(),
            _lock: lock,
        });
        let (writer, writing) = writer.start();
        let tick = Tick {
            watch: Arc::new(Mutex::new(watch)),
        };
        let stop = CancellationToken::new();
        let mut tasks = vec![writing];
        if settings.in_background {
            let parts = Parts {
                writer: writer.clone(),
                readers: readers.clone(),
                shared: Arc::clone(&shared),
                settings: Arc::clone(&settings),
                options,
                folder: folder.to_owned(),
                files,
                health: health.clone(),
            };
            tasks.extend(background::start(&parts, tick.clone(), &stop));
        }
        let inner = Inner {
            writer,
            readers,
            shared,
            settings,
            tick,
            folder: folder.to_owned(),
            health,
            ids: Mutex::default(),
            compaction: tokio::sync::Mutex::default(),
            stop,
            tasks: Mutex::new(tasks),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Ends all tasks and writes the log back. Calls that come later are refused.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        self.inner.writer.close().await;
        let tasks = std::mem::take(&mut *self.inner.tasks.lock().expect("nothing panics while it has the tasks"));
        for task in tasks {
            // A task that has panicked has ended as well.
            let _ended = task.await;
        }
        self.inner.readers.close().await;
    }

    /// `InitRun`.
    ///
    /// # Errors
    ///
    /// What the client is told.
    pub async fn init(&self, new: NewRun) -> Result<Opened, Refusal> {
        let made = || {
            let now_ms = self.inner.shared.now().max(0) / 1_000_000;
            let mut ids = self.inner.ids.lock().expect("nothing panics while it makes an id");
            ids.next(now_ms as u64, rand::random())
        };
        let run = new.run.clone().unwrap_or_else(made);
        self.write(Open { new, run }).await
    }

    /// `LogMetrics`.
    ///
    /// # Errors
    ///
    /// What the client is told.
    pub async fn log(&self, batch: Batch) -> Result<Logged, Refusal> {
        let Inner { shared, settings, .. } = &*self.inner;
        if shared.backlog.is_full(&batch.run, settings.backlog_points_max) {
            return Err(error::backlog_full());
        }
        self.write(LogBatch::new(batch)).await
    }

    /// `LogParams`.
    ///
    /// # Errors
    ///
    /// What the client is told.
    pub async fn params(&self, change: ParamsChange) -> Result<ParamsLogged, Refusal> {
        self.write(LogParams(change)).await
    }

    /// `LogTags`.
    ///
    /// # Errors
    ///
    /// What the client is told.
    pub async fn tags(&self, change: TagsChange) -> Result<TagsLogged, Refusal> {
        self.write(LogTags(change)).await
    }

    /// `Heartbeat`.
    ///
    /// # Errors
    ///
    /// What the client is told.
    pub async fn heartbeat(&self, run: RunId) -> Result<HeartbeatAnswer, Refusal> {
        self.write(Heartbeat(run)).await
    }

    /// `FinishRun`.
    ///
    /// # Errors
    ///
    /// What the client is told.
    pub async fn finish(&self, end: FinishRun) -> Result<Finished, Refusal> {
        self.write(Finish(end)).await
    }

    /// Deletes a run: it is gone at once, its space is free later.
    ///
    /// # Errors
    ///
    /// What the client is told.
    pub async fn delete(&self, run: RunId) -> Result<(), Refusal> {
        self.write(DeleteRun(run)).await
    }

    /// Does any command in a transaction of the writer; the answer comes after the commit.
    ///
    /// # Errors
    ///
    /// What the client is told.
    pub async fn write<C: Command>(&self, command: C) -> Result<C::Answer, Refusal> {
        self.inner.writer.send(command).await
    }

    /// What is known of a run; none if there is no such run.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read.
    pub async fn run(&self, run: &RunId) -> Result<Option<Run>, Refusal> {
        read::run(&self.inner.readers, run)
            .await
            .map_err(|error| error.refusal())
    }

    /// The project of a run, which never changes; none if there is no such run.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read.
    pub async fn project_of(&self, run: &RunId) -> Result<Option<ProjectName>, Refusal> {
        let deletions = match self.inner.shared.project(run) {
            Ok(project) => return Ok(Some(project)),
            Err(deletions) => deletions,
        };
        let project = read::project(&self.inner.readers, run)
            .await
            .map_err(|error| error.refusal())?;
        if let Some(project) = &project {
            self.inner.shared.remember_project(run, project.clone(), deletions);
        }
        Ok(project)
    }

    /// The metrics of a run, in the order of their names; none if there is no such run.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read.
    pub async fn metric_names(&self, run: &RunId) -> Result<Option<Vec<MetricName>>, Refusal> {
        read::metric_names(&self.inner.readers, run)
            .await
            .map_err(|error| error.refusal())
    }

    /// Points of a run, all that were answered before this was called; none if there is no such run.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, or is damaged.
    pub async fn series(&self, run: &RunId, request: SeriesRequest) -> Result<Option<Vec<NamedSeries>>, Refusal> {
        let Inner { readers, shared, .. } = &*self.inner;
        read::series(readers, &shared.tail, run, request)
            .await
            .map_err(|error| error.refusal())
    }

    /// Connections that only read, for queries over many runs; the columns are those of `schema/`.
    #[must_use]
    pub fn readers(&self) -> &SqlitePool {
        &self.inner.readers
    }

    /// The time, in nanoseconds since the epoch.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.inner.shared.now()
    }

    /// Why nothing can be written, and when that changes; none while all is well.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Option<String>> {
        self.inner.health.follow()
    }

    /// Where nothing could be written, tries whether it can be now.
    pub async fn probe(&self) {
        background::probe(&self.inner.writer, &self.inner.folder, &self.inner.health).await;
    }

    /// What is measured.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        StoreStats {
            backlog_points: self.inner.shared.backlog.total(),
            deferred_runs: self.inner.shared.backlog.deferred(),
            tail_bytes: self.inner.shared.tail.bytes(),
            queue_bytes: self.inner.writer.waiting_bytes(),
            backlog_points_max: self.inner.settings.backlog_points_max,
            queue_bytes_max: self.inner.settings.queue_bytes_max,
            held_bytes_max: self.inner.settings.held_bytes_max,
        }
    }

    /// What is counted while it works.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.inner.shared.meter
    }

    /// How large its file is, and how much room there is.
    #[must_use]
    pub fn disk(&self) -> Disk {
        Disk::of(&connect::file(&self.inner.folder))
    }

    /// Looks at the clock: releases held batches that are due, and finds crashed runs.
    ///
    /// # Errors
    ///
    /// Where the file cannot be written.
    pub async fn tick(&self) -> Result<TickReport, Refusal> {
        self.write(self.inner.tick.clone()).await
    }

    /// Does a step of compaction, if one is due; whether one was. A run of which it fails is put aside.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read or written.
    pub async fn compact(&self) -> Result<bool, Refusal> {
        let Inner {
            writer,
            readers,
            shared,
            settings,
            compaction,
            health,
            ..
        } = &*self.inner;
        let _alone = compaction.lock().await;
        let done = compaction::step(writer, readers, shared, settings, health).await;
        done.map_err(|error| match error {
            compaction::CompactionError::Store(error) => error.refusal(),
            compaction::CompactionError::Refused(refusal) => refusal,
        })
    }

    /// Deletes what is no longer needed: rows of deleted runs, and ids of batches that are old enough; and gives space
    /// back to the system. Crashed runs that nobody can resume count as ended from then on.
    ///
    /// # Errors
    ///
    /// Where the file cannot be written.
    pub async fn clean(&self) -> Result<(), Refusal> {
        let (purged, limit, pages) = (
            background::PURGED_ROWS,
            background::CLEAN_ROWS,
            background::SHRUNK_PAGES,
        );
        while self.write(PurgeDeleted { limit: purged }).await? {}
        while self.write(ForgetBatches { limit }).await? > 0 {}
        self.write(GiveUpCrashed { limit }).await?;
        let mut shrink = Shrink::begin(pages);
        while self.write(shrink).await? {
            shrink = Shrink::go_on(pages);
        }
        Ok(())
    }
}
