//! Retention rules over archived objects that hold objects of another service, over every database: they are deleted
//! first, and their rows go after that.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Uri;
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::cluster::Cluster;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::metrics::Metrics;
use kindex_deletion::service::{Deletion, Options as Service};
use kindex_harness::wait::eventually;
use kindex_maintenance::purge::{Mode, Options, Purged, purge};
use kindex_model::kind::Retention;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_query::Life;
use kindex_store::ReadVersion;
use kindex_store::progress::NoProgress;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::absent::absent;
use super::archived_meanwhile::region;
use super::backend::Backend;
use super::direct::{self, evict};
use super::restored_holders::{HOSTED, HOSTED_KINDS, registry};
use super::tombstones::{child, name};
use super::widget::at;

scenarios!(
    what_holds_an_object_elsewhere_releases_it_before_its_row_goes,
    what_others_hold_is_not_deleted,
    what_was_rewound_is_deleted_and_what_cannot_be_read_is_counted,
    those_that_were_deleted_push_none_out_of_the_last_ones,
);

const ALL: Retention = Retention {
    keep_days: None,
    keep_last_per_namespace: None,
    state_column: None,
    states: &[],
    evicted: true,
};

async fn hosted(backend: Backend, uids: &[&str]) -> Backend {
    let backend = backend.with_registry(registry(&HOSTED_KINDS)).await;
    for uid in uids {
        evict(&backend, &child(uid, "n")).await;
    }
    backend
}

async fn purged(backend: &Backend, rule: &Retention, mode: Mode, has_deletion: bool) -> Purged {
    let options = Options {
        mode,
        has_deletion,
        ..Options::default()
    };
    let purged = purge(backend.store.as_ref(), &HOSTED, rule, &options, &NoProgress).await;
    purged.expect("the database answers")
}

/// The numbers of rows that went, of deleted objects and archived ones, and of objects that are to be deleted.
fn counts(purged: &Purged) -> [u64; 3] {
    [purged.deleted, purged.evicted, purged.requested]
}

fn read(uid: &str) -> ReadVersion {
    ReadVersion {
        uid: Uid::from(uid),
        version: ResourceVersion(10),
    }
}

async fn waiting(backend: &Backend, uids: &[&str]) -> usize {
    let uids: Vec<Uid> = uids.iter().map(|uid| Uid::from(*uid)).collect();
    let tombstones = backend.store.tombstones(&HOSTED, &uids).await;
    tombstones.expect("readable").len()
}

/// As if its row went at once: its reference would hold the network for ever. It was changed in SQL before, which gave
/// it a version of its own.
async fn what_holds_an_object_elsewhere_releases_it_before_its_row_goes(backend: Backend) {
    let backend = hosted(backend, &["h"]).await;
    let wanted = direct::read(&child("h", "n").label("tier", "gold"), ResourceVersion(10));
    let changed = backend.store.update_direct(&HOSTED, &wanted, at(1)).await;
    assert!(changed.expect("changed").metadata.resource_version > ResourceVersion(10));
    let stale = backend.store.request_deletions(&HOSTED, &[read("h")], at(2)).await;
    assert!(stale.expect("an answer").is_empty(), "it was changed since it was read");
    let kept = purged(&backend, &ALL, Mode::Remove, false).await;
    assert_eq!(counts(&kept), [0, 0, 0], "nobody would carry its deletion out");
    let dry = purged(&backend, &ALL, Mode::DryRun, true).await;
    assert_eq!((counts(&dry), waiting(&backend, &["h"]).await), ([0, 0, 1], 0));
    assert_eq!(purged(&backend, &ALL, Mode::Remove, true).await, dry);
    let again = purged(&backend, &ALL, Mode::Remove, true).await;
    assert_eq!((counts(&again), waiting(&backend, &["h"]).await), ([0, 0, 0], 1));
    assert_eq!(backend.life("h").await, Some(Life::Archived));

    let (peers, sent) = region().await;
    let empty: Router = Router::new().fallback(|at: Uri| ready(absent(&at)));
    let registry = registry(&HOSTED_KINDS);
    let kinds = Kinds::of(&registry);
    let archive = SqlArchive::new(backend.store.clone(), registry, kinds.clone());
    let cluster = Cluster::new(Client::new(empty, "default"), kinds);
    let cluster = cluster.beside(peers).with_archive(Arc::new(archive));
    let options = Service {
        blocked_after: Duration::ZERO,
    };
    let deletion = Deletion::new(cluster, options, Metrics::default());
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let work = tokio::spawn(async move { deletion.run(&stopped).await });
    let is_deleted = async || backend.life("h").await == Some(Life::Deleted);
    eventually("its deletion to end", is_deleted).await;
    stop.cancel();
    work.await.expect("it ends");
    let released = format!("/api/v1/networks.region.example.com/shop/n/references/{}", name("h"));
    let sent = sent.lock().expect("nobody panics").clone();
    let is_release = |one: &String| one.starts_with("DELETE ") && one.contains(&released);
    assert!(sent.iter().any(is_release), "{sent:?}");

    let last = purged(&backend, &ALL, Mode::Remove, true).await;
    assert_eq!((counts(&last), backend.life("h").await), ([1, 0, 0], None));
}

