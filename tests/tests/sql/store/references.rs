//! References on archived objects: they hold deletions up until the last one is released.

use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::reference_name::ReferenceName;
use kindex_query::{Life, Revive, Select};
use kindex_store::{
    DeleteCollection, Deletion, DirectError, Gone, Placed, Position, ReadVersion, Reference, Released, StoreError,
};

use super::backend::Backend;
use super::direct::{archived_object, evict};
use super::widget::{KEEPSAKE, REGISTRY, WIDGET, Widget, at, soft_delete, widget};

scenarios!(
    a_reference_is_placed_once_and_may_be_released_twice,
    only_an_archived_object_takes_references,
    an_object_goes_with_its_last_reference,
    what_waits_for_its_release_takes_no_new_references,
    a_collection_goes_but_for_what_is_held,
    a_tombstone_stays_until_somebody_ends_its_deletion,
    what_is_closed_while_it_waits_is_not_deleted_again,
    a_holder_finds_what_it_uses_in_all_kinds,
    of_another_kind_with_the_same_uid_everything_stays,
    references_and_tombstones_are_read_page_by_page,
    the_first_references_on_an_object_are_those_with_which_all_of_them_begin,
    an_eviction_takes_the_references_of_the_cluster_along,
    a_reference_that_comes_again_stays_as_it_was_placed,
    what_references_hold_is_not_purged,
);

pub(super) fn holder(number: u32) -> ReferenceName {
    let uid = format!("7f7a15ab-f1cc-4f3b-b1c0-{number:012}");
    ReferenceName::new("Cluster", "compute.example.com", &uid).expect("a name")
}

pub(super) async fn place(backend: &Backend, uid: &str, number: u32, second: i64) -> Result<Placed, DirectError> {
    let (store, uid, name) = (&backend.store, Uid::from(uid), holder(number));
    let place = async || store.place_reference(&WIDGET, &uid, &name, "jane", at(second)).await;
    let placed = backend.answer(place).await;
    placed.map_err(|error| match error {
        StoreError::Direct { source, .. } => source,
        other => panic!("{other:?}"),
    })
}

pub(super) async fn release(backend: &Backend, uid: &str, number: u32, second: i64) -> Released {
    let (store, uid, name) = (&backend.store, Uid::from(uid), holder(number));
    let release = async || store.release_reference(&WIDGET, &uid, &name, at(second)).await;
    backend.answer(release).await.expect("released")
}

pub(super) async fn delete(backend: &Backend, uid: &str, second: i64) -> Deletion {
    let (store, uid) = (&backend.store, Uid::from(uid));
    let delete = async || store.delete_direct(&WIDGET, &uid, None, at(second)).await;
    backend.answer(delete).await.expect("deleted")
}

pub(super) async fn references(backend: &Backend, uid: &str) -> Vec<Reference> {
    let uids = [Uid::from(uid)];
    let found = backend.answer(async || backend.store.references(&WIDGET, &uids).await);
    found.await.expect("readable")
}

/// Since when an object waits, in seconds.
pub(super) async fn tombstone(backend: &Backend, uid: &str) -> Option<i64> {
    let uids = [Uid::from(uid)];
    let found = backend.answer(async || backend.store.tombstones(&WIDGET, &uids).await);
    let found = found.await.expect("readable").pop();
    found.map(|tombstone| tombstone.requested.as_second() - at(0).as_second())
}

async fn a_reference_is_placed_once_and_may_be_released_twice(backend: Backend) {
    evict(&backend, &archived_object("u1")).await;
    assert_eq!(place(&backend, "u1", 1, 5).await, Ok(Placed::New));
    assert_eq!(place(&backend, "u1", 1, 6).await, Ok(Placed::Already));
    let reference = Reference {
        kind: "Widget".to_owned(),
        uid: Uid::from("u1"),
        name: holder(1).to_string(),
        placed: at(5),
        placed_by: Some("jane".to_owned()),
    };
    assert_eq!(references(&backend, "u1").await, [reference]);
    let count = backend.store.count_references(&WIDGET, &Uid::from("u1")).await;
    assert_eq!(count.expect("readable"), 1);
    assert_eq!(release(&backend, "u1", 1, 7).await, Released::Released);
    assert_eq!(release(&backend, "u1", 1, 8).await, Released::Absent);
    assert_eq!(references(&backend, "u1").await, []);
    assert_eq!(backend.life("u1").await, Some(Life::Archived), "nobody deleted it");
}

