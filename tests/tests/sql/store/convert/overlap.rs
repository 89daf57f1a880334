//! Pages that are written at the same time: one that waits for a lock holds up no other, and no place is saved beyond
//! it. An engine with one writer takes them one after the other.

use std::time::Instant;

use kindex_harness::require::passed_over;
use kindex_harness::wait::WAIT_MAX;
use kindex_query::Life;
use kindex_store::CONVERT_PROGRESS;
use kindex_tests::kinds::trial::KIND;
use serde_json::Value;

use super::trials::{OLD, image, run, store_as, today, trial};
use crate::store::backend::Backend;
use crate::store::second_connection::SecondConnection;
use crate::store::widget::at;

scenarios!(a_page_that_waits_holds_up_no_other_and_no_place_beyond_it_is_saved);

/// In order of arrival; a page has two.
const UIDS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

async fn a_page_that_waits_holds_up_no_other_and_no_place_beyond_it_is_saved(backend: Backend) {
    if !backend.locks_rows() {
        return passed_over("the engine has one writer at a time");
    }
    let store = today(&backend).await;
    let objects: Vec<(Value, Life)> = UIDS.iter().map(|uid| (trial(uid, 5), Life::Archived)).collect();
    store_as(store.as_ref(), &OLD, &objects, at(0)).await;
    let other = SecondConnection::open(&backend).await;
    let mut other = other.expect("what locks rows is not in memory");
    other.begin().await;
    other.execute("SELECT uid FROM trial WHERE uid = 'b' FOR UPDATE").await;
    let converting = {
        let store = store.clone();
        tokio::spawn(async move { run(&store, 2).await })
    };
    let deadline = Instant::now() + WAIT_MAX;
    for uid in &UIDS[2..] {
        while image(store.as_ref(), uid).await.group_ver != "traps.dev/v2" {
            assert!(Instant::now() < deadline, "{uid} waits for a row of another page");
        }
    }
    assert_eq!(image(store.as_ref(), "a").await.group_ver, "traps.dev/v1");
    let saved = store.state(&KIND, CONVERT_PROGRESS).await.expect("read");
    assert_eq!(saved, None, "rows before the place are not written");
    other.execute("ROLLBACK").await;
    let done = converting.await.expect("the run ends");
    assert_eq!((done.rows, done.converted, done.superseded), (6, 6, 0));
}
