//! A project that is deleted with its 10,000 descendants on five levels: one client of `kindex up` deletes the project,
//! and the graph deletes the rest. On a second server, where objects have Kindex's finalizers too, one client deletes
//! the same tree leaf by leaf and waits for each object to be gone before the next. This client is the comparison,
//! because its server keeps the same order and the same record. The third server is `kindex up --deletion=false`, and
//! its client also deletes leaf by leaf. Nobody places references there, so that server has less to write, and keeps no
//! order and no record. Each has a cluster and SQLite, one after the other; which comes first alternates.
//!
//! The kinds are those of the repository, with more references between them: `kindex_benches::tree` says which.
//!
//! With `KINDEX_BENCH_CONTROLPLANE=1`, the cluster is the kube-apiserver that `tests/controlplane/build` made, with
//! etcd. There the graph is a process of its own, `kindex deletion`, beside `kindex up --deletion=false`.
//!
//! Writes are counted by the resource version of the embedded cluster, which each one increases by one, and by the
//! metrics of kube-apiserver. Neither the client's delete nor the recorded events are writes of the graph, nor is the
//! last one of each object, by which the ingester releases it: with that one, the 2.48 and 2.85 writes an object of the
//! book are 3.48 and 3.85.
//!
//! `KINDEX_BENCH_OBJECTS` (10000) sets the number of descendants, `KINDEX_BENCH_ROUNDS` (3) that of rounds. With
//! `KINDEX_BENCH_WIDE=1`, all but four of the descendants hold the same object. A client that deletes leaf by leaf ends
//! after `KINDEX_BENCH_SECONDS` (90), and its rate is that of the objects which are gone by then. The figures of the
//! book are of clients that ended after 15 s, or 30 s on kube-apiserver. With 10,000 descendants, none had left the
//! lowest level until then, whose objects nothing holds: they are the cheapest, while the rate of the graph is that of
//! all levels.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream::BoxStream;
use kindex_benches::child::{Kindex, become_kindex_of};
use kindex_benches::clients::{all, client, delete, of_kubeconfig, post, timed};
use kindex_benches::figures::{Rates, machine, setting};
use kindex_benches::runs::targets::{ResultTable, Target};
use kindex_benches::tree::{KINDS, LEVELS, NAMESPACE, Tree, name, path, registry};
use kindex_harness::controlplane::ControlPlane;
use kindex_harness::ports;
use kindex_harness::require::require;
use kindex_harness::scrape::{self, Scrape};
use kube::api::WatchEvent;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// Clients that create.
const CREATORS: usize = 16;
const WAIT_MAX: Duration = Duration::from_secs(1_800);
/// For so long nothing must change before a server counts as settled.
const QUIET: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    if let Some(code) = become_kindex_of(registry()) {
        return code;
    }
    if setting("KINDEX_BENCH_CONTROLPLANE", 0) == 0 || require("controlplane", ControlPlane::installed()) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(measure());
    }
    ExitCode::SUCCESS
}

async fn measure() {
    let descendants = setting("KINDEX_BENCH_OBJECTS", 10_000);
    let tree = match setting("KINDEX_BENCH_WIDE", 0) {
        0 => Tree::new(descendants),
        _ => Tree::wide(descendants),
    };
    let rounds = setting("KINDEX_BENCH_ROUNDS", 3);
    println!(
        "a project with {} descendants on {LEVELS} levels ({:?}), rounds: {rounds}, {}\n",
        tree.references(),
        &tree.sizes[1..],
        machine()
    );
    let mut measured = Measured::default();
    for round in 0..rounds {
        let mut methods = [Method::Graph, Method::Leaves, Method::LeavesWithFinalizer];
        let first = round % methods.len();
        methods.rotate_left(first);
        for method in methods {
            match method {
                Method::Graph => measured.add_graph(tree, &by_graph(tree).await),
                Method::Leaves => measured.add_leaves(&leaf_by_leaf(tree, false).await),
                Method::LeavesWithFinalizer => measured.add_with_finalizer(&leaf_by_leaf(tree, true).await),
            }
        }
    }
    measured.print();
}

