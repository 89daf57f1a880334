//! Objects a second into MariaDB: Kindex's writer against the reference implementation's
//! statement pattern and against `LOAD DATA` of the same rows, in one run on one server with
//! durable commits.
//!
//! `KINDEX_BENCH_OBJECTS` (2000), `KINDEX_BENCH_RUNS` (3) and `KINDEX_BENCH_BATCH` (200) set the size.

use std::sync::Arc;
use std::time::Instant;

use futures::future::join_all;
use jiff::Timestamp;
use kindex_benches::figures::{Rates, print_table, setting};
use kindex_benches::mariadb::MariaDb;
use kindex_benches::objects::{ANNOTATIONS, LABELS, Objects, REGISTRY, RUN, objects};
use kindex_benches::require::require;
use kindex_benches::{load_data, reference};
use kindex_runtime::projection::Version;
use kindex_runtime::store::{self, Address, Life, MetadataStorage, PoolConfig, RowWrite, Written};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, Row as _};

/// What is measured; the first is what the others are compared with.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Reference { workers: usize },
    Kindex { workers: usize },
    LoadData { at_once: bool },
}

const PATTERNS: [Pattern; 7] = [
    Pattern::Reference { workers: 2 },
    Pattern::Reference { workers: 8 },
    Pattern::Kindex { workers: 1 },
    Pattern::Kindex { workers: 2 },
    Pattern::Kindex { workers: 4 },
    Pattern::LoadData { at_once: false },
    Pattern::LoadData { at_once: true },
];

#[derive(Default)]
struct Figures {
    insert: Rates,
    update: Rates,
    unchanged: Rates,
    deadlocks: usize,
}

#[tokio::main]
async fn main() {
    if !require("mariadb", MariaDb::installed()) {
        return;
    }
    let count = setting("KINDEX_BENCH_OBJECTS", 2_000);
    let runs = setting("KINDEX_BENCH_RUNS", 3);
    let server = MariaDb::start(&[
        "--innodb-buffer-pool-size=1G",
        "--innodb-log-file-size=512M",
        "--innodb-flush-log-at-trx-commit=1",
    ]);
    count_the_baseline(&server).await;
    let objects = objects(count, 1);
    let json: usize = objects.created.iter().map(|version| version.object.text().len()).sum();
    println!(
        "{count} objects of {} bytes of JSON, {runs} runs, batches of {}\n",
        json / count,
        batch_rows()
    );
    let mut figures: Vec<Figures> = PATTERNS.iter().map(|_| Figures::default()).collect();
    for _ in 0..runs {
        for (pattern, figures) in PATTERNS.into_iter().zip(&mut figures) {
            measure(&server, pattern, &objects, figures).await;
        }
    }
    show(&figures);
}

fn batch_rows() -> usize {
    setting("KINDEX_BENCH_BATCH", 200)
}

/// The server's local socket: over TCP the driver leaves Nagle's algorithm on, which would hold up
/// the reference's pattern (and not ours) in a way that its own driver does not.
fn address(server: &MariaDb) -> Address {
    let url = format!("mysql://root@localhost/bench?socket={}", server.socket().display());
    url.parse().expect("a right address")
}

fn options(server: &MariaDb) -> MySqlConnectOptions {
    match address(server) {
        Address::MySql(options) => options.disable_statement_logging(),
        Address::Sqlite(_) => unreachable!("the address is a server's"),
    }
}

/// An empty database, prepared.
async fn fresh(server: &MariaDb) -> Arc<dyn MetadataStorage> {
    let store = store::open(&address(server), REGISTRY, &PoolConfig::default()).expect("a right address");
    store.prepare().await.expect("the server is up");
    let mut connection = options(server).connect().await.expect("the server is up");
    for table in ["TRUNCATE run", "TRUNCATE run_labels", "TRUNCATE run_annotations"] {
        connection.execute(table).await.expect(table);
    }
    connection.close().await.expect("closed");
    store
}

/// Asserts that the baseline is the reference's pattern: 5 + L + A statements, 8 + 2 (L + A) round trips.
async fn count_the_baseline(server: &MariaDb) {
    fresh(server).await.close().await;
    let mut connection = options(server).connect().await.expect("the server is up");
    let made = objects(1, 7);
    let before = counters(&mut connection).await;
    reference::upsert(&mut connection, &made.created[0])
        .await
        .expect("stored");
    let after = counters(&mut connection).await;
    let [begins, commits, prepares, executes] = std::array::from_fn(|index| after[index] - before[index]);
    let statements = begins + commits + executes;
    let round_trips = begins + commits + prepares + executes;
    assert_eq!(statements, 5 + LABELS + ANNOTATIONS);
    assert_eq!(round_trips, 8 + 2 * (LABELS + ANNOTATIONS));
    assert_eq!((statements, round_trips), (13, 24));
    println!("reference pattern: {statements} statements, {round_trips} round trips an object");
    connection.close().await.expect("closed");
}

