//! What the outbox costs an ingester: objects a second from a watch into SQL, of a kind with events against the same
//! kind without, in one run on SQLite and on MariaDB with durable commits. All objects are created at once, and once
//! their rows are there, the status of each changes. Each time, an ingester of its own writes into a database of its
//! own; which of the two comes first alternates. The ingester runs in this process, and is given the kind as it is
//! compared.
//!
//! `KINDEX_BENCH_OBJECTS` (10000) sets the size, `KINDEX_BENCH_ROUNDS` (7) the number of pairs, `KINDEX_BENCH_WORKERS`
//! (4) the parallel writers of the ingester.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kindex_benches::figures::{Rates, machine, setting};
use kindex_benches::load_server::LoadServer;
use kindex_benches::runs::targets::{ResultTable, Target};
use kindex_generated::kinds::pipeline_run;
use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_model::kind::{Kind, Registry};
use kindex_runtime::settings::Settings;
use kindex_runtime::{Ingester, Sharding};
use kindex_store::PoolConfig;

static WITHOUT: Kind = Kind {
    events: false,
    ..pipeline_run::KIND
};
static WITH: Kind = Kind {
    events: true,
    ..pipeline_run::KIND
};
/// Of the rate without events, so much is left with them.
const RATE_LEFT: Target = Target::AtLeast(0.8);
const WAIT_MAX: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

#[tokio::main]
async fn main() {
    let load = Load {
        objects: setting("KINDEX_BENCH_OBJECTS", 10_000),
        workers: setting("KINDEX_BENCH_WORKERS", 4),
    };
    println!(
        "{} objects of about 2.5 KiB, {} parallel writers, {}\n",
        load.objects,
        load.workers,
        machine()
    );
    let mut table = ResultTable::default();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str| format!("sqlite:{}", directory.path().join(name).display());
    compare("SQLite", &load, file, &mut table).await;
    if require("mariadb", MariaDb::installed()) {
        let server = MariaDb::start(&[
            "--innodb-buffer-pool-size=1G",
            "--innodb-log-file-size=512M",
            "--innodb-flush-log-at-trx-commit=1",
        ]);
        let database = |name: &str| format!("mysql://root@127.0.0.1:{}/{name}", server.port);
        compare("MariaDB", &load, database, &mut table).await;
    }
    table.print();
}

/// What an ingester is given to do, and what with.
struct Load {
    objects: usize,
    workers: usize,
}

/// Objects a second, created and with a changed status.
#[derive(Default)]
struct Ingested {
    created: Rates,
    updated: Rates,
}

/// Measures both in all rounds, in databases at `address` of a name.
async fn compare(engine: &str, load: &Load, address: impl Fn(&str) -> String, table: &mut ResultTable) {
    let [mut without, mut with] = [(); 2].map(|()| Ingested::default());
    for round in 0..setting("KINDEX_BENCH_ROUNDS", 7) {
        let mut turns = [(&WITHOUT, &mut without), (&WITH, &mut with)];
        if round % 2 == 1 {
            turns.reverse();
        }
        for (kind, ingested) in turns {
            let address = address(&format!("events_{}_{round}", kind.events));
            ingest(kind, load, &address, ingested).await;
        }
    }
    for (what, without, with) in [
        ("created", &without.created, &with.created),
        ("status update", &without.updated, &with.updated),
    ] {
        let what = format!("{engine}, {what}");
        table.rounds(&format!("{what}, without events"), "objects/s", without, Target::None);
        table.rounds(&format!("{what}, with events"), "objects/s", with, Target::None);
        let ratio = with.against(without);
        table.rounds(&format!("{what}, with events, of without"), "times", &ratio, RATE_LEFT);
    }
}

/// Has an ingester store created objects and then their updates, in a new database.
async fn ingest(kind: &'static Kind, load: &Load, address: &str, ingested: &mut Ingested) {
    let registry = Registry {
        kinds: Box::leak(Box::new([kind])),
        ..kindex_generated::registry()
    };
    let store = kindex_store::connect(address, registry, &PoolConfig::default()).expect("a right address");
    let server = LoadServer::start(kind, 0).await;
    let cluster = KubeCluster::new(server.config()).expect("a right configuration");
    let settings = |_: &Kind| Settings {
        concurrent_reconciles: load.workers,
        ..Settings::default()
    };
    let ingester = Ingester::start(registry, Arc::new(cluster), store.clone(), Sharding::Alone, settings);
    wait_until(&ingester, || server.watches() > 0).await;
    let (_, metrics) = ingester.metrics().next().expect("the registry has one kind");
    for (event, written, rates) in [
        ("ADDED", &metrics.inserted, &mut ingested.created),
        ("MODIFIED", &metrics.updated, &mut ingested.updated),
    ] {
        let events = server.events(event, load.objects);
        let begun = Instant::now();
        for event in events {
            server.send(event);
        }
        wait_until(&ingester, || written.get() >= load.objects as u64).await;
        rates.add(load.objects, begun.elapsed());
    }
    ingester.shutdown().await;
    let entries = store.replay(kind, None, 1).await.expect("the database is there");
    assert_eq!(entries.len(), usize::from(kind.events), "events alone fill the outbox");
    store.close().await;
}

async fn wait_until(ingester: &Ingester, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        let late = begun.elapsed() > WAIT_MAX;
        assert!(!late, "not in {WAIT_MAX:?}: {:?}", ingester.status());
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
