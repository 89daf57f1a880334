//! Objects a second into MariaDB: Kindex's writer against the reference implementation's
//! statement pattern into its own tables, and against `LOAD DATA` of the same rows into either's, in one
//! run on one server with durable commits; once beside the server and once with 0.7 ms added to each round trip.
//!
//! `KINDEX_BENCH_OBJECTS` (2000), `KINDEX_BENCH_RUNS` (3), `KINDEX_BENCH_BATCH` (200) and
//! `KINDEX_BENCH_POOL` (1024, MiB of the server's buffer pool) set the size. Away from the server the
//! reference's pattern stores a tenth of the objects: it would take minutes, and its rate does not depend
//! on their number.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use jiff::Timestamp;
use kindex_benches::figures::{Rates, print_table, setting};
use kindex_benches::load_data::{self, Into};
use kindex_benches::objects::{ANNOTATIONS, LABELS, Objects, REGISTRY, RUN, objects};
use kindex_benches::reference;
use kindex_harness::mariadb::MariaDb;
use kindex_harness::proxy::{Mode, Proxy};
use kindex_harness::require::require;
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_store::{Address, MetadataStorage, PoolConfig, RowWrite, Written};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, Row as _};

/// What is measured; the first is what the others are compared with.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Reference { workers: usize },
    Kindex { workers: usize },
    LoadData { into: Into, at_once: bool },
}

/// Added to each round trip of a database across the network.
const ROUND_TRIP: Duration = Duration::from_micros(700);

const PATTERNS: [Pattern; 9] = [
    Pattern::Reference { workers: 2 },
    Pattern::Reference { workers: 8 },
    Pattern::Kindex { workers: 1 },
    Pattern::Kindex { workers: 2 },
    Pattern::Kindex { workers: 4 },
    Pattern::LoadData {
        into: Into::Kindex,
        at_once: false,
    },
    Pattern::LoadData {
        into: Into::Kindex,
        at_once: true,
    },
    Pattern::LoadData {
        into: Into::Reference,
        at_once: false,
    },
    Pattern::LoadData {
        into: Into::Reference,
        at_once: true,
    },
];

/// Where the writers are.
struct Setup {
    title: &'static str,
    socket: PathBuf,
    /// Holds the distance; nothing is between a writer and a server on one machine.
    proxy: Option<Proxy>,
}

impl Setup {
    fn beside(server: &MariaDb) -> Self {
        Self {
            title: "beside the server",
            socket: server.socket().to_owned(),
            proxy: None,
        }
    }

    fn away(server: &MariaDb) -> Self {
        let socket = server.directory().join("away.sock");
        let proxy = Proxy::start_local(&socket, server.port);
        proxy.set(Mode::Delay(ROUND_TRIP));
        Self {
            title: "with 0.7 ms added to each round trip",
            socket,
            proxy: Some(proxy),
        }
    }

    /// A local socket: over TCP the driver leaves Nagle's algorithm on, which would hold up the
    /// reference's pattern (and not ours) in a way that its own driver does not.
    fn address(&self) -> Address {
        let url = format!("mysql://root@localhost/bench?socket={}", self.socket.display());
        url.parse().expect("a right address")
    }

    fn options(&self) -> MySqlConnectOptions {
        let Address::MySql(options) = self.address() else {
            unreachable!("the address is a server's")
        };
        options.disable_statement_logging()
    }

    fn patterns(&self) -> Vec<Pattern> {
        let is_fair = |pattern: &Pattern| self.proxy.is_none() || !matches!(pattern, Pattern::LoadData { .. });
        PATTERNS.into_iter().filter(is_fair).collect()
    }
}

#[derive(Default)]
struct WriteRates {
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
        &format!("--innodb-buffer-pool-size={}M", setting("KINDEX_BENCH_POOL", 1_024)),
        "--innodb-log-file-size=512M",
        "--innodb-flush-log-at-trx-commit=1",
    ]);
    let beside = Setup::beside(&server);
    count_the_baseline(&beside).await;
    let objects = objects(count, 1);
    let json: usize = objects.created.iter().map(|version| version.object.text().len()).sum();
    println!(
        "{count} objects of {} bytes of JSON, {runs} runs, batches of {}",
        json / count,
        batch_rows()
    );
    for place in [beside, Setup::away(&server)] {
        let patterns = place.patterns();
        let mut write_rates: Vec<WriteRates> = patterns.iter().map(|_| WriteRates::default()).collect();
        for _ in 0..runs {
            for (pattern, write_rates) in patterns.iter().zip(&mut write_rates) {
                measure(&server, &place, *pattern, &objects, write_rates).await;
            }
        }
        show(&place, &patterns, &write_rates);
    }
}

fn batch_rows() -> usize {
    setting("KINDEX_BENCH_BATCH", 200)
}

/// An empty database, prepared.
async fn fresh(place: &Setup) -> Arc<dyn MetadataStorage> {
    let store = kindex_store::open(&place.address(), REGISTRY, &PoolConfig::default()).expect("a right address");
    store.prepare().await.expect("the server is up");
    let mut connection = place.options().connect().await.expect("the server is up");
    for table in ["TRUNCATE run", "TRUNCATE run_labels", "TRUNCATE run_annotations"] {
        connection.execute(table).await.expect(table);
    }
    reference::prepare(&mut connection).await.expect("prepared");
    connection.close().await.expect("closed");
    store
}

