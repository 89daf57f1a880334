//! Archived rows of an older version of their kind, converted on each engine that is installed, the servers with
//! durable commits. The baseline of the same run is the fill of one column, as a migration fills it, of the same
//! objects in rows of the kind's own version. Either has a database of its own; which comes first alternates.
//!
//! `KINDEX_BENCH_OBJECTS` (20000) sets the size, `KINDEX_BENCH_ROUNDS` (3) the number of pairs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kindex_benches::figures::{Rates, machine, print_table, setting};
use kindex_benches::objects::{REGISTRY, RUN, objects};
use kindex_harness::mariadb::MariaDb;
use kindex_harness::mysql::MySql;
use kindex_harness::require::require;
use kindex_maintenance::convert::{Options, convert};
use kindex_model::kind::{Column, FieldMap, Kind, MapRule, Migration, Registry, Version};
use kindex_model::projection;
use kindex_query::{Life, Revive};
use kindex_store::progress::NoProgress;
use kindex_store::{MetadataStorage, MigrateOptions, PoolConfig, RowWrite};

const BATCH_ROWS: usize = 500;
const SERVER: [&str; 3] = [
    "--innodb-buffer-pool-size=2G",
    "--loose-innodb-log-file-size=1G",
    "--innodb-flush-log-at-trx-commit=1",
];

/// The kind as it is now: a field moved since.
static NOW: Kind = Kind {
    version: "v2",
    versions: &[Version {
        name: "v1",
        served: true,
        stored: false,
        deprecated: None,
        map: &[FieldMap {
            here: Some(&["spec", "parameters"]),
            own: Some(&["spec", "arguments"]),
            rule: MapRule::Same,
        }],
    }],
    ..RUN
};

/// The kind before its column `state` was filled.
static UNFILLED: Kind = Kind {
    columns: &[
        RUN.columns[0],
        RUN.columns[1],
        Column {
            path: &["status", "none"],
            ..RUN.columns[2]
        },
        RUN.columns[3],
    ],
    ..RUN
};

/// Fills one column, which has a key.
const FILL: Migration = Migration {
    number: 1,
    name: "fill",
    compatible: 1,
    texts: &[
        ("mysql", "-- step: fill run state\n"),
        ("sqlite", "-- step: fill run state\n"),
    ],
    checksum: "one",
};

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let count = setting("KINDEX_BENCH_OBJECTS", 20_000);
    let directory = tempfile::tempdir().expect("a temporary directory");
    println!("{count} archived rows, {}\n", machine());
    let mut lines = vec![pairs("SQLite", count, |name| file(directory.path(), name)).await];
    if require("mariadb", MariaDb::installed()) {
        let server = MariaDb::start(&SERVER);
        lines.push(pairs("MariaDB", count, |name| database(server.port, name)).await);
    }
    if require("mysql", MySql::installed()) {
        let server = MySql::start(&SERVER);
        lines.push(pairs("MySQL", count, |name| database(server.port, name)).await);
    }
    print_table(
        &[
            "median (slowest..fastest)",
            "fill of one column, rows/s",
            "conversion, rows/s",
            "conversion against fill",
            "target",
        ],
        &lines,
    );
}

fn file(directory: &Path, name: &str) -> String {
    format!("sqlite:{}", directory.join(name).display())
}

fn database(port: u16, name: &str) -> String {
    format!("mysql://root@127.0.0.1:{port}/{name}")
}

/// Measures both in all rounds, in databases at `address` of a name.
async fn pairs(engine: &str, count: usize, address: impl Fn(&str) -> String) -> Vec<String> {
    let (mut fills, mut conversions) = (Rates::default(), Rates::default());
    for round in 0..setting("KINDEX_BENCH_ROUNDS", 3) {
        let is_even = round.is_multiple_of(2);
        for is_fill in [is_even, !is_even] {
            if is_fill {
                let took = fill(&address(&format!("fill{round}")), count).await;
                fills.add(count, took);
            } else {
                let took = conversion(&address(&format!("conversion{round}")), count).await;
                conversions.add(count, took);
            }
        }
    }
    let ratio = conversions.against(&fills).show_multiple();
    let target = "at least 0.5".to_owned();
    vec![engine.to_owned(), fills.show(), conversions.show(), ratio, target]
}

async fn fill(address: &str, count: usize) -> Duration {
    let store = stored(address, &RUN, &UNFILLED, count).await;
    let options = MigrateOptions {
        refill: true,
        ..MigrateOptions::default()
    };
    let begun = Instant::now();
    let migrated = store.migrate(&options, &NoProgress).await.expect("filled");
    let took = begun.elapsed();
    let filled: u64 = migrated.iter().map(|migration| migration.rows_filled).sum();
    assert_eq!(filled, count as u64, "every row is filled");
    store.close().await;
    took
}

async fn conversion(address: &str, count: usize) -> Duration {
    let store = stored(address, &NOW, &RUN, count).await;
    let (platform, options) = (&REGISTRY.platform, Options::default());
    let begun = Instant::now();
    let done = convert(&store, platform, &NOW, &options, &NoProgress).await;
    let took = begun.elapsed();
    let done = done.expect("converted");
    assert_eq!((done.converted, done.refused), (count as u64, 0));
    store.close().await;
    took
}

/// A database of a program that knows a kind as `now`, with so many rows of archived objects, as a program stored them
/// that knew it as `then`.
async fn stored(address: &str, now: &'static Kind, then: &'static Kind, count: usize) -> Arc<dyn MetadataStorage> {
    let registry = Registry {
        kinds: Box::leak(Box::new([now])),
        migrations: &[FILL],
        ..REGISTRY
    };
    let store = kindex_store::connect(address, registry, &PoolConfig::default()).expect("a right address");
    store.prepare().await.expect("the database is there");
    for batch in objects(count, 7).created.chunks(BATCH_ROWS) {
        let writes: Vec<RowWrite> = batch
            .iter()
            .map(|version| RowWrite::Store {
                version: projection::Version::project(then, version.object.clone()),
                life: Life::Archived,
                revive: Revive::Never,
            })
            .collect();
        store.write(then, &writes, Timestamp::now()).await.expect("stored");
    }
    store
}
