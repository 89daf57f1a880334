//! Archived objects as holders: their references on others, also on objects in the cluster, are rows as long as they
//! are archived, and go with them.

use std::cell::Cell;

use futures::future::{join, join_all};
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;
use kindex_store::{Deletion, DeletionResults, Gone, HolderRow, Position, ReadVersion, Reference, Tombstone};

use super::backend::Backend;
use super::direct::{archived_object, evict, read};
use super::follower::{Follower, leaving, seen_as};
use super::outbox::{EVENTFUL, write};
use super::widget::{KEEPSAKE, NOTICE, WIDGET, at, soft_delete, widget};

scenarios!(
    a_reference_becomes_a_row_only_while_its_holder_is_archived,
    each_name_has_its_answer_and_each_row_stays_as_it_was_placed,
    an_archived_holder_goes_as_it_was_read_and_releases_what_it_holds,
    what_something_holds_is_not_taken_along,
    archived_holders_become_tombstones_and_go_on_holding,
    what_was_changed_since_it_was_read_becomes_no_tombstone,
    what_is_live_or_deleted_becomes_no_tombstone,
    many_become_tombstones_at_once_as_each_of_them_would,
    a_row_and_the_deletion_of_its_holder_never_both_win,
    of_many_rows_none_outlives_its_holder,
    a_holder_that_is_purged_out_of_the_archive_holds_nothing,
    what_waits_is_purged_once_it_is_deleted,
);

fn name(holder: &str) -> ReferenceName {
    ReferenceName::new("Widget", "example.com", holder).expect("a name")
}

/// Keeps the reference of a widget on the keepsake `k`, which SQL need not have.
async fn keep(backend: &Backend, holder: &str, second: i64) -> HolderRow {
    let (store, names, target) = (&backend.store, [name(holder)], Uid::from("k"));
    let target = (&KEEPSAKE, &target);
    let keep = async || store.keep_references(&WIDGET, &names, target, "jane", at(second)).await;
    backend.answer(keep).await.expect("kept")[0]
}

/// The holders of the keepsake.
async fn holders(backend: &Backend) -> Vec<String> {
    let uids = [Uid::from("k")];
    let found = backend.answer(async || backend.store.references(&KEEPSAKE, &uids).await);
    let found = found.await.expect("readable");
    found.into_iter().map(|one| one.name).collect()
}

fn as_read(objects: &[(&str, u64)]) -> Vec<ReadVersion> {
    let read = objects.iter().map(|(uid, version)| ReadVersion {
        uid: Uid::from(*uid),
        version: ResourceVersion(*version),
    });
    read.collect()
}

async fn delete_unheld(backend: &Backend, objects: &[(&str, u64)], second: i64) -> DeletionResults {
    let read = as_read(objects);
    let take = async || backend.store.delete_unheld(&WIDGET, &read, at(second)).await;
    backend.answer(take).await.expect("an answer")
}

async fn make_tombstones(backend: &Backend, kind: &Kind, objects: &[(&str, u64)], second: i64) -> Vec<Uid> {
    let made = backend.store.make_tombstones(kind, &as_read(objects), at(second)).await;
    made.expect("an answer")
}

/// In order of uid.
async fn tombstones(backend: &Backend, kind: &Kind) -> Vec<Tombstone> {
    let page = backend.store.tombstone_page(kind, None, 10).await;
    page.expect("readable")
}

fn tombstone(uid: &str, second: i64) -> Tombstone {
    Tombstone {
        uid: Uid::from(uid),
        requested: at(second),
    }
}

/// Somebody changes an archived widget, which has this version then.
async fn change(backend: &Backend, uid: &str) -> u64 {
    let mut wanted = archived_object(uid);
    wanted.spec = serde_json::json!({"group": "blue", "order": 1});
    let wanted = read(&wanted, ResourceVersion(10));
    let changed = backend.store.update_direct(&WIDGET, &wanted, at(2)).await;
    changed.expect("changed").metadata.resource_version.0
}

