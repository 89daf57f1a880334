//! Calls that nobody waits for any more: they are dropped while the database answers, and the next call may get their
//! connection.

use std::pin::pin;
use std::task::Poll;

use futures::future::poll_fn;
use kindex_store::{Address, PoolConfig};
use kindex_tests::databases::mariadb::Flavour;
use kindex_tests::databases::patient;

use super::backend::{Backend, rows};
use super::widget::{REGISTRY, WIDGET, at, widget};

/// The name of a state that is saved.
const SAVED: &str = "cut-off";

#[tokio::test]
async fn nothing_of_a_call_that_is_cut_off_stays_on_its_connection() {
    let backends = [
        Some(Backend::file().await),
        Backend::mariadb(Flavour::Plain).await,
        Backend::mysql().await,
    ];
    for backend in backends.into_iter().flatten() {
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
    loop {
        let object = widget(&format!("u{cuts}"), "a", 10);
        let write = [object.live()];
        if polled(store.write(&WIDGET, &write, at(0)), cuts + 1).await.is_some() {
            break;
        }
        cuts += 1;
        let value = cuts.to_string();
        store.save_state(&WIDGET, SAVED, &value, at(0)).await.expect("saved");
        let sql = format!("SELECT value FROM kindex_state WHERE name = '{SAVED}'");
        let seen = rows(&backend.address, &sql).await;
        let seen = seen.expect("others can read the database");
        assert_eq!(
            seen,
            [[Some(value)]],
            "after a call that was cut off when it waited the {cuts}. time"
        );
    }
    // The thread of a SQLite connection often answers at once.
    let least = if matches!(backend.address, Address::Sqlite(_)) {
        1
    } else {
        4
    };
    assert!(
        cuts >= least,
        "a write waits for its beginning, its statements and its end: {cuts}"
    );
    store.close().await;
}

/// What a call comes to if it is polled so many times at most.
async fn polled<T>(call: impl Future<Output = T>, polls: u32) -> Option<T> {
    let mut call = pin!(call);
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
