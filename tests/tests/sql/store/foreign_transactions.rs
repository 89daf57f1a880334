//! Transactions of others on the same server, open for as long as they like: who follows the outbox waits for none.

use std::time::Duration;

use kindex_harness::require::passed_over;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::time::timeout;

use super::backend::Backend;
use super::outbox::EVENTFUL;
use super::outbox_histories::no_position_is_skipped;

/// Readers that take longer wait for something that does not end. They take seconds.
const READ_WITHIN: Duration = Duration::from_secs(180);

scenarios!(who_follows_the_outbox_waits_for_no_transaction_of_others);

/// As if a reader stopped before the oldest transaction that is open on the server.
async fn who_follows_the_outbox_waits_for_no_transaction_of_others(backend: Backend) {
    let Some(options) = backend.server().cloned() else {
        return passed_over("the engine has no server on which others have transactions");
    };
    let backend = backend.with_registry(EVENTFUL).await;
    let name = options.get_database().expect("a database of the test's");
    let others = Others::begin(&options, name).await;
    let read = timeout(READ_WITHIN, no_position_is_skipped(&[&backend], &[&[&backend]])).await;
    read.expect("no reader stands still");
    others.end(&options).await;
}

/// Those that are open beside the writers.
struct Others {
    /// Each with the table into which it has written: in a database of its own, and in that of Kindex.
    writers: Vec<(MySqlConnection, String)>,
    /// Has seen the outbox while it was empty.
    reader: MySqlConnection,
    /// The id of one that was prepared, and whose program is gone.
    prepared: String,
}

impl Others {
    async fn begin(options: &MySqlConnectOptions, name: &str) -> Self {
        let elsewhere = format!("{name}_beside");
        let mut forgotten = connect(options).await;
        run(&mut forgotten, &format!("CREATE DATABASE {elsewhere}")).await;
        let mut writers = Vec::new();
        for table in [format!("{elsewhere}.notes"), "notes".to_owned()] {
            run(&mut forgotten, &format!("CREATE TABLE {table} (id INT PRIMARY KEY)")).await;
            let mut writer = connect(options).await;
            run(&mut writer, "START TRANSACTION").await;
            run(&mut writer, &format!("INSERT INTO {table} VALUES (1)")).await;
            writers.push((writer, table));
        }
        run(&mut forgotten, &format!("XA START '{elsewhere}'")).await;
        run(&mut forgotten, &format!("INSERT INTO {elsewhere}.notes VALUES (2)")).await;
        for step in ["END", "PREPARE"] {
            run(&mut forgotten, &format!("XA {step} '{elsewhere}'")).await;
        }
        forgotten.close().await.expect("closed");
        let mut reader = connect(options).await;
        run(&mut reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT").await;
        assert_eq!(count(&mut reader, "kindex_outbox").await, 0);
        Self {
            writers,
            reader,
            prepared: elsewhere,
        }
    }

    /// All of them were open until now.
    async fn end(mut self, options: &MySqlConnectOptions) {
        let seen = count(&mut self.reader, "kindex_outbox").await;
        assert_eq!(seen, 0, "its snapshot is that of the beginning");
        let mut outside = connect(options).await;
        let written = count(&mut outside, "kindex_outbox").await;
        assert_ne!(written, 0, "others have written meanwhile");
        for (mut writer, table) in self.writers {
            let seen = [count(&mut writer, &table).await, count(&mut outside, &table).await];
            assert_eq!(seen, [1, 0], "{table}: its row is there for itself alone");
        }
        // Refused where no transaction of this id is prepared.
        run(&mut outside, &format!("XA ROLLBACK '{}'", self.prepared)).await;
    }
}

async fn connect(options: &MySqlConnectOptions) -> MySqlConnection {
    options.connect().await.expect("the server is up")
}

async fn run(connection: &mut MySqlConnection, sql: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await;
    done.expect(sql);
}

async fn count(connection: &mut MySqlConnection, table: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) FROM {table}");
    let count = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(connection).await;
    count.expect("counted")
}
