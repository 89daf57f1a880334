//! A store in a folder of its own under a clock that tests set, for tests of what stands on the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tempfile::TempDir;

use crate::domain::{
    Batch, BatchId, FinishRun, MetricName, NewRun, ParamsChange, Points, PresentedToken, ProjectName, RunId, Status,
    TagsChange, timestamp,
};
use crate::store::{Settings, Store};

/// When the clock of a fixture begins, in nanoseconds since the epoch.
pub(crate) const START: i64 = 1_790_000_000_000_000_000;
/// In nanoseconds.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// A store that does nothing by itself.
pub(crate) struct Fixture {
    pub(crate) store: Store,
    pub(crate) folder: TempDir,
    now: Arc<AtomicI64>,
    batches: AtomicI64,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let now = Arc::new(AtomicI64::new(START));
        let clock = {
            let now = Arc::clone(&now);
            Arc::new(move || timestamp(now.load(Ordering::Relaxed)))
        };
        let settings = Settings {
            in_background: false,
            ..Settings::default()
        };
        Self {
            store: Store::open(&folder.path().join("runs"), settings, clock)
                .await
                .expect("a store"),
            folder,
            now,
            batches: AtomicI64::new(0),
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, nanos: i64) {
        self.now.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Opens a run of the project `vision`.
    pub(crate) async fn open(&self, run: &str, name: &str) {
        self.open_in("vision", run, name).await;
    }

    pub(crate) async fn open_in(&self, project: &str, run: &str, name: &str) {
        let new = NewRun {
            project: ProjectName::new(project),
            run: Some(RunId::new(run)),
            name: name.to_owned(),
            description: String::new(),
            params: Vec::new(),
            tags: Vec::new(),
            system_info: None,
            git_info: None,
            parent: None,
            user: "ada".to_owned(),
            token: PresentedToken::Absent,
            warnings: Vec::new(),
        };
        self.store.init(new).await.expect("a run");
    }

    /// Logs points of one metric, a second apart.
    pub(crate) async fn log(&self, run: &str, metric: &str, points: impl IntoIterator<Item = (i64, f64)>) {
        let number = self.batches.fetch_add(1, Ordering::Relaxed);
        let mut logged = Points {
            names: vec![MetricName::new(metric)],
            ..Points::default()
        };
        for (step, value) in points {
            logged.name_of.push(0);
            logged.steps.push(step);
            logged.times.push(START + step * SECOND);
            logged.values.push(value.to_bits());
        }
        let sent = logged.len() as u64;
        let batch = Batch {
            run: RunId::new(run),
            batch_id: BatchId::new(format!("batch-{number}")),
            payload_hash: [0; 32],
            sequence: None,
            points: logged,
            params: Vec::new(),
            tags: Vec::new(),
            warnings: Vec::new(),
            sent,
            dropped: 0,
            received_at: START,
        };
        self.store.log(batch).await.expect("a batch");
    }

    pub(crate) async fn tag(&self, run: &str, key: &str, value: &str) {
        let change = TagsChange {
            run: RunId::new(run),
            set: vec![(key.to_owned(), value.to_owned())],
            remove: Vec::new(),
            warnings: Vec::new(),
        };
        self.store.tags(change).await.expect("a tag");
    }

    pub(crate) async fn param(&self, run: &str, name: &str, value: &str) {
        let change = ParamsChange {
            run: RunId::new(run),
            params: vec![(name.to_owned(), value.to_owned())],
            warnings: Vec::new(),
        };
        self.store.params(change).await.expect("a parameter");
    }

    pub(crate) async fn finish(&self, run: &str, status: Status) {
        let end = FinishRun {
            run: RunId::new(run),
            status: status.to_wire().into(),
            exit_code: None,
            error_message: None,
            summary: vec![("best".to_owned(), "0.5".to_owned())],
            warnings: Vec::new(),
        };
        self.store.finish(end).await.expect("an end");
    }

    /// Compacts all that can be compacted.
    pub(crate) async fn compact(&self) {
        while self.store.compact().await.expect("a step of compaction") {}
    }
}
