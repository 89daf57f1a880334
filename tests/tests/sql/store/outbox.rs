//! The outbox of events: each object has one entry with its last change, and who follows the outbox knows what exists.

use jiff::{SignedDuration, Timestamp};
use kindex_model::kind::Registry;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::reference_name::ReferenceName;
use kindex_query::{Life, Revive, Select};
use kindex_store::{DeleteCollection, Gone, Mark, OutboxEntry, Position, RowWrite, StoreError, TOMBSTONES_KEPT};

use super::backend::Backend;
use super::direct::{archived_object, read};
use super::follower::{Follower, gone, leaving, seen_as, there};
use super::widget::{KEEPSAKE, NOTICE, REGISTRY, Widget, at, soft_delete, widget};

scenarios!(
    each_change_of_an_object_has_an_entry,
    an_eviction_is_no_deletion,
    what_changes_archived_objects_has_an_entry,
    an_object_whose_name_another_has_leaves_a_tombstone,
    a_purged_object_has_its_tombstone_before,
    a_batch_that_is_rolled_back_leaves_no_entry,
    a_page_ends_where_a_transaction_ends,
    a_replay_shows_everything_in_pages,
    tombstones_and_marks_stay_for_seven_days,
);

pub(super) static EVENTFUL: Registry = Registry {
    kinds: &[&NOTICE, &KEEPSAKE],
    ..REGISTRY
};

pub(super) async fn write(backend: &Backend, writes: &[RowWrite], second: i64) {
    let written = backend.store.write(&NOTICE, writes, at(second)).await;
    written.expect("the write is taken");
}

fn deleting(object: Widget, second: i64) -> Widget {
    let time = Timestamp::from_second(at(second).as_second()).expect("in range");
    Widget {
        deletion: Some(time.to_string()),
        ..object
    }
}

pub(super) async fn is_known(backend: &Backend, mark: Mark) -> bool {
    let page = backend.store.since(&NOTICE, mark, 10).await;
    page.expect("readable").is_some()
}

async fn each_change_of_an_object_has_an_entry(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    let mut follower = Follower::default();
    write(&backend, &[widget("u1", "a", 1).live(), widget("u2", "b", 2).live()], 1).await;
    assert_eq!(follower.read(&backend).await, [there("u1"), there("u2")]);
    let entry = &follower.objects["u2"];
    assert_eq!(
        (&*entry.namespace, &*entry.name, entry.position),
        ("shop", "b", Position(2))
    );
    assert_eq!(backend.store.head(&NOTICE).await.expect("readable"), follower.mark);

    write(&backend, &[widget("u1", "a", 1).live(), widget("u2", "b", 1).live()], 2).await;
    assert_eq!(follower.read(&backend).await, [], "nothing changed");
    write(&backend, &[widget("u1", "a", 3).label("l", "1").live()], 3).await;
    write(&backend, &[deleting(widget("u2", "b", 4), 4).live()], 5).await;
    assert_eq!(follower.read(&backend).await, [there("u1"), leaving("u2", 4)]);

    write(&backend, &[soft_delete("u2"), soft_delete("absent")], 6).await;
    let unseen = widget("u3", "c", 5).store(Life::Deleted, Revive::Never);
    write(
        &backend,
        &[
            deleting(widget("u1", "a", 6), 6).store(Life::Deleted, Revive::Never),
            unseen,
        ],
        7,
    )
    .await;
    assert_eq!(
        follower.read(&backend).await,
        [gone("u2", 4), gone("u1", 6), gone("u3", 7)]
    );
    write(
        &backend,
        &[
            soft_delete("u2"),
            widget("u1", "a", 7).store(Life::Deleted, Revive::Never),
        ],
        8,
    )
    .await;
    assert_eq!(follower.read(&backend).await, [], "they are gone already");
    write(&backend, &[widget("u2", "b", 9).store(Life::Live, Revive::FromAny)], 9).await;
    assert_eq!(
        follower.read(&backend).await,
        [there("u2")],
        "a deletion that did not happen"
    );
}

