//! A store in a folder of its own with a clock that tests set, and short ways to say what is sent.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use kindex_runs::domain::{
    Batch, BatchId, Clock, FinishRun, Logged, MetricName, NewRun, Opened, ParamsChange, Points, PresentedToken,
    ProjectName, RunId, Status, TagsChange, timestamp,
};
use kindex_runs::refusal::Refusal;
use kindex_runs::store::{SeriesRequest, Settings, Store, verify};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

pub(crate) const SECOND: i64 = 1_000_000_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;
/// When tests begin.
pub(crate) const START: i64 = 1_790_000_000 * SECOND;

/// A name, a step and a value.
pub(crate) type Point<'n> = (&'n str, i64, f64);

/// A store that does nothing by itself.
pub(crate) struct Bench {
    pub(crate) store: Store,
    folder: TempDir,
    now: Arc<AtomicI64>,
    settings: Settings,
}

/// Nothing happens unless a test asks for it.
pub(crate) fn quiet() -> Settings {
    Settings {
        in_background: false,
        ..Settings::default()
    }
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(quiet()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let now = Arc::new(AtomicI64::new(START));
        let store = Store::open(folder.path(), settings.clone(), clock(&now))
            .await
            .expect("the store opens");
        Self {
            store,
            folder,
            now,
            settings,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(crate) fn now(&self) -> i64 {
        self.now.load(Ordering::SeqCst)
    }

    pub(crate) fn advance(&self, by: i64) {
        self.now.fetch_add(by, Ordering::SeqCst);
    }

    /// Closes the store and opens it again, as after an orderly end.
    pub(crate) async fn restart(&mut self) {
        self.store.close().await;
        let opened = Store::open(self.folder.path(), self.settings.clone(), clock(&self.now)).await;
        self.store = opened.expect("the store opens again");
    }

    pub(crate) async fn open(&self, run: &str) -> Opened {
        self.store.init(new_run(run)).await.expect("the run opens")
    }

    /// Logs a batch without a sequence.
    pub(crate) async fn log(&self, run: &str, id: &str, points: &[Point<'_>]) -> Result<Logged, Refusal> {
        self.store.log(self.batch(run, id, None, points)).await
    }

    /// Logs a batch with a sequence.
    pub(crate) async fn log_at(&self, run: &str, sequence: i64, points: &[Point<'_>]) -> Result<Logged, Refusal> {
        let id = format!("batch-{sequence}");
        self.store.log(self.batch(run, &id, Some(sequence), points)).await
    }

    pub(crate) fn batch(&self, run: &str, id: &str, sequence: Option<i64>, points: &[Point<'_>]) -> Batch {
        batch(run, id, sequence, points, self.now())
    }

    pub(crate) async fn finish(&self, run: &str, status: Status) -> Result<(), Refusal> {
        self.store.finish(end(run, status)).await.map(|_| ())
    }

    /// Steps and values of a metric.
    pub(crate) async fn values(&self, run: &str, name: &str) -> Vec<(i64, f64)> {
        let request = SeriesRequest {
            names: vec![MetricName::new(name)],
            ..SeriesRequest::default()
        };
        let series = self
            .store
            .series(&RunId::new(run), request)
            .await
            .expect("the store reads");
        let mut series = series.expect("the run is there");
        let Some(one) = series.pop() else { return Vec::new() };
        one.series.steps.iter().copied().zip(one.series.values()).collect()
    }

    pub(crate) async fn status(&self, run: &str) -> Status {
        let run = self.store.run(&RunId::new(run)).await.expect("the store reads");
        run.expect("the run is there").status
    }

    pub(crate) async fn points(&self, run: &str) -> u64 {
        let run = self.store.run(&RunId::new(run)).await.expect("the store reads");
        run.expect("the run is there").points
    }

    /// Compacts all that is due.
    pub(crate) async fn compact(&self) -> u64 {
        let mut steps = 0;
        while self.store.compact().await.expect("it compacts") {
            steps += 1;
            assert!(steps < 10_000, "compaction does the same again and again");
        }
        steps
    }

    /// Looks at the clock every ten seconds while time passes.
    pub(crate) async fn listen(&self, time: i64) {
        let until = self.now() + time;
        while self.now() + 10 * SECOND < until {
            self.advance(10 * SECOND);
            self.store.tick().await.expect("it looks at the clock");
        }
        self.now.store(until, Ordering::SeqCst);
        self.store.tick().await.expect("it looks at the clock");
    }

    /// Ledger, chunks and counters agree.
    pub(crate) async fn verify(&self) -> verify::Report {
        let report = verify::verify(self.store.readers()).await.expect("the store reads");
        assert_eq!(report.findings, [""; 0]);
        report
    }
}

fn clock(now: &Arc<AtomicI64>) -> Clock {
    let now = Arc::clone(now);
    Arc::new(move || timestamp(now.load(Ordering::SeqCst)))
}

pub(crate) fn new_run(run: &str) -> NewRun {
    NewRun {
        project: ProjectName::new("vision"),
        run: Some(RunId::new(run)),
        name: String::new(),
        description: String::new(),
        params: Vec::new(),
        tags: Vec::new(),
        system_info: None,
        git_info: None,
        parent: None,
        user: "ada".to_owned(),
        token: PresentedToken::Absent,
        warnings: Vec::new(),
    }
}

pub(crate) fn end(run: &str, status: Status) -> FinishRun {
    FinishRun {
        run: RunId::new(run),
        status: status.to_wire().into(),
        exit_code: None,
        error_message: None,
        summary: Vec::new(),
        warnings: Vec::new(),
    }
}

pub(crate) fn batch(run: &str, id: &str, sequence: Option<i64>, points: &[Point<'_>], now: i64) -> Batch {
    let mut columns = Points::default();
    let mut hash = Sha256::new();
    for (name, step, value) in points {
        let known = columns.names.iter().position(|known| known.as_str() == *name);
        let place = known.unwrap_or_else(|| {
            columns.names.push(MetricName::new(*name));
            columns.names.len() - 1
        });
        columns.name_of.push(place as u32);
        columns.steps.push(*step);
        columns.times.push(now);
        columns.values.push(value.to_bits());
        hash.update(format!("{name} {step} {};", value.to_bits()));
    }
    Batch {
        run: RunId::new(run),
        batch_id: BatchId::new(id),
        payload_hash: hash.finalize().into(),
        sequence,
        sent: points.len() as u64,
        dropped: 0,
        points: columns,
        params: Vec::new(),
        tags: Vec::new(),
        warnings: Vec::new(),
        received_at: now,
    }
}

pub(crate) fn params(run: &str, params: &[(&str, &str)]) -> ParamsChange {
    ParamsChange {
        run: RunId::new(run),
        params: pairs(params),
        warnings: Vec::new(),
    }
}

pub(crate) fn tags(run: &str, set: &[(&str, &str)], remove: &[&str]) -> TagsChange {
    TagsChange {
        run: RunId::new(run),
        set: pairs(set),
        remove: remove.iter().map(|key| (*key).to_owned()).collect(),
        warnings: Vec::new(),
    }
}

pub(crate) fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

/// The reason of a refusal.
pub(crate) fn reason<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> &'static str {
    answer.expect_err("it is refused").reason
}