/// How a tree is deleted.
#[derive(Clone, Copy)]
enum Method {
    Graph,
    Leaves,
    /// Leaf by leaf, where each object has the finalizer of the graph and its references.
    LeavesWithFinalizer,
}

/// `kindex up`, with a database of its own.
struct Setup {
    kindex: Kindex,
    /// `kindex deletion`, where it is a process of its own.
    graph: Option<Kindex>,
    /// Of the process that has the graph.
    health: SocketAddr,
    config: Config,
    client: Client,
    plane: Option<ControlPlane>,
    _directory: tempfile::TempDir,
}

/// What was done so far.
struct Position {
    /// To the cluster, without events.
    writes: usize,
    /// Steps of the graph that release a reference.
    releases: usize,
}

impl Setup {
    /// Starts it, with the graph or without, and creates the tree.
    async fn make(tree: Tree, has_graph: bool) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let plane = (setting("KINDEX_BENCH_CONTROLPLANE", 0) > 0).then(ControlPlane::start);
        let data = directory.path().join("data");
        let shown = data.display().to_string();
        let mut arguments = vec!["up", "--data-dir", &shown];
        for flag in ["--api-addr", "--listen", "--runs-grpc-addr", "--runs-rest-addr"] {
            arguments.extend([flag, "127.0.0.1:0"]);
        }
        let kubeconfig = match &plane {
            Some(plane) => plane.kubeconfig().to_owned(),
            None => data.join("kubeconfig"),
        };
        let path = kubeconfig.display().to_string();
        if plane.is_some() {
            arguments.extend(["--kubeconfig", &path]);
        }
        if plane.is_some() || !has_graph {
            arguments.push("--deletion=false");
        }
        let (kindex, mut health) = start(&arguments).await;
        let database = format!("sqlite:{}", data.join("kindex.db").display());
        let mut graph = None;
        if plane.is_some() && has_graph {
            let arguments = ["deletion", "--kubeconfig", &path, "--database", &database];
            let (started, address) = start(&arguments).await;
            (graph, health) = (Some(started), address);
        }
        let config = of_kubeconfig(&kubeconfig).await;
        let setup = Self {
            kindex,
            graph,
            health,
            client: client(&config),
            config,
            plane,
            _directory: directory,
        };
        setup.create(tree).await;
        setup
    }

    /// Why one of the processes has ended.
    fn ended(&mut self) -> Option<ExitStatus> {
        let of_graph = self.graph.as_mut().and_then(Kindex::ended);
        self.kindex.ended().or(of_graph)
    }

    async fn create(&self, tree: Tree) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        timed(&self.client, post("/api/v1/namespaces", namespace.to_string())).await;
        for (level, size) in tree.sizes.into_iter().enumerate() {
            let path = path(level);
            all(&self.config, CREATORS, size, move |index| {
                post(&path, tree.object(level, index))
            })
            .await;
        }
    }

    async fn read(&self, path: &str) -> Value {
        let request = http::Request::get(path).body(Vec::new()).expect("a path");
        self.client.request(request).await.expect("an answer")
    }

    /// Waits until the objects together have so many finalizers, and nothing is written any more.
    async fn settle(&mut self, finalizers: usize) {
        let begun = Instant::now();
        let mut last = None;
        loop {
            let (version, found) = (self.version().await, self.finalizers().await);
            // Leases are renewed at any time.
            let is_quiet = last == Some(version) || self.plane.is_some();
            if found == finalizers && is_quiet {
                return;
            }
            let ended = self.ended();
            assert!(
                ended.is_none() && begun.elapsed() < WAIT_MAX,
                "{found} finalizers instead of {finalizers}; kindex ended with {ended:?}"
            );
            last = Some(version);
            sleep(QUIET).await;
        }
    }

    async fn finalizers(&self) -> usize {
        let mut finalizers = 0;
        for level in 0..KINDS.len() {
            let list = self.read(&path(level)).await;
            let items = list["items"].as_array().expect("a list").iter();
            let of_items = items.filter_map(|item| item["metadata"]["finalizers"].as_array());
            finalizers += of_items.map(Vec::len).sum::<usize>();
        }
        finalizers
    }

    async fn version(&self) -> usize {
        let list = self.read("/api/v1/namespaces").await;
        let version = list["metadata"]["resourceVersion"].as_str().map(str::parse);
        version.expect("a version").expect("a number")
    }

    async fn position(&self) -> Position {
        let (_, text) = scrape::get(self.health, "/metrics").expect("figures");
        let releases = Scrape::parse(&text).sum_of("kindex_deletion_steps_total", &[("step", "release")]);
        Position {
            writes: self.writes().await,
            releases: releases as usize,
        }
    }

    async fn writes(&self) -> usize {
        if self.plane.is_none() {
            let events = self.read(&format!("/api/v1/namespaces/{NAMESPACE}/events")).await;
            return self.version().await - events["items"].as_array().expect("a list").len();
        }
        let request = http::Request::get("/metrics").body(Vec::new()).expect("a path");
        let text = self.client.request_text(request).await.expect("figures");
        let scrape = Scrape::parse(&text);
        let of = |verb, code| {
            let labels = [("group", KINDS[0].group), ("verb", verb), ("code", code)];
            scrape.sum_of("apiserver_request_total", &labels)
        };
        let verbs = ["POST", "PUT", "PATCH", "APPLY", "DELETE"];
        let writes: f64 = verbs
            .into_iter()
            .flat_map(|verb| ["200", "201"].map(|code| of(verb, code)))
            .sum();
        writes as usize
    }

    /// The names of the objects of a level that go from now on.
    async fn gone(&self, level: usize) -> BoxStream<'static, String> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={}",
            path(level),
            self.version().await
        );
        let request = http::Request::get(path).body(Vec::new()).expect("a path");
        let events = self.client.request_events::<Value>(request).await.expect("a watch");
        let names = events.filter_map(async |event| match event.expect("an event") {
            WatchEvent::Deleted(object) => object["metadata"]["name"].as_str().map(str::to_owned),
            WatchEvent::Error(error) => panic!("{error:?}"),
            WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Bookmark(_) => None,
        });
        names.boxed()
    }

    /// Deletes an object, and waits until it is gone.
    async fn remove(&self, level: usize, index: usize, gone: &mut BoxStream<'static, String>) {
        let name = name(level, index);
        timed(&self.client, delete(&format!("{}/{name}", path(level)))).await;
        let waited = timeout(WAIT_MAX, async {
            while gone.next().await.expect("the watch goes on") != name {}
        });
        waited.await.expect("it goes in time");
    }
}

