//! The running ingester: one supervised task per kind, with the real clock. A failing kind affects no other, and a
//! database that is down at the start is waited for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kindex_kube_client::ClusterApi;
use kindex_model::causes::chain;
use kindex_model::kind::{Kind, Registry};
use kindex_store::database_gauges::DatabaseGauges;
use kindex_store::{Database, IngesterStorage, MetadataStorage, Prepare, backoff};
use rand::RngExt;
use tokio::sync::{Mutex, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use super::controller::Controller;
use super::controller_name;
use super::gauges::StatusGauges;
use super::settings::Settings;
use super::status::{IngesterStatus, KindStatus};
use crate::metrics::KindMetrics;

mod owned;

pub mod execute;

mod kind_task;

use execute::Executor;
use kind_task::KindTask;

/// Longest pause before a task that panicked, or a database that is down, is retried.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How often the database is pinged.
const LOOK_PERIOD: Duration = Duration::from_secs(2);
/// Between two looks at whether the database is away, until the first attempt has ended.
const OUTAGE_POLL: Duration = Duration::from_millis(50);
const PAUSE_FIRST: Duration = Duration::from_millis(200);
/// A task that ran longer does not panic at every start: its backoff begins again.
const HEALTHY: Duration = Duration::from_secs(60);
/// How long a stop waits for what is in flight.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Which kinds an ingester works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharding {
    /// All of them, from the start.
    Alone,
    /// Those of the shards that are assigned to it, of so many shards.
    Shards(usize),
}

/// Where an ingester keeps rows.
#[derive(Clone)]
pub struct Storage {
    /// The rows.
    pub rows: Arc<dyn IngesterStorage>,
    /// The database that holds them, which is pinged; `None` if the rows are in none.
    pub database: Option<Arc<dyn Database>>,
}

impl From<Arc<dyn MetadataStorage>> for Storage {
    fn from(store: Arc<dyn MetadataStorage>) -> Self {
        Self {
            rows: store.clone(),
            database: Some(store),
        }
    }
}

/// A running ingester.
pub struct Ingester {
    sharding: Sharding,
    kinds: Vec<RunningKind>,
    /// The metrics of all kinds and their status.
    metrics_registry: prometheus::Registry,
    /// Why the database is not ready; `None` if it is.
    database: watch::Receiver<Option<String>>,
    storage: Storage,
    stop: watch::Sender<bool>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

/// One kind of a running ingester.
struct RunningKind {
    status: watch::Receiver<KindStatus>,
    kind: &'static Kind,
    metrics: Arc<KindMetrics>,
    turn: watch::Sender<bool>,
    working: watch::Receiver<bool>,
}

/// What the supervision of one kind needs.
struct Supervised {
    executor: Executor,
    cluster: Arc<dyn ClusterApi>,
    registry: Registry,
    settings: Settings,
    metrics: Arc<KindMetrics>,
    status: Arc<watch::Sender<KindStatus>>,
    stop: watch::Receiver<bool>,
    /// Whether the kind is assigned to this replica.
    turn: watch::Receiver<bool>,
    working: watch::Sender<bool>,
}

impl Ingester {
    /// Starts the kinds of a registry that are assigned to this replica. Returns at once; [`Ingester::status`] shows
    /// the progress.
    ///
    /// # Assumptions
    /// Runs inside a Tokio runtime with time enabled.
    pub fn start(
        registry: Registry,
        cluster: Arc<dyn ClusterApi>,
        storage: impl Into<Storage>,
        sharding: Sharding,
        settings: impl Fn(&Kind) -> Settings,
    ) -> Self {
        let storage = storage.into();
        let (stop, stopped) = watch::channel(false);
        let (database_state, database) = watch::channel(Some("not yet reached".to_owned()));
        let metrics_registry = prometheus::Registry::new();
        let mut kinds = Vec::new();
        let mut supervised = Vec::new();
        for kind in registry.cluster_kinds() {
            let (sender, status) = watch::channel(KindStatus::starting(kind.name));
            let (turn, turned) = watch::channel(sharding == Sharding::Alone);
            let (worker, working) = watch::channel(false);
            let metrics = Arc::new(KindMetrics::new(kind.name, &metrics_registry));
            tracing::info!(
                kind = kind.name,
                controller = controller_name(kind),
                "Ingester controller registered"
            );
            supervised.push(Supervised {
                executor: Executor {
                    kind,
                    registry,
                    cluster: cluster.clone(),
                    storage: storage.rows.clone(),
                },
                cluster: cluster.clone(),
                registry,
                settings: settings(kind),
                metrics: metrics.clone(),
                status: Arc::new(sender),
                stop: stopped.clone(),
                turn: turned,
                working: worker,
            });
            kinds.push(RunningKind {
                status,
                kind,
                metrics,
                turn,
                working,
            });
        }
        show_status(&metrics_registry, &kinds, &database);
        if let Some(database) = &storage.database {
            let shown = metrics_registry.register(Box::new(DatabaseGauges::new(database.clone())));
            shown.expect("the names of gauges are not those of counters");
            let statuses: Vec<_> = kinds.iter().map(|kind| kind.status.clone()).collect();
            let waiting = move || statuses.iter().map(|status| status.borrow().pending).sum();
            database.outage().count_waiting(waiting);
        }
        let supervisor = tokio::spawn(supervise_all(storage.clone(), database_state, supervised, stopped));
        Self {
            sharding,
            kinds,
            metrics_registry,
            database,
            storage,
            stop,
            supervisor: Mutex::new(Some(supervisor)),
        }
    }