async fn only_an_archived_object_takes_references(backend: Backend) {
    let live = widget("live", "live", 10).store(Life::Live, Revive::Never);
    let deleted = widget("deleted", "deleted", 10).store(Life::Live, Revive::Never);
    backend.write_all(&[live, deleted], at(0)).await;
    backend.write(soft_delete("deleted"), at(3)).await;
    assert_eq!(place(&backend, "missing", 1, 5).await, Err(DirectError::Missing));
    assert_eq!(place(&backend, "live", 1, 5).await, Err(DirectError::Live));
    assert_eq!(place(&backend, "deleted", 1, 5).await, Err(DirectError::Deleted(at(3))));
    for uid in ["missing", "live", "deleted"] {
        assert_eq!(references(&backend, uid).await, []);
        assert_eq!(release(&backend, uid, 1, 6).await, Released::Absent);
    }
}

async fn an_object_goes_with_its_last_reference(backend: Backend) {
    evict(&backend, &archived_object("u1")).await;
    for number in 1..=3 {
        assert_eq!(place(&backend, "u1", number, 1).await, Ok(Placed::New));
    }
    assert_eq!(delete(&backend, "u1", 2).await, Deletion::Held);
    assert_eq!(delete(&backend, "u1", 3).await, Deletion::Held);
    assert_eq!(tombstone(&backend, "u1").await, Some(2), "the first request counts");
    for number in 1..=2 {
        assert_eq!(release(&backend, "u1", number, 4).await, Released::Released);
    }
    assert_eq!(backend.life("u1").await, Some(Life::Archived));
    let left = references(&backend, "u1").await;
    assert_eq!(
        left.iter().map(|one| &*one.name).collect::<Vec<_>>(),
        [holder(3).to_string()]
    );
    let before = backend.store.changes(&WIDGET, Position(0), 10).await.expect("readable");
    assert_eq!(
        before,
        Some(Vec::new()),
        "no watch hears of a deletion before it happened"
    );

    assert_eq!(release(&backend, "u1", 3, 5).await, Released::Deleted);
    assert_eq!(backend.life("u1").await, Some(Life::Deleted));
    assert_eq!(tombstone(&backend, "u1").await, None);
    let changes = backend.store.changes(&WIDGET, Position(0), 10).await.expect("readable");
    assert_eq!(changes.map(|changes| changes.len()), Some(1));
}

async fn what_waits_for_its_release_takes_no_new_references(backend: Backend) {
    evict(&backend, &archived_object("u1")).await;
    place(&backend, "u1", 1, 1).await.expect("placed");
    assert_eq!(delete(&backend, "u1", 2).await, Deletion::Held);
    assert_eq!(place(&backend, "u1", 2, 3).await, Err(DirectError::Deleting(at(2))));
    assert_eq!(place(&backend, "u1", 1, 3).await, Ok(Placed::Already));
    let page = backend.store.tombstone_page(&WIDGET, None, 10).await.expect("readable");
    assert_eq!(page.len(), 1);
    let next = backend.store.tombstone_page(&WIDGET, Some(&page[0].uid), 10).await;
    assert_eq!(next.expect("readable"), []);
}

async fn what_is_closed_while_it_waits_is_not_deleted_again(backend: Backend) {
    evict(&backend, &archived_object("u1")).await;
    place(&backend, "u1", 1, 1).await.expect("placed");
    assert_eq!(delete(&backend, "u1", 2).await, Deletion::Held);
    backend.write(soft_delete("u1"), at(3)).await;
    assert_eq!(release(&backend, "u1", 1, 4).await, Released::Released);
    assert_eq!(place(&backend, "u1", 1, 5).await, Err(DirectError::Deleted(at(3))));
}

