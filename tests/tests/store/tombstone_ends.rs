//! Tombstones of archived objects that the ingester closes, or brings back: they end with the rows that they are on.

use kindex_query::Life;
use kindex_store::{Deletion, Placed, Released};

use super::backend::Backend;
use super::direct::{evict, evicted};
use super::references::{delete, place, release, tombstone};
use super::widget::{Widget, at, soft_delete};

scenarios!(
    a_tombstone_goes_with_the_row_that_it_is_on,
    what_comes_back_to_the_archive_waits_for_nothing,
);

/// Archived, held, and deleted by somebody.
async fn make_tombstone_of(backend: &Backend, uid: &str) {
    evict(backend, &evicted(uid)).await;
    assert_eq!(place(backend, uid, 1, 1).await, Ok(Placed::New));
    assert_eq!(delete(backend, uid, 2).await, Deletion::Held);
    assert_eq!(tombstone(backend, uid).await, Some(2));
}

fn later(uid: &str) -> Widget {
    Widget {
        version: 11,
        ..evicted(uid)
    }
}

/// As if a tombstone stayed without a row that it is on, or went from a row that stays archived.
async fn a_tombstone_goes_with_the_row_that_it_is_on(backend: Backend) {
    for uid in ["gone", "archived", "other"] {
        make_tombstone_of(&backend, uid).await;
    }
    let gone = later("gone").store(Life::Deleted, false);
    let archived = later("archived").store(Life::Archived, false);
    backend.write_all(&[gone, archived], at(3)).await;
    let lives = [backend.life("gone").await, backend.life("archived").await];
    assert_eq!(lives, [Some(Life::Deleted), Some(Life::Archived)]);
    for (uid, since) in [("gone", None), ("archived", Some(2)), ("other", Some(2))] {
        assert_eq!(tombstone(&backend, uid).await, since, "{uid}");
    }
}

/// As if a deletion that is over went on with the object that is back: it would go with its last reference.
async fn what_comes_back_to_the_archive_waits_for_nothing(backend: Backend) {
    make_tombstone_of(&backend, "u1").await;
    backend.write(soft_delete("u1"), at(3)).await;
    backend.write(later("u1").store(Life::Archived, true), at(4)).await;
    assert_eq!(backend.life("u1").await, Some(Life::Archived));
    assert_eq!(tombstone(&backend, "u1").await, None);
    assert_eq!(place(&backend, "u1", 2, 5).await, Ok(Placed::New));
    for number in [1, 2] {
        assert_eq!(release(&backend, "u1", number, 6).await, Released::Released);
    }
    assert_eq!(backend.life("u1").await, Some(Life::Archived));
}
