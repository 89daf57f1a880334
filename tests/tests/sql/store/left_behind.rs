//! References that archived holders have left on the objects from which they were moved: the move has died, or the
//! holder was evicted right after it, or a finalizer became a row meanwhile. They go once these objects are deleted.

use std::future::ready;
use std::sync::{Arc, Mutex};

use axum::http::{Method, Uri};
use axum::{Json, Router};
use kindex_deletion::answers::Swept;
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::archive::{Archive as _, HolderScope};
use kindex_deletion::cluster::Cluster;
use kindex_deletion::cluster::carry_out::carry_out;
use kindex_deletion::cluster::outcome::Task;
use kindex_deletion::decide::{Archived, Step};
use kindex_deletion::kinds::Kinds;
use kindex_deletion::object::{KindName, Object};
use kindex_deletion::peer::{Peers, Transport};
use kindex_kube_client::other_service::Address;
use kindex_model::deletion::Phase;
use kindex_model::object::{Object as Text, Uid};
use kindex_query::Life;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::absent::absent;
use super::backend::Backend;
use super::direct::evict;
use super::restored_holders::{HOSTED, HOSTED_KINDS, registry};
use super::swept::sweep;
use super::tombstones::{self, KINDS, LINKED, Linked, child, name, seen};
use super::widget::{Widget, at, widget};

scenarios!(
    what_was_moved_in_the_archive_holds_its_former_target_until_that_is_deleted,
    a_holder_is_detached_only_as_it_was_read,
    what_a_live_holder_releases_is_no_row_either,
    what_was_left_at_another_service_is_released_once_what_is_named_instead_is_held,
);

const GROUP: &str = "region.example.com";
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
    assert!(stored.object.metadata.annotations[DETACHED].starts_with("t@"));
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
    let names = [name("moved"), name("unknown")];
    let found = linked.archive.archived(&names).await.expect("readable");
    let uids: Vec<&str> = found.iter().map(|holder| holder.uid.as_str()).collect();
    assert_eq!(uids, ["moved"]);
    assert!(found[0].version > moved.version, "it was written");
    assert_eq!(linked.archive.detach(&found[0], "t@2", at(4)).await, Ok(true));
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

/// As if the row of a holder that was archived once, and restored, held what the holder was moved from for ever.
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

/// A service that deletes the network `n`, which the widget holds, and whose network `m` it holds or not. Also what it
/// was asked to release.
async fn region(is_held: bool) -> (Address, Arc<Mutex<Vec<String>>>) {
    let version = json!({"groupVersion": "region.example.com/v1", "version": "v1"});
    let groups = json!({"kind": "APIGroupList", "apiVersion": "v1",
        "groups": [{"name": GROUP, "versions": [version], "preferredVersion": version}]});
    let resources = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "region.example.com/v1",
        "resources": [{"name": "networks", "singularName": "network", "namespaced": true, "kind": "Network",
            "verbs": ["get"]}]});
    let network = |uid: &str, state: &str, is_held: bool| {
        let held_by = is_held.then(|| json!({"name": name(HELD).to_string()}));
        let references: Vec<Value> = held_by.into_iter().collect();
        json!({"target": {"uid": uid, "state": state, "resourceVersion": "7"}, "references": references})
    };
    let (former, named) = (network("n", "Deleting", true), network("m", "Live", is_held));
    let released: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = released.clone();
    let router: Router = Router::new().fallback(move |method: Method, at: Uri| {
        if method == Method::DELETE {
            heard.lock().expect("nobody panics").push(at.to_string());
        }
        ready(Json(match at.path() {
            "/apis" => groups.clone(),
            "/apis/region.example.com/v1" => resources.clone(),
            path if path.contains("/shop/m/") => named.clone(),
            _ => former.clone(),
        }))
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = Address {
        name: "region".to_owned(),
        url: format!("http://{}", listener.local_addr().expect("an address")),
        ca_file: None,
        token_file: None,
    };
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, released)
}

/// What a sweep for the network `n` was asked to release, and whom it says to look at again.
async fn sweep_network(backend: &Backend, is_held: bool) -> (Vec<String>, Archived) {
    let (address, released) = region(is_held).await;
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
    let cluster = Cluster::new(Client::new(empty, "default"), kinds)
        .with_archive(Arc::new(archive))
        .beside(Peers::new([(network, address)], &Transport::Events));
    let outcome = carry_out(&cluster, &task, at(3)).await;
    assert_eq!(outcome.failed, None);
    let swept = outcome.swept.expect("an answer");
    let released = released.lock().expect("nobody panics").clone();
    (released, swept.archived)
}

/// As if the service of the network waited for ever, or as if the widget were left without any reference.
async fn what_was_left_at_another_service_is_released_once_what_is_named_instead_is_held(backend: Backend) {
    let backend = backend.with_registry(registry(&HOSTED_KINDS)).await;
    evict(&backend, &child(HELD, "m")).await;
    let remaining = |plain: Vec<String>| Archived::Remaining {
        plain,
        owned: Vec::new(),
    };
    let waits = format!("widget.test.kindex shop/{HELD} (archived)");
    assert_eq!(sweep_network(&backend, false).await, (vec![], remaining(vec![waits])));
    let reference = format!(
        "/api/v1/networks.region.example.com/shop/n/references/{}?resourceVersion=7",
        name(HELD)
    );
    assert_eq!(
        sweep_network(&backend, true).await,
        (vec![reference], remaining(Vec::new()))
    );
    let stored = backend.store.get_by_id(&HOSTED, &Uid::from(HELD)).await;
    let stored = stored.expect("readable").expect("a row").object;
    assert!(stored.metadata.annotations[DETACHED].starts_with("n@"));
}