async fn an_eviction_is_no_deletion(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    let mut follower = Follower::default();
    let all = ["u1", "u2", "u3"].map(|uid| widget(uid, uid, 1));
    write(&backend, &all.clone().map(|object| object.live()), 1).await;
    follower.read(&backend).await;
    let [same, released, annotated] = all;
    let released = deleting(Widget { version: 2, ..released }, 2);
    let annotated = Widget {
        version: 2,
        ..annotated
    }
    .annotation("test/Immutable", "true");
    let archived = [&same, &released, &annotated].map(|object| object.archived());
    write(&backend, &archived, 3).await;
    assert_eq!(
        follower.read(&backend).await,
        [there("u3")],
        "only this one became another"
    );
    // While it leaves the cluster, an object goes through versions that are none of its own.
    let on_the_way = deleting(
        Widget {
            version: 3,
            ..annotated
        },
        4,
    )
    .archived();
    write(
        &backend,
        &[on_the_way, deleting(widget("u4", "u4", 1), 4).archived()],
        5,
    )
    .await;
    assert_eq!(follower.read(&backend).await, [there("u4")], "it is new, and stays");
    assert_eq!(follower.objects.len(), 4);
    // One that was said to be on its way to deletion was not.
    write(&backend, &[deleting(widget("u5", "u5", 1), 6).live()], 6).await;
    write(&backend, &[deleting(widget("u5", "u5", 1), 6).archived()], 7).await;
    assert_eq!(follower.read(&backend).await, [there("u5")]);
    // A cluster that was restored from a backup shows it from before its deletion.
    write(&backend, &[deleting(widget("u6", "u6", 1), 6).live()], 6).await;
    write(&backend, &[widget("u6", "u6", 2).archived()], 7).await;
    assert_eq!(follower.read(&backend).await, [there("u6")]);
    write(&backend, &[soft_delete("u1")], 8).await;
    assert_eq!(
        follower.read(&backend).await,
        [gone("u1", 8)],
        "whatever its text went through"
    );
}

async fn what_changes_archived_objects_has_an_entry(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    let mut follower = Follower::default();
    let store = &backend.store;
    let archived = ["u1", "u2", "u3", "u4"].map(|uid| archived_object(uid).archived());
    write(&backend, &archived, 0).await;
    follower.read(&backend).await;
    let uid = |uid: &str| Uid::from(uid);
    let name = ReferenceName::new("Cluster", "compute.example.com", "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce");
    let name = name.expect("a name");

    let updated = archived_object("u1").label("team", "risk");
    let changed = store
        .update_direct(&NOTICE, &read(&updated, ResourceVersion(10)), at(1))
        .await;
    let changed = changed.expect("changed");
    assert_eq!(follower.read(&backend).await, [there("u1")]);
    store.update_direct(&NOTICE, &changed, at(2)).await.expect("unchanged");
    assert_eq!(follower.read(&backend).await, [], "nothing changed");

    store
        .place_reference(&NOTICE, &uid("u1"), &name, "jane", at(3))
        .await
        .expect("placed");
    store
        .place_reference(&NOTICE, &uid("u3"), &name, "jane", at(3))
        .await
        .expect("placed");
    store
        .delete_direct(&NOTICE, &uid("u1"), None, at(4))
        .await
        .expect("held");
    store
        .delete_direct(&NOTICE, &uid("u1"), None, at(5))
        .await
        .expect("held");
    assert_eq!(
        follower.read(&backend).await,
        [leaving("u1", 4)],
        "the first request counts"
    );
    let updated = archived_object("u1").label("team", "trade");
    let version = changed.metadata.resource_version;
    store
        .update_direct(&NOTICE, &read(&updated, version), at(6))
        .await
        .expect("changed");
    assert_eq!(follower.read(&backend).await, [leaving("u1", 4)], "it still waits");
    store
        .release_reference(&NOTICE, &uid("u1"), &name, at(7))
        .await
        .expect("released");
    store
        .delete_direct(&NOTICE, &uid("u2"), None, at(8))
        .await
        .expect("deleted");
    assert_eq!(follower.read(&backend).await, [gone("u1", 4), gone("u2", 8)]);

    let request = DeleteCollection {
        select: Select::all(&NOTICE),
        everything: true,
        needs_tombstones: false,
        rows: 10,
    };
    store.delete_collection(&request, None, at(9)).await.expect("deleted");
    assert_eq!(follower.read(&backend).await, [leaving("u3", 9), gone("u4", 9)]);
}