async fn a_collection_goes_but_for_what_is_held(backend: Backend) {
    for uid in ["u1", "u2", "u3"] {
        evict(&backend, &archived_object(uid)).await;
    }
    place(&backend, "u2", 1, 1).await.expect("placed");
    let request = DeleteCollection {
        select: Select::all(&WIDGET),
        everything: true,
        needs_tombstones: false,
        rows: 100,
    };
    let done = backend
        .store
        .delete_collection(&request, None, at(9))
        .await
        .expect("deleted");
    let uids = |found: &[kindex_store::Found]| found.iter().map(|one| one.uid.to_string()).collect::<Vec<_>>();
    assert_eq!(
        (uids(&done.deleted), uids(&done.held)),
        (vec!["u1".into(), "u3".into()], vec!["u2".into()])
    );
    assert_eq!(backend.life("u2").await, Some(Life::Archived));
    assert_eq!(tombstone(&backend, "u2").await, Some(9));
    assert_eq!(release(&backend, "u2", 1, 10).await, Released::Deleted);
}

async fn a_tombstone_stays_until_somebody_ends_its_deletion(backend: Backend) {
    for uid in ["u1", "u2"] {
        evict(&backend, &archived_object(uid)).await;
    }
    let uid = Uid::from("u1");
    let make = async |read, second| backend.store.make_tombstone(&WIDGET, &uid, read, at(second)).await;
    let late = make(Some(ResourceVersion(9)), 4).await;
    assert!(matches!(
        late,
        Err(StoreError::Direct {
            source: DirectError::Conflict { .. },
            ..
        })
    ));
    make(Some(ResourceVersion(10)), 5).await.expect("a tombstone");
    make(None, 6).await.expect("once more");
    assert_eq!(tombstone(&backend, "u1").await, Some(5));
    assert_eq!(place(&backend, "u1", 1, 7).await, Err(DirectError::Deleting(at(5))));
    let request = DeleteCollection {
        select: Select::all(&WIDGET),
        everything: true,
        needs_tombstones: true,
        rows: 100,
    };
    let done = backend.store.delete_collection(&request, None, at(8)).await;
    let done = done.expect("a tombstone");
    assert_eq!((done.deleted.len(), done.held.len()), (0, 2));
    assert_eq!(backend.life("u2").await, Some(Life::Archived));
    let read = ["u1", "u2"].map(|uid| ReadVersion {
        uid: Uid::from(uid),
        version: ResourceVersion(10),
    });
    let ended = backend.store.delete_unheld(&WIDGET, &read, at(9)).await.expect("ended");
    assert_eq!((ended.deleted.len(), ended.held.len()), (2, 0));
    assert_eq!(backend.life("u1").await, Some(Life::Deleted));
    assert_eq!(tombstone(&backend, "u1").await, None);
}

async fn a_holder_finds_what_it_uses_in_all_kinds(backend: Backend) {
    evict(&backend, &archived_object("u1")).await;
    let keepsake = archived_object("k1").archived();
    let written = backend.store.write(&KEEPSAKE, &[keepsake], at(0)).await;
    written.expect("written");
    place(&backend, "u1", 1, 1).await.expect("placed");
    place(&backend, "u1", 2, 1).await.expect("placed");
    let placed = backend
        .store
        .place_reference(&KEEPSAKE, &Uid::from("k1"), &holder(1), "", at(2))
        .await;
    placed.expect("placed");
    let used = backend.store.references_of_holder(&Uid::from(holder(1).uid())).await;
    let used: Vec<(String, String)> = used
        .expect("readable")
        .into_iter()
        .map(|one| (one.kind, one.uid.to_string()))
        .collect();
    let expected = [("Keepsake", "k1"), ("Widget", "u1")];
    assert_eq!(used, expected.map(|(kind, uid)| (kind.to_owned(), uid.to_owned())));
}

