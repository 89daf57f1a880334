//! Two changes at once to what holds an archived object: one of them is first, on one server and on two nodes of a
//! cluster.

use std::fmt::Debug;

use futures::future::join;
use kindex_query::Life;
use kindex_store::{Deletion, DirectError, Placed, Released};

use super::backend::Backend;
use super::direct::{archived_object, evict};
use super::references::{delete, place, references, release, tombstone};

pub(super) mod held_open;

scenarios!(
    a_reference_and_a_deletion_never_both_win,
    of_two_releases_of_the_last_references_one_takes_the_object_along,
    a_release_and_a_deletion_leave_nothing_that_waits,
);

async fn a_reference_and_a_deletion_never_both_win(backend: Backend) {
    one_of_both_wins(&backend, &backend, 25).await;
}

async fn of_two_releases_of_the_last_references_one_takes_the_object_along(backend: Backend) {
    one_takes_the_object_along(&backend, &backend, 10).await;
}

async fn a_release_and_a_deletion_leave_nothing_that_waits(backend: Backend) {
    nothing_waits(&backend, &backend, 10).await;
}

/// How many references an object has, whether it is archived, and since when it waits.
type View = (usize, Option<Life>, Option<i64>);

const GONE: View = (0, Some(Life::Deleted), None);

async fn view(node: &Backend, uid: &str) -> View {
    let references = references(node, uid).await.len();
    (references, node.life(uid).await, tombstone(node, uid).await)
}

/// What is there of an object, on each of two nodes.
async fn expect(nodes: [&Backend; 2], uid: &str, wanted: View) {
    for node in nodes {
        node.expect(uid, &wanted, async || view(node, uid).await).await;
    }
}

/// Both answers cannot be. Says what has become of the object.
async fn contradict(nodes: [&Backend; 2], uid: &str, both: impl Debug) -> ! {
    let [one, two] = nodes.map(|node| view(node, uid));
    panic!("{uid}: {both:?}, and then {:?} and {:?}", one.await, two.await)
}

/// An archived object with so many references, which both nodes have.
async fn archived(nodes: [&Backend; 2], uid: &str, holders: u32) {
    evict(nodes[0], &archived_object(uid)).await;
    for number in 1..=holders {
        place(nodes[0], uid, number, 1).await.expect("placed");
    }
    expect(nodes, uid, (holders as usize, Some(Life::Archived), None)).await;
}

pub(super) async fn one_of_both_wins(places: &Backend, deletes: &Backend, rounds: u32) {
    let nodes = [places, deletes];
    for round in 0..rounds {
        let uid = format!("u{round}");
        archived(nodes, &uid, 0).await;
        let (placed, deleted) = match round % 2 {
            0 => join(place(places, &uid, 1, 5), delete(deletes, &uid, 5)).await,
            _ => {
                let (deleted, placed) = join(delete(deletes, &uid, 5), place(places, &uid, 1, 5)).await;
                (placed, deleted)
            }
        };
        one_has_won(nodes, &uid, placed, deleted).await;
    }
}

async fn one_has_won(nodes: [&Backend; 2], uid: &str, placed: Result<Placed, DirectError>, deleted: Deletion) {
    let wanted = match (placed, deleted) {
        (Ok(Placed::New), Deletion::Held) => (1, Some(Life::Archived), Some(5)),
        (Err(DirectError::Deleted(_)), Deletion::Done) => GONE,
        both => contradict(nodes, uid, both).await,
    };
    expect(nodes, uid, wanted).await;
}

pub(super) async fn one_takes_the_object_along(first: &Backend, second: &Backend, rounds: u32) {
    let nodes = [first, second];
    for round in 0..rounds {
        let uid = format!("u{round}");
        archived(nodes, &uid, 2).await;
        assert_eq!(delete(first, &uid, 2).await, Deletion::Held);
        expect(nodes, &uid, (2, Some(Life::Archived), Some(2))).await;
        let both = join(release(first, &uid, 1, 3), release(second, &uid, 2, 3)).await;
        match both {
            (Released::Released, Released::Deleted) | (Released::Deleted, Released::Released) => {}
            both => contradict(nodes, &uid, both).await,
        }
        expect(nodes, &uid, GONE).await;
    }
}

/// The last reference is released while the object is deleted: it goes with the one or with the other.
pub(super) async fn nothing_waits(releases: &Backend, deletes: &Backend, rounds: u32) {
    let nodes = [releases, deletes];
    for round in 0..rounds {
        let uid = format!("u{round}");
        archived(nodes, &uid, 1).await;
        let (released, deleted) = match round % 2 {
            0 => join(release(releases, &uid, 1, 5), delete(deletes, &uid, 5)).await,
            _ => {
                let (deleted, released) = join(delete(deletes, &uid, 5), release(releases, &uid, 1, 5)).await;
                (released, deleted)
            }
        };
        match (released, deleted) {
            (Released::Released, Deletion::Done) | (Released::Deleted, Deletion::Held) => {}
            both => contradict(nodes, &uid, both).await,
        }
        expect(nodes, &uid, GONE).await;
    }
}
