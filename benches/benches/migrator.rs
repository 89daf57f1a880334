//! Storage version migration on a kube-apiserver: `kindex migrator` in a process of its own, beside three baselines of
//! the same run: the algorithm of kube-storage-version-migrator with its shipped limit and without, and a bare loop
//! that sends the patches of the migrator from as many clients as that has workers.
//!
//! A flip of the stored version makes all objects stale. In each round the migrator rewrites them all after one flip,
//! and the baselines after the other, each in a namespace of its own; which comes first alternates. The whole list, in
//! which nothing is stale any more, is then migrated once more, to count what that writes.
//!
//! `KINDEX_BENCH_OBJECTS` (100000) sets the size, `KINDEX_BENCH_ROUNDS` (3) the number of runs.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kindex_benches::child::{Kindex, Usage, become_kindex};
use kindex_benches::clients::{all, client};
use kindex_benches::figures::{Rates, machine, print_table, setting};
use kindex_benches::stale::{GROUP, Objects, PREFERRED, Plane};
use kindex_benches::upstream::{self, SHIPPED_BURST, SHIPPED_RATE};
use kindex_harness::controlplane::ControlPlane;
use kindex_harness::ports;
use kindex_harness::require::require;
use kindex_harness::scrape::{self, Scrape};
use kube::client::Body;
use serde_json::{Value, json};

/// Objects that the migrator writes at a time, as shipped.
const WORKERS: usize = 8;
/// Ten seconds of the shipped limit.
const LIMITED_OBJECTS: usize = 400;
const UNLIMITED_OBJECTS: usize = 5_000;
const MIGRATIONS: &str = "/apis/migration.k8s.io/v1alpha1/storageversionmigrations";
const WAIT_MAX: Duration = Duration::from_secs(3_600);
const POLL: Duration = Duration::from_millis(25);

/// The namespaces, by the baseline that is measured there. The migrator is measured on all together.
const LIMITED: &str = "limited";
const UNLIMITED: &str = "unlimited";
const BARE: &str = "bare";

fn main() -> ExitCode {
    if let Some(code) = become_kindex() {
        return code;
    }
    if require("controlplane", ControlPlane::installed()) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(measure());
    }
    ExitCode::SUCCESS
}

/// What was measured in all rounds.
#[derive(Default)]
struct Measured {
    rewriting: Rates,
    verified: Rates,
    limited: Rates,
    limited_whole: Rates,
    unlimited: Rates,
    bare: Rates,
    resident: Rates,
    resident_tenth: Rates,
}

async fn measure() {
    let count = setting("KINDEX_BENCH_OBJECTS", 100_000);
    let rounds = setting("KINDEX_BENCH_ROUNDS", 3);
    let limited = LIMITED_OBJECTS.min(count / 4);
    let unlimited = UNLIMITED_OBJECTS.min(count / 4);
    let slices = [
        (LIMITED, limited),
        (UNLIMITED, unlimited),
        (BARE, count - limited - unlimited),
    ];
    let plane = Plane::start().await;
    let mut objects = Objects::create(&plane, "records", "Record", &slices).await;
    let mut tenth = Objects::create(&plane, "tenths", "Tenth", &[(BARE, count / 10)]).await;
    println!(
        "{count} objects of {} bytes, rounds: {rounds}, {}\n",
        objects.bytes().await,
        machine()
    );
    let mut measured = Measured::default();
    let mut first = None;
    for round in 0..rounds {
        for is_migrator in [round.is_multiple_of(2), !round.is_multiple_of(2)] {
            objects.flip().await;
            if is_migrator {
                let run = migrate(&plane, &objects, count).await;
                measured.note(&run, count);
                first.get_or_insert(run);
            } else {
                baselines(&plane, &objects, &slices, round, &mut measured).await;
            }
        }
        tenth.flip().await;
        let run = migrate(&plane, &tenth, count / 10).await;
        measured.resident_tenth.push(run.usage.resident_bytes_max as f64);
    }
    let again = migrate(&plane, &objects, 0).await;
    measured.print(count, &slices);
    println!();
    changes(&[
        ("after a flip", first.as_ref()),
        ("once more, nothing stale", Some(&again)),
    ]);
}

impl Measured {
    fn note(&mut self, run: &Run, count: usize) {
        self.rewriting.add(count, run.rewriting);
        self.verified.add(count, run.whole);
        self.resident.push(run.usage.resident_bytes_max as f64);
    }

