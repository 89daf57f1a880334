//! A database that takes a call and does not answer: which call waits and for how long is known before it fails, and no
//! longer once it is answered. On a MariaDB of its own, whose stages of a backup keep commits from being answered.

use std::time::Duration;

use kindex_harness::mariadb::MariaDb;
use kindex_harness::wait::eventually;
use kindex_store::{Address, MetadataStorage, MySqlFields, PoolConfig};
use kindex_tests::databases::mariadb::available;
use kindex_tests::databases::server_options;
use sqlx::{ConnectOptions as _, Executor as _};

use super::widget::{REGISTRY, WIDGET, at, widget};

/// Calls count as stalled after two seconds, and waits for locks end after three.
const POOL: PoolConfig = PoolConfig {
    max_open: 4,
    max_idle: 4,
    max_lifetime: Duration::ZERO,
    acquire_timeout: Duration::from_secs(10),
    call_timeout: Duration::from_secs(12),
    page_bytes: 16 * 1024 * 1024,
};

fn stalled(store: &dyn MetadataStorage) -> Option<String> {
    let stalled = store.calls().stalled();
    stalled.map(|stalled| stalled.to_string())
}

#[tokio::test]
async fn what_waits_is_said_before_it_fails_and_not_after_it_was_answered() {
    if !available() {
        return;
    }
    let server = MariaDb::start(&[]);
    let fields = MySqlFields {
        host: "127.0.0.1".to_owned(),
        port: server.port,
        database: "k".to_owned(),
        ..MySqlFields::default()
    };
    let patient = kindex_store::open(&Address::mysql(&fields), REGISTRY, &PoolConfig::default()).expect("an address");
    patient.prepare().await.expect("prepared");
    let store = kindex_store::open(&Address::mysql(&fields), REGISTRY, &POOL).expect("an address");
    let write = |uid: &'static str| {
        let store = store.clone();
        tokio::spawn(async move {
            let batch = [widget(uid, uid, 1).live()];
            store.write(&WIDGET, &batch, at(1)).await
        })
    };
    write("u1").await.expect("no panic").expect("written");
    assert_eq!(stalled(&*store), None);

    // As a full disk does it: everything is taken but the commit.
    let admin = server_options(&fields).connect().await;
    let mut admin = admin.expect("the server is up");
    admin.execute("BACKUP STAGE START").await.expect("begun");
    admin.execute("BACKUP STAGE BLOCK_COMMIT").await.expect("blocked");
    let waiting = write("u2");
    let commit = "the database has not answered a commit of Widget for ";
    // On a busy machine, the statements before the commit may be late by themselves.
    eventually("a commit that waits", async || {
        stalled(&*store).is_some_and(|message| message.starts_with(commit))
    })
    .await;
    let message = stalled(&*store).expect("still");
    // A busy machine may look a second later.
    let seconds = message
        .strip_prefix(commit)
        .and_then(|rest| rest.split_once(" s")?.0.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| seconds >= 2), "{message}");
    assert!(store.calls().oldest() >= Duration::from_secs(2));
    admin.execute("BACKUP STAGE END").await.expect("ended");
    waiting.await.expect("no panic").expect("written");
    assert_eq!(stalled(&*store), None);

    // A table that somebody holds: nobody reads it.
    admin.execute("LOCK TABLES widget WRITE").await.expect("locked");
    let reading = {
        let store = store.clone();
        tokio::spawn(async move { store.count(&WIDGET).await.map(drop) })
    };
    eventually("a read that waits", async || {
        stalled(&*store).is_some_and(|message| message.starts_with("the database has not answered a read"))
    })
    .await;
    admin.execute("UNLOCK TABLES").await.expect("unlocked");
    reading.await.expect("no panic").expect("counted");
    assert_eq!(store.calls().oldest(), Duration::ZERO);
}
