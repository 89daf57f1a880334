//! Calls about more rows than one statement names, over every database: each is about all of them.

use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;
use kindex_store::{DeletionResults, Gone, HolderRow, Position, ReadVersion, RowWrite};

use super::backend::Backend;
use super::outbox::{EVENTFUL, write};
use super::widget::{KEEPSAKE, NOTICE, WIDGET, Widget, at, soft_delete, widget};

scenarios!(
    reads_are_about_all_the_rows_that_are_named,
    writes_are_about_all_the_rows_that_are_named,
    the_older_rows_of_all_names_are_closed,
    a_history_has_all_versions_of_a_batch,
    all_histories_of_a_batch_begin_anew,
    the_previous_labels_of_all_archived_objects_are_recorded,
    all_that_is_held_waits_and_all_that_is_released_goes,
);

/// More than twice as many as a statement names.
const MANY: u64 = 1_203;

fn things(version: u64) -> Vec<Widget> {
    (0..MANY)
        .map(|number| format!("u{number:04}"))
        .map(|uid| widget(&uid, &uid, version).label("l", "1").annotation("a", "2"))
        .collect()
}

fn uids() -> Vec<Uid> {
    things(1).iter().map(|thing| Uid::from(&*thing.uid)).collect()
}

async fn fill(backend: &Backend) {
    let writes: Vec<RowWrite> = things(1).iter().map(Widget::live).collect();
    backend.write_all(&writes, at(0)).await;
}

async fn reads_are_about_all_the_rows_that_are_named(backend: Backend) {
    fill(&backend).await;
    let (store, uids) = (&backend.store, uids());
    let states = store.row_states(&WIDGET, &uids).await.expect("read");
    assert_eq!(states.len() as u64, MANY);
    let images = store.row_images(&WIDGET, &uids).await.expect("read");
    assert_eq!(images.len() as u64, MANY);
    assert!(
        images
            .iter()
            .all(|image| image.labels.len() == 1 && image.annotations.len() == 1)
    );
    let names: Vec<(String, String)> = uids.iter().map(|uid| ("shop".to_owned(), uid.to_string())).collect();
    let newest = store.newest_by_names(&WIDGET, &names).await.expect("read");
    assert_eq!(newest.len() as u64, MANY);
    let found = store.get_by_names(&WIDGET, &names).await.expect("read");
    assert_eq!(found.len() as u64, MANY);
    assert_eq!(store.namesakes(&WIDGET, &uids).await.expect("read"), []);
    assert_eq!(store.orphaned_sides(&WIDGET, &uids).await.expect("read"), []);
    if backend.rows("DELETE FROM `widget`").await.is_none() {
        return;
    }
    assert_eq!(
        store.orphaned_sides(&WIDGET, &uids).await.expect("read").len() as u64,
        MANY
    );
}

/// Rows, and those among them that are deleted.
async fn rows(backend: &Backend) -> (u64, u64) {
    let states = backend.store.row_states(&WIDGET, &uids()).await.expect("read");
    let deleted = states.iter().filter(|state| state.life == Life::Deleted).count();
    (states.len() as u64, deleted as u64)
}

async fn writes_are_about_all_the_rows_that_are_named(backend: Backend) {
    fill(&backend).await;
    let labeled: Vec<RowWrite> = things(2)
        .iter()
        .map(|thing| thing.clone().label("l", "2").live())
        .collect();
    backend.write_all(&labeled, at(1)).await;
    let images = backend.store.row_images(&WIDGET, &uids()).await.expect("read");
    let one = [("l".to_owned(), Some("2".to_owned()))];
    assert!(
        images.iter().all(|image| image.labels == one),
        "the other label went with its version"
    );

    backend.store.rewind(&WIDGET, &uids(), at(2)).await.expect("rewound");
    let states = backend.store.row_states(&WIDGET, &uids()).await.expect("read");
    assert!(
        states
            .iter()
            .all(|state| state.res_version.pack() == ResourceVersion(0))
    );
    let closed: Vec<RowWrite> = uids().iter().map(|uid| soft_delete(&uid.0)).collect();
    backend.write_all(&closed, at(3)).await;
    assert_eq!(rows(&backend).await, (MANY, MANY));
    let deleted = Gone {
        deleted: true,
        ..Gone::default()
    };
    let removed = backend
        .store
        .remove(&WIDGET, &deleted, &uids(), at(9))
        .await
        .expect("removed");
    assert_eq!(removed.len() as u64, MANY);
    assert_eq!(rows(&backend).await, (0, 0));
    assert_eq!(backend.store.side_owners(&WIDGET, None, 1).await.expect("read"), []);
}

async fn the_older_rows_of_all_names_are_closed(backend: Backend) {
    fill(&backend).await;
    let again: Vec<RowWrite> = things(5)
        .into_iter()
        .map(|thing| widget(&format!("v{}", thing.name), &thing.name, 5).live())
        .collect();
    backend.write_all(&again, at(1)).await;
    assert_eq!(rows(&backend).await, (MANY, MANY));
    let counts = backend.store.count(&WIDGET).await.expect("counted");
    assert_eq!((counts.live, counts.deleted), (MANY, MANY));
}

