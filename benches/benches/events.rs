//! What events cost, each beside a baseline of the same run on one MariaDB with durable commits: storing objects of a
//! kind with events against one without, and the target of that; the way from a commit to 100 subscribers against that
//! to one, with the statements that the database was asked meanwhile; the memory of a replay against that of one of
//! 10,000 objects. Objects are stored without an ingester, whose own work would hide a part of what events cost:
//! `outbox` measures what is left of that.
//!
//! `KINDEX_BENCH_OBJECTS` (5000) are stored `KINDEX_BENCH_RUNS` (3) times. `KINDEX_BENCH_RATE` (500 a second),
//! `KINDEX_BENCH_SECONDS` (20) and `KINDEX_BENCH_SUBSCRIBERS` (100) set the load of subscribers, `KINDEX_BENCH_REPLAY`
//! (1000000) the larger replay. `KINDEX_BENCH_PARTS` (7) is the sum of what is measured: 1, 2 and 4 in this order.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::join_all;
use jiff::Timestamp;
use kindex_benches::child::{Kindex, become_kindex};
use kindex_benches::figures::{Rates, percentile, print_table, setting};
use kindex_benches::runs::targets::{ResultTable, Target};
use kindex_events::http_source::HttpSource;
use kindex_events::{Message, Source as _, Subscribe, Subscription};
use kindex_generated::kinds::{pipeline_run, project};
use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::Object;
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_store::{MetadataStorage, PoolConfig, RowWrite};
use serde_json::json;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _};
use tokio::task::JoinHandle;

static WITHOUT: Kind = Kind {
    events: false,
    ..pipeline_run::KIND
};
static WITH: Kind = Kind {
    events: true,
    ..pipeline_run::KIND
};
const TOPIC: &str = "projects.michelangelo.api";
/// Connections that store, and objects of a batch.
const WORKERS: usize = 4;
const BATCH: usize = 200;
/// Transactions a second under load.
const TRANSACTIONS: usize = 50;
const FEW: usize = 10_000;
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Of the rate without events, so much is left with them.
const RATE_LEFT: Target = Target::AtLeast(0.8);

fn main() -> ExitCode {
    if let Some(code) = become_kindex() {
        return code;
    }
    if require("mariadb", MariaDb::installed()) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(measure());
    }
    ExitCode::SUCCESS
}

async fn measure() {
    let server = MariaDb::start(&["--innodb-buffer-pool-size=1G", "--innodb-flush-log-at-trx-commit=1"]);
    let parts = setting("KINDEX_BENCH_PARTS", 7);
    if parts & 1 > 0 {
        storing(&server).await;
    }
    if parts & 2 > 0 {
        subscribers(&server).await;
    }
    if parts & 4 > 0 {
        replays(&server).await;
    }
}

fn address(server: &MariaDb, database: &str) -> String {
    format!("mysql://root@127.0.0.1:{}/{database}", server.port)
}

/// A database that is prepared for a registry.
async fn open(server: &MariaDb, database: &str, registry: Registry) -> Arc<dyn MetadataStorage> {
    let address = address(server, database).parse().expect("a right address");
    let store = kindex_store::open(&address, registry, &PoolConfig::default()).expect("a right address");
    store.prepare().await.expect("the server is up");
    store
}

async fn connect(server: &MariaDb) -> sqlx::MySqlConnection {
    let options = MySqlConnectOptions::new()
        .host("127.0.0.1")
        .port(server.port)
        .username("root");
    let connected = options.disable_statement_logging().connect().await;
    connected.expect("the server is up")
}

/// About 2.5 KiB, in its first or its second version.
fn object(kind: &Kind, number: usize, version: usize) -> Arc<Version> {
    let text = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.name,
        "metadata": {
            "name": format!("it-{number:08}"),
            "namespace": format!("team-{}", number % 50),
            "uid": format!("{:08x}-{number:08}", (number as u32).wrapping_mul(2_654_435_761)),
            "resourceVersion": (version * 100_000_000 + number + 1).to_string(),
            "creationTimestamp": "2024-05-06T06:00:00Z",
            "labels": {"team": format!("team-{}", number % 50), "version": version.to_string()},
            "annotations": {"example.org/note": "x".repeat(2_000)},
        },
        "spec": {},
    });
    let object = Object::parse_str(&text.to_string()).expect("it is an object");
    Version::project(kind, object)
}

