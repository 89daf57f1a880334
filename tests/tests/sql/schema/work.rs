//! How much an engine reads for a label selector, counted by the engine itself: steps of SQLite's machine, rows that
//! the storage of MariaDB and MySQL handed out. Each form, over a table full of rows, with the statement and the
//! values that the store sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use kindex_generated::registry;
use kindex_model::object::Uid;
use kindex_model::value::Value;
use kindex_query::{LabelSelector, Select};
use kindex_store::{Address, Dialect, MetadataStorage, RowWrite, SqliteLocation, Statement};
use kindex_tests::databases::patient;
use sqlx::mysql::MySqlConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, Row};

/// The kind with many rows.
pub(super) const MANY: &str = "PipelineRun";
/// How many it has.
pub(super) const MANY_ROWS: u32 = 200_000;
const PAGE_ROWS: u32 = 50;

/// A question, and how many rows its narrowest part has: what a page may cost is counted in them.
struct Form {
    labels: &'static str,
    condition: &'static str,
    order: &'static [&'static str],
    rows: u32,
}

const fn form(labels: &'static str, condition: &'static str, order: &'static [&'static str], rows: u32) -> Form {
    Form {
        labels,
        condition,
        order,
        rows,
    }
}

const OWNED: u32 = MANY_ROWS / 1000;
const OF_A_TEAM: u32 = MANY_ROWS / 100;
const OF_A_NAMESPACE: u32 = MANY_ROWS / 20;
const OF_A_STATE: u32 = MANY_ROWS / 50;

/// Every operator alone, after a label, and after a column with a key.
const FORMS: [Form; 26] = [
    form("owner=o5", "", &[], OWNED),
    form("owner=o5", "", &["create_time:desc"], OWNED),
    form("owner in (o5,o6)", "", &[], 2 * OWNED),
    form("owner=o5,team=team5", "", &[], OWNED),
    form("owner=o5,tier=t1,team in (team5,team6)", "", &[], OWNED),
    form("owner=o5,grade", "", &[], OWNED),
    form("owner=o5,!grade", "", &[], OWNED),
    form("owner=o5,!team", "", &[], OWNED),
    form("owner=o5,team!=team6", "", &[], OWNED),
    form("owner=o5,team notin (team6,team7,team8)", "", &[], OWNED),
    form("owner=o5,grade notin (g5,g6),tier!=t1", "", &[], OWNED),
    form("owner=o5", "namespace=ns5", &[], OWNED),
    form("owner=o5,!grade", "namespace=ns5", &["name"], OWNED),
    form("owner=o5,!team", "state=v5", &[], OWNED),
    form("team=team5,!grade", "", &["namespace", "name"], OF_A_TEAM),
    form("grade", "state=v5", &[], OF_A_STATE),
    form("!grade", "state=v5", &[], OF_A_STATE),
    form("!team", "state=v5", &[], OF_A_STATE),
    form("team!=team6", "state=v5", &[], OF_A_STATE),
    form("team notin (team6,team7)", "state=v5", &[], OF_A_STATE),
    form("grade", "", &["create_time:desc"], PAGE_ROWS),
    form("grade", "", &[], MANY_ROWS),
    // The rows of the first namespace are all deleted.
    form("!grade", "", &["namespace", "name"], OF_A_NAMESPACE),
    form("!team", "", &[], MANY_ROWS),
    form("team!=team6", "", &["create_time:desc"], PAGE_ROWS),
    form("team notin (team6,team7)", "", &[], MANY_ROWS),
];

impl Form {
    fn select(&self) -> Select {
        let mut select = Select::all(registry().find(MANY).expect("a kind"));
        select
            .filter_by_labels(&LabelSelector::parse(self.labels).expect("a selector"))
            .expect("small enough");
        for column in self.order {
            select.order_by(column).expect("a column");
        }
        if !self.condition.is_empty() {
            select.filter_by(self.condition).expect("a condition");
        }
        select.filter_by("delete_time is null").expect("a condition");
        select.limit(PAGE_ROWS);
        select
    }
}

/// Two pages of each form, with an engine's own estimates and, on SQLite, without any.
pub(super) async fn selectors(store: &dyn MetadataStorage, address: &Address, errors: &mut Vec<String>) {
    let mut meter = Meter::open(address).await;
    for form in FORMS {
        let (select, mut token) = (form.select(), None);
        for page in ["first", "second"] {
            let plan = store.explain(&select, token.as_deref()).await.expect("a plan");
            let read = meter.reads(&plan.statement).await;
            let most = meter.allowed(form.rows);
            if read > most {
                let steps: Vec<&str> = plan.steps.iter().map(|step| step.text.as_str()).collect();
                errors.push(format!(
                    "{} {} {:?}, {page} page: {read} read, {most} allowed\n  {}\n  {}",
                    form.labels,
                    form.condition,
                    form.order,
                    steps.join("; "),
                    plan.statement.sql
                ));
            }
            token = store
                .select(&select, token.as_deref())
                .await
                .expect("a page")
                .continue_token;
            if token.is_none() {
                break;
            }
        }
    }
    meter.close().await;
}