async fn a_history_has_all_versions_of_a_batch(backend: Backend) {
    for version in [1, 2] {
        let writes: Vec<RowWrite> = things(version).iter().map(Widget::live).collect();
        let written = backend.store.write(&KEEPSAKE, &writes, at(version as i64)).await;
        written.expect("written");
    }
    for uid in [0, 499, 500, 999, 1_000, MANY - 1].map(|number| Uid::from(&*format!("u{number:04}"))) {
        let history = backend.store.history(&KEEPSAKE, &uid, None, 10).await.expect("read");
        assert_eq!(history.len(), 2, "{uid}");
    }
    if let Some(rows) = backend.rows("SELECT COUNT(*) FROM keepsake_history").await {
        assert_eq!(rows, [[Some((2 * MANY).to_string())]]);
    }
    // A history that begins now begins with what the rows hold.
    if backend.rows("DELETE FROM keepsake_history").await.is_some() {
        let writes: Vec<RowWrite> = things(3).iter().map(Widget::live).collect();
        let written = backend.store.write(&KEEPSAKE, &writes, at(3)).await;
        written.expect("written");
        let rows = backend.rows("SELECT COUNT(*) FROM keepsake_history").await;
        assert_eq!(rows.expect("read above"), [[Some((2 * MANY).to_string())]]);
    }
}

/// A number that comes again with another text is of a cluster that was restored: what it stood for before is kept.
async fn all_histories_of_a_batch_begin_anew(backend: Backend) {
    for (second, note) in [(0, "before"), (1, "after")] {
        let noted = |thing: Widget| thing.annotation("note", note).live();
        let writes: Vec<RowWrite> = things(7).into_iter().map(noted).collect();
        let written = backend.store.write(&KEEPSAKE, &writes, at(second)).await;
        written.expect("written");
    }
    for uid in uids() {
        let history = backend.store.history(&KEEPSAKE, &uid, None, 10).await.expect("read");
        let is_lost: Vec<bool> = history.iter().map(|past| past.branch < 0).collect();
        assert_eq!(is_lost, [false, true], "{uid}");
    }
}

async fn the_previous_labels_of_all_archived_objects_are_recorded(backend: Backend) {
    for (second, label) in [(0, "before"), (1, "after")] {
        let labeled = |thing: Widget| thing.label("l", label).archived();
        let version = 1 + u64::from(label == "after");
        let writes: Vec<RowWrite> = things(version).into_iter().map(labeled).collect();
        backend.write_all(&writes, at(second)).await;
    }
    let reported = backend.store.changes(&WIDGET, Position(0), 5_000).await;
    let reported = reported.expect("read").expect("none was dropped");
    assert_eq!(reported.len() as u64, MANY);
    for change in reported {
        let before = change.labels.expect("an update");
        assert_eq!(before.get("l").map(String::as_str), Some("before"), "{}", change.uid);
    }
}

const HOLDERS: [&str; 2] = [
    "7f7a15ab-f1cc-4f3b-b1c0-000000000001",
    "7f7a15ab-f1cc-4f3b-b1c0-000000000002",
];

fn name(holder: &str) -> ReferenceName {
    ReferenceName::new("Widget", "test.kindex", holder).expect("a name")
}

/// Stores all things as archived, with these finalizers.
async fn evict(backend: &Backend, version: u64, holders: &[&str]) {
    let archived = things(version).into_iter().map(|thing| Widget {
        finalizers: holders.iter().map(|holder| name(holder).to_string()).collect(),
        ..thing
    });
    let writes: Vec<RowWrite> = archived.map(|thing| thing.archived()).collect();
    write(backend, &writes, 1).await;
}

async fn delete_unheld(backend: &Backend, uids: &[Uid], version: u64, second: i64) -> DeletionResults {
    let version = ResourceVersion(version);
    let read = uids.iter().cloned().map(|uid| ReadVersion { uid, version });
    let read: Vec<ReadVersion> = read.collect();
    let taken = backend.store.delete_unheld(&NOTICE, &read, at(second)).await;
    taken.expect("an answer")
}

async fn all_that_is_held_waits_and_all_that_is_released_goes(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    let (store, uids) = (&backend.store, uids());
    evict(&backend, 1, &HOLDERS).await;
    evict(&backend, 2, &HOLDERS[..1]).await;
    let references = async || store.references(&NOTICE, &uids).await.expect("readable").len() as u64;
    assert_eq!(references().await, MANY, "those of the second eviction");
    let holder = widget(HOLDERS[0], "holder", 1);
    write(&backend, &[holder.archived()], 1).await;
    let (names, used): (Vec<_>, _) = (uids.iter().map(|uid| name(&uid.0)).collect(), Uid::from("k"));
    let kept = store.keep_references(&NOTICE, &names, (&KEEPSAKE, &used), "jane", at(1));
    assert!(kept.await.expect("kept").iter().all(|row| *row == HolderRow::Archived));

    let held = delete_unheld(&backend, &uids, 2, 3).await;
    assert_eq!((held.deleted.len(), held.held.len() as u64), (0, MANY));
    let head = store.head(&NOTICE).await.expect("readable");
    delete_unheld(&backend, &uids, 2, 4).await;
    assert_eq!(store.head(&NOTICE).await.expect("readable"), head, "of all it is known");
    let waiting = store.tombstones(&NOTICE, &uids).await.expect("readable");
    assert_eq!(waiting.len() as u64, MANY);
    assert!(waiting.iter().all(|one| one.requested == at(3)));

    delete_unheld(&backend, &[Uid::from(HOLDERS[0])], 1, 5).await;
    assert_eq!(references().await, 0);
    let gone = delete_unheld(&backend, &uids, 2, 6).await;
    assert_eq!((gone.deleted.len() as u64, gone.held), (MANY, Vec::new()));
    let waiting = store.tombstone_page(&NOTICE, None, 10).await;
    assert_eq!(waiting.expect("readable"), []);
    let held = store.references(&KEEPSAKE, &[used]).await.expect("readable");
    assert_eq!(held, [], "they use nothing any more");
}