fn uids(names: &[&str]) -> Vec<Uid> {
    names.iter().map(|uid| Uid::from(*uid)).collect()
}

async fn a_reference_becomes_a_row_only_while_its_holder_is_archived(backend: Backend) {
    backend.write(widget("u1", "u1", 10).live(), at(0)).await;
    evict(&backend, &archived_object("u2")).await;
    for (holder, place) in [
        ("u1", HolderRow::Elsewhere),
        ("u2", HolderRow::Archived),
        ("u3", HolderRow::Elsewhere),
    ] {
        for second in [1, 2] {
            assert_eq!(keep(&backend, holder, second).await, place, "{holder}");
        }
    }
    assert_eq!(holders(&backend).await, [name("u2").to_string()]);
    let deleted = backend
        .store
        .delete_direct(&WIDGET, &Uid::from("u2"), None, at(3))
        .await;
    assert_eq!(deleted.expect("deleted"), Deletion::Done);
    assert_eq!(keep(&backend, "u2", 4).await, HolderRow::Deleted);
    backend.write(soft_delete("u1"), at(5)).await;
    assert_eq!(
        keep(&backend, "u1", 6).await,
        HolderRow::Elsewhere,
        "it was never archived"
    );
}

async fn each_name_has_its_answer_and_each_row_stays_as_it_was_placed(backend: Backend) {
    backend.write(widget("u1", "u1", 10).live(), at(0)).await;
    for uid in ["u2", "u3"] {
        evict(&backend, &archived_object(uid)).await;
    }
    backend.write(soft_delete("u2"), at(1)).await;
    let (names, target) = (["u3", "u2", "u1"].map(name), Uid::from("k"));
    for (by, second) in [("jane", 2), ("joe", 3)] {
        let kept = backend
            .store
            .keep_references(&WIDGET, &names, (&KEEPSAKE, &target), by, at(second));
        let places = [HolderRow::Archived, HolderRow::Deleted, HolderRow::Elsewhere];
        assert_eq!(kept.await.expect("kept"), places);
    }
    let row = Reference {
        kind: "Keepsake".to_owned(),
        uid: target.clone(),
        name: name("u3").to_string(),
        placed: at(2),
        placed_by: Some("jane".to_owned()),
    };
    let found = backend.store.references(&KEEPSAKE, &[target]).await;
    assert_eq!(found.expect("readable"), [row]);
}

async fn an_archived_holder_goes_as_it_was_read_and_releases_what_it_holds(backend: Backend) {
    for uid in ["u1", "u2", "u3"] {
        evict(&backend, &archived_object(uid)).await;
        keep(&backend, uid, 1).await;
    }
    let changed = change(&backend, "u2").await;
    backend.write(widget("u4", "u4", 10).live(), at(2)).await;

    let taken = delete_unheld(&backend, &[("u3", 10), ("u1", 10), ("u2", 10), ("u4", 10)], 3).await;
    assert_eq!((taken.deleted, taken.held), (uids(&["u1", "u3"]), Vec::new()));
    let lives = [
        ("u1", Life::Deleted),
        ("u2", Life::Archived),
        ("u3", Life::Deleted),
        ("u4", Life::Live),
    ];
    for (uid, life) in lives {
        assert_eq!(backend.life(uid).await, Some(life), "{uid}");
    }
    assert_eq!(holders(&backend).await, [name("u2").to_string()]);
    let again = delete_unheld(&backend, &[("u1", 10), ("u2", changed)], 4).await;
    assert_eq!(again.deleted, uids(&["u2"]));
    assert!(holders(&backend).await.is_empty());
}

