//! From the event to its row: a paced stream of updates through `kindex ingester` into MariaDB with
//! durable commits. Seen from outside: the clock runs from the moment the server sends the event
//! until a reader of its own finds the version in the table. The baseline of the same run is one
//! commit of one small row, in the same way.
//!
//! `KINDEX_BENCH_RATE` (500 a second), `KINDEX_BENCH_SECONDS` (10) and `KINDEX_BENCH_OBJECTS` (5000)
//! set the load; the target of 15 ms at the 99th percentile is for 500.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use kindex_benches::child::{Kindex, become_kindex};
use kindex_benches::figures::{percentile, print_table, setting};
use kindex_benches::load_server::{LoadServer, uid};
use kindex_generated::kinds::pipeline_run::KIND;
use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use tokio::sync::mpsc;

/// One of so many updates is looked for in the table.
const SAMPLE: usize = 10;
const WAIT_MAX: Duration = Duration::from_secs(60);
/// With shorter pauses, the reader and its thread of the database take much of two cores from what is measured. It
/// sleeps on a thread of its own, since tokio's timer rounds up by another millisecond.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

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
    let rate = setting("KINDEX_BENCH_RATE", 500);
    let seconds = setting("KINDEX_BENCH_SECONDS", 10);
    let objects = setting("KINDEX_BENCH_OBJECTS", 5_000);
    let database = MariaDb::start(&["--innodb-buffer-pool-size=512M", "--innodb-flush-log-at-trx-commit=1"]);
    let server = LoadServer::start(&KIND, objects).await;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut kindex = start(directory.path(), &server, database.port);
    let mut reader = connect(database.port, &mut kindex).await;
    wait_for_rows(&mut reader, objects, &mut kindex).await;
    wait_for_watch(&server, &mut kindex).await;

    let commits = commits(&mut reader).await;
    let latencies = stream(&server, reader, rate, rate * seconds, objects).await;
    let _running = kindex.ended();
    let usage = kindex.usage();
    println!("{rate} updates a second for {seconds} s over {objects} objects of about 2.5 KiB\n");
    let line = |what: &str, times: &[Duration]| {
        let shown = [50, 90, 99, 100].map(|at| format!("{:.2?}", percentile(times, at)));
        let mut cells = vec![what.to_owned(), times.len().to_string()];
        cells.extend(shown);
        cells
    };
    print_table(
        &["", "samples", "p50", "p90", "p99", "max"],
        &[line("event to row", &latencies), line("one commit", &commits)],
    );
    let ratio = percentile(&latencies, 50).as_secs_f64() / percentile(&commits, 50).as_secs_f64();
    println!(
        "\nevent to row is {ratio:.1} commits at the median; kindex used {:.0} MiB and {:.1?} of processor",
        usage.resident_bytes_max as f64 / f64::from(1 << 20),
        usage.processor
    );
}

fn start(directory: &std::path::Path, server: &LoadServer, port: u16) -> Kindex {
    let kubeconfig = directory.join("kubeconfig");
    let config = directory.join("config.yaml");
    std::fs::write(&kubeconfig, server.kubeconfig()).expect("writable");
    let text = format!(
        "metadataStorage: {{enableMetadataStorage: true, enableResourceVersionCache: true}}\n\
         mysql: {{host: 127.0.0.1, port: {port}, user: root, database: bench}}\n\
         ingester: {{concurrentReconciles: 2}}\n"
    );
    std::fs::write(&config, text).expect("writable");
    let [kubeconfig, config] = [kubeconfig, config].map(|path| path.display().to_string());
    Kindex::start(&[
        "--log",
        "error",
        "ingester",
        "--config",
        &config,
        "--kubeconfig",
        &kubeconfig,
        "--health-addr",
        "127.0.0.1:0",
    ])
}

/// Connects once the ingester has made the database.
async fn connect(port: u16, kindex: &mut Kindex) -> MySqlConnection {
    let options = MySqlConnectOptions::new().host("127.0.0.1").port(port).username("root");
    let options = options.database("bench").disable_statement_logging();
    let begun = Instant::now();
    loop {
        match options.connect().await {
            Ok(connection) => return connection,
            Err(error) => still_waiting(begun, kindex, &error.to_string()),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn still_waiting(begun: Instant, kindex: &mut Kindex, what: &str) {
    let ended = kindex.ended();
    assert!(ended.is_none(), "kindex ended with {ended:?}: {what}");
    assert!(begun.elapsed() < WAIT_MAX, "not in {WAIT_MAX:?}: {what}");
}

async fn wait_for_rows(connection: &mut MySqlConnection, objects: usize, kindex: &mut Kindex) {
    let begun = Instant::now();
    loop {
        let count: Result<i64, _> = sqlx::query_scalar("SELECT COUNT(*) FROM pipelinerun")
            .fetch_one(&mut *connection)
            .await;
        match count {
            Ok(count) if count.unsigned_abs() == objects as u64 => return,
            count => still_waiting(begun, kindex, &format!("{count:?} rows of {objects}")),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn wait_for_watch(server: &LoadServer, kindex: &mut Kindex) {
    let begun = Instant::now();
    while server.watches() == 0 {
        still_waiting(begun, kindex, "no watch is open");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The times of single commits of single rows.
async fn commits(connection: &mut MySqlConnection) -> Vec<Duration> {
    const COMMITS: u32 = 300;
    let table = "CREATE TABLE one_commit (number INT PRIMARY KEY, filler VARCHAR(2500))";
    connection.execute(table).await.expect("a table");
    let mut times = Vec::new();
    for number in 0..COMMITS {
        let begun = Instant::now();
        let insert = sqlx::query("INSERT INTO one_commit VALUES (?, REPEAT('x', 2500))").bind(number);
        insert.execute(&mut *connection).await.expect("a row");
        times.push(begun.elapsed());
    }
    times
}

/// Sends updates at an even pace, and says how long each sampled one took to its row.
async fn stream(
    server: &LoadServer,
    reader: MySqlConnection,
    rate: usize,
    updates: usize,
    objects: usize,
) -> Vec<Duration> {
    let (send, receive) = mpsc::unbounded_channel();
    let runtime = tokio::runtime::Handle::current();
    let reading = tokio::task::spawn_blocking(move || runtime.block_on(read_all(reader, receive)));
    let begun = Instant::now();
    for number in 0..updates {
        let due = begun + Duration::from_secs_f64(number as f64 / rate as f64);
        tokio::time::sleep_until(due.into()).await;
        let index = number % objects;
        let sent = Instant::now();
        let version = server.update(index);
        if number % SAMPLE == 0 {
            send.send((uid(index), version, sent)).expect("the reader lives");
        }
    }
    drop(send);
    reading.await.expect("the reader does not panic")
}

async fn read_all(
    mut connection: MySqlConnection,
    mut samples: mpsc::UnboundedReceiver<(String, u64, Instant)>,
) -> Vec<Duration> {
    let mut times = Vec::new();
    while let Some((uid, version, sent)) = samples.recv().await {
        loop {
            let row = sqlx::query_scalar("SELECT CAST(res_version AS UNSIGNED) FROM pipelinerun WHERE uid = ?");
            let found: u64 = row
                .bind(&uid)
                .fetch_one(&mut connection)
                .await
                .expect("every object has a row");
            if found >= version {
                break;
            }
            assert!(sent.elapsed() < WAIT_MAX, "version {version} of {uid} did not arrive");
            std::thread::sleep(POLL_INTERVAL);
        }
        times.push(sent.elapsed());
    }
    connection.close().await.expect("closed");
    times
}
