//! Load on the cluster: objects are created, changed, labeled, deleted and declared final,
//! each by one worker, which keeps in a ledger what the cluster has confirmed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kindex_model::kind::{Kind, Registry};
use kindex_model::object::Uid;
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::held::{Controller, HeldObject};
use super::objects::{End, api, find, with_finalizer};

const WORKERS: u64 = 3;
/// Controllers of others beside them.
const CONTROLLERS: u64 = 4;
/// Between two calls of a worker: enough load to have a batch under way at any moment.
const PERIOD: Duration = Duration::from_millis(8);
/// Objects that a worker keeps alive.
const ALIVE_MAX: usize = 60;
/// The kinds that are used; others stay quiet.
pub(crate) const KINDS: [&str; 3] = ["Project", "Model", "PipelineRun"];
/// Those that others hold: of these kinds, whose status has a message.
const HELD_KINDS: [&str; 2] = ["Project", "PipelineRun"];

/// One line of the ledger: the last that the cluster has confirmed.
pub(crate) struct Line {
    pub(crate) kind: &'static Kind,
    pub(crate) name: String,
    pub(crate) uid: Uid,
    pub(crate) version: String,
    pub(crate) spec: Value,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) end: End,
}

/// Running load.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<Vec<Line>>>,
    controllers: Vec<JoinHandle<Vec<HeldObject>>>,
}

/// What the cluster has confirmed in the end.
pub(crate) struct Ledger {
    /// Of the workers' objects.
    pub(crate) lines: Vec<Line>,
    /// Of those that others held.
    pub(crate) held: Vec<HeldObject>,
}

impl Load {
    pub(crate) fn start(runtime: &Runtime, client: &Client, registry: &Registry) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let kinds: Vec<&'static Kind> = KINDS.map(|name| find(registry, name)).to_vec();
        let workers = (0..WORKERS).map(|number| {
            let worker = Worker {
                number,
                client: client.clone(),
                kinds: kinds.clone(),
                rng: StdRng::seed_from_u64(number),
                ledger: Vec::new(),
            };
            runtime.spawn(worker.run(stop.clone()))
        });
        let held = HELD_KINDS.map(|name| find(registry, name));
        let _context = runtime.enter();
        let controllers = (0..CONTROLLERS).map(|number| {
            let controller = Controller::new(number, client.clone(), held.to_vec());
            runtime.spawn(controller.run(stop.clone()))
        });
        Self {
            workers: workers.collect(),
            controllers: controllers.collect(),
            stop,
        }
    }

    /// Ends it; what the cluster has confirmed.
    pub(crate) fn stop(self, runtime: &Runtime) -> Ledger {
        self.stop.store(true, Ordering::Relaxed);
        Ledger {
            lines: ended(runtime, self.workers),
            held: ended(runtime, self.controllers),
        }
    }
}

fn ended<T>(runtime: &Runtime, tasks: Vec<JoinHandle<Vec<T>>>) -> Vec<T> {
    let ended = tasks.into_iter().map(|task| runtime.block_on(task));
    ended
        .flat_map(|all| all.expect("no call to the cluster fails"))
        .collect()
}

struct Worker {
    number: u64,
    client: Client,
    kinds: Vec<&'static Kind>,
    rng: StdRng,
    ledger: Vec<Line>,
}

impl Worker {
    async fn run(mut self, stop: Arc<AtomicBool>) -> Vec<Line> {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            let alive: Vec<usize> = self.alive();
            match self.rng.random_range(0..100) {
                _ if alive.is_empty() => self.create().await,
                0..25 if alive.len() < ALIVE_MAX => self.create().await,
                choice => {
                    let line = alive[self.rng.random_range(0..alive.len())];
                    self.touch(line, choice).await;
                }
            }
        }
        self.ledger
    }

    fn alive(&self) -> Vec<usize> {
        let lines = self.ledger.iter().enumerate();
        let alive = lines.filter(|(_, line)| line.end == End::Alive);
        alive.map(|(number, _)| number).collect()
    }

    async fn create(&mut self) {
        let kind = self.kinds[self.rng.random_range(0..self.kinds.len())];
        let name = format!("load-{}-{}", self.number, self.ledger.len());
        let object = with_finalizer(kind, &name, 0);
        let created = api(&self.client, kind).create(&PostParams::default(), &object).await;
        let created = created.expect("the cluster creates");
        let mut line = Line {
            kind,
            name,
            uid: Uid::from(created.metadata.uid.as_deref().expect("the cluster gives uids")),
            version: String::new(),
            spec: Value::Null,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            end: End::Alive,
        };
        line.confirm(created);
        self.ledger.push(line);
    }

    async fn touch(&mut self, line: usize, choice: u32) {
        let round = self.rng.random::<u32>();
        let platform = kindex_generated::registry().platform;
        let (change, end) = match choice {
            0..60 => (
                json!({"spec": {"description": format!("in round {round}")}}),
                End::Alive,
            ),
            60..72 => (
                json!({"metadata": {"labels": {"round": round.to_string()}}}),
                End::Alive,
            ),
            72..80 => (
                json!({"metadata": {"annotations": {"note": null, "n": round.to_string()}}}),
                End::Alive,
            ),
            80..84 => (
                json!({"metadata": {"annotations": {platform.immutable: "true"}}}),
                End::Archived,
            ),
            84..88 => (
                json!({"metadata": {"annotations": {platform.deleting: "true"}}}),
                End::Deleted,
            ),
            _ => return self.delete(line).await,
        };
        let line = &mut self.ledger[line];
        let api = api(&self.client, line.kind);
        let patched = api
            .patch(&line.name, &PatchParams::default(), &Patch::Merge(change))
            .await;
        line.confirm(patched.expect("the cluster patches"));
        line.end = end;
    }

    async fn delete(&mut self, line: usize) {
        let line = &mut self.ledger[line];
        let deleted = api(&self.client, line.kind)
            .delete(&line.name, &DeleteParams::default())
            .await;
        deleted.expect("the cluster deletes");
        line.end = End::Deleted;
    }
}

impl Line {
    fn confirm(&mut self, object: DynamicObject) {
        self.version = object.metadata.resource_version.expect("the cluster gives versions");
        self.spec = object.data["spec"].clone();
        self.labels = object.metadata.labels.unwrap_or_default();
        self.annotations = object.metadata.annotations.unwrap_or_default();
    }
}