async fn write(store: &dyn MetadataStorage, kind: &'static Kind, versions: &[Arc<Version>]) {
    let writes = versions.iter().map(|version| RowWrite::Store {
        version: version.clone(),
        life: Life::Live,
        revive: Revive::Never,
    });
    let writes: Vec<RowWrite> = writes.collect();
    store.write(kind, &writes, Timestamp::now()).await.expect("stored");
}

/// Objects a second, inserted and updated.
#[derive(Default)]
struct Stored {
    inserts: Rates,
    updates: Rates,
}

async fn storing(server: &MariaDb) {
    let objects = setting("KINDEX_BENCH_OBJECTS", 5_000);
    let [mut without, mut with] = [(); 2].map(|()| Stored::default());
    for run in 0..setting("KINDEX_BENCH_RUNS", 3) {
        let mut turns = [(&WITHOUT, &mut without), (&WITH, &mut with)];
        // None of the two is always the one that comes first.
        if run % 2 == 1 {
            turns.reverse();
        }
        for (kind, stored) in turns {
            let registry = Registry {
                kinds: Box::leak(Box::new([kind])),
                ..kindex_generated::registry()
            };
            let database = format!("storing_{run}_{}", kind.events);
            let store = open(server, &database, registry).await;
            for (version, rates) in [(1, &mut stored.inserts), (2, &mut stored.updates)] {
                let versions: Vec<_> = (0..objects).map(|number| object(kind, number, version)).collect();
                let batches: Vec<_> = versions.chunks(BATCH).collect();
                let begun = Instant::now();
                let workers = (0..WORKERS).map(|worker| {
                    let (store, mine) = (&store, batches.iter().skip(worker).step_by(WORKERS));
                    async move {
                        for batch in mine {
                            write(store.as_ref(), kind, batch).await;
                        }
                    }
                });
                join_all(workers).await;
                rates.add(objects, begun.elapsed());
            }
            store.close().await;
        }
    }
    println!(
        "stored without an ingester: {objects} objects of about 2.5 KiB, {WORKERS} connections, batches of {BATCH}\n"
    );
    let mut table = ResultTable::default();
    for (what, without, with) in [
        ("insert", &without.inserts, &with.inserts),
        ("update", &without.updates, &with.updates),
    ] {
        table.rounds(&format!("{what}, without events"), "objects/s", without, Target::None);
        table.rounds(&format!("{what}, with events"), "objects/s", with, Target::None);
        let ratio = with.against(without);
        table.rounds(&format!("{what}, with events, of without"), "times", &ratio, RATE_LEFT);
    }
    table.print();
}

/// `kindex api` over a database, and a cluster of its own.
struct Setup {
    url: String,
    /// When the server was started.
    begun: Instant,
    api: Kindex,
    _cluster: Kindex,
    _directory: tempfile::TempDir,
}

