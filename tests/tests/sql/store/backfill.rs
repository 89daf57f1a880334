//! `backfill` over every database: it writes what differs and nothing else, goes on where
//! it was interrupted, and leaves alone what is not its business.

use std::sync::Arc;
use std::time::Duration;

use kindex_maintenance::backfill::{Filled, Options, backfill};
use kindex_maintenance::retries::RetryBudget;
use kindex_maintenance::sides::{RepairError, Sides};
use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::ResourceVersion;
use kindex_query::Life;
use kindex_store::progress::NoProgress;

use super::backend::Backend;
use super::shelf::Shelf;
use super::widget::{REGISTRY, WIDGET, Widget, at, soft_delete, widget};

scenarios!(
    an_empty_database_is_filled_once_and_an_ingester_goes_on_from_there,
    only_what_differs_is_written,
    what_was_archived_in_the_version_of_the_list_is_left_to_the_ingester,
    all_pages_are_written_however_small_they_are,
    an_interrupted_backfill_goes_on_where_it_was,
    a_list_that_expires_begins_anew_and_skips_what_is_written,
    an_object_that_the_database_refuses_is_set_aside_alone,
    an_object_that_goes_while_it_is_stored_is_closed,
);

fn things(numbers: std::ops::Range<u64>) -> Vec<Widget> {
    numbers
        .map(|number| {
            let name = format!("u{number:04}");
            widget(&name, &name, number + 10).label("l", "1").annotation("a", "2")
        })
        .collect()
}

fn sides(backend: &Backend, shelf: &Arc<Shelf>) -> Sides {
    Sides {
        platform: REGISTRY.platform,
        cluster: shelf.clone(),
        storage: backend.store.clone(),
    }
}

fn small_pages() -> Options {
    Options {
        page_rows: 10,
        bookmark_period: Duration::ZERO,
        retry_budget: RetryBudget(Duration::ZERO),
        ..Options::default()
    }
}

async fn fill(backend: &Backend, shelf: &Arc<Shelf>) -> Result<Filled, RepairError> {
    backfill(&sides(backend, shelf), &WIDGET, &small_pages(), &NoProgress).await
}

async fn live_rows(backend: &Backend) -> u64 {
    backend.store.count(&WIDGET).await.expect("counted").live
}

async fn an_empty_database_is_filled_once_and_an_ingester_goes_on_from_there(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    things(0..95).iter().for_each(|thing| shelf.put(thing));
    let first = fill(&backend, &shelf).await.expect("filled");
    assert_eq!((first.objects, first.inserted, first.unchanged), (95, 95, 0));
    assert_eq!(live_rows(&backend).await, 95);
    let checkpoint = backend.store.checkpoint(&WIDGET).await.expect("read");
    assert_eq!(
        checkpoint,
        Some(Checkpoint::Settled(ResourceVersion(1_000))),
        "the list's version"
    );

    let second = fill(&backend, &shelf).await.expect("filled");
    assert_eq!((second.objects, second.unchanged), (95, 95));
    assert_eq!((second.inserted, second.updated, second.closed), (0, 0, 0));
}

async fn only_what_differs_is_written(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    let all = things(0..7);
    all.iter().for_each(|thing| shelf.put(thing));
    let newer = Widget {
        version: 99,
        ..all[1].clone()
    };
    let older = Widget {
        version: 3,
        ..all[2].clone()
    };
    for write in [all[0].live(), newer.live(), older.live(), all[3].live()] {
        backend.write(write, at(0)).await;
    }
    backend.write(soft_delete("u0003"), at(1)).await;
    backend.write(all[4].archived(), at(1)).await;
    shelf.put(&all[4].clone().annotation("test/Immutable", "true"));
    backend.write(all[5].clone().label("l", "other").live(), at(1)).await;

    let filled = fill(&backend, &shelf).await.expect("filled");
    assert_eq!((filled.unchanged, filled.newer, filled.updated), (1, 1, 2));
    assert_eq!(
        (filled.left, filled.inserted),
        (2, 1),
        "deleted and archived, and the last one"
    );
    assert_eq!(backend.life("u0003").await, Some(Life::Deleted));
    assert_eq!(backend.life("u0004").await, Some(Life::Archived));
    let checkpoint = backend.store.checkpoint(&WIDGET).await.expect("read");
    assert_eq!(checkpoint, None, "an ingester has to look at the rows that were there");
}

/// As if such a row, which the store does not make live, counted as newer than the list.
async fn what_was_archived_in_the_version_of_the_list_is_left_to_the_ingester(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    let all = things(0..2);
    all.iter().for_each(|thing| shelf.put(thing));
    let older = Widget {
        version: 3,
        ..all[1].clone()
    };
    for archived in [&all[0], &older] {
        backend.write(archived.archived(), at(0)).await;
    }
    let filled = fill(&backend, &shelf).await.expect("filled");
    assert_eq!((filled.left, filled.updated, filled.newer), (1, 1, 0));
    assert_eq!(backend.life("u0000").await, Some(Life::Archived));
    assert_eq!(backend.life("u0001").await, Some(Life::Live), "it was archived before");
}