/// A process that is ready, and the address of its figures.
async fn start(arguments: &[&str]) -> (Kindex, SocketAddr) {
    let health = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::reserve()));
    let address = health.to_string();
    let health_addr = ["--health-addr", &address];
    let mut kindex = Kindex::start(&[&["--log", "error"], arguments, &health_addr].concat());
    let begun = Instant::now();
    while !matches!(scrape::get(health, "/readyz"), Ok((200, _))) {
        let ended = kindex.ended();
        assert!(
            ended.is_none() && begun.elapsed() < WAIT_MAX,
            "kindex is not ready: {ended:?}"
        );
        sleep(Duration::from_millis(50)).await;
    }
    (kindex, health)
}

/// What one deletion came to.
struct Deleted {
    objects: usize,
    took: Duration,
    /// To the cluster, without events.
    writes: usize,
    /// Steps of the graph that release a reference.
    releases: usize,
}

impl Deleted {
    async fn since(before: &Position, setup: &Setup, objects: usize, took: Duration) -> Self {
        let now = setup.position().await;
        Self {
            objects,
            took,
            writes: now.writes - before.writes,
            releases: now.releases - before.releases,
        }
    }
}

/// Those of ingester and graph on each object, and the references.
fn with_finalizer(tree: Tree) -> usize {
    tree.objects() * 2 + tree.references()
}