async fn counters(connection: &mut sqlx::MySqlConnection) -> [usize; 4] {
    let rows = connection.fetch_all("SHOW SESSION STATUS LIKE 'Com\\_%'").await;
    let rows = rows.expect("counters are readable");
    ["Com_begin", "Com_commit", "Com_stmt_prepare", "Com_stmt_execute"].map(|name| {
        let row = rows.iter().find(|row| row.get::<String, _>(0) == name);
        let value: String = row.expect(name).get(1);
        value.parse().expect("a counter is a number")
    })
}

async fn measure(server: &MariaDb, pattern: Pattern, objects: &Objects, figures: &mut Figures) {
    let store = fresh(server).await;
    let count = objects.created.len();
    let options = options(server);
    match pattern {
        Pattern::Reference { workers } => {
            for (rates, versions) in [
                (&mut figures.insert, &objects.created),
                (&mut figures.update, &objects.finished),
            ] {
                let begun = Instant::now();
                let deadlocks = reference::store(&options, versions, workers).await;
                figures.deadlocks += deadlocks.expect("stored");
                rates.add(count, begun.elapsed());
            }
        }
        Pattern::Kindex { workers } => {
            for (rates, versions, expected) in [
                (&mut figures.insert, &objects.created, Written::Inserted),
                (&mut figures.update, &objects.finished, Written::Updated),
                (&mut figures.unchanged, &objects.finished, Written::Unchanged),
            ] {
                let begun = Instant::now();
                write(&store, versions, workers, expected).await;
                rates.add(count, begun.elapsed());
            }
        }
        Pattern::LoadData { at_once } => {
            let files = load_data::write(server.directory(), &objects.created);
            let files = files.expect("the files are written");
            let begun = Instant::now();
            load_data::load(&options, &files, at_once).await.expect("loaded");
            figures.insert.add(count, begun.elapsed());
        }
    }
    let stored = store.count(&RUN).await.expect("counted");
    assert_eq!(stored.live, count as u64, "{pattern:?}");
    store.close().await;
}

async fn write(store: &Arc<dyn MetadataStorage>, versions: &[Arc<Version>], workers: usize, expected: Written) {
    let batches: Vec<&[Arc<Version>]> = versions.chunks(batch_rows()).collect();
    let worker = |number: usize| {
        let mine: Vec<&[Arc<Version>]> = batches.iter().skip(number).step_by(workers).copied().collect();
        async move {
            for batch in mine {
                let writes: Vec<RowWrite> = batch
                    .iter()
                    .map(|version| RowWrite::Store {
                        version: version.clone(),
                        life: Life::Live,
                        revive: false,
                    })
                    .collect();
                let written = store.write(&RUN, &writes, Timestamp::now()).await;
                let written = written.expect("stored");
                assert!(written.iter().all(|written| *written == expected));
            }
        }
    };
    join_all((0..workers).map(worker)).await;
}

fn show(figures: &[Figures]) {
    let base = &figures[0];
    let times = |rates: &Rates, base: &Rates| {
        if rates.median() == 0.0 {
            return "-".to_owned();
        }
        format!("{:.1}x", rates.median() / base.median())
    };
    let shown = |rates: &Rates| {
        let none = rates.median() == 0.0;
        if none { "-".to_owned() } else { rates.show() }
    };
    let rows: Vec<Vec<String>> = PATTERNS
        .iter()
        .zip(figures)
        .map(|(pattern, figures)| {
            let name = match pattern {
                Pattern::Reference { workers } => format!("reference, {workers} workers"),
                Pattern::Kindex { workers } => format!("kindex, {workers} connections"),
                Pattern::LoadData { at_once: false } => "LOAD DATA, tables in turn".to_owned(),
                Pattern::LoadData { at_once: true } => "LOAD DATA, at once, checks off".to_owned(),
            };
            vec![
                name,
                shown(&figures.insert),
                times(&figures.insert, &base.insert),
                shown(&figures.update),
                times(&figures.update, &base.update),
                shown(&figures.unchanged),
                figures.deadlocks.to_string(),
            ]
        })
        .collect();
    println!("objects a second, median (slowest..fastest); ratios to the first line");
    print_table(
        &["pattern", "insert", "", "status update", "", "unchanged", "deadlocks"],
        &rows,
    );
    let best = |index: usize| figures[index].insert.median();
    let kindex = best(2).max(best(3)).max(best(4));
    println!(
        "\nkindex at best: insert {:.1}x reference with 8 workers, {:.2}x the faster LOAD DATA",
        kindex / best(1),
        kindex / best(5).max(best(6)),
    );
}
