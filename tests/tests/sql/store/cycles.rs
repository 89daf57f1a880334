//! Archived objects that hold each other in a cycle, by rows and by fields, and the deletion service that takes them
//! as far as it can. The cluster has none of them, and notes what is reported.

use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::Uri;
use kindex_deletion::archive::Archive as _;
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::cluster::Cluster;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::metrics::Metrics;
use kindex_deletion::service::{Deletion, Options};
use kindex_harness::wait::eventually;
use kindex_model::object::Uid;
use kindex_query::Life;
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::absent::absent;
use super::backend::Backend;
use super::direct::evict;
use super::restored_holders::LINKED_KINDS;
use super::tombstones::{KINDS, LINKED, Linked, child, name, registry, seen};
use super::widget::{Widget, at};

scenarios!(
    archived_objects_that_go_with_each_other_end_once_a_reference_is_dropped,
    archived_objects_that_only_name_each_other_end_by_themselves,
    the_path_of_a_cycle_leads_through_the_cluster_and_the_archive,
    whoever_only_names_what_is_deleted_is_waited_for_while_others_hold_it,
    who_waits_for_an_object_is_found_by_rows_and_by_fields,
    a_field_of_a_live_object_that_goes_with_nothing_holds_only_what_bears_its_reference,
);

/// Each names the next one, and the last the first.
const CYCLE: [(&str, &str); 3] = [("a", "b"), ("b", "c"), ("c", "a")];

/// A live object. Its reference can be a finalizer, as its uid is one of Kubernetes.
const LIVE: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

/// The deletion service at work on an archive.
struct Service {
    said: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    work: JoinHandle<()>,
}

impl Service {
    fn over(linked: &Linked) -> Self {
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = said.clone();
        let router: Router = Router::new().fallback(move |at: Uri, body: String| {
            heard.lock().expect("nobody panics").push(body);
            ready(absent(&at))
        });
        let registry = registry(&KINDS);
        let archive = SqlArchive::new(linked.backend.store.clone(), registry, Kinds::of(&registry));
        let cluster = Cluster::new(Client::new(router, "default"), Kinds::of(&registry));
        let options = Options {
            blocked_after: Duration::ZERO,
        };
        let deletion = Deletion::new(cluster.with_archive(Arc::new(archive)), options, Metrics::default());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let work = tokio::spawn(async move { deletion.run(&stopped).await });
        Self { said, stop, work }
    }

    /// Until an event says that these hold each other, each the one before it.
    async fn until_path(&self, names: &[&str]) {
        let names = names.iter().map(|name| format!("widget.test.kindex shop/{name}"));
        let names: Vec<_> = names.collect();
        self.until_said(&format!("waits for itself: {}.", names.join(" is held by ")))
            .await;
    }

    async fn until_said(&self, what: &str) {
        eventually(what, async || {
            let said = self.said.lock().expect("nobody panics");
            said.iter().any(|said| said.contains(what))
        })
        .await;
    }

    async fn end(self) {
        self.stop.cancel();
        self.work.await.expect("it ends");
    }
}

async fn until_deleted(linked: &Linked, uids: &[&str]) {
    for uid in uids {
        eventually(&format!("{uid} is deleted"), async || {
            linked.backend.life(uid).await == Some(Life::Deleted)
        })
        .await;
    }
}

/// The uids of those that wait for an object.
async fn waiting_for(archive: &SqlArchive, uid: &str) -> Vec<String> {
    let found = archive.waiting_for(&seen(uid, uid)).await.expect("readable");
    let mut uids: Vec<String> = found.into_iter().map(|one| one.uid).collect();
    uids.sort_unstable();
    uids
}

/// Somebody deletes what is archived. Nothing has to hold it.
async fn delete(linked: &Linked, uid: &str) {
    let (store, uid) = (&linked.backend.store, Uid::from(uid));
    let made = store.make_tombstone(&LINKED, &uid, None, at(2)).await;
    made.expect("a tombstone");
}

/// As if a field alone held its target, where nobody can release anything.
async fn archived_objects_that_go_with_each_other_end_once_a_reference_is_dropped(backend: Backend) {
    let linked = Linked::on(backend).await;
    for (uid, named) in CYCLE {
        linked.evict(uid, named).await;
    }
    for (holder, target) in CYCLE {
        linked.hold(target, holder).await;
    }
    for (uid, _) in CYCLE {
        linked.delete_held(uid).await;
    }
    let service = Service::over(&linked);
    service.until_path(&["a", "c", "b", "a"]).await;
    for (uid, _) in CYCLE {
        assert_eq!(linked.backend.life(uid).await, Some(Life::Archived), "{uid} waits");
    }
    let dropped = linked.archive.release(&seen("a", "a"), &name("c")).await;
    dropped.expect("dropped");
    until_deleted(&linked, &["a", "b", "c"]).await;
    service.end().await;
}

