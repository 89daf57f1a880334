//! References that archived holders have left on the objects from which they were moved: the move has died, or the
//! holder was evicted right after it, or a finalizer became a row meanwhile. They go once these objects are deleted.

use std::future::ready;
use std::sync::Arc;

use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use kindex_deletion::answers::Swept;
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::archive::{Archive as _, Holder, HolderScope, Left};
use kindex_deletion::cluster::Cluster;
use kindex_deletion::cluster::carry_out::carry_out;
use kindex_deletion::cluster::outcome::Task;
use kindex_deletion::decide::{Archived, Step};
use kindex_deletion::kinds::Kinds;
use kindex_deletion::object::{KindName, Object};
use kindex_deletion::peer::{Peers, Transport};
use kindex_model::deletion::Phase;
use kindex_model::object::{Object as Text, Uid};
use kindex_query::Life;
use kube::Client;
use serde_json::{Value, json};

use super::absent::absent;
use super::backend::Backend;
use super::direct::evict;
use super::region::{GROUP, NETWORKS, Region};
use super::restored_holders::{HOSTED, HOSTED_KINDS, registry};
use super::swept::sweep;
use super::tombstones::{self, KINDS, LINKED, Linked, child, name, seen};
use super::widget::{Widget, at, widget};

scenarios!(
    what_was_moved_in_the_archive_holds_its_former_target_until_that_is_deleted,
    a_holder_is_detached_only_as_it_was_read,
    what_a_live_holder_releases_is_no_row_either,
    what_was_left_at_another_service_is_released_once_what_is_named_instead_is_held,
    a_release_that_another_service_denies_is_shown_and_writes_the_holder_once,
);

/// A holder: finalizers name only what has a UUID.
const HELD: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
/// Where an object says from which one it was detached.
const DETACHED: &str = "test.kindex/detached-from";

/// As if the object waited for ever for what names another one by now, or as if what somebody has placed by hand for an
/// object that names nothing held it no more.
async fn what_was_moved_in_the_archive_holds_its_former_target_until_that_is_deleted(backend: Backend) {
    let linked = Linked::on(backend).await;
    for (uid, parent) in [("new", ""), ("moved", "new"), ("placed", "")] {
        linked.evict(uid, parent).await;
    }
    for holder in ["moved", "placed"] {
        linked.hold("t", holder).await;
    }
    let waits = Swept {
        phase: Some(Phase::Deleting),
        archived: Archived::Remaining {
            plain: vec!["widget.test.kindex shop/placed (archived)".to_owned()],
            owned: Vec::new(),
        },
        goes_on: true,
        refused: None,
    };
    let (swept, _) = sweep(&linked, true).await;
    assert_eq!(swept.as_ref(), Some(&waits));
    assert_eq!(linked.rows("t").await, 1);
    let stored = linked.backend.store.get_by_id(&LINKED, &Uid::from("moved")).await;
    let stored = stored.expect("readable").expect("a row");
    assert_eq!(stored.life, Life::Archived);
    assert_eq!(stored.object.metadata.annotations[DETACHED], "t@deleting");
    let (swept, _) = sweep(&linked, true).await;
    assert_eq!(
        swept,
        Some(Swept {
            goes_on: false,
            ..waits
        })
    );
}

/// As if a move that is about to let the holder name the object again could do so after the release.
async fn a_holder_is_detached_only_as_it_was_read(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("moved", "new").await;
    linked.hold("t", "moved").await;
    let holders = linked.holders("t", HolderScope::Rows).await;
    let [moved] = &holders[..] else {
        panic!("one holder: {holders:?}");
    };
    for is_written in [true, false] {
        let written = linked.archive.detach(moved, "t@1", at(3)).await;
        assert_eq!(written, Ok(is_written));
    }
    let text = Text::parse_str(&child("t", "").text()).expect("an object");
    let target = Kinds::of(&tombstones::registry(&KINDS)).read(&LINKED, &text);
    let read = async || {
        let left = linked.archive.left(&target, &[name("moved"), name("unknown")]).await;
        let Left { deleted, archived } = left.expect("readable");
        assert!(deleted.is_empty(), "{deleted:?}");
        let [moved]: [Holder; 1] = archived.try_into().expect("one holder");
        moved
    };
    let found = read().await;
    assert_eq!((found.uid.as_str(), found.version > moved.version), ("moved", true));
    for (former, is_new) in [("t@1", false), ("t@2", true)] {
        assert_eq!(linked.archive.detach(&found, former, at(4)).await, Ok(true));
        assert_eq!(read().await.version > found.version, is_new, "{former}");
    }
}

/// A cluster in which the holder names `new`, which it holds, and holds `t` still.
fn moved_in_the_cluster() -> Client {
    let text = |uid: &str, parent: &str, finalizers: Vec<String>| {
        let object = Widget {
            finalizers,
            ..child(uid, parent)
        };
        serde_json::from_str::<Value>(&object.text()).expect("JSON")
    };
    let held = || vec![name(HELD).to_string()];
    let objects: Router = Router::new().fallback(move |method: Method, at: Uri| {
        let (_, name) = at.path().rsplit_once('/').expect("the path of an object");
        let is_released = name == "t" && method == Method::PATCH;
        ready(Json(match name {
            HELD => text(HELD, "new", Vec::new()),
            other => text(other, "", if is_released { Vec::new() } else { held() }),
        }))
    });
    Client::new(objects, "default")
}