    fn print(&self, count: usize, slices: &[(&str, usize); 3]) {
        let [(_, limited), (_, unlimited), (_, bare)] = slices;
        let line = |what: &str, objects: usize, rates: &Rates| vec![what.to_owned(), objects.to_string(), rates.show()];
        let limit = format!("upstream algorithm, {SHIPPED_RATE} requests/s");
        let burst = format!("the same, with its burst of {SHIPPED_BURST} (computed)");
        print_table(
            &["", "objects", "objects/s, median (slowest..fastest)"],
            &[
                line("migrator, rewriting", count, &self.rewriting),
                line("migrator, until verified", count, &self.verified),
                line(&limit, *limited, &self.limited),
                line(&burst, count, &self.limited_whole),
                line("upstream algorithm, no limit", *unlimited, &self.unlimited),
                line(&format!("bare loop of {WORKERS} clients"), *bare, &self.bare),
            ],
        );
        println!();
        let line = |what: &str, other: &Rates, target: &str| {
            let ratios = [&self.rewriting, &self.verified].map(|rates| rates.against(other).show_multiple());
            [vec![what.to_owned()], ratios.to_vec(), vec![target.to_owned()]].concat()
        };
        print_table(
            &["migrator against", "rewriting", "until verified", "target, rewriting"],
            &[
                line("upstream, shipped limit", &self.limited_whole, "at least 10"),
                line("upstream, no limit", &self.unlimited, "at least 2"),
                line("bare loop", &self.bare, "at least 0.8"),
            ],
        );
        let mebibytes = |rates: &Rates| rates.median() / f64::from(1 << 20);
        println!(
            "\npeak memory of the migrator: {:.1} MiB for {count} objects, {:.1} MiB for {}: {} times as much, target \
             at most 1.1",
            mebibytes(&self.resident),
            mebibytes(&self.resident_tenth),
            count / 10,
            self.resident.against(&self.resident_tenth).show_multiple(),
        );
    }
}

/// What runs of the migrator wrote.
fn changes(runs: &[(&str, Option<&Run>)]) {
    let rows = runs.iter().filter_map(|(what, run)| {
        let run = (*run)?;
        let cells = [run.stale as u64, run.writes, run.revisions].map(|count| count.to_string());
        Some([vec![(*what).to_owned()], cells.to_vec()].concat())
    });
    print_table(
        &[
            "migrator",
            "stale objects",
            "writes of objects",
            "revisions of etcd, all that runs there",
        ],
        &rows.collect::<Vec<_>>(),
    );
}

/// All baselines after one flip, each in its namespace, one way round and then the other.
async fn baselines(
    plane: &Plane,
    objects: &Objects<'_>,
    slices: &[(&'static str, usize); 3],
    round: usize,
    measured: &mut Measured,
) {
    let before = objects.writes().await;
    let mut order = *slices;
    if !round.is_multiple_of(2) {
        order.reverse();
    }
    for (namespace, count) in order {
        let took = match namespace {
            LIMITED => rewrite(plane, objects, namespace, count, Some(SHIPPED_RATE)).await,
            UNLIMITED => rewrite(plane, objects, namespace, count, None).await,
            _ => patch_all(plane, objects, namespace).await,
        };
        match namespace {
            LIMITED => measured.limited.add(count, took),
            UNLIMITED => measured.unlimited.add(count, took),
            _ => measured.bare.add(count, took),
        }
    }
    let all: usize = slices.iter().map(|(_, count)| count).sum();
    let written = objects.writes().await - before;
    assert_eq!(written, all as u64, "one write for each stale object");
    let burst = all.min(SHIPPED_BURST) as f64 / measured.unlimited.last();
    let rest = all.saturating_sub(SHIPPED_BURST) as f64 / measured.limited.last();
    measured.limited_whole.add(all, Duration::from_secs_f64(burst + rest));
}

async fn rewrite(plane: &Plane, objects: &Objects<'_>, namespace: &str, count: usize, limit: Option<u32>) -> Duration {
    let client = client(&plane.config);
    let (rewritten, took) = upstream::migrate(&client, &objects.path(namespace), limit).await;
    assert_eq!(rewritten, count, "the list is whole");
    took
}

async fn patch_all(plane: &Plane, objects: &Objects<'_>, namespace: &str) -> Duration {
    let patches = objects.patches(namespace).await;
    let count = patches.len();
    let (took, _) = all(&plane.config, WORKERS, count, move |number| {
        patches[number].clone().map(Body::from)
    })
    .await;
    took
}

/// What one run of the migrator took, from its first write on.
struct Run {
    stale: usize,
    /// Until every object was written.
    rewriting: Duration,
    /// Until a whole pass had changed none.
    whole: Duration,
    usage: Usage,
    /// Of these objects, as kube-apiserver counts its requests to etcd.
    writes: u64,
    /// Of etcd, whoever wrote.
    revisions: u64,
}

/// Runs `kindex migrator` until it has verified all objects. Its trigger sees a flip; where nothing is stale, a
/// migration is created, as people do.
async fn migrate(plane: &Plane, objects: &Objects<'_>, stale: usize) -> Run {
    let known = succeeded(plane, objects).await;
    let (writes, revision) = (objects.writes().await, plane.revision().await);
    let health = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::reserve()));
    let mut kindex = start(plane, objects, health);
    if stale == 0 {
        start_migration(plane, objects).await;
    }
    let begun = Instant::now();
    let (mut first_write, mut rewriting) = (begun, None);
    let whole = loop {
        let exited = kindex.ended();
        assert!(
            exited.is_none() && begun.elapsed() < WAIT_MAX,
            "kindex migrator is not through after {:?}: {exited:?}",
            begun.elapsed()
        );
        let handled = handled(health);
        let now = Instant::now();
        if handled == 0 {
            first_write = now;
        } else if handled >= objects.count() && rewriting.is_none() {
            rewriting = Some(now - first_write);
        } else if rewriting.is_some() && !succeeded(plane, objects).await.is_subset(&known) {
            break first_write.elapsed();
        }
        tokio::time::sleep(POLL).await;
    };
    let written = objects.writes().await - writes;
    assert_eq!(
        written, stale as u64,
        "one write for each stale object, and none for others"
    );
    Run {
        stale,
        rewriting: rewriting.unwrap_or_default(),
        whole,
        usage: kindex.usage(),
        writes: written,
        // One of them is that of the question.
        revisions: plane.revision().await - revision - 1,
    }
}

