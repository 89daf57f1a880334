//! Reading back: pages, filters, counts, checkpoints and the quarantine.

use futures::future::join_all;
use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_query::Life;
use kindex_store::{CheckpointOutcome, ListQuery};

use super::backend::Backend;
use super::widget::{WIDGET, at, soft_delete, widget};

scenarios!(
    a_scan_in_pages_finds_every_row_once,
    a_list_filters_and_pages,
    a_name_finds_the_row_that_is_not_deleted,
    a_checkpoint_is_the_last_one_saved,
    a_mark_is_replaced_by_who_knows_it_alone,
    of_many_that_save_one_mark_at_once_one_is_not_refused,
    the_quarantine_counts_attempts_and_forgets_on_release,
    many_states_are_read_at_once,
);

async fn fill(backend: &Backend) {
    let objects = (0..25).map(|number| {
        let uid = format!("u{number:02}");
        let parity = if number % 2 == 0 { "even" } else { "odd" };
        widget(&uid, &uid, number + 1)
            .label("parity", parity)
            .label("all", "yes")
            .live()
    });
    let batch: Vec<_> = objects.collect();
    backend.write_all(&batch, at(0)).await;
    backend.write(soft_delete("u04"), at(1)).await;
    backend.write(widget("u06", "u06", 100).archived(), at(1)).await;
}

async fn a_scan_in_pages_finds_every_row_once(backend: Backend) {
    fill(&backend).await;
    let mut found: Vec<String> = Vec::new();
    let mut after = None;
    loop {
        let page = backend.store.scan(&WIDGET, after, 7).await.expect("scanned");
        let Some(last) = page.last() else { break };
        after = Some(last.arrival);
        found.extend(page.iter().map(|state| state.uid.to_string()));
    }
    let wanted: Vec<String> = (0..25).map(|number| format!("u{number:02}")).collect();
    assert_eq!(found, wanted);
}

async fn a_list_filters_and_pages(backend: Backend) {
    fill(&backend).await;
    let uids = |query: ListQuery| {
        let store = backend.store.clone();
        async move {
            let found = store.list(&WIDGET, &query).await.expect("listed");
            let uids = found.iter().map(|stored| stored.object.metadata.uid.to_string());
            uids.collect::<Vec<_>>()
        }
    };
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let even = ListQuery {
        namespace: Some("shop".to_owned()),
        labels: vec![label("parity", "even"), label("all", "yes")],
        limit: 3,
        ..ListQuery::default()
    };
    assert_eq!(
        uids(even.clone()).await,
        ["u00", "u02", "u08"],
        "deleted and relabeled are out"
    );
    let next = ListQuery {
        after: Some(Uid::from("u08")),
        ..even.clone()
    };
    assert_eq!(uids(next).await, ["u10", "u12", "u14"]);
    let deleted_too = ListQuery {
        include_deleted: true,
        ..even.clone()
    };
    assert_eq!(uids(deleted_too).await, ["u00", "u02", "u04"]);
    let elsewhere = ListQuery {
        namespace: Some("Shop".to_owned()),
        ..even
    };
    assert!(uids(elsewhere).await.is_empty());
    assert_eq!(uids(ListQuery::default()).await.len(), 24);
}

async fn a_name_finds_the_row_that_is_not_deleted(backend: Backend) {
    fill(&backend).await;
    let found = |name: &'static str| {
        let store = backend.store.clone();
        async move { store.get_by_name(&WIDGET, "shop", name).await.expect("readable") }
    };
    assert!(found("u04").await.is_none());
    assert!(found("nobody").await.is_none());
    let archived = found("u06").await.expect("an archived object is found");
    assert_eq!(archived.life, Life::Archived);
    assert_eq!(archived.object.metadata.resource_version, ResourceVersion(100));
}

async fn a_checkpoint_is_the_last_one_saved(backend: Backend) {
    let read = || async { backend.store.checkpoint(&WIDGET).await.expect("read") };
    assert_eq!(read().await, None);
    let largest = Checkpoint::Held(ResourceVersion((1 << 61) - 1));
    for checkpoint in [settled(5), largest, settled(7)] {
        for _again in 0..2 {
            let saved = backend.store.save_checkpoint(&WIDGET, checkpoint, None, at(0)).await;
            assert_eq!(saved.expect("saved"), CheckpointOutcome::Done);
        }
        assert_eq!(read().await, Some(checkpoint));
    }
}