async fn what_something_holds_is_not_taken_along(backend: Backend) {
    for uid in ["u1", "u2"] {
        evict(&backend, &archived_object(uid)).await;
        keep(&backend, uid, 1).await;
    }
    let place = |uid: &'static str| {
        let store = backend.store.clone();
        async move {
            let (uid, name) = (Uid::from(uid), name("other"));
            let placed = store.place_reference(&WIDGET, &uid, &name, "jane", at(1));
            placed.await.expect("placed")
        }
    };
    place("u1").await;
    let taken = delete_unheld(&backend, &[("u1", 10), ("u2", 10)], 2).await;
    assert_eq!((taken.deleted, taken.held), (uids(&["u2"]), uids(&["u1"])));
    assert_eq!(holders(&backend).await, [name("u1").to_string()], "it goes on holding");
    let waits = backend.store.tombstones(&WIDGET, &uids(&["u1"])).await;
    assert_eq!(waits.expect("readable").len(), 1);
    let released = backend
        .store
        .release_reference(&WIDGET, &Uid::from("u1"), &name("other"), at(3))
        .await;
    assert_eq!(released.expect("released"), kindex_store::Released::Deleted);
}

async fn archived_holders_become_tombstones_and_go_on_holding(backend: Backend) {
    let all = ["u1", "u2"];
    for uid in all {
        evict(&backend, &archived_object(uid)).await;
        keep(&backend, uid, 1).await;
    }
    let read = [("u2", 10), ("u1", 10)];
    assert_eq!(make_tombstones(&backend, &WIDGET, &read, 3).await, uids(&all));
    assert_eq!(
        tombstones(&backend, &WIDGET).await,
        [tombstone("u1", 3), tombstone("u2", 3)]
    );
    assert_eq!(holders(&backend).await, all.map(|uid| name(uid).to_string()));
    for uid in all {
        assert_eq!(backend.life(uid).await, Some(Life::Archived), "{uid}");
    }
    assert_eq!(make_tombstones(&backend, &WIDGET, &[], 4).await, uids(&[]));
    let taken = delete_unheld(&backend, &read, 5).await;
    assert_eq!(
        (taken.deleted, taken.held),
        (uids(&all), Vec::new()),
        "their deletions end"
    );
    assert_eq!(tombstones(&backend, &WIDGET).await, []);
    assert!(holders(&backend).await.is_empty());
}

/// A holder that has moved meanwhile names another object, and must not go with the one that it named before.
async fn what_was_changed_since_it_was_read_becomes_no_tombstone(backend: Backend) {
    for uid in ["u1", "u2"] {
        evict(&backend, &archived_object(uid)).await;
    }
    let changed = change(&backend, "u1").await;
    for version in [9, 10, changed + 1] {
        let made = make_tombstones(&backend, &WIDGET, &[("u1", version)], 3).await;
        assert_eq!(made, uids(&[]), "{version}");
    }
    assert_eq!(tombstones(&backend, &WIDGET).await, []);
    let made = make_tombstones(&backend, &WIDGET, &[("u1", 10), ("u2", 10)], 4).await;
    assert_eq!(made, uids(&["u2"]), "each is compared with its own version");
    let made = make_tombstones(&backend, &WIDGET, &[("u1", changed)], 5).await;
    assert_eq!(made, uids(&["u1"]));
    assert_eq!(
        tombstones(&backend, &WIDGET).await,
        [tombstone("u1", 5), tombstone("u2", 4)]
    );
}