/// The same once SQLite has statistics, which a store leaves that has written; and what the reference page shows to
/// those who ask by other programs.
pub(super) async fn after_statistics(store: &dyn MetadataStorage, address: &Address, errors: &mut Vec<String>) {
    let last = kindex_store::open(address, registry(), &patient()).expect("an address");
    let kind = registry().find(MANY).expect("a kind");
    let nothing = [RowWrite::SoftDelete {
        uid: Uid::from("nobody"),
    }];
    let now = Timestamp::now();
    last.write(kind, &nothing, now).await.expect("nothing is written");
    last.close().await;
    match store.dialect() {
        Dialect::Sqlite => selectors(store, address, errors).await,
        // The tables were analyzed when they were filled.
        Dialect::MySql => {}
    }
    let mut meter = Meter::open(address).await;
    let by_label = "SELECT t.namespace, t.name, t.update_time FROM pipelinerun AS t \
                    JOIN pipelinerun_labels AS l ON l.obj_uid = t.uid \
                    WHERE l.`key` = 'owner' AND l.`value` = 'o5' AND t.delete_time IS NULL";
    let statement = Statement {
        sql: by_label.to_owned(),
        values: Vec::new(),
    };
    let (read, most) = (meter.reads(&statement).await, meter.allowed(OWNED));
    if read > most {
        errors.push(format!("{read} read, {most} allowed\n  {by_label}"));
    }
    meter.close().await;
}

/// A connection that counts.
enum Meter {
    Sqlite(Box<SqliteConnection>, Arc<AtomicU64>),
    MySql(Box<MySqlConnection>),
}

/// Steps of SQLite's machine between two counts.
const STEPS: i32 = 10;

impl Meter {
    async fn open(address: &Address) -> Self {
        match address {
            Address::Sqlite(SqliteLocation::File(path)) => {
                let options = SqliteConnectOptions::new().filename(path);
                let mut connection = options.connect().await.expect("a file");
                let steps = Arc::new(AtomicU64::new(0));
                let counted = steps.clone();
                let mut handle = connection.lock_handle().await.expect("a handle");
                handle.set_progress_handler(STEPS, move || {
                    counted.fetch_add(STEPS.unsigned_abs().into(), Ordering::Relaxed);
                    true
                });
                drop(handle);
                Self::Sqlite(Box::new(connection), steps)
            }
            Address::Sqlite(SqliteLocation::Memory) => unreachable!("no second connection reaches it"),
            Address::MySql(options) => Self::MySql(Box::new(options.connect().await.expect("the server answers"))),
        }
    }

    /// So much at most where the narrowest part of a question has so many rows: each of them with its labels and the
    /// object itself.
    fn allowed(&self, rows: u32) -> u64 {
        match self {
            Self::Sqlite(..) => 1_000 + 60 * u64::from(rows),
            Self::MySql(_) => 100 + 8 * u64::from(rows),
        }
    }

    async fn reads(&mut self, statement: &Statement) -> u64 {
        let sql = AssertSqlSafe(statement.sql.clone());
        match self {
            Self::Sqlite(connection, steps) => {
                steps.store(0, Ordering::Relaxed);
                let query = bound(sqlx::query(sql), &statement.values, "%Y-%m-%dT%H:%M:%S%.6fZ");
                query.fetch_all(&mut **connection).await.expect("rows");
                steps.load(Ordering::Relaxed)
            }
            Self::MySql(connection) => {
                connection.execute("FLUSH STATUS").await.expect("flushed");
                let query = bound(sqlx::query(sql), &statement.values, "%Y-%m-%d %H:%M:%S%.6f");
                query.fetch_all(&mut **connection).await.expect("rows");
                let counters = connection.fetch_all("SHOW SESSION STATUS LIKE 'Handler_read%'").await;
                let counters = counters.expect("counters");
                let value = |row: &sqlx::mysql::MySqlRow| row.get_unchecked::<String, _>(1).parse::<u64>();
                counters.iter().map(|row| value(row).expect("a number")).sum()
            }
        }
    }

    async fn close(self) {
        match self {
            Self::Sqlite(connection, _) => connection.close().await.expect("closed"),
            Self::MySql(connection) => connection.close().await.expect("closed"),
        }
    }
}

type Query<'q, DB> = sqlx::query::Query<'q, DB, <DB as sqlx::Database>::Arguments>;

/// The query with its values, as the store binds them.
fn bound<'q, DB: sqlx::Database>(query: Query<'q, DB>, values: &[Value], time: &str) -> Query<'q, DB>
where
    DB::Arguments: sqlx::IntoArguments<DB>,
    Option<i64>: sqlx::Encode<'q, DB> + sqlx::Type<DB>,
    bool: sqlx::Encode<'q, DB> + sqlx::Type<DB>,
    i64: sqlx::Encode<'q, DB> + sqlx::Type<DB>,
    f64: sqlx::Encode<'q, DB> + sqlx::Type<DB>,
    String: sqlx::Encode<'q, DB> + sqlx::Type<DB>,
{
    values.iter().fold(query, |query, value| match value {
        Value::Null => query.bind(None::<i64>),
        Value::Bool(flag) => query.bind(*flag),
        Value::Int(number) => query.bind(*number),
        Value::UInt(_) => unreachable!("no column of these kinds is unsigned"),
        Value::Double(number) => query.bind(*number),
        Value::Text(text) => query.bind(text.clone()),
        Value::Time(moment) => query.bind(moment.strftime(time).to_string()),
    })
}
