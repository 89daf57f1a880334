//! Another attempt at objects that the database refused, over every database; records longer than a packet on a MariaDB
//! whose packets are small.

use std::sync::Arc;
use std::time::Duration;

use kindex_harness::mariadb::MariaDb;
use kindex_maintenance::quarantine::{Retried, RetryError, retry};
use kindex_maintenance::retries::RetryBudget;
use kindex_maintenance::sides::Sides;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_query::Life;
use kindex_store::{Address, MetadataStorage, MySqlFields, StoreError};
use kindex_tests::databases::mariadb::available;
use kindex_tests::databases::patient;

use super::backend::Backend;
use super::shelf::Shelf;
use super::widget::{REGISTRY, WIDGET, Widget, at, widget};

scenarios!(
    a_retry_stores_what_the_cluster_has_now_and_removes_the_record,
    the_last_text_of_an_object_that_is_gone_is_stored_as_deleted,
    what_is_refused_again_stays_with_one_more_attempt,
    records_come_in_pages_also_while_some_go,
    a_record_that_is_refused_as_well_is_cut_and_says_so,
    a_record_that_is_refused_cut_as_well_is_a_refusal,
);

async fn record(backend: &Backend, thing: &Widget) {
    let object = &thing.project().object;
    backend
        .store
        .quarantine(&WIDGET, object, "too long", at(1))
        .await
        .expect("recorded");
}

async fn again(backend: &Backend, shelf: &Arc<Shelf>) -> Retried {
    attempt(backend, shelf).await.expect("both sides answer")
}

async fn attempt(backend: &Backend, shelf: &Arc<Shelf>) -> Result<Retried, RetryError> {
    let sides = Sides {
        platform: REGISTRY.platform,
        cluster: shelf.clone(),
        storage: backend.store.clone(),
    };
    let records = backend.store.quarantine_page(&WIDGET, None, 1).await.expect("read");
    retry(&sides, &WIDGET, &records[0], RetryBudget(Duration::ZERO)).await
}

async fn stored(backend: &Backend, uid: &str) -> (u64, Life) {
    let state = backend.state(uid).await.expect("a row");
    (state.cluster_version().0, state.life)
}

async fn records(backend: &Backend) -> usize {
    backend.store.quarantined(&WIDGET).await.expect("read").len()
}

async fn a_retry_stores_what_the_cluster_has_now_and_removes_the_record(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    record(&backend, &widget("u1", "a", 3)).await;
    shelf.put(&widget("u1", "a", 5));
    assert_eq!(again(&backend, &shelf).await, Retried::Stored);
    assert_eq!(stored(&backend, "u1").await, (5, Life::Live));
    assert_eq!(records(&backend).await, 0);
}

async fn the_last_text_of_an_object_that_is_gone_is_stored_as_deleted(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    // Of the same name is another object now.
    shelf.put(&widget("u2", "a", 9));
    record(&backend, &widget("u1", "a", 3)).await;
    assert_eq!(again(&backend, &shelf).await, Retried::StoredAsGone);
    assert_eq!(stored(&backend, "u1").await, (3, Life::Deleted));
    assert_eq!(records(&backend).await, 0);
}

async fn what_is_refused_again_stays_with_one_more_attempt(backend: Backend) {
    if !backend.poison("a").await {
        return;
    }
    let shelf = Arc::new(Shelf::default());
    record(&backend, &widget("u1", "a", 3)).await;
    shelf.put(&widget("u1", "a", 5));
    let retried = again(&backend, &shelf).await;
    assert!(
        matches!(&retried, Retried::Refused { reason } if reason.contains("poison")),
        "{retried:?}"
    );
    let found = backend.store.quarantine_page(&WIDGET, None, 2).await.expect("read");
    assert_eq!((found.len(), found[0].attempts, found[0].res_version.0), (1, 2, 5));
    assert_eq!(found[0].first_time, at(1));
    let text = backend
        .store
        .quarantined_text(&WIDGET, &Uid::from("u1"))
        .await
        .expect("read");
    assert_eq!(
        text,
        Some(widget("u1", "a", 5).text()),
        "the text that was refused last"
    );
}