async fn what_is_live_or_deleted_becomes_no_tombstone(backend: Backend) {
    let live = ["live", "erased"].map(|uid| widget(uid, uid, 10).live());
    backend.write_all(&live, at(0)).await;
    backend.write(soft_delete("erased"), at(1)).await;
    for uid in ["archived", "deleted"] {
        evict(&backend, &archived_object(uid)).await;
    }
    let (store, uid) = (&backend.store, Uid::from("deleted"));
    let deleted = store.delete_direct(&WIDGET, &uid, None, at(1)).await;
    assert_eq!(deleted.expect("deleted"), Deletion::Done);
    let read = ["live", "erased", "absent", "deleted", "archived"].map(|uid| (uid, 10));
    let made = make_tombstones(&backend, &WIDGET, &read, 2).await;
    assert_eq!(made, uids(&["archived"]));
    assert_eq!(tombstones(&backend, &WIDGET).await, [tombstone("archived", 2)]);
    let lives = [
        ("live", Some(Life::Live)),
        ("erased", Some(Life::Deleted)),
        ("absent", None),
        ("deleted", Some(Life::Deleted)),
        ("archived", Some(Life::Archived)),
    ];
    for (uid, life) in lives {
        assert_eq!(backend.life(uid).await, life, "{uid}");
    }
}

async fn many_become_tombstones_at_once_as_each_of_them_would(backend: Backend) {
    let backend = backend.with_registry(EVENTFUL).await;
    let (store, mut follower) = (&backend.store, Follower::default());
    let all = ["u1", "u2", "u3", "u4"];
    let archived = all.map(|uid| archived_object(uid).archived());
    write(&backend, &archived, 0).await;
    follower.read(&backend).await;
    let (held, alone) = (Uid::from("u2"), Uid::from("u4"));
    let placed = store
        .place_reference(&NOTICE, &held, &name("other"), "jane", at(1))
        .await;
    placed.expect("placed");
    let made = store
        .make_tombstone(&NOTICE, &alone, Some(ResourceVersion(10)), at(2))
        .await;
    made.expect("tombstones");
    assert_eq!(follower.read(&backend).await, [leaving("u4", 2)]);

    let read = ["u3", "u4", "u1", "u2", "u1"].map(|uid| (uid, 10));
    assert_eq!(make_tombstones(&backend, &NOTICE, &read, 3).await, uids(&all));
    // A page with room for one entry has all of a transaction.
    let entries = follower.page(&backend, 1).await.expect("the mark is known");
    let seen: Vec<_> = entries.iter().map(seen_as).collect();
    assert_eq!(seen, ["u1", "u2", "u3"].map(|uid| leaving(uid, 3)));
    assert_eq!(
        follower.positions,
        (1..=8_u64).collect::<Vec<_>>(),
        "what is named twice has one event"
    );
    let waiting = [
        tombstone("u1", 3),
        tombstone("u2", 3),
        tombstone("u3", 3),
        tombstone("u4", 2),
    ];
    assert_eq!(tombstones(&backend, &NOTICE).await, waiting);
    let changes = store.changes(&NOTICE, Position(0), 10).await.expect("readable");
    assert_eq!(
        changes,
        Some(Vec::new()),
        "no watch hears of a deletion before it happened"
    );

    assert_eq!(make_tombstones(&backend, &NOTICE, &read, 4).await, uids(&all));
    assert_eq!(tombstones(&backend, &NOTICE).await, waiting, "the first request counts");
    let head = store.head(&NOTICE).await.expect("readable");
    assert_eq!(head, follower.mark, "nothing changed");
}

async fn a_row_and_the_deletion_of_its_holder_never_both_win(backend: Backend) {
    no_row_outlasts_its_holder(&backend, &backend, 25).await;
}

/// On one server, or on two nodes of a cluster.
pub(super) async fn no_row_outlasts_its_holder(keeps: &Backend, takes: &Backend, rounds: u32) {
    for round in 0..rounds {
        let uid = format!("u{round}");
        evict(takes, &archived_object(&uid)).await;
        let life = async || keeps.life(&uid).await;
        keeps.expect(&uid, &Some(Life::Archived), life).await;
        let objects = [(&*uid, 10)];
        let (kept, taken) = match round % 2 {
            0 => join(keep(keeps, &uid, 5), delete_unheld(takes, &objects, 5)).await,
            _ => {
                let (taken, kept) = join(delete_unheld(takes, &objects, 5), keep(keeps, &uid, 5)).await;
                (kept, taken)
            }
        };
        assert_eq!(taken.deleted, uids(&[&uid]));
        assert_ne!(kept, HolderRow::Elsewhere);
        for node in [keeps, takes] {
            let left = async || holders(node).await;
            node.expect(&format!("{uid}: {kept:?}"), &Vec::new(), left).await;
        }
    }
}

