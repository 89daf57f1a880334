//! The ingester as it runs: one supervised task a kind, with the real clock. A kind in
//! trouble touches no other, and a database that is down at the start is waited for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt;
use tokio::sync::{Mutex, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::backoff;
use super::controller::Controller;
use super::controller_name;
use super::gauges::StatusGauges;
use super::settings::Settings;
use super::status::{IngesterStatus, KindStatus};
use crate::cluster::ClusterApi;
use crate::kind::{Kind, Registry};
use crate::metrics::KindMetrics;
use crate::store::MetadataStorage;

pub mod execute;

mod kind_task;

use execute::Place;
use kind_task::KindTask;

/// Longest pause before a task that panicked, or a database that is down, is tried again.
const PAUSE_MAX: Duration = Duration::from_secs(30);
const PAUSE_FIRST: Duration = Duration::from_millis(200);
/// A task that ran longer is not one that panics at every start.
const HEALTHY: Duration = Duration::from_secs(60);
/// How long a stop waits for what is under way.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// A running ingester.
pub struct Ingester {
    kinds: Vec<RunningKind>,
    /// Shows the figures of all kinds and their status.
    figures: prometheus::Registry,
    /// Why the database is not ready, while it is not.
    database: watch::Receiver<Option<String>>,
    stop: watch::Sender<bool>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

/// One kind of a running ingester.
struct RunningKind {
    status: watch::Receiver<KindStatus>,
    kind: &'static Kind,
    metrics: Arc<KindMetrics>,
}

/// Everything that one kind's supervision needs.
struct Supervised {
    place: Place,
    registry: Registry,
    settings: Settings,
    metrics: Arc<KindMetrics>,
    status: Arc<watch::Sender<KindStatus>>,
    stop: watch::Receiver<bool>,
}

impl Ingester {
    /// Starts all kinds of a registry. Returns at once; [`Ingester::status`] says how far it is.
    ///
    /// # Assumptions
    /// Runs inside a Tokio runtime with time enabled.
    pub fn start(
        registry: Registry,
        cluster: Arc<dyn ClusterApi>,
        storage: Arc<dyn MetadataStorage>,
        settings: impl Fn(&Kind) -> Settings,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (database_state, database) = watch::channel(Some("not yet reached".to_owned()));
        let figures = prometheus::Registry::new();
        let mut kinds = Vec::new();
        let mut supervised = Vec::new();
        for kind in registry.kinds.iter().copied() {
            let (sender, status) = watch::channel(KindStatus::starting(kind.name));
            let metrics = Arc::new(KindMetrics::new(kind.name, &figures));
            tracing::info!(
                kind = kind.name,
                controller = controller_name(kind),
                "Ingester controller registered"
            );
            supervised.push(Supervised {
                place: Place {
                    kind,
                    cluster: cluster.clone(),
                    storage: storage.clone(),
                },
                registry,
                settings: settings(kind),
                metrics: metrics.clone(),
                status: Arc::new(sender),
                stop: stopped.clone(),
            });
            kinds.push(RunningKind { status, kind, metrics });
        }
        show_status(&figures, &kinds, &database, &storage);
        let supervisor = tokio::spawn(supervise_all(storage, database_state, supervised, stopped));
        Self {
            kinds,
            figures,
            database,
            stop,
            supervisor: Mutex::new(Some(supervisor)),
        }
    }

    /// How everything stands, at most a moment ago.
    pub fn status(&self) -> IngesterStatus {
        IngesterStatus {
            database: self.database.borrow().clone(),
            kinds: self.kinds.iter().map(|kind| kind.status.borrow().clone()).collect(),
        }
    }

    /// The figures of all kinds.
    pub fn metrics(&self) -> impl Iterator<Item = (&'static Kind, &Arc<KindMetrics>)> {
        self.kinds.iter().map(|kind| (kind.kind, &kind.metrics))
    }

    /// What a scrape shows of the ingester: [`KindMetrics`] and the gauges of its status.
    pub fn figures(&self) -> &prometheus::Registry {
        &self.figures
    }

    /// Begins nothing new, waits a while for what is under way, and saves the position.
    /// What is cut off is taken up again at the next start.
    pub async fn shutdown(&self) {
        self.stop.send_replace(true);
        let Some(mut supervisor) = self.supervisor.lock().await.take() else {
            return;
        };
        if tokio::time::timeout(STOP_GRACE, &mut supervisor).await.is_err() {
            tracing::warn!("The ingester did not come to rest in time and is cut off");
            supervisor.abort();
        }
    }
}

fn show_status(
    figures: &prometheus::Registry,
    kinds: &[RunningKind],
    database: &watch::Receiver<Option<String>>,
    storage: &Arc<dyn MetadataStorage>,
) {
    let statuses = kinds.iter().map(|kind| kind.status.clone()).collect();
    let gauges = StatusGauges::new(statuses, database.clone(), storage.clone());
    let registered = figures.register(Box::new(gauges));
    registered.expect("the names of gauges are not those of counters");
}

async fn supervise_all(
    storage: Arc<dyn MetadataStorage>,
    database: watch::Sender<Option<String>>,
    supervised: Vec<Supervised>,
    mut stop: watch::Receiver<bool>,
) {
    if !prepare(&*storage, &database, &mut stop).await {
        return;
    }
    let mut tasks = JoinSet::new();
    for kind in supervised {
        tasks.spawn(supervise(kind));
    }
    tasks.join_all().await;
}

/// Waits for the database; whether it came before the end.
async fn prepare(
    storage: &dyn MetadataStorage,
    state: &watch::Sender<Option<String>>,
    stop: &mut watch::Receiver<bool>,
) -> bool {
    for attempt in 1.. {
        let Err(error) = storage.prepare().await else {
            break;
        };
        let text = chain(&error);
        tracing::error!("The metadata storage is not ready: {text}");
        state.send_replace(Some(text));
        let pause = backoff::pause(attempt, PAUSE_FIRST, PAUSE_MAX, &mut rand::rng());
        if tokio::time::timeout(pause, stop.wait_for(|stop| *stop)).await.is_ok() {
            return false;
        }
    }
    state.send_replace(None);
    true
}

/// Runs one kind, again after a panic, until it is stopped.
async fn supervise(kind: Supervised) {
    let mut panics = 0;
    loop {
        let started = Instant::now();
        let controller = Controller::new(
            kind.place.kind,
            kind.registry.platform,
            kind.settings.clone(),
            kind.metrics.clone(),
            rand::rng().random(),
        );
        let task = KindTask::new(controller, kind.place.clone(), kind.status.clone());
        // A task of its own, so that a panic of the controller ends here.
        let mut run = JoinSet::new();
        run.spawn(task.run(kind.stop.clone()));
        let ended = run.join_next().await.expect("one task was spawned");
        let Err(error) = ended.and_then(|result| result) else {
            return;
        };
        if started.elapsed() > HEALTHY {
            panics = 0;
        }
        panics += 1;
        let name = kind.place.kind.name;
        tracing::error!(kind = name, "The controller failed and starts again: {error}");
        kind.metrics.retry("panic");
        kind.status.send_modify(|status| {
            status.failing = true;
            status.last_error = Some(error.to_string());
        });
        let pause = backoff::pause(panics, PAUSE_FIRST, PAUSE_MAX, &mut rand::rng());
        let mut stop = kind.stop.clone();
        if tokio::time::timeout(pause, stop.wait_for(|stop| *stop)).await.is_ok() {
            return;
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
