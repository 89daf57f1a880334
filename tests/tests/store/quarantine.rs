//! Another attempt at objects that the database refused, over every database.

use std::sync::Arc;
use std::time::Duration;

use kindex_runtime::object::Uid;
use kindex_runtime::patience::Patience;
use kindex_runtime::quarantine::{Retried, retry};
use kindex_runtime::store::Life;
use kindex_runtime::verify::Sides;

use super::backend::Backend;
use super::shelf::Shelf;
use super::widget::{REGISTRY, WIDGET, Widget, at, widget};

scenarios!(
    a_retry_stores_what_the_cluster_has_now_and_removes_the_record,
    the_last_text_of_an_object_that_is_gone_is_stored_as_deleted,
    what_is_refused_again_stays_with_one_more_attempt,
    records_come_in_pages,
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
    let sides = Sides {
        platform: REGISTRY.platform,
        cluster: shelf.clone(),
        storage: backend.store.clone(),
    };
    let records = backend.store.quarantine_page(&WIDGET, None, 1).await.expect("read");
    let retried = retry(&sides, &WIDGET, &records[0], Patience(Duration::ZERO)).await;
    retried.expect("both sides answer")
}

async fn stored(backend: &Backend, uid: &str) -> (u64, Life) {
    let state = backend.state(uid).await.expect("a row");
    (state.res_version.0, state.life)
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

async fn records_come_in_pages(backend: Backend) {
    for number in 0..5 {
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
        found.extend(page.into_iter().map(|record| record.uid.to_string()));
    }
    assert_eq!(found, ["u0", "u1", "u2", "u3", "u4"]);
    let absent = backend.store.quarantined_text(&WIDGET, &Uid::from("u9")).await;
    assert_eq!(absent.expect("read"), None);
}