/// By a database that takes no long text: of a packet of its own size see below.
async fn a_record_that_is_refused_as_well_is_cut_and_says_so(backend: Backend) {
    let limit = match &backend.address {
        Address::Sqlite(_) => {
            "CREATE TRIGGER short BEFORE INSERT ON kindex_quarantine WHEN length(CAST(NEW.json AS BLOB)) > 50000 \
             BEGIN SELECT RAISE(ABORT, 'too long for this table'); END"
        }
        Address::MySql(_) => "ALTER TABLE kindex_quarantine ADD CONSTRAINT short CHECK (LENGTH(json) <= 50000)",
    };
    if backend.rows(limit).await.is_none() {
        return;
    }
    let shelf = Arc::new(Shelf::default());
    let long = widget("u1", "a", 3).annotation("note", &"\u{1f980}".repeat(20_000));
    record(&backend, &long).await;
    let found = backend.store.quarantine_page(&WIDGET, None, 2).await.expect("read");
    assert_eq!((found.len(), found[0].attempts, found[0].res_version.0), (1, 1, 3));
    let reason = &found[0].reason;
    assert!(reason.starts_with("too long; its record, which is cut: "), "{reason}");
    expect_cut(&*backend.store, long.text().len()).await;
    // The cluster has the object: nobody needs the recorded text.
    shelf.put(&long);
    assert_eq!(again(&backend, &shelf).await, Retried::Stored);
    assert_eq!(records(&backend).await, 0);
    record(&backend, &widget("u2", "b", 4).annotation("note", &"x".repeat(60_000))).await;
    let refused = attempt(&backend, &shelf).await.expect_err("its text is not whole");
    assert!(matches!(refused, RetryError::Cut { .. }), "{refused}");
}

async fn a_record_that_is_refused_cut_as_well_is_a_refusal(backend: Backend) {
    let limit = match &backend.address {
        Address::Sqlite(_) => {
            "CREATE TRIGGER none BEFORE INSERT ON kindex_quarantine BEGIN SELECT RAISE(ABORT, 'no records'); END"
        }
        Address::MySql(_) => "ALTER TABLE kindex_quarantine ADD CONSTRAINT none CHECK (LENGTH(json) < 1)",
    };
    if backend.rows(limit).await.is_none() {
        return;
    }
    let object = &widget("u1", "a", 3).project().object;
    let recorded = backend.store.quarantine(&WIDGET, object, "too long", at(1)).await;
    let refused = recorded.expect_err("there is no record");
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused}");
    assert_eq!(records(&backend).await, 0);
}

async fn expect_cut(store: &dyn MetadataStorage, bytes: usize) {
    let text = store.quarantined_text(&WIDGET, &Uid::from("u1")).await;
    let text = text.expect("read").expect("a record");
    let end = format!("\n[cut by Kindex: the record of all {bytes} bytes was refused as well]");
    assert!(text.starts_with("{\"apiVersion\"") && text.ends_with(&end), "{text}");
}

#[tokio::test]
async fn an_object_longer_than_a_packet_has_a_record_that_is_cut() {
    if !available() {
        return;
    }
    let server = MariaDb::start(&["--max-allowed-packet=1M"]);
    let fields = MySqlFields {
        host: "127.0.0.1".to_owned(),
        port: server.port,
        database: "k".to_owned(),
        ..MySqlFields::default()
    };
    let store = kindex_store::open(&Address::mysql(&fields), REGISTRY, &patient()).expect("an address");
    store.prepare().await.expect("prepared");
    let long = widget("u1", "a", 3).annotation("note", &"x".repeat(3_000_000));
    let reason = "y".repeat(2_000_000);
    for _ in 0..2 {
        let object = &long.project().object;
        let recorded = store.quarantine(&WIDGET, object, &reason, at(1)).await;
        recorded.expect("recorded all the same");
        expect_cut(&*store, long.text().len()).await;
    }
}

async fn records_come_in_pages_also_while_some_go(backend: Backend) {
    for number in [3, 0, 6, 4, 1, 5, 2] {
        record(&backend, &widget(&format!("u{number}"), "a", number + 1)).await;
    }
    let mut found = Vec::new();
    let mut after: Option<Uid> = None;
    loop {
        let page = backend
            .store
            .quarantine_page(&WIDGET, after.as_ref(), 2)
            .await
            .expect("read");
        let Some(last) = page.last() else { break };
        after = Some(last.uid.clone());
        // As a retry does that stores them, behind the walk and before it.
        for uid in page.iter().map(|record| &record.uid).chain([&Uid::from("u3")]) {
            let released = backend.store.release_quarantine(&WIDGET, uid, ResourceVersion(9)).await;
            released.expect("released");
        }
        found.extend(page.into_iter().map(|record| record.uid.to_string()));
    }
    assert_eq!(found, ["u0", "u1", "u2", "u4", "u5", "u6"]);
    let absent = backend.store.quarantined_text(&WIDGET, &Uid::from("u9")).await;
    assert_eq!(absent.expect("read"), None);
}
