//! Each change of an archived object is recorded once, in the order of commits, and kept as long as documented.

use std::collections::BTreeMap;

use futures::future::join_all;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_query::{LabelSelector, Select};
use kindex_store::{CHANGES_KEPT, Change, DeleteCollection, Position, RowWrite};

use super::backend::Backend;
use super::direct::{archived_object, evict, read, update};
use super::widget::{WIDGET, Widget, at, soft_delete, widget};

scenarios!(
    each_change_is_recorded_with_what_it_replaced,
    what_changes_nothing_or_is_refused_is_not_recorded,
    a_replaced_object_is_recorded_as_deleted,
    the_changes_of_a_large_batch_are_numbered_without_gaps,
    changes_of_an_archived_object_that_is_still_in_the_cluster_are_recorded,
    who_follows_many_writers_misses_nothing,
    the_first_watermark_counts,
    the_oldest_are_dropped_and_missed,
);

async fn position(backend: &Backend) -> Position {
    let positions = backend.store.positions().await.expect("readable");
    positions.get(WIDGET.name).copied().unwrap_or_default()
}

async fn changes(backend: &Backend, after: u64, limit: u32) -> Option<Vec<Change>> {
    let found = backend.store.changes(&WIDGET, Position(after), limit).await;
    found.expect("readable")
}

fn change(position: u64, uid: &str, labels: Option<&[(&str, &str)]>) -> Change {
    let labels = labels.map(|labels| {
        let owned = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        owned.collect::<BTreeMap<_, _>>()
    });
    Change {
        position: Position(position),
        uid: Uid::from(uid),
        labels,
    }
}

async fn delete(backend: &Backend, uid: &str) {
    let deleted = backend.store.delete_direct(&WIDGET, &Uid::from(uid), None, at(2)).await;
    deleted.expect("deleted");
}

async fn each_change_is_recorded_with_what_it_replaced(backend: Backend) {
    for uid in ["u1", "u2", "u3", "u4"] {
        evict(&backend, &archived_object(uid)).await;
    }
    assert_eq!(position(&backend).await, Position(0), "the cluster told of these");
    assert_eq!(changes(&backend, 0, 10).await, Some(Vec::new()));

    let wanted = archived_object("u1").label("team", "risk");
    let updated = update(&backend, &read(&wanted, ResourceVersion(10)), at(1)).await;
    let version = updated.expect("updated").metadata.resource_version;
    update(&backend, &read(&wanted.label("tier", "gold"), version), at(1))
        .await
        .expect("updated");
    delete(&backend, "u2").await;
    let mut select = Select::all(&WIDGET);
    select
        .filter_by_labels(&LabelSelector::parse("team=fraud").expect("a selector"))
        .expect("small enough");
    let request = DeleteCollection {
        select,
        everything: false,
        needs_tombstones: false,
        rows: 100,
    };
    let collected = backend.store.delete_collection(&request, None, at(3)).await;
    assert_eq!(collected.expect("deleted").deleted.len(), 2);

    let expected = [
        change(1, "u1", Some(&[("team", "fraud")])),
        change(2, "u1", Some(&[("team", "risk")])),
        change(3, "u2", None),
        change(4, "u3", None),
        change(5, "u4", None),
    ];
    assert_eq!(position(&backend).await, Position(5));
    assert_eq!(changes(&backend, 0, 10).await.as_deref(), Some(&expected[..]));
    assert_eq!(changes(&backend, 1, 2).await.as_deref(), Some(&expected[1..3]));
    assert_eq!(changes(&backend, 5, 2).await, Some(Vec::new()));
}

async fn what_changes_nothing_or_is_refused_is_not_recorded(backend: Backend) {
    let object = archived_object("u1");
    evict(&backend, &object).await;
    update(&backend, &read(&object, ResourceVersion(10)), at(1))
        .await
        .expect("the same");
    let other = read(&object.clone().label("team", "risk"), ResourceVersion(9));
    update(&backend, &other, at(1)).await.expect_err("a stale version");
    backend.write(archived_object("u2").live(), at(1)).await;
    let live = read(&archived_object("u2").label("team", "risk"), ResourceVersion(10));
    update(&backend, &live, at(1)).await.expect_err("the cluster has it");
    let writes: [RowWrite; 2] = [archived_object("u2").archived(), soft_delete("u1")];
    backend.write_all(&writes, at(2)).await;
    assert_eq!(position(&backend).await, Position(0));
}

/// More than one statement takes.
async fn the_changes_of_a_large_batch_are_numbered_without_gaps(backend: Backend) {
    let objects = |prefix: &str, version: u64| -> Vec<Widget> {
        let of = |number| widget(&format!("{prefix}{number:04}"), &format!("n{number:04}"), version);
        (0..1_100).map(of).collect()
    };
    let archived: Vec<RowWrite> = objects("old", 10).iter().map(|object| object.archived()).collect();
    backend.write_all(&archived, at(0)).await;
    let anew: Vec<RowWrite> = objects("new", 20).iter().map(Widget::live).collect();
    backend.write_all(&anew, at(1)).await;
    assert_eq!(position(&backend).await, Position(1_100));
    let reported = changes(&backend, 0, 2_000).await.expect("none was dropped");
    let places: Vec<u64> = reported.iter().map(|change| change.position.0).collect();
    assert_eq!(places, (1..=1_100).collect::<Vec<u64>>());
    let mut uids: Vec<&str> = reported.iter().map(|change| &*change.uid.0).collect();
    uids.sort_unstable();
    uids.dedup();
    assert_eq!(uids.len(), 1_100);
}

