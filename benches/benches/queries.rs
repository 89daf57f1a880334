//! Questions to a million rows on MariaDB: an object by name and by uid, a first page by a column and
//! a label, a page far behind the first one; against OFFSET and against reading the text of the rows,
//! in the same run. Then a migration that adds a column and fills it, and how long a writer waits meanwhile.
//!
//! `KINDEX_BENCH_ROWS` (20000) sets the size, `KINDEX_BENCH_ASKED` (500) how often each question is asked,
//! `KINDEX_BENCH_POOL` (1024) the MiB of the server's buffer pool.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kindex_benches::figures::{percentile, print_table, setting};
use kindex_benches::many::{self, SIZES, STATES};
use kindex_benches::objects::{REGISTRY, RUN};
use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use kindex_model::kind::{Column, ColumnType, Kind, Migration, Registry};
use kindex_model::object::{Object, Uid};
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_store::progress::NoProgress;
use kindex_store::{Address, MetadataStorage, MigrateOptions, PoolConfig, RowWrite};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sqlx::mysql::MySqlConnection;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};

kindex_query::typed_query! {
    /// A query over the rows.
    pub struct Query of RUN;
    columns {
        /// Has a key.
        keyed state STATE "state": text;
    }
    pairs {}
}

/// Rows of a page.
const PAGE: usize = 50;

const BASE: Migration = Migration {
    number: 1,
    name: "base",
    compatible: 1,
    texts: &[("mysql", "-- 0001_base\n"), ("sqlite", "-- 0001_base\n")],
    checksum: "one",
};

/// What is migrated to: one more column, and its value in every row.
const OWNER: Migration = Migration {
    number: 2,
    name: "owner",
    compatible: 1,
    texts: &[
        (
            "mysql",
            "-- step: add-column run owner\nALTER TABLE `run` ADD COLUMN `owner` VARCHAR(255), ALGORITHM=INSTANT;\n\
             -- step: fill run owner\n",
        ),
        ("sqlite", "-- 0002_owner\n"),
    ],
    checksum: "two",
};

/// How long each asking of a question took.
struct Measured {
    question: String,
    times: Vec<Duration>,
}

#[tokio::main]
async fn main() {
    if !require("mariadb", MariaDb::installed()) {
        return;
    }
    let rows = setting("KINDEX_BENCH_ROWS", 20_000).max(PAGE * 2);
    let times = setting("KINDEX_BENCH_ASKED", 500);
    let server = MariaDb::start(&[
        &format!("--innodb-buffer-pool-size={}M", setting("KINDEX_BENCH_POOL", 1_024)),
        "--innodb-log-file-size=512M",
        "--innodb-flush-log-at-trx-commit=1",
    ]);
    let address = format!("mysql://root@localhost/bench?socket={}", server.socket().display());
    let address: Address = address.parse().expect("a right address");
    let store = open(
        &address,
        Registry {
            migrations: &[BASE],
            ..REGISTRY
        },
    );
    store.prepare().await.expect("the server is up");
    let Address::MySql(options) = &address else {
        unreachable!("the address is a server's")
    };
    let mut connection = options.connect().await.expect("the server is up");
    let began = Instant::now();
    many::fill(&mut connection, rows).await.expect("filled");
    many::settle(&mut connection).await.expect("settled");
    println!(
        "{rows} rows, filled and settled by the server in {:.0} s",
        began.elapsed().as_secs_f64()
    );
    let mut answers = point_questions(&*store, rows, times).await;
    answers.extend(pages(&*store, rows, times).await);
    answers.extend(baselines(&mut connection, rows).await);
    show(&answers);
    migrate(&address, &*store, rows).await;
}

fn open(address: &Address, registry: Registry) -> Arc<dyn MetadataStorage> {
    kindex_store::open(address, registry, &PoolConfig::default()).expect("a right address")
}

async fn measure<F: Future>(question: &str, times: usize, mut one: impl FnMut(usize) -> F) -> Measured {
    let mut taken = Vec::with_capacity(times);
    for number in 0..times {
        let began = Instant::now();
        one(number).await;
        taken.push(began.elapsed());
    }
    Measured {
        question: question.to_owned(),
        times: taken,
    }
}

async fn point_questions(store: &dyn MetadataStorage, rows: usize, times: usize) -> Vec<Measured> {
    let mut random = StdRng::seed_from_u64(1);
    let numbers: Vec<usize> = (0..times).map(|_| random.random_range(0..rows)).collect();
    let by_name = measure("an object by name", times, |index| {
        let number = numbers[index];
        async move {
            let namespace = format!("team-{}", number % 50);
            let found = store.get_by_name(&RUN, &namespace, &many::name(number)).await;
            assert!(found.expect("answered").is_some(), "the row is there");
        }
    });
    let by_name = by_name.await;
    let by_uid = measure("an object by uid", times, |index| {
        let uid = Uid::from(many::uid(numbers[index]).as_str());
        async move {
            let found = store.get_by_id(&RUN, &uid).await;
            assert!(found.expect("answered").is_some(), "the row is there");
        }
    });
    vec![by_name, by_uid.await]
}

async fn pages(store: &dyn MetadataStorage, rows: usize, times: usize) -> Vec<Measured> {
    let mut answers = Vec::new();
    for size in SIZES.map(|size| size.to_string()) {
        let first = |index: usize| {
            let query = Query::all().state().eq(STATES[index % STATES.len()]);
            let query = query.label("size", &size).live().limit(50);
            async move { query.fetch(store).await.expect("a page") }
        };
        let question = format!("first page by state and a label of {size} rows");
        answers.push(measure(&question, times, first).await);
    }
    let newest = Query::all().newest(50).live();
    answers.push(measure("page 1, the newest first", times, |_| newest.fetch(store)).await);
    let far = 10_000.min(rows / PAGE - 1);
    let mut token: Option<String> = None;
    for _ in 1..far {
        let page = match &token {
            None => newest.fetch(store).await,
            Some(token) => newest.fetch_after(store, token).await,
        };
        token = page.expect("a page").continue_token;
    }
    let token = token.expect("there are more pages");
    let question = format!("page {far}, the newest first");
    answers.push(measure(&question, times, |_| newest.fetch_after(store, &token)).await);
    answers
}

