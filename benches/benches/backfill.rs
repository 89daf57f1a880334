//! A whole kind from the cluster into an empty MariaDB with durable commits: `kindex backfill` over
//! a paged list, then once more with nothing changed. The baselines of the same run are the list
//! alone, read and thrown away, and the processor time of the database beside that of `kindex`.
//!
//! `KINDEX_BENCH_OBJECTS` (5000) sets the size. The target is 1,000,000 objects in 100 MiB.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use kindex_benches::child::{Kindex, Usage, become_kindex, usage};
use kindex_benches::figures::{print_table, setting};
use kindex_benches::load_server::LoadServer;
use kindex_generated::kinds::pipeline_run::KIND;
use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use kindex_kube_client::ReadApi as _;
use kindex_kube_client::kube_cluster::KubeCluster;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

const PAGE_ROWS: u32 = 500;

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
    let objects = setting("KINDEX_BENCH_OBJECTS", 5_000);
    let database = MariaDb::start(&[
        "--innodb-buffer-pool-size=2G",
        "--innodb-log-file-size=1G",
        "--innodb-flush-log-at-trx-commit=1",
    ]);
    let server = LoadServer::start(&KIND, objects).await;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::write(&kubeconfig, server.kubeconfig()).expect("writable");
    let kubeconfig = kubeconfig.display().to_string();
    let address = format!("mysql://root@127.0.0.1:{}/bench", database.port);
    let pid_file = std::fs::read_to_string(database.directory().join("pid")).expect("a running server has one");
    let database_pid = pid_file.trim().parse().expect("a process id");

    let listed = list_alone(&server, objects).await;
    let first = backfill(&kubeconfig, &address, database_pid).await;
    let rows = read_rows(database.port).await;
    assert_eq!(rows.count, objects as u64, "every object has a row");
    let second = backfill(&kubeconfig, &address, database_pid).await;
    let again = read_rows(database.port).await;
    assert_eq!(
        (again.count, again.changed),
        (rows.count, rows.changed),
        "nothing is written"
    );

    println!(
        "{objects} objects, {:.0} bytes of SQL an object\n",
        rows.bytes as f64 / objects as f64
    );
    let line = |what: &str, took: Duration, run: Option<&Run>| {
        let resident = |run: &Run| format!("{:.0} MiB", run.kindex.resident_bytes_max as f64 / f64::from(1 << 20));
        let processor = |used: Duration| format!("{:.1} s", used.as_secs_f64());
        vec![
            what.to_owned(),
            format!("{:.1} s", took.as_secs_f64()),
            format!("{:.0}", objects as f64 / took.as_secs_f64()),
            run.map_or_else(String::new, resident),
            run.map_or_else(String::new, |run| processor(run.kindex.processor)),
            run.map_or_else(String::new, |run| processor(run.database)),
        ]
    };
    print_table(
        &[
            "",
            "time",
            "objects/s",
            "kindex memory",
            "kindex processor",
            "database processor",
        ],
        &[
            line("list alone", listed, None),
            line("backfill", first.took, Some(&first)),
            line("nothing changed", second.took, Some(&second)),
        ],
    );
}

/// What one run of the command took.
struct Run {
    took: Duration,
    kindex: Usage,
    database: Duration,
}

async fn list_alone(server: &LoadServer, objects: usize) -> Duration {
    let cluster = KubeCluster::new(server.config()).expect("a right configuration");
    let begun = Instant::now();
    let (mut token, mut found) = (None, 0);
    loop {
        let page = cluster.list(&KIND, PAGE_ROWS, token.as_deref()).await.expect("a page");
        found += page.objects.len();
        token = page.continue_token;
        if token.is_none() {
            break;
        }
    }
    assert_eq!(found, objects, "the list is whole");
    begun.elapsed()
}

async fn backfill(kubeconfig: &str, address: &str, database_pid: u32) -> Run {
    let processor = || usage(database_pid).map(|usage| usage.processor).unwrap_or_default();
    let before = processor();
    let begun = Instant::now();
    let mut kindex = Kindex::start(&[
        "--log",
        "error",
        "backfill",
        "--kind",
        KIND.plural,
        "--kubeconfig",
        kubeconfig,
        "--database",
        address,
    ]);
    let status = loop {
        if let Some(status) = kindex.ended() {
            break status;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(status.success(), "kindex backfill ended with {status}");
    Run {
        took: begun.elapsed(),
        kindex: kindex.usage(),
        database: processor().saturating_sub(before),
    }
}

/// What the tables hold, and when it changed last.
struct Rows {
    count: u64,
    bytes: u64,
    changed: Option<String>,
}

async fn read_rows(port: u16) -> Rows {
    let options = MySqlConnectOptions::new().host("127.0.0.1").port(port).username("root");
    let mut connection: MySqlConnection = options.database("bench").connect().await.expect("the server is up");
    let row = sqlx::query("SELECT COUNT(*), CAST(MAX(update_time) AS CHAR) FROM pipelinerun");
    let row = row.fetch_one(&mut connection).await.expect("a table");
    let bytes: Option<u64> = sqlx::query_scalar(
        "SELECT CAST(SUM(data_length + index_length) AS UNSIGNED) FROM information_schema.tables \
         WHERE table_schema = 'bench' AND table_name LIKE 'pipelinerun%'",
    )
    .fetch_one(&mut connection)
    .await
    .expect("statistics");
    connection.close().await.expect("closed");
    Rows {
        count: row.get::<i64, _>(0).unsigned_abs(),
        bytes: bytes.unwrap_or_default(),
        changed: row.get(1),
    }
}