async fn an_object_whose_name_another_has_leaves_a_tombstone(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    let mut follower = Follower::default();
    let first = [widget("u1", "a", 1).live(), widget("u2", "b", 2).archived()];
    write(&backend, &first, 1).await;
    write(&backend, &[widget("u3", "a", 3).live(), widget("u4", "b", 4).live()], 2).await;
    let seen = follower.read(&backend).await;
    assert_eq!(seen, [gone("u1", 2), gone("u2", 2), there("u3"), there("u4")]);
    // The late one is stored, and closed at once.
    write(&backend, &[widget("u0", "a", 2).live()], 3).await;
    assert_eq!(follower.read(&backend).await, [gone("u0", 3)]);
}

async fn a_purged_object_has_its_tombstone_before(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    let mut follower = Follower::default();
    let rows = [
        widget("u1", "a", 1).archived(),
        widget("u2", "b", 2).archived(),
        widget("u3", "c", 3).live(),
    ];
    write(&backend, &rows, 1).await;
    write(&backend, &[soft_delete("u2")], 2).await;
    follower.read(&backend).await;
    let all = Gone {
        deleted: true,
        archived: true,
        ..Gone::default()
    };
    let uids = ["u1", "u2", "u3"].map(Uid::from);
    let removed = backend
        .store
        .remove(&NOTICE, &all, &uids, at(5))
        .await
        .expect("removed");
    assert_eq!(removed.len(), 2);
    assert_eq!(
        follower.read(&backend).await,
        [gone("u1", 5)],
        "of the other one it is known"
    );
    let replay = backend.store.replay(&NOTICE, None, 10).await.expect("readable");
    let replay: Vec<_> = replay.iter().map(seen_as).collect();
    assert_eq!(replay, [gone("u1", 5), gone("u2", 2), there("u3")]);
}

async fn a_batch_that_is_rolled_back_leaves_no_entry(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    if !backend.poison("poison").await {
        return;
    }
    write(&backend, &[widget("u1", "a", 1).live()], 1).await;
    let head = backend.store.head(&NOTICE).await.expect("readable");
    let poisonous = [
        soft_delete("u1"),
        widget("u2", "b", 1).live(),
        widget("u3", "poison", 1).live(),
    ];
    let refused = backend.store.write(&NOTICE, &poisonous, at(2)).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
    assert_eq!(backend.store.head(&NOTICE).await.expect("readable"), head);
    let mut follower = Follower::default();
    assert_eq!(follower.read(&backend).await, [there("u1")]);
    backend.antidote().await;
    write(&backend, &poisonous, 3).await;
    assert_eq!(follower.read(&backend).await, [gone("u1", 3), there("u2"), there("u3")]);
}