async fn a_replaced_object_is_recorded_as_deleted(backend: Backend) {
    evict(&backend, &widget("evicted", "a", 10)).await;
    backend.write(widget("lives", "b", 11).live(), at(0)).await;
    backend.write(widget("lives-later", "b", 12).live(), at(1)).await;
    assert_eq!(position(&backend).await, Position(0), "the cluster tells of its own");
    let writes = [widget("next", "a", 13).live(), widget("other", "c", 14).live()];
    backend.write_all(&writes, at(2)).await;
    let reported = Some(vec![change(1, "evicted", None)]);
    assert_eq!(changes(&backend, 0, 10).await, reported);
    backend.write(widget("evicted", "a", 10).archived(), at(3)).await;
    assert_eq!(changes(&backend, 0, 10).await, reported, "once");
}

async fn changes_of_an_archived_object_that_is_still_in_the_cluster_are_recorded(backend: Backend) {
    let archived_object = |version: u64| widget("u1", "a", version).label("n", &version.to_string());
    evict(&backend, &archived_object(10)).await;
    for (uid, name) in [("bare", "b"), ("quiet", "q")] {
        evict(&backend, &widget(uid, name, 10)).await;
    }
    assert_eq!(
        position(&backend).await,
        Position(0),
        "the cluster tells of the way there"
    );
    let writes = [
        widget("bare", "b", 11).label("n", "1").archived(),
        archived_object(11).archived(),
        widget("fresh", "c", 12).archived(),
        widget("quiet", "q", 11).archived(),
    ];
    backend.write_all(&writes, at(1)).await;
    let reported = [change(1, "bare", Some(&[])), change(2, "u1", Some(&[("n", "10")]))];
    assert_eq!(changes(&backend, 0, 10).await, Some(reported.to_vec()));
    backend.write_all(&writes, at(2)).await;
    backend.write(archived_object(9).archived(), at(3)).await;
    backend.write(archived_object(12).live(), at(4)).await;
    assert_eq!(
        position(&backend).await,
        Position(2),
        "and of the way back; nothing else changed"
    );
}

/// The one who follows reads as the writers write: what it sees of the positions is all there.
async fn who_follows_many_writers_misses_nothing(backend: Backend) {
    const WRITERS: usize = 6;
    const CHANGES: usize = 8;
    let writer = async |number: usize| {
        let uid = format!("w{number}");
        let mut object = archived_object(&uid);
        evict(&backend, &object).await;
        let mut version = ResourceVersion(10);
        for change in 0..CHANGES {
            object = object.label("change", &change.to_string());
            let updated = update(&backend, &read(&object, version), at(1)).await;
            version = updated.expect("nobody else changes it").metadata.resource_version;
        }
        delete(&backend, &uid).await;
    };
    let all = WRITERS * (CHANGES + 1);
    let follow = async {
        let mut seen: Vec<Change> = Vec::new();
        while seen.len() < all {
            let known = position(&backend).await;
            let found = changes(&backend, seen.len() as u64, 7)
                .await
                .expect("nothing is dropped");
            let upto = seen.len() + found.len();
            assert!(
                upto as u64 >= known.0.min(seen.len() as u64 + 7),
                "{known:?}: {found:?}"
            );
            for (change, place) in found.iter().zip(seen.len() as u64 + 1..) {
                assert_eq!(change.position, Position(place), "no gap, and none out of turn");
            }
            seen.extend(found);
            tokio::task::yield_now().await;
        }
        seen
    };
    let (_, seen) = futures::join!(join_all((0..WRITERS).map(writer)), follow);
    for number in 0..WRITERS {
        let uid = Uid::from(format!("w{number}").as_str());
        let own: Vec<Option<&str>> = seen
            .iter()
            .filter(|change| change.uid == uid)
            .map(|change| change.labels.as_ref().and_then(|labels| labels.get("change")))
            .map(|label| label.map(String::as_str))
            .collect();
        let replaced = ["0", "1", "2", "3", "4", "5", "6"].map(Some);
        assert_eq!(own, [&[None], &replaced[..], &[None]].concat());
    }
    assert_eq!(position(&backend).await, Position(all as u64));
}

async fn the_first_watermark_counts(backend: Backend) {
    for uid in ["u1", "u2", "u3"] {
        evict(&backend, &archived_object(uid)).await;
        delete(&backend, uid).await;
    }
    let before = async |version| {
        let found = backend.store.watermark_before(&WIDGET, ResourceVersion(version)).await;
        found.expect("readable").map(|position| position.0)
    };
    assert_eq!(before(u64::MAX >> 2).await, None);
    for (position, version) in [(1, 100), (3, 200), (3, 150), (9, 300)] {
        let recorded = backend
            .store
            .record_watermark(&WIDGET, Position(position), ResourceVersion(version));
        recorded.await.expect("recorded");
    }
    let found = [
        before(100).await,
        before(101).await,
        before(200).await,
        before(201).await,
    ];
    assert_eq!(found, [None, Some(1), Some(1), Some(3)]);
}

async fn the_oldest_are_dropped_and_missed(backend: Backend) {
    for uid in ["u1", "u2"] {
        evict(&backend, &archived_object(uid)).await;
    }
    delete(&backend, "u1").await;
    let last = 2 * CHANGES_KEPT;
    let jump = format!("UPDATE kindex_feed SET position = {}", last - 1);
    if backend.rows(&jump).await.is_none() {
        return;
    }
    delete(&backend, "u2").await;
    assert_eq!(position(&backend).await, Position(last));
    assert_eq!(changes(&backend, 0, 10).await, None, "the first is gone");
    let newest = changes(&backend, last - 1, 10).await;
    assert_eq!(newest, Some(vec![change(last, "u2", None)]));
    let left = backend.rows("SELECT position FROM kindex_changes").await;
    assert_eq!(left.map(|rows| rows.len()), Some(1));
}