async fn of_another_kind_with_the_same_uid_everything_stays(backend: Backend) {
    evict(&backend, &archived_object("u1")).await;
    let (store, uid) = (&backend.store, Uid::from("u1"));
    let keepsake = Widget {
        finalizers: vec![holder(1).to_string()],
        ..archived_object("u1")
    };
    let written = store.write(&KEEPSAKE, &[keepsake.archived()], at(0)).await;
    written.expect("written");
    let placed = store.place_reference(&KEEPSAKE, &uid, &holder(2), "jane", at(1)).await;
    placed.expect("placed");
    let deleted = store.delete_direct(&KEEPSAKE, &uid, None, at(2)).await;
    assert_eq!(deleted.expect("deleted"), Deletion::Held);

    assert_eq!(references(&backend, "u1").await, []);
    assert_eq!(tombstone(&backend, "u1").await, None);
    let page = store.tombstone_page(&WIDGET, None, 10).await;
    assert_eq!(page.expect("readable"), []);
    assert_eq!(release(&backend, "u1", 1, 3).await, Released::Absent);
    assert_eq!(place(&backend, "u1", 3, 3).await, Ok(Placed::New));
    assert_eq!(delete(&backend, "u1", 4).await, Deletion::Held);
    assert_eq!(release(&backend, "u1", 3, 5).await, Released::Deleted);
    let back = widget("u1", "u1", 11).store(Life::Live, Revive::FromAny);
    backend.write(back, at(6)).await;

    let left = store.references(&KEEPSAKE, std::slice::from_ref(&uid)).await;
    assert_eq!(left.expect("readable").len(), 2);
    let waits = store.tombstones(&KEEPSAKE, &[uid]).await.expect("readable");
    assert_eq!(waits.iter().map(|one| one.requested).collect::<Vec<_>>(), [at(2)]);
}

async fn references_and_tombstones_are_read_page_by_page(backend: Backend) {
    for (uid, last) in [("u1", 3), ("u2", 2), ("u3", 1)] {
        evict(&backend, &archived_object(uid)).await;
        for number in 1..=last {
            place(&backend, uid, number, 1).await.expect("placed");
        }
    }
    let written = backend
        .store
        .write(&KEEPSAKE, &[archived_object("u2").archived()], at(0))
        .await;
    written.expect("written");
    let uid = Uid::from("u2");
    let placed = backend
        .store
        .place_reference(&KEEPSAKE, &uid, &holder(3), "jane", at(1))
        .await;
    placed.expect("placed");
    let (mut seen, mut after): (Vec<(String, String)>, Option<Reference>) = (Vec::new(), None);
    for rows in [2, 2, 2, 0] {
        let page = backend.store.reference_page(&WIDGET, after.as_ref(), 2).await;
        let mut page = page.expect("readable");
        assert_eq!(page.len(), rows);
        seen.extend(page.iter().map(|one| (one.uid.to_string(), one.name.clone())));
        after = page.pop();
    }
    let all = [("u1", 1), ("u1", 2), ("u1", 3), ("u2", 1), ("u2", 2), ("u3", 1)];
    assert_eq!(
        seen,
        all.map(|(uid, number)| (uid.to_owned(), holder(number).to_string()))
    );
    for (uid, second) in [("u3", 2), ("u2", 3), ("u1", 4)] {
        assert_eq!(delete(&backend, uid, second).await, Deletion::Held);
    }
    for (after, uids) in [(None, vec!["u1", "u2"]), (Some(&uid), vec!["u3"])] {
        let page = backend.store.tombstone_page(&WIDGET, after, 2).await;
        let page = page.expect("readable");
        assert_eq!(page.iter().map(|one| &*one.uid.0).collect::<Vec<_>>(), uids);
    }
}

async fn the_first_references_on_an_object_are_those_with_which_all_of_them_begin(backend: Backend) {
    for uid in ["u0", "u1", "u2"] {
        evict(&backend, &archived_object(uid)).await;
    }
    for (uid, number) in [("u0", 1), ("u1", 3), ("u1", 1), ("u1", 2), ("u2", 1)] {
        place(&backend, uid, number, 1).await.expect("placed");
    }
    let all = references(&backend, "u1").await;
    for (limit, shown) in [(0, 0), (1, 1), (3, 3), (9, 3), (u32::MAX, 3)] {
        let first = backend.store.first_references(&WIDGET, &Uid::from("u1"), limit).await;
        assert_eq!(first.expect("readable"), all[..shown], "limit {limit}");
    }
}

/// The numbers of the holders that an object has.
async fn holders(backend: &Backend, uid: &str) -> Vec<u32> {
    let found = references(backend, uid).await;
    let number = |one: &Reference| (1..9).find(|number| holder(*number).to_string() == one.name);
    found.iter().filter_map(number).collect()
}