async fn a_page_ends_where_a_transaction_ends(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    let batch = |from: u32, to: u32| -> Vec<RowWrite> {
        let objects = (from..to).map(|number| widget(&format!("u{number:03}"), &format!("n{number}"), 1));
        objects.map(|object| object.live()).collect()
    };
    for (from, to) in [(0, 2), (2, 4), (4, 604), (604, 606)] {
        write(&backend, &batch(from, to), 1).await;
    }
    let mut follower = Follower::default();
    let mut ends = Vec::new();
    while let Some(entries) = follower.page(&backend, 5).await.filter(|entries| !entries.is_empty()) {
        ends.push((entries.len(), follower.mark.position.0));
        let places: Vec<u64> = entries.iter().map(|entry| entry.position.0).collect();
        assert!(places.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{places:?}");
    }
    assert_eq!(ends, [(4, 4), (602, 606)]);
    assert_eq!(backend.store.head(&NOTICE).await.expect("readable"), follower.mark);
    // What changed again has left its place.
    write(
        &backend,
        &[widget("u000", "n0", 2).live(), widget("u605", "n605", 2).live()],
        2,
    )
    .await;
    let mut again = Follower::default();
    let first = again.page(&backend, 3).await.expect("from the beginning");
    assert_eq!(
        first.iter().map(|entry| entry.position.0).collect::<Vec<_>>(),
        [2, 3, 4]
    );
    assert_eq!(again.read(&backend).await.len(), 603);
}

async fn a_replay_shows_everything_in_pages(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    let objects = (0..25).map(|number| widget(&format!("u{number:03}"), &format!("n{number}"), 1).live());
    write(&backend, &objects.collect::<Vec<_>>(), 1).await;
    write(&backend, &[soft_delete("u007")], 2).await;
    let mut seen: Vec<OutboxEntry> = Vec::new();
    loop {
        let after = seen.last().map(|entry| entry.uid.clone());
        let page = backend
            .store
            .replay(&NOTICE, after.as_ref(), 10)
            .await
            .expect("readable");
        if page.is_empty() {
            break;
        }
        seen.extend(page);
    }
    let uids: Vec<String> = seen.iter().map(|entry| entry.uid.to_string()).collect();
    assert_eq!(uids, (0..25).map(|number| format!("u{number:03}")).collect::<Vec<_>>());
    let erased: Vec<&str> = seen
        .iter()
        .filter(|entry| entry.erased)
        .map(|entry| &*entry.uid.0)
        .collect();
    assert_eq!(erased, ["u007"]);
}

async fn tombstones_and_marks_stay_for_seven_days(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    // After the first mark, which is of the real time.
    let start = Timestamp::now().as_second() - at(0).as_second() + 60;
    let week = start + TOMBSTONES_KEPT.as_secs();
    assert_eq!(TOMBSTONES_KEPT, SignedDuration::from_hours(168));
    write(
        &backend,
        &[widget("u1", "a", 1).live(), widget("u2", "b", 1).live()],
        start,
    )
    .await;
    let before = backend.store.head(&NOTICE).await.expect("readable");
    write(&backend, &[soft_delete("u1")], start + 1).await;
    write(&backend, &[soft_delete("u2")], start + 60).await;
    let after = backend.store.head(&NOTICE).await.expect("readable");
    // Enough changes that the oldest are looked for.
    let many = |version: u64| -> Vec<RowWrite> {
        let objects = (0..300).map(move |number| widget(&format!("w{number}"), &format!("w{number}"), version));
        objects.map(|object| object.live()).collect()
    };
    let tombstones = async || {
        let entries = backend.store.replay(&NOTICE, None, 1_000).await.expect("readable");
        let erased = entries.into_iter().filter(|entry| entry.erased);
        erased.map(|entry| entry.uid.to_string()).collect::<Vec<_>>()
    };
    write(&backend, &many(2), week).await;
    assert_eq!(tombstones().await, ["u1", "u2"], "not a moment too soon");
    assert!(is_known(&backend, before).await);
    write(&backend, &many(3), week + 30).await;
    assert_eq!(tombstones().await, ["u2"]);
    assert!(!is_known(&backend, before).await, "the tombstone after it is gone");
    assert!(is_known(&backend, after).await);
    write(&backend, &many(4), week + 120).await;
    assert_eq!(tombstones().await, Vec::<String>::new());
    assert!(!is_known(&backend, after).await);
    let newest = backend.store.head(&NOTICE).await.expect("readable");
    assert!(is_known(&backend, newest).await, "the newest one stays");
}