    /// How many shards the kinds are divided into.
    pub fn shards(&self) -> usize {
        match self.sharding {
            Sharding::Alone => 1,
            Sharding::Shards(shards) => shards,
        }
    }

    /// Waits until the database was prepared, the first attempt has failed, or the database turns out to be away.
    pub async fn first_attempt(&self) {
        let Some(store) = &self.storage.database else { return };
        // What was sent before this call counts: nobody marks the state as seen.
        let mut state = self.database.clone();
        let outage = async {
            while store.outage().lasts().is_none() {
                tokio::time::sleep(OUTAGE_POLL).await;
            }
        };
        tokio::select! {
            _ = state.changed() => {}
            () = outage => {}
        }
    }

    /// Assigns these shards, and takes all others away. Returns at once. Has no effect on an ingester that runs alone.
    pub fn assign(&self, shards: &BTreeSet<usize>) {
        let Sharding::Shards(of) = self.sharding else { return };
        for (index, kind) in self.kinds.iter().enumerate() {
            let is_ours = shards.contains(&(index % of));
            kind.turn
                .send_if_modified(|turn| std::mem::replace(turn, is_ours) != is_ours);
        }
    }

    /// Waits until the kinds of a shard that was taken away have drained.
    pub async fn drain(&self, shard: usize) {
        let of = self.shards();
        for (_, kind) in self.kinds.iter().enumerate().filter(|(index, _)| index % of == shard) {
            let mut working = kind.working.clone();
            let resting = working.wait_for(|working| !*working);
            if tokio::time::timeout(STOP_GRACE, resting).await.is_err() {
                tracing::warn!(kind = kind.kind.name, "The controller does not drain");
            }
        }
    }

    /// The status of all kinds, at most 50 ms old.
    pub fn status(&self) -> IngesterStatus {
        IngesterStatus {
            database: self.database.borrow().clone(),
            stalled: self.storage.database.as_ref().and_then(|it| it.calls().stalled()),
            kinds: self.kinds.iter().map(|kind| kind.status.borrow().clone()).collect(),
        }
    }

    /// The metrics of all kinds.
    pub fn metrics(&self) -> impl Iterator<Item = (&'static Kind, &Arc<KindMetrics>)> {
        self.kinds.iter().map(|kind| (kind.kind, &kind.metrics))
    }

    /// All metrics of the ingester: [`KindMetrics`] and the gauges of its status.
    pub fn metrics_registry(&self) -> &prometheus::Registry {
        &self.metrics_registry
    }

