//! Tombstones of archived objects that are closed, or come back: they end with the rows that they are on.

use kindex_model::object::Uid;
use kindex_query::{Life, Revive, Select};
use kindex_store::{DeleteCollection, Deletion, Gone, Placed, Released};

use super::backend::Backend;
use super::direct::{archived_object, evict};
use super::references::{delete, place, release, tombstone};
use super::widget::{WIDGET, Widget, at, soft_delete, widget};

scenarios!(
    a_tombstone_goes_with_the_row_that_it_is_on,
    a_tombstone_goes_with_a_row_that_is_closed_without_a_version,
    what_is_deleted_at_once_leaves_no_tombstone,
    what_comes_back_to_the_archive_waits_for_nothing,
    a_tombstone_that_was_left_behind_is_purged_with_its_row,
);

/// Archived, held, and deleted by somebody.
async fn make_tombstone_of(backend: &Backend, uid: &str) {
    evict(backend, &archived_object(uid)).await;
    assert_eq!(place(backend, uid, 1, 1).await, Ok(Placed::New));
    assert_eq!(delete(backend, uid, 2).await, Deletion::Held);
    assert_eq!(tombstone(backend, uid).await, Some(2));
}

/// Closes its row, and has its tombstone stay, as an older program did. In memory it goes: nobody can bring it back.
async fn leave_behind(backend: &Backend, uid: &str) {
    backend.write(soft_delete(uid), at(3)).await;
    make_tombstone_of(backend, "spare").await;
    let moved = format!("UPDATE kindex_tombstone SET uid = '{uid}' WHERE uid = 'spare'");
    backend.rows(&moved).await;
}

fn later(uid: &str) -> Widget {
    Widget {
        version: 11,
        ..archived_object(uid)
    }
}

/// As if a tombstone stayed without a row that it is on, or went from a row that stays archived.
async fn a_tombstone_goes_with_the_row_that_it_is_on(backend: Backend) {
    for uid in ["gone", "archived", "other"] {
        make_tombstone_of(&backend, uid).await;
    }
    let gone = later("gone").store(Life::Deleted, Revive::Never);
    let archived = later("archived").archived();
    backend.write_all(&[gone, archived], at(3)).await;
    let lives = [backend.life("gone").await, backend.life("archived").await];
    assert_eq!(lives, [Some(Life::Deleted), Some(Life::Archived)]);
    for (uid, since) in [("gone", None), ("archived", Some(2)), ("other", Some(2))] {
        assert_eq!(tombstone(&backend, uid).await, since, "{uid}");
    }
}

/// As if it stayed until a purge where the object is gone from the cluster, or another one has its name.
async fn a_tombstone_goes_with_a_row_that_is_closed_without_a_version(backend: Backend) {
    for uid in ["closed", "replaced", "other"] {
        make_tombstone_of(&backend, uid).await;
    }
    let of_its_name = widget("new", "replaced", 11).live();
    backend.write_all(&[soft_delete("closed"), of_its_name], at(3)).await;
    for (uid, life, since) in [
        ("closed", Life::Deleted, None),
        ("replaced", Life::Deleted, None),
        ("other", Life::Archived, Some(2)),
    ] {
        let found = (backend.life(uid).await, tombstone(&backend, uid).await);
        assert_eq!(found, (Some(life), since), "{uid}");
    }
}

/// As if what nothing holds any more kept its tombstone where somebody deletes it once more, with `--deletion=false`.
async fn what_is_deleted_at_once_leaves_no_tombstone(backend: Backend) {
    for uid in ["one", "of-all"] {
        evict(&backend, &archived_object(uid)).await;
        let made = backend
            .store
            .make_tombstone(&WIDGET, &Uid::from(uid), None, at(2))
            .await;
        made.expect("a tombstone");
    }
    assert_eq!(delete(&backend, "one", 3).await, Deletion::Done);
    assert_eq!(tombstone(&backend, "of-all").await, Some(2));
    let all = DeleteCollection {
        select: Select::all(&WIDGET),
        everything: true,
        needs_tombstones: false,
        rows: 100,
    };
    let done = backend.store.delete_collection(&all, None, at(3)).await;
    let done = done.expect("deleted");
    assert_eq!((done.deleted.len(), done.held.len()), (1, 0));
    for uid in ["one", "of-all"] {
        let found = (backend.life(uid).await, tombstone(&backend, uid).await);
        assert_eq!(found, (Some(Life::Deleted), None), "{uid}");
    }
}

/// As if a deletion that is over went on with the object that is back: it would go with its last reference.
async fn what_comes_back_to_the_archive_waits_for_nothing(backend: Backend) {
    make_tombstone_of(&backend, "u1").await;
    leave_behind(&backend, "u1").await;
    backend
        .write(later("u1").store(Life::Archived, Revive::FromAny), at(4))
        .await;
    assert_eq!(backend.life("u1").await, Some(Life::Archived));
    assert_eq!(tombstone(&backend, "u1").await, None);
    assert_eq!(place(&backend, "u1", 2, 5).await, Ok(Placed::New));
    for number in [1, 2] {
        assert_eq!(release(&backend, "u1", number, 6).await, Released::Released);
    }
    assert_eq!(backend.life("u1").await, Some(Life::Archived));
}

/// As if it stayed for good, of an object of which nothing else is left.
async fn a_tombstone_that_was_left_behind_is_purged_with_its_row(backend: Backend) {
    make_tombstone_of(&backend, "u1").await;
    leave_behind(&backend, "u1").await;
    assert_eq!(release(&backend, "u1", 1, 4).await, Released::Released);
    let deleted = Gone {
        deleted: true,
        ..Gone::default()
    };
    let uids = [Uid::from("u1")];
    let removed = backend.store.remove(&WIDGET, &deleted, &uids, at(5)).await;
    assert_eq!(removed.expect("removed"), uids);
    assert_eq!(tombstone(&backend, "u1").await, None);
}