/// Asserts that the baseline is the reference's pattern: 5 + L + A statements, 8 + 2 (L + A) round trips.
async fn count_the_baseline(place: &Setup) {
    fresh(place).await.close().await;
    let options = place.options().database(reference::DATABASE);
    let mut connection = options.connect().await.expect("the server is up");
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

async fn measure(server: &MariaDb, place: &Setup, pattern: Pattern, objects: &Objects, write_rates: &mut WriteRates) {
    let store = fresh(place).await;
    let theirs = place.options().database(reference::DATABASE);
    let mut count = objects.created.len();
    match pattern {
        Pattern::Reference { workers } => {
            if place.proxy.is_some() {
                count = count.div_ceil(10);
            }
            for (rates, versions) in [
                (&mut write_rates.insert, &objects.created),
                (&mut write_rates.update, &objects.finished),
            ] {
                let begun = Instant::now();
                let deadlocks = reference::store(&theirs, &versions[..count], workers).await;
                write_rates.deadlocks += deadlocks.expect("stored");
                rates.add(count, begun.elapsed());
            }
        }
        Pattern::Kindex { workers } => {
            for (rates, versions, expected) in [
                (&mut write_rates.insert, &objects.created, Written::Inserted),
                (&mut write_rates.update, &objects.finished, Written::Updated),
                (&mut write_rates.unchanged, &objects.finished, Written::Unchanged),
            ] {
                let begun = Instant::now();
                write(&store, versions, workers, expected).await;
                rates.add(count, begun.elapsed());
            }
        }
        Pattern::LoadData { into, at_once } => {
            let options = match into {
                Into::Kindex => place.options(),
                Into::Reference => theirs.clone(),
            };
            let files = load_data::write(server.directory(), &objects.created, into);
            let files = files.expect("the files are written");
            let begun = Instant::now();
            load_data::load(&options, &files, at_once).await.expect("loaded");
            write_rates.insert.add(count, begun.elapsed());
        }
    }
    let stored = match pattern {
        Pattern::Reference { .. }
        | Pattern::LoadData {
            into: Into::Reference, ..
        } => rows(&theirs).await,
        Pattern::Kindex { .. } | Pattern::LoadData { into: Into::Kindex, .. } => {
            store.count(&RUN).await.expect("counted").live
        }
    };
    assert_eq!(stored, count as u64, "{pattern:?}");
    store.close().await;
}

async fn rows(options: &MySqlConnectOptions) -> u64 {
    let mut connection = options.connect().await.expect("the server is up");
    let row = connection.fetch_one("SELECT COUNT(*) FROM run").await.expect("counted");
    connection.close().await.expect("closed");
    row.get::<i64, _>(0).unsigned_abs()
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
                        revive: Revive::Never,
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

fn name(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Reference { workers } => format!("reference, {workers} workers"),
        Pattern::Kindex { workers } => format!("kindex, {workers} connections"),
        Pattern::LoadData { into, at_once } => {
            let whose = match into {
                Into::Kindex => "",
                Into::Reference => " into the reference's",
            };
            let how = if *at_once {
                "at once, checks off"
            } else {
                "tables in turn"
            };
            format!("LOAD DATA{whose}, {how}")
        }
    }
}

fn show(place: &Setup, patterns: &[Pattern], write_rates: &[WriteRates]) {
    let shown = |rates: &Rates| {
        let measured = rates.median() > 0.0;
        if measured { rates.show() } else { "-".to_owned() }
    };
    let rows: Vec<Vec<String>> = patterns
        .iter()
        .zip(write_rates)
        .map(|(pattern, write_rates)| {
            vec![
                name(pattern),
                shown(&write_rates.insert),
                shown(&write_rates.update),
                shown(&write_rates.unchanged),
                write_rates.deadlocks.to_string(),
            ]
        })
        .collect();
    println!("\n{}: objects a second, median (slowest..fastest)", place.title);
    print_table(&["pattern", "insert", "status update", "unchanged", "deadlocks"], &rows);
    let best = |wanted: fn(&Pattern) -> bool, rates: fn(&WriteRates) -> &Rates| {
        let of_pattern = patterns.iter().zip(write_rates).filter(|(pattern, _)| wanted(pattern));
        of_pattern
            .map(|(_, write_rates)| rates(write_rates).median())
            .fold(0.0, f64::max)
    };
    let kindex = |rates| best(|pattern| matches!(pattern, Pattern::Kindex { .. }), rates);
    for (workers, base) in [(2, &write_rates[0]), (8, &write_rates[1])] {
        println!(
            "kindex at best against the reference with {workers} workers: insert {:.1}x, status update {:.1}x, \
             unchanged {:.1}x",
            kindex(|write_rates| &write_rates.insert) / base.insert.median(),
            kindex(|write_rates| &write_rates.update) / base.update.median(),
            kindex(|write_rates| &write_rates.unchanged) / base.update.median(),
        );
    }
    if place.proxy.is_none() {
        for (pattern, write_rates) in patterns.iter().zip(write_rates) {
            if matches!(pattern, Pattern::LoadData { .. }) {
                println!(
                    "kindex at best against {}: insert {:.2}x",
                    name(pattern),
                    kindex(|write_rates| &write_rates.insert) / write_rates.insert.median()
                );
            }
        }
    }
}