/// With an interruption after each of the first pages, by one writer and by several.
async fn all_pages_are_written_however_small_they_are(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    let mut rows = 0;
    for (writers, page_rows) in [(1, 2), (3, 2), (2, 1)] {
        let more = rows..rows + 7;
        things(more.clone()).iter().for_each(|thing| shelf.put(thing));
        rows = more.end;
        let options = Options {
            writers,
            page_rows,
            ..small_pages()
        };
        for pages in [2, 1] {
            *shelf.pages_left.lock().unwrap() = Some(pages);
            let interrupted = backfill(&sides(&backend, &shelf), &WIDGET, &options, &NoProgress).await;
            assert!(interrupted.is_err(), "{interrupted:?}");
        }
        *shelf.pages_left.lock().unwrap() = None;
        let filled = backfill(&sides(&backend, &shelf), &WIDGET, &options, &NoProgress).await;
        filled.expect("filled");
        assert_eq!(
            live_rows(&backend).await,
            rows,
            "{writers} writers, pages of {page_rows}"
        );
    }
}

async fn an_interrupted_backfill_goes_on_where_it_was(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    things(0..95).iter().for_each(|thing| shelf.put(thing));
    *shelf.pages_left.lock().unwrap() = Some(6);
    let interrupted = fill(&backend, &shelf).await;
    assert!(
        matches!(interrupted, Err(RepairError::Cluster { .. })),
        "{interrupted:?}"
    );
    let before = live_rows(&backend).await;
    assert!(
        (30..=60).contains(&before),
        "{before} rows of six pages, less those under way"
    );

    *shelf.pages_left.lock().unwrap() = None;
    let rest = fill(&backend, &shelf).await.expect("filled");
    assert!(rest.objects < 95, "{rest:?} is not the whole list");
    assert!(rest.inserted <= 95 - before, "{rest:?}: {before} rows were there");
    assert_eq!(live_rows(&backend).await, 95);
    let checkpoint = backend.store.checkpoint(&WIDGET).await.expect("read");
    assert_eq!(
        checkpoint,
        Some(Checkpoint::Settled(ResourceVersion(1_000))),
        "nobody else wrote"
    );
    assert_eq!(backend.store.state(&WIDGET, "backfill").await.expect("read"), None);
}

async fn a_list_that_expires_begins_anew_and_skips_what_is_written(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    things(0..95).iter().for_each(|thing| shelf.put(thing));
    *shelf.expired.lock().unwrap() = 3;
    let filled = fill(&backend, &shelf).await.expect("filled");
    assert_eq!((filled.objects, filled.inserted), (95, 95));
    assert_eq!(live_rows(&backend).await, 95);
}

async fn an_object_that_the_database_refuses_is_set_aside_alone(backend: Backend) {
    if !backend.poison("u0013").await {
        return;
    }
    let shelf = Arc::new(Shelf::default());
    things(0..40).iter().for_each(|thing| shelf.put(thing));
    let filled = fill(&backend, &shelf).await.expect("filled");
    assert_eq!((filled.inserted, filled.quarantined), (39, 1));
    let records = backend.store.quarantine_page(&WIDGET, None, 10).await.expect("read");
    assert_eq!((records.len(), records[0].name.as_str()), (1, "u0013"));

    backend.antidote().await;
    let filled = fill(&backend, &shelf).await.expect("filled");
    assert_eq!((filled.inserted, filled.unchanged), (1, 39));
    let records = backend.store.quarantine_page(&WIDGET, None, 10).await.expect("read");
    assert_eq!(records, [], "what is stored is not in quarantine");
}

/// Its delete event may have come to the ingester before there was a row.
async fn an_object_that_goes_while_it_is_stored_is_closed(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    things(0..3).iter().for_each(|thing| shelf.put(thing));
    let checkpoint = backend
        .store
        .save_checkpoint(&WIDGET, Checkpoint::Settled(ResourceVersion(5)), None, at(0))
        .await;
    checkpoint.expect("an ingester is at work");
    shelf.before_get(|shelf| shelf.take("u0001"));
    let filled = fill(&backend, &shelf).await.expect("filled");
    assert_eq!((filled.inserted, filled.closed), (3, 1));
    assert_eq!(backend.life("u0001").await, Some(Life::Deleted));
    let checkpoint = backend.store.checkpoint(&WIDGET).await.expect("read");
    assert_eq!(
        checkpoint,
        Some(Checkpoint::Settled(ResourceVersion(5))),
        "the ingester's own"
    );
}