async fn by_graph(tree: Tree) -> Deleted {
    let mut setup = Setup::make(tree, true).await;
    setup.settle(with_finalizer(tree)).await;
    let before = setup.position().await;
    let mut gone = setup.gone(0).await;
    let begun = Instant::now();
    setup.remove(0, 0, &mut gone).await;
    let took = begun.elapsed();
    setup.settle(0).await;
    Deleted::since(&before, &setup, tree.objects(), took).await
}

async fn leaf_by_leaf(tree: Tree, has_finalizer: bool) -> Deleted {
    let limit = Duration::from_secs(setting("KINDEX_BENCH_SECONDS", 90) as u64);
    let mut setup = Setup::make(tree, has_finalizer).await;
    let finalizers = if has_finalizer {
        with_finalizer(tree)
    } else {
        tree.objects()
    };
    setup.settle(finalizers).await;
    let before = setup.position().await;
    let mut objects = 0;
    let begun = Instant::now();
    'tree: for level in (0..KINDS.len()).rev() {
        let mut gone = setup.gone(level).await;
        for index in 0..tree.sizes[level] {
            if begun.elapsed() >= limit {
                break 'tree;
            }
            setup.remove(level, index, &mut gone).await;
            objects += 1;
        }
    }
    let took = begun.elapsed();
    if !has_finalizer {
        setup.settle(tree.objects() - objects).await;
    }
    Deleted::since(&before, &setup, objects, took).await
}

/// What was measured in all rounds.
#[derive(Default)]
struct Measured {
    graph: Rates,
    graph_seconds: Rates,
    graph_writes: Rates,
    releases: Rates,
    leaves: Rates,
    leaves_seconds: Rates,
    leaves_objects: Rates,
    leaves_writes: Rates,
    with_finalizer: Rates,
}

impl Measured {
    fn add_graph(&mut self, tree: Tree, deleted: &Deleted) {
        let (objects, references) = (tree.objects() as f64, tree.references() as f64);
        // The client's delete, and the last write of each object.
        let of_others = 1.0 + objects;
        self.graph.add(deleted.objects, deleted.took);
        self.graph_seconds.push(deleted.took.as_secs_f64());
        self.graph_writes
            .push((deleted.writes as f64 - of_others - references) / objects);
        self.releases.push(deleted.releases as f64 / references);
    }

    fn add_leaves(&mut self, deleted: &Deleted) {
        self.leaves.add(deleted.objects, deleted.took);
        self.leaves_seconds.push(deleted.took.as_secs_f64());
        self.leaves_objects.push(deleted.objects as f64);
        self.leaves_writes.push(deleted.writes as f64 / deleted.objects as f64);
    }

    fn add_with_finalizer(&mut self, deleted: &Deleted) {
        self.with_finalizer.add(deleted.objects, deleted.took);
    }

    fn print(&self) {
        let ratio = self.graph.against(&self.leaves);
        let mut table = ResultTable::default();
        table.rounds("the project with the graph", "s", &self.graph_seconds, Target::None);
        table.rounds("the same", "objects/s", &self.graph, Target::None);
        table.rounds("leaf by leaf", "s", &self.leaves_seconds, Target::None);
        table.rounds("gone by then", "objects", &self.leaves_objects, Target::None);
        table.rounds("the same", "objects/s", &self.leaves, Target::None);
        table.rounds("graph, of leaf by leaf", "times", &ratio, Target::AtLeast(3.0));
        let what = "leaf by leaf, with the deletion finalizer";
        table.rounds(what, "objects/s", &self.with_finalizer, Target::None);
        let what = "graph, of leaf by leaf with the finalizer";
        table.rounds(
            what,
            "times",
            &self.graph.against(&self.with_finalizer),
            Target::AtLeast(3.0),
        );
        let what = "writes of the graph, an object, beside one a reference";
        table.rounds(what, "", &self.graph_writes, Target::AtMost(4.0));
        let what = "releases, a reference, with those that met a conflict";
        table.rounds(what, "", &self.releases, Target::None);
        let what = "writes leaf by leaf, an object, of client and ingester";
        table.rounds(what, "", &self.leaves_writes, Target::None);
        table.print();
    }
}