/// The same by other means, each of them a few times: they are slow.
async fn baselines(connection: &mut MySqlConnection, rows: usize) -> Vec<Measured> {
    let offset = PAGE * (10_000.min(rows / PAGE - 1) - 1);
    let statements = [
        (
            "the same page by OFFSET",
            format!(
                "SELECT uid, json FROM run WHERE delete_time IS NULL ORDER BY create_time DESC, uid DESC \
                 LIMIT 50 OFFSET {offset}"
            ),
        ),
        (
            "first page by state read from the text, and a label of 100000 rows",
            "SELECT r.uid, r.json FROM run AS r JOIN run_labels AS l ON l.obj_uid = r.uid AND l.`key` = 'size' AND \
             l.`value` = '100000' WHERE JSON_VALUE(r.json, '$.status.state') = 'LOST' AND r.delete_time IS NULL \
             ORDER BY r.uid LIMIT 50"
                .to_owned(),
        ),
        (
            "first page by state read from the text, no label",
            "SELECT uid, json FROM run WHERE JSON_VALUE(json, '$.status.state') = 'LOST' AND delete_time IS NULL \
             ORDER BY create_time DESC LIMIT 50"
                .to_owned(),
        ),
    ];
    let mut answers = Vec::new();
    for (question, statement) in statements {
        let mut times = Vec::new();
        for _ in 0..3 {
            let began = Instant::now();
            let found = connection.fetch_all(AssertSqlSafe(statement.clone())).await;
            found.expect("answered");
            times.push(began.elapsed());
        }
        answers.push(Measured {
            question: question.to_owned(),
            times,
        });
    }
    answers
}

fn show(answers: &[Measured]) {
    let rows: Vec<Vec<String>> = answers.iter().map(cells).collect();
    print_table(&["question", "times", "p50", "p99", "max"], &rows);
}

fn cells(measured: &Measured) -> Vec<String> {
    let at = |percent| format!("{:.2?}", percentile(&measured.times, percent));
    vec![
        measured.question.clone(),
        measured.times.len().to_string(),
        at(50),
        at(99),
        at(100),
    ]
}

/// A writer of batches of 20 changed rows alone, and the same beside a migration that fills a column.
async fn migrate(address: &Address, old: &dyn MetadataStorage, rows: usize) {
    let mut objects = Vec::new();
    for number in (0..rows).step_by((rows / 400).max(1)) {
        let found = old.get_by_id(&RUN, &Uid::from(many::uid(number).as_str())).await;
        objects.push(found.expect("answered").expect("the row is there").object);
    }
    let (alone, ()) = beside(old, &objects, 2, tokio::time::sleep(Duration::from_secs(10))).await;
    let new = open(address, wider());
    let options = MigrateOptions::default();
    let began = Instant::now();
    let (during, migrated) = beside(old, &objects, 1_000_000, new.migrate(&options, &NoProgress)).await;
    let took = began.elapsed().as_secs_f64();
    let filled: u64 = migrated
        .expect("migrated")
        .iter()
        .map(|migrated| migrated.rows_filled)
        .sum();
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let rate = filled as f64 / took;
    println!("\na column filled in {filled} rows: {took:.0} s, {rate:.0} rows/s");
    let measured = |question: &str, times| Measured {
        question: question.to_owned(),
        times,
    };
    show(&[
        measured("a batch of 20 changed rows", alone),
        measured("the same beside the migration", during),
    ]);
}

/// Writes batch after batch until `work` is done: how long each batch took, and what the work gave.
async fn beside<T>(
    store: &dyn MetadataStorage,
    objects: &[Object],
    first_version: u64,
    work: impl Future<Output = T>,
) -> (Vec<Duration>, T) {
    let times = RefCell::new(Vec::new());
    let writing = async {
        for (batch, version) in objects.chunks(20).cycle().zip(first_version..) {
            let batch: Vec<RowWrite> = batch.iter().map(|object| changed(object, version)).collect();
            let began = Instant::now();
            store.write(&RUN, &batch, Timestamp::now()).await.expect("written");
            times.borrow_mut().push(began.elapsed());
        }
    };
    let done = tokio::select! {
        done = work => done,
        () = writing => unreachable!("there is always another batch"),
    };
    (times.take(), done)
}

fn changed(object: &Object, version: u64) -> RowWrite {
    let (old, new) = (r#""resourceVersion":"1""#, format!(r#""resourceVersion":"{version}""#));
    let object = Object::parse_str(&object.text().replacen(old, &new, 1)).expect("it is an object");
    RowWrite::Store {
        version: Version::project(&RUN, object),
        life: Life::Live,
        revive: Revive::Never,
    }
}

/// The program whose migration adds the column.
fn wider() -> Registry {
    let owner = Column {
        name: "owner",
        path: &["spec", "owner"],
        ty: ColumnType::Text { chars: 255 },
        own_namespace: false,
    };
    let columns = [RUN.columns, &[owner]].concat();
    let kind: &'static Kind = Box::leak(Box::new(Kind {
        columns: columns.leak(),
        ..RUN
    }));
    Registry {
        kinds: Box::leak(Box::new([kind])),
        migrations: &[BASE, OWNER],
        ..REGISTRY
    }
}
