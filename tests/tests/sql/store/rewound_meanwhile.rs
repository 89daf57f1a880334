//! Rows that are rewound while somebody writes them, over every database: what a restored cluster has lost stays on a
//! branch of its own in the history.

use std::pin::pin;
use std::time::Duration;

use futures::future::join;
use kindex_harness::require::passed_over;
use kindex_model::object::Uid;
use kindex_store::{Address, Cause, HistoryVersion, PoolConfig, Retry, StoreError};
use kindex_tests::databases::patient;

use super::backend::Backend;
use super::cut_off::advance;
use super::widget::{KEEPSAKE, REGISTRY, at, widget};

scenarios!(
    a_rewind_that_is_refused_leaves_rows_and_their_history,
    a_write_beside_a_rewind_brings_no_lost_version_back,
    a_write_while_a_rewind_is_held_open_brings_no_lost_version_back,
);

/// The version that the cluster has lost, and the one that is written beside the rewind.
const LOST: u64 = 30;
const NEW: u64 = 31;
const ROUNDS: u32 = 20;

/// The version of a row, the versions of its object in the present, and those that the cluster has lost.
#[derive(Debug, PartialEq, Eq)]
struct View {
    row: Option<u64>,
    present: Vec<u64>,
    lost: Vec<u64>,
}

async fn view(node: &Backend, uid: &str) -> View {
    let uids = [Uid::from(uid)];
    let states = node.answer(async || node.store.row_states(&KEEPSAKE, &uids).await);
    let states = states.await.expect("readable");
    let past = node.answer(async || node.store.history(&KEEPSAKE, &uids[0], None, 100).await);
    let past = past.await.expect("readable");
    let (present, lost): (Vec<HistoryVersion>, Vec<HistoryVersion>) =
        past.into_iter().partition(|past| past.branch == 0);
    let numbers = |past: Vec<HistoryVersion>| -> Vec<u64> {
        let versions = past.iter().map(|past| past.object.metadata.resource_version.0);
        versions.collect()
    };
    View {
        row: states.first().map(|state| state.res_version.pack().0),
        present: numbers(present),
        lost: numbers(lost),
    }
}

async fn write(node: &Backend, uid: &str, version: u64) {
    let writes = [widget(uid, uid, version).live()];
    let written = node.answer(async || node.store.write(&KEEPSAKE, &writes, at(10)).await);
    written.await.expect("written");
}

async fn rewind(node: &Backend, uid: &str) {
    let uids = [Uid::from(uid)];
    let rewound = node.answer(async || node.store.rewind(&KEEPSAKE, &uids, at(50)).await);
    rewound.await.expect("rewound");
}

/// An object of which both nodes have what the cluster has lost.
async fn stored(nodes: [&Backend; 2], uid: &str) {
    write(nodes[0], uid, LOST).await;
    let wanted = View {
        row: Some(LOST),
        present: vec![LOST],
        lost: vec![],
    };
    for node in nodes {
        node.expect(uid, &wanted, async || view(node, uid).await).await;
    }
}

/// What is there of an object, unless the rewind and the write came one after the other.
async fn disorder(node: &Backend, uid: &str) -> Option<View> {
    let view = view(node, uid).await;
    let held: Vec<u64> = view.row.into_iter().filter(|version| *version > 0).collect();
    let is_in_order = view.present == held && view.lost.contains(&LOST);
    (!is_in_order).then_some(view)
}

async fn expect_order(nodes: [&Backend; 2], uid: &str) {
    for node in nodes {
        node.expect(uid, &None, async || disorder(node, uid).await).await;
    }
}

/// As if a rewind were two transactions, of which the second one may fail.
async fn a_rewind_that_is_refused_leaves_rows_and_their_history(backend: Backend) {
    let nodes = [&backend; 2];
    stored(nodes, "u1").await;
    let before = view(&backend, "u1").await;
    for (table, unchanged) in [("keepsake", "res_version > 0"), ("keepsake_history", "branch = 0")] {
        let [poison, antidote] = match &backend.address {
            Address::Sqlite(_) => [
                format!("CREATE TRIGGER poison BEFORE UPDATE ON {table} BEGIN SELECT RAISE(ABORT, 'poisonous'); END"),
                "DROP TRIGGER poison".to_owned(),
            ],
            Address::MySql(_) => [
                format!("ALTER TABLE {table} ADD CONSTRAINT poison CHECK ({unchanged})"),
                format!("ALTER TABLE {table} DROP CONSTRAINT poison"),
            ],
        };
        if backend.rows(&poison).await.is_none() {
            return;
        }
        let refused = backend.store.rewind(&KEEPSAKE, &[Uid::from("u1")], at(50)).await;
        assert!(
            matches!(refused, Err(StoreError::Refused { .. })),
            "{table}: {refused:?}"
        );
        assert_eq!(view(&backend, "u1").await, before, "{table}");
        backend.rows(&antidote).await;
    }
    rewind(&backend, "u1").await;
    expect_order(nodes, "u1").await;
}

async fn a_write_beside_a_rewind_brings_no_lost_version_back(backend: Backend) {
    no_lost_version_comes_back(&backend, &backend, ROUNDS).await;
}

/// As if the history moved first, and the row were rewound later: whoever writes in between keeps what the row has.
pub(super) async fn no_lost_version_comes_back(rewinds: &Backend, writes: &Backend, rounds: u32) {
    let nodes = [rewinds, writes];
    for round in 0..rounds {
        let uid = format!("u{round}");
        stored(nodes, &uid).await;
        if round % 2 == 0 {
            join(rewind(rewinds, &uid), write(writes, &uid, NEW)).await;
        } else {
            join(write(writes, &uid, NEW), rewind(rewinds, &uid)).await;
        }
        expect_order(nodes, &uid).await;
    }
}

/// The same at each point at which a rewind waits for the database, until the write has to wait for the row.
async fn a_write_while_a_rewind_is_held_open_brings_no_lost_version_back(backend: Backend) {
    if !backend.can_be_reopened() {
        return passed_over("a database in memory has one connection, for which the write would wait");
    }
    let nodes = [&backend; 2];
    let impatient = PoolConfig {
        // A statement waits for a lock for a fourth of it.
        call_timeout: Duration::from_secs(8),
        ..patient()
    };
    let other = kindex_store::open(&backend.address, REGISTRY, &impatient);
    let other = other.expect("the address names a database");
    for polls in 1.. {
        let uid = format!("u{polls}");
        stored(nodes, &uid).await;
        let uids = [Uid::from(uid.as_str())];
        let mut rewinding = pin!(backend.store.rewind(&KEEPSAKE, &uids, at(50)));
        if let Some(rewound) = advance(rewinding.as_mut(), polls).await {
            rewound.expect("rewound");
            break;
        }
        let writes = [widget(&uid, &uid, NEW).live()];
        let written = other.write(&KEEPSAKE, &writes, at(10)).await;
        rewinding.await.expect("rewound");
        let has_waited = matches!(
            written,
            Err(StoreError::Retryable {
                cause: Cause::LockWait,
                ..
            })
        );
        if let Err(error) = written {
            assert_eq!(error.retry(), Retry::Later, "{error:?}");
            write(&backend, &uid, NEW).await;
        }
        expect_order(nodes, &uid).await;
        if has_waited {
            break;
        }
    }
    other.close().await;
}
