//! Archived rows of an older version of their kind, converted on a MariaDB with durable commits. The baseline of the
//! same run is the fill of one column of the same rows, as a migration fills it.
//!
//! `KINDEX_BENCH_OBJECTS` (20000) sets the size, `KINDEX_BENCH_ROUNDS` (3) the number of runs. The target is a
//! conversion at least half as fast as the fill.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use kindex_benches::figures::{Rates, print_table, setting};
use kindex_benches::objects::{REGISTRY, RUN, objects};
use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use kindex_maintenance::convert::{Options, convert};
use kindex_model::kind::{FieldMap, Kind, MapRule, Migration, Registry, Version};
use kindex_query::Life;
use kindex_store::progress::NoProgress;
use kindex_store::{MetadataStorage, MigrateOptions, PoolConfig, RowWrite};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

const BATCH_ROWS: usize = 500;
const DATABASE: &str = "bench";

/// The kind as it is now: a field moved since.
static NOW: Kind = Kind {
    version: "v2",
    versions: &[Version {
        name: "v1",
        served: true,
        stored: false,
        map: &[FieldMap {
            here: Some(&["spec", "parameters"]),
            own: Some(&["spec", "arguments"]),
            rule: MapRule::Same,
        }],
    }],
    ..RUN
};

/// Fills one column, which has a key.
const FILL: Migration = Migration {
    number: 1,
    name: "fill",
    compatible: 1,
    mysql: "-- step: fill run state\n",
    sqlite: "-- step: fill run state\n",
    checksum: "one",
};

fn main() {
    if require("mariadb", MariaDb::installed()) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(measure());
    }
}

async fn measure() {
    let count = setting("KINDEX_BENCH_OBJECTS", 20_000);
    let server = MariaDb::start(&[
        "--innodb-buffer-pool-size=2G",
        "--innodb-log-file-size=1G",
        "--innodb-flush-log-at-trx-commit=1",
    ]);
    let (mut fills, mut conversions) = (Rates::default(), Rates::default());
    for _ in 0..setting("KINDEX_BENCH_ROUNDS", 3) {
        let store = stored(server.port, count).await;
        let begun = Instant::now();
        fill(&store, count).await;
        fills.add(count, begun.elapsed());
        let begun = Instant::now();
        let done = convert(
            store.as_ref(),
            &REGISTRY.platform,
            &NOW,
            &Options::default(),
            &NoProgress,
        )
        .await;
        conversions.add(count, begun.elapsed());
        let done = done.expect("converted");
        assert_eq!((done.converted, done.refused), (count as u64, 0));
        store.close().await;
    }
    println!("{count} archived rows, rows a second, median (slowest..fastest)\n");
    print_table(
        &["", "rows/s"],
        &[
            vec!["fill of one column".to_owned(), fills.show()],
            vec!["conversion".to_owned(), conversions.show()],
        ],
    );
    println!(
        "\nconversion against fill: {:.2}x",
        conversions.median() / fills.median()
    );
}

/// A database of its own with so many rows of evicted objects, as a program stored them whose version was v1, and
/// nothing in the column that is to be filled.
async fn stored(port: u16, count: usize) -> Arc<dyn MetadataStorage> {
    let server = MySqlConnectOptions::new().host("127.0.0.1").port(port).username("root");
    execute(&server, &format!("DROP DATABASE IF EXISTS {DATABASE}")).await;
    let registry = Registry {
        kinds: Box::leak(Box::new([&NOW])),
        migrations: &[FILL],
        ..REGISTRY
    };
    let address = format!("mysql://root@127.0.0.1:{port}/{DATABASE}");
    let store = kindex_store::connect(&address, registry, &PoolConfig::default()).expect("a right address");
    store.prepare().await.expect("the server is up");
    for batch in objects(count, 7).created.chunks(BATCH_ROWS) {
        let writes: Vec<RowWrite> = batch
            .iter()
            .map(|version| RowWrite::Store {
                version: version.clone(),
                life: Life::Evicted,
                revive: false,
            })
            .collect();
        store.write(&RUN, &writes, Timestamp::now()).await.expect("stored");
    }
    execute(&server.database(DATABASE), "UPDATE run SET state = NULL").await;
    store
}

async fn fill(store: &Arc<dyn MetadataStorage>, count: usize) {
    let options = MigrateOptions {
        refill: true,
        ..MigrateOptions::default()
    };
    let migrated = store.migrate(&options, &NoProgress).await.expect("filled");
    let filled: u64 = migrated.iter().map(|migration| migration.rows_filled).sum();
    assert_eq!(filled, count as u64, "every row is filled");
}

async fn execute(options: &MySqlConnectOptions, sql: &str) {
    let mut connection: MySqlConnection = options.connect().await.expect("the server is up");
    connection
        .execute(sqlx::AssertSqlSafe(sql.to_owned()))
        .await
        .expect("it runs");
    connection.close().await.expect("closed");
}
