//! Calls that nobody waits for any more: they are dropped while the database answers, and the next call may get their
//! connection.

use std::pin::{Pin, pin};
use std::task::Poll;

use futures::future::poll_fn;
use kindex_harness::wait::eventually;
use kindex_store::progress::NoProgress;
use kindex_store::{MigrateOptions, PoolConfig};
use kindex_tests::databases::mariadb::Flavor;
use kindex_tests::databases::patient;

use super::backend::{Backend, rows};
use super::widget::{REGISTRY, WIDGET, at, widget};

/// The name of a state that is saved.
const SAVED: &str = "cut-off";
/// More often than a write waits.
const POLLS_MAX: u32 = 24;

#[tokio::test]
async fn nothing_of_a_call_that_is_cut_off_stays_on_its_connection() {
    for (_, backend) in Backend::each(&[Flavor::Plain]).await {
        nothing_stays(&backend).await;
    }
}

/// Writes are cut off at each point at which they wait, on the only connection that there is. What the next call writes
/// there is seen by others at once. As if a transaction whose beginning was not answered stayed open.
pub(crate) async fn nothing_stays(backend: &Backend) {
    let pool = PoolConfig {
        max_open: 1,
        ..patient()
    };
    let store = kindex_store::open(&backend.address, REGISTRY, &pool).expect("the address names a database");
    store.prepare().await.expect("the tables are there");
    let mut cuts = 0;
    for polls in 1..=POLLS_MAX {
        let object = widget(&format!("u{polls}"), &format!("a{polls}"), 10);
        let write = [object.live()];
        if polled(store.write(&WIDGET, &write, at(0)), polls).await.is_none() {
            cuts += 1;
        }
        let value = polls.to_string();
        store.save_state(&WIDGET, SAVED, &value, at(0)).await.expect("saved");
        let sql = format!("SELECT value FROM kindex_state WHERE name = '{SAVED}'");
        let seen = rows(&backend.address, &sql).await;
        let seen = seen.expect("others can read the database");
        assert_eq!(
            seen,
            [[Some(value)]],
            "after a call that was cut off when it waited the {polls}. time"
        );
    }
    // A server never answers at once all the time.
    assert!(cuts > 0 || backend.may_answer_at_once());
    store.close().await;
}

#[tokio::test]
async fn a_migration_that_is_cut_off_leaves_no_lock_behind() {
    for (_, backend) in Backend::each(&[Flavor::Plain]).await {
        if let Some(is_free) = backend.asks_for_free_migration_lock() {
            no_lock_stays(&backend, is_free).await;
        }
    }
}

/// Migrations are cut off at each point at which they wait. As if the connection on which the lock is asked for went
/// back to the pool before the answer: it would hold the lock for as long as it is there, and nobody could migrate.
async fn no_lock_stays(backend: &Backend, is_free: &str) {
    let store = kindex_store::open(&backend.address, REGISTRY, &patient()).expect("the address names a database");
    store.prepare().await.expect("the tables are there");
    let mut cuts = 0;
    loop {
        let options = MigrateOptions::default();
        let migrated = polled(store.migrate(&options, &NoProgress), cuts + 1).await;
        eventually("the lock of migrations to be free", async || {
            let free = rows(&backend.address, is_free).await;
            free == Some(vec![vec![Some("1".to_owned())]])
        })
        .await;
        if let Some(migrated) = migrated {
            assert!(migrated.expect("migrated").is_empty(), "nothing is left to migrate");
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 0, "a migration waits for the lock and for its statements");
    store.close().await;
}

/// What a call comes to if it is polled so many times at most.
async fn polled<T>(call: impl Future<Output = T>, polls: u32) -> Option<T> {
    advance(pin!(call), polls).await
}

/// The same, and the call is left where it waits.
pub(super) async fn advance<F: Future>(mut call: Pin<&mut F>, polls: u32) -> Option<F::Output> {
    let mut left = polls;
    poll_fn(|context| {
        left -= 1;
        match call.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