    /// Drains for a while and saves the checkpoint. The next start repeats what did not finish.
    pub async fn shutdown(&self) {
        self.stop.send_replace(true);
        let Some(mut supervisor) = self.supervisor.lock().await.take() else {
            return;
        };
        if tokio::time::timeout(STOP_GRACE, &mut supervisor).await.is_err() {
            tracing::warn!("The ingester did not drain in time and is stopped");
            supervisor.abort();
        }
    }
}

fn show_status(registry: &prometheus::Registry, kinds: &[RunningKind], database: &watch::Receiver<Option<String>>) {
    let statuses = kinds.iter().map(|kind| kind.status.clone()).collect();
    let gauges = StatusGauges::new(statuses, database.clone());
    let registered = registry.register(Box::new(gauges));
    registered.expect("the names of gauges are not those of counters");
}

async fn supervise_all(
    storage: Storage,
    database: watch::Sender<Option<String>>,
    supervised: Vec<Supervised>,
    mut stop: watch::Receiver<bool>,
) {
    if !prepare(&*storage.rows, &database, &mut stop).await {
        return;
    }
    let mut tasks = JoinSet::new();
    for kind in supervised {
        tasks.spawn(supervise(kind));
    }
    if let Some(database) = storage.database {
        tasks.spawn(ping_database(database, stop));
    }
    tasks.join_all().await;
}

/// Pings the database, so that the store notices an outage even while nothing changes.
async fn ping_database(database: Arc<dyn Database>, mut stop: watch::Receiver<bool>) {
    loop {
        let look = async {
            tokio::time::sleep(LOOK_PERIOD).await;
            // The store logs the result.
            let _logged = database.ping().await;
        };
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = look => {}
        }
    }
}

/// Waits for the database. Returns false if the ingester was stopped first.
async fn prepare(
    storage: &dyn Prepare,
    state: &watch::Sender<Option<String>>,
    stop: &mut watch::Receiver<bool>,
) -> bool {
    for attempt in 1.. {
        let Err(error) = storage.prepare().await else {
            break;
        };
        let text = chain(&error);
        let is_known = error.is_outage() || state.borrow().as_ref() == Some(&text);
        if is_known {
            tracing::debug!("The metadata storage is not ready: {text}");
        } else {
            tracing::error!("The metadata storage is not ready: {text}");
        }
        state.send_replace(Some(text));
        let pause = backoff::pause(attempt, PAUSE_FIRST, PAUSE_MAX, &mut rand::rng());
        if tokio::time::timeout(pause, stop.wait_for(|stop| *stop)).await.is_ok() {
            return false;
        }
    }
    state.send_replace(None);
    true
}

/// The kinds of the cluster whose objects those of a kind may own.
fn owned_by(registry: &Registry, kind: &Kind) -> Vec<&'static Kind> {
    let referrers = registry.referrers(kind);
    let owned = referrers.filter(|(holder, reference, _)| reference.owned && holder.cluster);
    owned.map(|(holder, _, _)| holder).collect()
}

/// Runs one kind while it is assigned to this replica, and again after a panic, until it is stopped.
async fn supervise(mut kind: Supervised) {
    let mut panics = 0;
    loop {
        if !kind.wait_for_turn().await {
            return;
        }
        let started = Instant::now();
        let controller = Controller::new(
            kind.executor.kind,
            kind.registry.platform,
            owned_by(&kind.registry, kind.executor.kind),
            kind.settings.clone(),
            kind.metrics.clone(),
            rand::rng().random(),
        );
        let task = KindTask::new(
            controller,
            kind.executor.clone(),
            kind.cluster.clone(),
            kind.status.clone(),
        );
        kind.working.send_replace(true);
        let ended = kind.run(task).await;
        kind.working.send_replace(false);
        let Err(error) = ended else {
            continue;
        };
        if started.elapsed() > HEALTHY {
            panics = 0;
        }
        panics += 1;
        let name = kind.executor.kind.name;
        tracing::error!(kind = name, "The controller failed and restarts: {error}");
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

impl Supervised {
    /// Waits until the kind is assigned to this replica. Returns false if it was stopped first.
    async fn wait_for_turn(&mut self) -> bool {
        if !*self.turn.borrow_and_update() {
            self.status.send_replace(KindStatus::elsewhere(self.executor.kind.name));
        }
        tokio::select! {
            biased;
            _ = self.stop.wait_for(|stop| *stop) => false,
            turn = self.turn.wait_for(|turn| *turn) => turn.is_ok(),
        }
    }

    /// Runs the task until it is stopped, or its kind is assigned to another replica, and it has drained.
    async fn run(&mut self, task: KindTask) -> Result<(), JoinError> {
        let (halt, halted) = watch::channel(false);
        // A task of its own, so that a panic of the controller ends here.
        let mut run = JoinSet::new();
        run.spawn(task.run(halted));
        tokio::select! {
            ended = run.join_next() => return ended.expect("one task was spawned").and_then(|result| result),
            _ = self.stop.wait_for(|stop| *stop) => {}
            _ = self.turn.wait_for(|turn| !*turn) => {}
        }
        halt.send_replace(true);
        let ended = run.join_next().await.expect("one task was spawned");
        ended.and_then(|result| result)
    }
}