fn settled(version: u64) -> Checkpoint {
    Checkpoint::Settled(ResourceVersion(version))
}

async fn a_mark_is_replaced_by_who_knows_it_alone(backend: Backend) {
    let mark = |version: u64| Checkpoint::Restoring(ResourceVersion(version));
    let largest = (1 << 62) - 1;
    for (checkpoint, known, refused_by) in [
        (mark(50), None, None),
        (settled(7), None, Some(mark(50))),
        (mark(50), None, Some(mark(50))),
        (mark(60), None, Some(mark(50))),
        (mark(49), Some(51), Some(mark(50))),
        (mark(49), Some(50), None),
        (settled(7), Some(50), Some(mark(49))),
        (mark(49), Some(49), None),
        (settled(7), Some(49), None),
        (settled(7), Some(49), None),
        (mark(largest), None, None),
        (settled(7), None, Some(mark(largest))),
    ] {
        let before = backend.store.checkpoint(&WIDGET).await.expect("read");
        let known = known.map(ResourceVersion);
        let saving = backend.store.save_checkpoint(&WIDGET, checkpoint, known, at(0)).await;
        let expected = refused_by.map_or(CheckpointOutcome::Done, CheckpointOutcome::Refused);
        let case = format!("{checkpoint:?} where {known:?} is known");
        assert_eq!(saving.expect("answered"), expected, "{case}");
        let after = backend.store.checkpoint(&WIDGET).await.expect("read");
        let expected = if refused_by.is_some() { before } else { Some(checkpoint) };
        assert_eq!(after, expected, "{case}");
    }
}

/// Where there was no position before, and where there was one.
async fn of_many_that_save_one_mark_at_once_one_is_not_refused(backend: Backend) {
    let mark = Checkpoint::Restoring(ResourceVersion(0));
    for before in [None, Some(settled(5))] {
        if let Some(position) = before {
            let known = backend.store.checkpoint(&WIDGET).await.expect("read");
            let known = known.and_then(Checkpoint::restored_to);
            let saved = backend.store.save_checkpoint(&WIDGET, position, known, at(0)).await;
            assert_eq!(saved.expect("saved"), CheckpointOutcome::Done);
        }
        let save = || backend.store.save_checkpoint(&WIDGET, mark, None, at(0));
        let answers = join_all((0..8).map(|_| save())).await;
        let answers: Vec<CheckpointOutcome> = answers.into_iter().map(|answer| answer.expect("answered")).collect();
        let done = answers
            .iter()
            .filter(|answer| **answer == CheckpointOutcome::Done)
            .count();
        assert_eq!(done, 1, "after {before:?}: {answers:?}");
        let refused = answers
            .iter()
            .filter(|answer| **answer == CheckpointOutcome::Refused(mark));
        assert_eq!(refused.count(), 7, "after {before:?}: {answers:?}");
    }
}

async fn the_quarantine_counts_attempts_and_forgets_on_release(backend: Backend) {
    let version = widget("u1", "a", 3).project();
    for (second, reason) in [(1, "too long"), (2, "still too long")] {
        let recorded = backend
            .store
            .quarantine(&WIDGET, &version.object, reason, at(second))
            .await;
        recorded.expect("recorded");
    }
    let read = "SELECT kind, uid, res_version, reason, attempts, first_time < last_time FROM kindex_quarantine";
    if let Some(found) = backend.rows(read).await {
        let wanted = ["Widget", "u1", "3", "still too long", "2", "1"];
        assert_eq!(found, [wanted.map(|cell| Some(cell.to_owned())).to_vec()]);
    }
    for (stored, records) in [(2, 1), (3, 0), (3, 0)] {
        let stored = ResourceVersion(stored);
        let released = backend
            .store
            .release_quarantine(&WIDGET, &Uid::from("u1"), stored)
            .await;
        released.expect("released");
        if let Some(found) = backend.rows(read).await {
            assert_eq!(found.len(), records, "a record of a newer version stays: {stored}");
        }
    }
}

async fn many_states_are_read_at_once(backend: Backend) {
    fill(&backend).await;
    let uids: Vec<Uid> = (0..1_200)
        .map(|number| Uid::from(format!("u{number:02}").as_str()))
        .collect();
    let states = backend.store.row_states(&WIDGET, &uids).await.expect("read");
    assert_eq!(states.len(), 25);
    assert!(backend.store.row_states(&WIDGET, &[]).await.expect("read").is_empty());
}