/// The same where there is no reference that anybody could drop.
async fn archived_objects_that_only_name_each_other_end_by_themselves(backend: Backend) {
    let linked = Linked::on(backend).await;
    for (uid, named) in CYCLE {
        linked.evict(uid, named).await;
    }
    delete(&linked, "a").await;
    let service = Service::over(&linked);
    until_deleted(&linked, &["a", "b", "c"]).await;
    service.end().await;
}

/// A live widget that is deleted, between two archived ones. As if each half of a cycle were searched by itself.
async fn the_path_of_a_cycle_leads_through_the_cluster_and_the_archive(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("a", "l").await;
    linked.evict("c", "a").await;
    let live = Widget {
        deletion: Some("2024-03-01T00:00:00Z".to_owned()),
        ..child("l", "c")
    };
    linked.backend.write(live.live(), at(0)).await;
    linked.hold("l", "a").await;
    linked.hold("a", "c").await;
    let (store, uid) = (&linked.backend.store, Uid::from("c"));
    let placed = store.place_reference(&LINKED, &uid, &name("l"), "jane", at(1)).await;
    placed.expect("placed");
    for uid in ["a", "c"] {
        linked.delete_held(uid).await;
    }
    let service = Service::over(&linked);
    service.until_path(&["a", "c", "l", "a"]).await;
    service.until_path(&["c", "l", "a", "c"]).await;
    service.end().await;
}

/// As if whatever is deleted itself and has no reference held nothing.
async fn whoever_only_names_what_is_deleted_is_waited_for_while_others_hold_it(backend: Backend) {
    let linked = Linked::on(backend).await;
    for (uid, named) in [("t", ""), ("h", "t"), ("x", "")] {
        linked.evict(uid, named).await;
    }
    linked.hold("h", "x").await;
    linked.delete_held("h").await;
    delete(&linked, "t").await;
    let service = Service::over(&linked);
    service
        .until_said("still in use by widget.test.kindex shop/h (archived)")
        .await;
    assert_eq!(linked.backend.life("t").await, Some(Life::Archived));
    let dropped = linked.archive.release(&seen("h", "h"), &name("x")).await;
    dropped.expect("dropped");
    until_deleted(&linked, &["h", "t"]).await;
    service.end().await;
}

async fn who_waits_for_an_object_is_found_by_rows_and_by_fields(backend: Backend) {
    let linked = Linked::on(backend).await;
    for (uid, named) in [("named", ""), ("held", ""), ("t", "named"), ("other", "")] {
        linked.evict(uid, named).await;
    }
    let live = child("live", "named");
    linked.backend.write(live.live(), at(0)).await;
    for target in ["held", "live"] {
        linked.hold(target, "t").await;
    }
    let waiting = async |uid: &str| waiting_for(&linked.archive, uid).await;
    assert!(waiting("t").await.is_empty(), "nobody is deleted");
    linked.delete_held("held").await;
    delete(&linked, "named").await;
    assert_eq!(waiting("t").await, ["held", "named"]);
    let leaving = Widget {
        version: 11,
        deletion: Some("2024-03-01T00:00:00Z".to_owned()),
        ..live
    };
    linked.backend.write(leaving.live(), at(3)).await;
    assert_eq!(waiting("t").await, ["held", "live", "named"]);
    assert_eq!(waiting("live").await, ["named"], "it goes with that");
    assert!(waiting("other").await.is_empty());
}

/// Widgets that block what they name. As if whatever names an object held it, or only what goes with it.
async fn a_field_of_a_live_object_that_goes_with_nothing_holds_only_what_bears_its_reference(backend: Backend) {
    let registry = registry(&LINKED_KINDS);
    let backend = backend.with_registry(registry).await;
    let archive = SqlArchive::new(backend.store.clone(), registry, Kinds::of(&registry));
    backend.write(child(LIVE, "t").live(), at(0)).await;
    evict(&backend, &child("archived", "t")).await;
    let leaving = |version, finalizers| Widget {
        version,
        deletion: Some("2024-03-01T00:00:00Z".to_owned()),
        finalizers,
        ..child("t", "")
    };
    backend.write(leaving(10, Vec::new()).live(), at(0)).await;
    assert!(waiting_for(&archive, LIVE).await.is_empty(), "nothing has it");
    assert_eq!(
        waiting_for(&archive, "archived").await,
        ["t"],
        "its field holds without one"
    );
    let references = vec![name(LIVE).to_string()];
    backend.write(leaving(11, references).live(), at(1)).await;
    assert_eq!(waiting_for(&archive, LIVE).await, ["t"]);
}