impl Setup {
    async fn make(address: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = directory.path().join("off.yaml");
        std::fs::write(&config, "metadataStorage: {enableMetadataStorage: false}\n").expect("writable");
        let [config, data] = [config, directory.path().join("data")].map(|path| path.display().to_string());
        let mut arguments = vec![
            "--log",
            "error",
            "up",
            "--deletion=false",
            "--config",
            &config,
            "--data-dir",
            &data,
        ];
        for flag in [
            "--listen",
            "--api-addr",
            "--health-addr",
            "--runs-grpc-addr",
            "--runs-rest-addr",
        ] {
            arguments.extend([flag, "127.0.0.1:0"]);
        }
        let up = Kindex::start(&arguments);
        let kubeconfig = format!("{data}/kubeconfig");
        let begun = Instant::now();
        while !std::fs::exists(&kubeconfig).expect("readable") {
            assert!(begun.elapsed() < WAIT_MAX, "the cluster does not begin");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let mut arguments = vec![
            "--log",
            "error",
            "api",
            "--rights",
            "server",
            "--kubeconfig",
            &kubeconfig,
        ];
        arguments.extend([
            "--database",
            address,
            "--listen",
            "127.0.0.1:0",
            "--health-addr",
            "127.0.0.1:0",
        ]);
        let begun = Instant::now();
        let (api, [listen]) = Kindex::listening(&arguments, ["kubectl --server http://"]);
        Self {
            url: format!("http://{listen}"),
            begun,
            api,
            _cluster: up,
            _directory: directory,
        }
    }

    /// A subscription, as soon as the server answers.
    async fn subscribe(&mut self) -> Subscription {
        let source = HttpSource::new(&self.url, None, None).expect("an address");
        let begun = Instant::now();
        loop {
            match source.subscribe(&Subscribe::to(TOPIC)).await {
                Ok(subscription) => return subscription,
                Err(error) => {
                    let ended = self.api.ended();
                    assert!(ended.is_none() && begun.elapsed() < WAIT_MAX, "{error}: {ended:?}");
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// When the objects of a load were committed, or a subscriber heard of them.
type Times = HashMap<String, Instant>;

/// Reads until the replay has ended; how many objects it has.
async fn replay(subscription: &mut Subscription) -> usize {
    let mut objects = 0;
    loop {
        match subscription.next().await.expect("it goes on").expect("a message") {
            Message::Event(..) => objects += 1,
            Message::Replayed(_) => return objects,
            Message::Alive(_) => {}
        }
    }
}

/// Begins to take the time of so many events.
fn listen(mut subscription: Subscription, events: usize) -> JoinHandle<Times> {
    tokio::spawn(async move {
        let mut heard = Times::new();
        while heard.len() < events {
            let message = subscription.next().await.expect("it goes on").expect("a message");
            if let Message::Event(event, _) = message {
                heard.entry(event.name).or_insert_with(Instant::now);
            }
        }
        heard
    })
}

/// What one load came to.
struct Load {
    latencies: Vec<Duration>,
    statements: i64,
}

async fn load(
    server: &MariaDb,
    store: &dyn MetadataStorage,
    setup: &mut Setup,
    subscribers: usize,
    first: usize,
) -> Load {
    let rate = setting("KINDEX_BENCH_RATE", 500);
    let transactions = TRANSACTIONS * setting("KINDEX_BENCH_SECONDS", 20);
    let batch = rate.div_ceil(TRANSACTIONS);
    let made: Vec<_> = (first..first + transactions * batch)
        .map(|number| object(&project::KIND, number, 1))
        .collect();
    let mut listeners = Vec::new();
    for _ in 0..subscribers {
        let mut subscription = setup.subscribe().await;
        replay(&mut subscription).await;
        listeners.push(listen(subscription, made.len()));
    }
    let mut connection = connect(server).await;
    let before = questions(&mut connection).await;
    let mut committed = Times::new();
    let begun = Instant::now();
    for (number, batch) in made.chunks(batch).enumerate() {
        let due = begun + Duration::from_secs_f64(number as f64 / TRANSACTIONS as f64);
        tokio::time::sleep_until(due.into()).await;
        write(store, &project::KIND, batch).await;
        let now = Instant::now();
        committed.extend(batch.iter().map(|version| (version.object.metadata.name.clone(), now)));
    }
    let mut latencies = Vec::new();
    for listener in listeners {
        let heard = tokio::time::timeout(WAIT_MAX, listener).await;
        let heard = heard.expect("all events come").expect("it does not panic");
        latencies.extend(
            heard
                .iter()
                .map(|(name, time)| time.saturating_duration_since(committed[name])),
        );
    }
    let statements = questions(&mut connection).await - before;
    connection.close().await.expect("closed");
    Load { latencies, statements }
}

/// Statements that the server was asked so far.
async fn questions(connection: &mut sqlx::MySqlConnection) -> i64 {
    let row = connection.fetch_one("SHOW GLOBAL STATUS LIKE 'Questions'").await;
    let count: String = row.expect("counters are readable").get(1);
    count.parse().expect("a counter is a number")
}

async fn subscribers(server: &MariaDb) {
    let many = setting("KINDEX_BENCH_SUBSCRIBERS", 100);
    let store = open(server, "subscribers", kindex_generated::registry()).await;
    let mut setup = Setup::make(&address(server, "subscribers")).await;
    let loads = [
        (1, load(server, store.as_ref(), &mut setup, 1, 0).await),
        (many, load(server, store.as_ref(), &mut setup, many, 10_000_000).await),
    ];
    println!(
        "\n{} events a second for {} s, in {TRANSACTIONS} transactions a second: from the commit to the subscriber\n",
        setting("KINDEX_BENCH_RATE", 500),
        setting("KINDEX_BENCH_SECONDS", 20)
    );
    let rows = loads.iter().map(|(subscribers, load)| {
        let times = [50, 90, 99, 100].map(|at| format!("{:.1?}", percentile(&load.latencies, at)));
        let head = vec![subscribers.to_string(), load.latencies.len().to_string()];
        [head, times.to_vec(), vec![load.statements.to_string()]].concat()
    });
    let heads = ["subscribers", "samples", "p50", "p90", "p99", "max", "statements"];
    print_table(&heads, &rows.collect::<Vec<_>>());
    let p99 = |load: &Load| percentile(&load.latencies, 99).as_secs_f64();
    println!(
        "\n{many} subscribers against one: p99 {:.2}x, statements {:.3}x",
        p99(&loads[1].1) / p99(&loads[0].1),
        loads[1].1.statements as f64 / loads[0].1.statements as f64
    );
    store.close().await;
}

/// Gives entries to as many objects as wanted, made by the server itself.
async fn fill(server: &MariaDb, database: &str, objects: usize) {
    let mut connection = connect(server).await;
    for statement in [
        format!("USE {database}"),
        format!(
            "INSERT INTO kindex_outbox (kind, uid, position, namespace, name) SELECT '{}', \
             CONCAT(LPAD(LOWER(HEX((seq * 2654435761) % 4294967296)), 8, '0'), '-', LPAD(seq, 8, '0')), seq, \
             CONCAT('team-', seq % 50), CONCAT('it-', LPAD(seq, 8, '0')) FROM seq_1_to_{objects}",
            project::KIND.name
        ),
        format!(
            "INSERT INTO kindex_outbox_mark VALUES ('{}', {objects}, 17, UTC_TIMESTAMP(6))",
            project::KIND.name
        ),
        format!(
            "UPDATE kindex_outbox_counter SET position = {objects} WHERE kind = '{}'",
            project::KIND.name
        ),
    ] {
        connection.execute(AssertSqlSafe(statement)).await.expect("filled");
    }
    connection.close().await.expect("closed");
}

async fn replays(server: &MariaDb) {
    let many = setting("KINDEX_BENCH_REPLAY", 1_000_000);
    let mut rows = Vec::new();
    let mut peaks = Vec::new();
    for objects in [FEW, many] {
        let database = format!("replay_{objects}");
        open(server, &database, kindex_generated::registry())
            .await
            .close()
            .await;
        fill(server, &database, objects).await;
        let mut setup = Setup::make(&address(server, &database)).await;
        let replayed = replay(&mut setup.subscribe().await).await;
        let took = setup.begun.elapsed();
        assert_eq!(replayed, objects, "a replay is whole");
        assert!(setup.api.ended().is_none(), "the server is up");
        let peak = setup.api.usage().resident_bytes_max as f64;
        peaks.push(peak);
        let mib = format!("{:.0} MiB", peak / f64::from(1 << 20));
        rows.push(vec![objects.to_string(), format!("{took:.1?}"), mib]);
    }
    println!("\na replay to one subscriber\n");
    print_table(&["objects", "time, start of the server included", "peak memory"], &rows);
    println!(
        "\nthe memory of {many} objects is {:.2} times that of {FEW}",
        peaks[1] / peaks[0]
    );
}