async fn an_eviction_takes_the_references_of_the_cluster_along(backend: Backend) {
    let version = |version: u64, ours: bool, holders: &[u32]| {
        let ours = ours.then(|| REGISTRY.platform.finalizer.to_owned());
        let names = holders.iter().map(|number| holder(*number).to_string());
        let others = ["example.com/backup".to_owned()];
        let mut object = widget("u1", "u1", version);
        object.finalizers = ours.into_iter().chain(names).chain(others).collect();
        object
    };
    let archived = |object: Widget| object.archived();
    backend.write(version(9, true, &[1]).live(), at(0)).await;
    assert_eq!(
        holders(&backend, "u1").await,
        [0_u32; 0],
        "the cluster has those of a live object"
    );
    backend.write(archived(version(9, true, &[1])), at(1)).await;
    assert_eq!(holders(&backend, "u1").await, [1]);
    assert_eq!(references(&backend, "u1").await[0].placed_by, None);
    assert_eq!(place(&backend, "u1", 3, 2).await, Ok(Placed::New));

    backend.write(archived(version(10, false, &[2])), at(3)).await;
    assert_eq!(
        holders(&backend, "u1").await,
        [2, 3],
        "released there before the delete, and placed in SQL"
    );
    let leaving = |number, ours, holders: &[u32]| {
        let mut object = version(number, ours, holders);
        object.deletion = Some("2026-11-01T12:00:00Z".to_owned());
        object
    };
    backend.write(archived(leaving(11, true, &[1])), at(4)).await;
    assert_eq!(
        holders(&backend, "u1").await,
        [1, 3],
        "placed and released just before the delete"
    );
    backend.write(archived(leaving(12, false, &[])), at(5)).await;
    assert_eq!(holders(&backend, "u1").await, [1, 3], "taken off with our finalizer");

    assert_eq!(delete(&backend, "u1", 6).await, Deletion::Held);
    backend.write(version(13, true, &[1]).live(), at(7)).await;
    assert_eq!(
        holders(&backend, "u1").await,
        [3],
        "a restored cluster has its own again"
    );
    assert_eq!(tombstone(&backend, "u1").await, None);

    backend.write(archived(version(14, true, &[1])), at(8)).await;
    backend
        .write(version(15, true, &[]).store(Life::Deleted, Revive::Never), at(9))
        .await;
    assert_eq!(holders(&backend, "u1").await, [1, 3], "its holders release them");
    backend
        .write(version(16, true, &[2]).store(Life::Archived, Revive::FromAny), at(10))
        .await;
    assert_eq!(holders(&backend, "u1").await, [2, 3]);
}

async fn a_reference_that_comes_again_stays_as_it_was_placed(backend: Backend) {
    evict(&backend, &archived_object("u1")).await;
    place(&backend, "u1", 1, 1).await.expect("placed");
    let placed = references(&backend, "u1").await;
    let again = Widget {
        version: 11,
        finalizers: vec![holder(1).to_string()],
        ..archived_object("u1")
    };
    backend.write(again.archived(), at(2)).await;
    assert_eq!(references(&backend, "u1").await, placed);
}

async fn what_references_hold_is_not_purged(backend: Backend) {
    for uid in ["u1", "u2"] {
        evict(&backend, &archived_object(uid)).await;
    }
    place(&backend, "u2", 1, 1).await.expect("placed");
    let gone = Gone {
        deleted: true,
        archived: true,
        ..Gone::default()
    };
    let page = backend
        .store
        .gone_rows(&WIDGET, &gone, None, 10)
        .await
        .expect("readable");
    assert_eq!(page.iter().map(|row| &*row.name).collect::<Vec<_>>(), ["u1"]);
    let newest = backend
        .store
        .nth_newest_gone(&WIDGET, &gone, 1)
        .await
        .expect("readable");
    assert_eq!(newest.iter().map(|row| &*row.name).collect::<Vec<_>>(), ["u1"]);
    let both = ["u1", "u2"].map(Uid::from);
    let removed = backend
        .store
        .remove(&WIDGET, &gone, &both, at(9))
        .await
        .expect("removed");
    assert_eq!(removed, [Uid::from("u1")]);
    assert_eq!(backend.life("u2").await, Some(Life::Archived));
    assert_eq!(release(&backend, "u2", 1, 2).await, Released::Released);
    let removed = backend
        .store
        .remove(&WIDGET, &gone, &both, at(9))
        .await
        .expect("removed");
    assert_eq!(removed, [Uid::from("u2")]);
}