/// As if whoever begins to use it meanwhile were deleted with it.
async fn what_others_hold_is_not_deleted(backend: Backend) {
    let backend = hosted(backend, &["held", "free"]).await;
    let uid = Uid::from("held");
    let placed = backend
        .store
        .place_reference(&HOSTED, &uid, &name("x"), "jane", at(1))
        .await;
    placed.expect("placed");
    let found_before = [read("free"), read("held")];
    let made = backend.store.request_deletions(&HOSTED, &found_before, at(2)).await;
    assert_eq!(made.expect("an answer"), [Uid::from("free")]);
    let later = purged(&backend, &ALL, Mode::Remove, true).await;
    assert_eq!(
        counts(&later),
        [0, 0, 0],
        "one is held, and the other one is being deleted"
    );
    assert_eq!(waiting(&backend, &["free", "held"]).await, 1);
}

/// As if both stayed for ever, and nobody heard of it. A rewound row has another version than its text.
async fn what_was_rewound_is_deleted_and_what_cannot_be_read_is_counted(backend: Backend) {
    let backend = hosted(backend, &["broken", "rewound"]).await;
    let rewound = backend.store.rewind(&HOSTED, &[Uid::from("rewound")], at(1)).await;
    rewound.expect("rewound");
    let by_hand = "UPDATE widget SET json = '{}' WHERE uid = 'broken'";
    let broken = u64::from(backend.rows(by_hand).await.is_some());
    let dry = purged(&backend, &ALL, Mode::DryRun, true).await;
    assert_eq!((counts(&dry), dry.skipped), ([0, 0, 2], 0));
    let first = purged(&backend, &ALL, Mode::Remove, true).await;
    assert_eq!((counts(&first), first.skipped), ([0, 0, 2 - broken], broken));
    assert_eq!(waiting(&backend, &["rewound"]).await, 1);
    let again = purged(&backend, &ALL, Mode::Remove, true).await;
    assert_eq!((counts(&again), again.skipped), ([0, 0, 0], broken));
}

async fn those_that_were_deleted_push_none_out_of_the_last_ones(backend: Backend) {
    let uids = ["u1", "u2", "u3"];
    let backend = hosted(backend, &uids).await;
    let rule = Retention {
        keep_last_per_namespace: Some(1),
        ..ALL
    };
    let first = purged(&backend, &rule, Mode::Remove, true).await;
    assert_eq!((counts(&first), waiting(&backend, &uids).await), ([0, 0, 2], 2));
    for (uid, second) in [("u1", 3), ("u2", 4)] {
        let taken = backend.store.delete_unheld(&HOSTED, &[read(uid)], at(second)).await;
        assert_eq!(taken.expect("an answer").deleted, [Uid::from(uid)]);
    }
    let second = purged(&backend, &rule, Mode::Remove, true).await;
    assert_eq!(counts(&second), [1, 0, 0], "one of those that were deleted stays, too");
    assert_eq!(backend.life("u3").await, Some(Life::Archived));
    let third = purged(&backend, &rule, Mode::Remove, true).await;
    assert_eq!(counts(&third), [0, 0, 0]);
}