async fn of_many_rows_none_outlives_its_holder(backend: Backend) {
    for round in 0..10 {
        let uid = format!("u{round}");
        evict(&backend, &archived_object(&uid)).await;
        let (names, is_over) = ([name(&uid)], Cell::new(false));
        let keep = async |stream: u32| {
            for number in 0.. {
                let target = Uid::from(&*format!("k{stream}-{number}"));
                let target = (&KEEPSAKE, &target);
                let kept = backend.store.keep_references(&WIDGET, &names, target, "jane", at(5));
                kept.await.expect("kept");
                if is_over.get() {
                    return;
                }
            }
        };
        let take = async {
            let taken = delete_unheld(&backend, &[(&uid, 10)], 5).await;
            is_over.set(true);
            taken.deleted
        };
        let (deleted, _) = join(take, join_all((0..4).map(keep))).await;
        assert_eq!(deleted, uids(&[&uid]));
        let left = backend.store.references_of_holder(&Uid::from(&*uid)).await;
        assert_eq!(left.expect("readable"), [], "{uid}");
    }
}

async fn a_holder_that_is_purged_out_of_the_archive_holds_nothing(backend: Backend) {
    for uid in ["u1", "u2"] {
        evict(&backend, &archived_object(uid)).await;
        keep(&backend, uid, 1).await;
    }
    let deleted = backend
        .store
        .delete_direct(&WIDGET, &Uid::from("u2"), None, at(2))
        .await;
    assert_eq!(deleted.expect("deleted"), Deletion::Done);
    let gone = Gone {
        deleted: true,
        archived: true,
        ..Gone::default()
    };
    let removed = backend.store.remove(&WIDGET, &gone, &uids(&["u1", "u2"]), at(9)).await;
    assert_eq!(removed.expect("removed").len(), 2);
    assert_eq!(
        holders(&backend).await,
        [name("u2").to_string()],
        "of what was deleted before, an operator decides"
    );
}

async fn what_waits_is_purged_once_it_is_deleted(backend: Backend) {
    evict(&backend, &archived_object("u1")).await;
    let (store, uid, other) = (&backend.store, Uid::from("u1"), name("other"));
    let placed = store.place_reference(&WIDGET, &uid, &other, "jane", at(1)).await;
    placed.expect("placed");
    let deleted = store.delete_direct(&WIDGET, &uid, None, at(2)).await;
    assert_eq!(deleted.expect("an answer"), Deletion::Held);
    let dropped = store.drop_reference(&WIDGET, &uid, &other).await;
    dropped.expect("dropped");
    let gone = Gone {
        archived: true,
        ..Gone::default()
    };
    let remove = async || {
        let found = store.gone_rows(&WIDGET, &gone, None, 10).await.expect("readable");
        let removed = store.remove(&WIDGET, &gone, &uids(&["u1"]), at(9)).await;
        (found.len(), removed.expect("removed"))
    };
    assert_eq!(remove().await, (0, Vec::new()), "its deletion is not over");
    backend.write(soft_delete("u1"), at(8)).await;
    assert_eq!(remove().await, (0, Vec::new()), "it is deleted, and no archived object");
    let deleted = Gone {
        deleted: true,
        ..Gone::default()
    };
    let removed = store.remove(&WIDGET, &deleted, &uids(&["u1"]), at(9)).await;
    assert_eq!(removed.expect("removed"), uids(&["u1"]));
    let waits = store.tombstone_page(&WIDGET, None, 10).await;
    assert_eq!(waits.expect("readable"), []);
}