fn start(plane: &Plane, objects: &Objects<'_>, health: SocketAddr) -> Kindex {
    let [certificate, key] = plane.certificate().map(|path| path.display().to_string());
    let (resource, health) = (objects.name(), health.to_string());
    let kubeconfig = plane.kubeconfig().display().to_string();
    let mut arguments = vec![
        "--log",
        "error",
        "migrator",
        "--listen",
        "127.0.0.1:0",
        "--health-addr",
        &health,
    ];
    arguments.extend([
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
        "--kubeconfig",
        &kubeconfig,
    ]);
    // There is one API server, so that no other has to be waited for; and a lease that was not given back ends soon.
    arguments.extend(["--resource", &resource, "--settle", "0", "--lease-seconds", "3"]);
    Kindex::start(&arguments)
}

/// How many objects the migrator has been through, in all its passes.
fn handled(health: SocketAddr) -> usize {
    let Ok((200, text)) = scrape::get(health, "/metrics") else {
        return 0;
    };
    Scrape::parse(&text).sum("kindex_migrator_objects_total") as usize
}

/// The uids of the migrations of the objects that succeeded.
///
/// # Panics
/// When one failed.
async fn succeeded(plane: &Plane, objects: &Objects<'_>) -> BTreeSet<String> {
    let list = plane.get(MIGRATIONS).await.unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let (group, plural) = (GROUP, objects.plural());
    let is_of = |item: &&Value| {
        let resource = &item["spec"]["resource"];
        resource["group"] == group && resource["resource"] == plural
    };
    let has = |item: &Value, kind: &str| {
        let conditions = item["status"]["conditions"].as_array();
        conditions.is_some_and(|all| all.iter().any(|one| one["type"] == kind && one["status"] == "True"))
    };
    let uid = |item: &Value| item["metadata"]["uid"].as_str().expect("a uid").to_owned();
    items
        .iter()
        .filter(is_of)
        .inspect(|item| assert!(!has(item, "Failed"), "{item}"))
        .filter(|item| has(item, "Succeeded"))
        .map(uid)
        .collect()
}

/// A migration that nobody but the load program asks for.
async fn start_migration(plane: &Plane, objects: &Objects<'_>) {
    let migration = json!({
        "apiVersion": "migration.k8s.io/v1alpha1",
        "kind": "StorageVersionMigration",
        "metadata": {"generateName": format!("{}-", objects.name())},
        "spec": {"resource": {"group": GROUP, "version": PREFERRED, "resource": objects.plural()}},
    });
    plane.create(MIGRATIONS, &migration).await;
}
