//! Many writers at once: no error reaches the caller, and no key occurs twice. Many calls at once: connections are
//! opened once, by the count of a MariaDB that nobody else asks.

use std::time::{Duration, Instant};

use futures::future::join_all;
use kindex_harness::mariadb::MariaDb;
use kindex_model::object::Uid;
use kindex_store::{Address, MySqlFields, PoolConfig, RowWrite};
use kindex_tests::databases::mariadb::available;
use kindex_tests::databases::server_options;

use super::backend::{Backend, mysql_rows};
use super::widget::{REGISTRY, WIDGET, Widget, at, widget};

scenarios!(
    sixteen_writers_of_new_objects_meet_no_error,
    writers_of_the_same_objects_leave_the_newest_versions,
);

const WRITERS: usize = 16;

fn object(uid: &str, version: u64) -> Widget {
    (0..3).fold(widget(uid, uid, version), |object, index| {
        object
            .label(&format!("l{index}"), &version.to_string())
            .annotation(&format!("n{index}"), &version.to_string())
    })
}

async fn expect_one_row_a_key(backend: &Backend) {
    for side in ["labels", "annotations"] {
        let doubled = format!("SELECT obj_uid, `key` FROM widget_{side} GROUP BY obj_uid, `key` HAVING COUNT(*) > 1");
        if let Some(found) = backend.rows(&doubled).await {
            assert!(found.is_empty(), "{side}: {found:?}");
        }
    }
}

async fn sixteen_writers_of_new_objects_meet_no_error(backend: Backend) {
    const BATCH: usize = 100;
    // One writer at a time is one writer, whatever the number of objects.
    let objects: usize = if backend.locks_rows() { 10_000 } else { 2_000 };
    let writer = |number: usize| {
        let store = backend.store.clone();
        async move {
            let mine: Vec<usize> = (number..objects).step_by(WRITERS).collect();
            for chunk in mine.chunks(BATCH) {
                let batch: Vec<RowWrite> = chunk
                    .iter()
                    // Neighbors in order of uid belong to different writers.
                    .map(|index| object(&format!("u{index:05}"), 1).live())
                    .collect();
                store
                    .write(&WIDGET, &batch, at(0))
                    .await
                    .expect("no error reaches the caller");
            }
        }
    };
    join_all((0..WRITERS).map(writer)).await;
    let counts = backend.store.count(&WIDGET).await.expect("counted");
    assert_eq!(counts.live, objects as u64);
    if let Some(found) = backend.rows("SELECT COUNT(*) FROM widget_labels").await {
        assert_eq!(found[0][0], Some((objects * 3).to_string()));
    }
    expect_one_row_a_key(&backend).await;
}

async fn writers_of_the_same_objects_leave_the_newest_versions(backend: Backend) {
    const OBJECTS: usize = 40;
    const VERSIONS: usize = 5;
    let writer = |number: usize| {
        let store = backend.store.clone();
        async move {
            for round in 0..VERSIONS {
                // Each writer goes through the versions in an order of its own.
                let version = (round * 3 + number) % VERSIONS + 1;
                let batch: Vec<RowWrite> = (0..OBJECTS)
                    .map(|index| object(&format!("u{:02}", (index + number) % OBJECTS), version as u64))
                    .map(|object| object.live())
                    .collect();
                store
                    .write(&WIDGET, &batch, at(0))
                    .await
                    .expect("no error reaches the caller");
            }
        }
    };
    join_all((0..WRITERS).map(writer)).await;
    for state in backend.store.scan(&WIDGET, None, 100).await.expect("scanned") {
        let newest = object(&state.uid.0, VERSIONS as u64);
        assert_eq!(state.hash, Some(newest.project().hash), "{}", state.uid);
    }
    expect_one_row_a_key(&backend).await;
    let stale = format!("SELECT COUNT(*) FROM widget_labels WHERE `value` <> '{VERSIONS}'");
    if let Some(found) = backend.rows(&stale).await {
        assert_eq!(found[0][0].as_deref(), Some("0"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_at_once_open_each_connection_once_and_leave_few_behind() {
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
    let pool = PoolConfig {
        max_open: WRITERS as u32,
        max_idle: 2,
        acquire_timeout: Duration::from_secs(60),
        ..PoolConfig::default()
    };
    let store = kindex_store::open(&Address::mysql(&fields), REGISTRY, &pool).expect("an address");
    store.prepare().await.expect("prepared");
    let options = server_options(&fields);
    let opened = async || -> u64 {
        let rows = mysql_rows(&options, "SHOW GLOBAL STATUS LIKE 'Connections'").await;
        rows[0][1]
            .as_deref()
            .and_then(|text| text.parse().ok())
            .expect("a number")
    };
    let (before, began) = (opened().await, Instant::now());
    for _ in 0..30 {
        let uids = [Uid::from("u1")];
        let calls = (0..WRITERS).map(|_| store.row_states(&WIDGET, &uids));
        for answer in join_all(calls).await {
            answer.expect("read");
        }
    }
    // The one that asks is new itself.
    let more = opened().await - before - 1;
    // What is idle for two seconds is closed, and opened again: on a busy machine, the calls take longer than that.
    let most = u64::from(pool.max_open) * (1 + began.elapsed().as_secs() / 2);
    assert!(
        more <= most,
        "{more} connections for 480 calls in {:?}",
        began.elapsed()
    );
    let deadline = Instant::now() + Duration::from_secs(60);
    while store.pool().open > pool.max_idle {
        assert!(Instant::now() < deadline, "{:?}", store.pool());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    store.close().await;
}