/// As if the row of a holder that was archived once, and restored, held what the holder was moved from until that was
/// deleted.
async fn what_a_live_holder_releases_is_no_row_either(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict(HELD, "new").await;
    linked.backend.write(child("t", "").live(), at(0)).await;
    linked.hold("t", HELD).await;
    let registry = tombstones::registry(&KINDS);
    let kinds = Kinds::of(&registry);
    let holder = Text::parse_str(&child(HELD, "new").text()).expect("an object");
    let task = Task {
        object: kinds.read(&LINKED, &holder),
        others: Vec::new(),
        step: Step::Release(seen("t", "t")),
        target: None,
    };
    let archive = SqlArchive::new(linked.backend.store.clone(), registry, kinds.clone());
    let cluster = Cluster::new(moved_in_the_cluster(), kinds).with_archive(Arc::new(archive));
    assert_eq!(linked.rows("t").await, 1);
    let outcome = carry_out(&cluster, &task, at(3)).await;
    assert_eq!(outcome.failed, None);
    assert_eq!(linked.rows("t").await, 0);
}

/// What is known of the network that is held, as `Some(held)`, of the one that the holder names.
fn networks(named: Option<bool>, release: StatusCode) -> impl Fn(&Uri) -> Response + Clone + Send + Sync + 'static {
    let network = |uid: &str, state: &str, is_held: bool| {
        let held_by = is_held.then(|| json!({"name": name(HELD).to_string()}));
        let references: Vec<Value> = held_by.into_iter().collect();
        json!({"target": {"uid": uid, "state": state, "resourceVersion": "7"}, "references": references})
    };
    let (former, named) = (
        network("n", "Deleting", true),
        named.map(|held| network("m", "Live", held)),
    );
    move |at| match at.path() {
        path if path.contains("/shop/m/") => match &named {
            Some(named) => Json(named).into_response(),
            None => absent(&format!("{NETWORKS}/m").parse().expect("an address")),
        },
        path if path.contains("/shop/n/references/") && release != StatusCode::OK => {
            let denied = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
                "code": release.as_u16(), "message": "no"});
            (release, Json(denied)).into_response()
        }
        _ => Json(&former).into_response(),
    }
}

/// Whom a sweep for the network `n` of this service says to look at again.
async fn sweep_network(backend: &Backend, region: &Region) -> Vec<String> {
    let registry = registry(&HOSTED_KINDS);
    let kinds = Kinds::of(&registry);
    let network = KindName::new(GROUP, "Network");
    let text = Text::parse_str(&widget("n", "n", 5).text()).expect("an object");
    let task = Task {
        object: Object::read(network.clone(), &text.metadata, &kinds.names, false, Vec::new()),
        others: Vec::new(),
        step: Step::Sweep,
        target: None,
    };
    let empty: Router = Router::new().fallback(|at: Uri| ready(absent(&at)));
    let archive = SqlArchive::new(backend.store.clone(), registry, kinds.clone());
    let peers = Peers::new([(network, region.address.clone())], &Transport::Events);
    let cluster = Cluster::new(Client::new(empty, "default"), kinds)
        .with_archive(Arc::new(archive))
        .beside(peers);
    let outcome = carry_out(&cluster, &task, at(3)).await;
    assert_eq!(outcome.failed, None);
    match outcome.swept.expect("an answer").archived {
        Archived::Remaining { plain, owned } if owned.is_empty() => plain,
        other => panic!("nothing is owned: {other:?}"),
    }
}

/// The version and the annotation of the archived holder.
async fn stored(backend: &Backend) -> (u64, Option<String>) {
    let stored = backend.store.get_by_id(&HOSTED, &Uid::from(HELD)).await;
    let metadata = stored.expect("readable").expect("a row").object.metadata;
    (metadata.resource_version.0, metadata.annotations.get(DETACHED).cloned())
}

fn reference_on(network: &str) -> String {
    format!("{NETWORKS}/{network}/references/{}", name(HELD))
}

/// As if the service of the network waited for ever, also for what a holder names without a reference that nobody else
/// places. Or as if the widget were left without any reference.
async fn what_was_left_at_another_service_is_released_once_what_is_named_instead_is_held(backend: Backend) {
    let backend = backend.with_registry(registry(&HOSTED_KINDS)).await;
    evict(&backend, &child(HELD, "m")).await;
    let holder = format!("widget.test.kindex shop/{HELD} (archived)");
    let placed = format!("PUT {}", reference_on("m"));

    let region = Region::start(networks(None, StatusCode::OK)).await;
    let waits = format!("{holder} (waits for network.region.example.com shop/m to take its reference)");
    assert_eq!(sweep_network(&backend, &region).await, [waits]);
    assert_eq!(region.asked(), [placed.as_str()]);
    assert_eq!(stored(&backend).await.1, None);

    let region = Region::start(networks(Some(false), StatusCode::OK)).await;
    assert!(sweep_network(&backend, &region).await.is_empty());
    let released = format!("DELETE {}?resourceVersion=7", reference_on("n"));
    assert_eq!(region.asked(), [placed, released]);
    assert_eq!(stored(&backend).await.1.as_deref(), Some("n@deleting"));
}

/// As if a service that denies the release ended the sweep, or as if each sweep wrote the holder once more.
async fn a_release_that_another_service_denies_is_shown_and_writes_the_holder_once(backend: Backend) {
    let backend = backend.with_registry(registry(&HOSTED_KINDS)).await;
    evict(&backend, &child(HELD, "m")).await;
    let region = Region::start(networks(Some(true), StatusCode::FORBIDDEN)).await;
    let waits = format!(
        "widget.test.kindex shop/{HELD} (archived) (waits for the service region at {})",
        region.address.url
    );
    assert_eq!(sweep_network(&backend, &region).await, [waits.as_str()]);
    let written = stored(&backend).await;
    assert_eq!(written.1.as_deref(), Some("n@deleting"));
    assert_eq!(sweep_network(&backend, &region).await, [waits.as_str()]);
    assert_eq!(stored(&backend).await, written, "nothing is written twice");
}
