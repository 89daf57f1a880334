//! References of holders that use an object no more, as the graph asks SQL for them: archived objects hold what was
//! moved from them still, and other services release what was deleted out of the archive.

use std::future::ready;
use std::sync::{Arc, Mutex};

use axum::http::{Method, Uri};
use axum::{Json, Router};
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::archive::{Archive as _, Held};
use kindex_deletion::cluster::Cluster;
use kindex_deletion::cluster::carry_out::carry_out;
use kindex_deletion::cluster::outcome::Task;
use kindex_deletion::decide::Step;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::object::{KindName, Object};
use kindex_deletion::peer::{Peers, Transport};
use kindex_kube_client::other_service::Address;
use kindex_model::kind::Kind;
use kindex_model::object::{Object as Text, Uid};
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;
use kindex_store::Deletion;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::backend::Backend;
use super::tombstones::{KINDS, LINKED, Linked, child, name, registry, seen};
use super::widget::{KEEPSAKE_PARTS, Widget, at, widget};

scenarios!(
    what_was_moved_from_an_archived_object_is_held_there_until_that_is_deleted,
    what_was_moved_from_an_object_in_the_cluster_is_held_there_by_its_row,
    what_was_moved_from_an_object_that_was_just_restored_is_held_by_the_new_one,
    nothing_is_held_by_what_its_fields_may_not_name_or_by_the_reference_of_another_object,
    another_service_releases_what_was_deleted_out_of_the_archive_though_nobody_else_holds_its_object,
);

/// Keepsakes that name widgets, which name no keepsakes.
static LINKING: Kind = Kind {
    references: LINKED.references,
    ..KEEPSAKE_PARTS
};
static BOTH: [&Kind; 2] = [&LINKED, &LINKING];

/// Of an object that was deleted out of the archive, and of one that nobody has.
const DELETED: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const UNKNOWN: &str = "11c215ab-f1cc-4f3b-b1c0-232ae8d852ce";

/// Whether an archived widget holds another one, whose field names `parent`.
async fn has_former(linked: &Linked, uid: &str, parent: &str) -> bool {
    let text = Text::parse_str(&child(uid, parent).text()).expect("an object");
    let object = Kinds::of(&registry(&KINDS)).read(&LINKED, &text);
    linked.archive.has_former(&object).await.expect("readable")
}

/// As if any row held an object, also that on what its field names, or as if a tombstone still did.
async fn what_was_moved_from_an_archived_object_is_held_there_until_that_is_deleted(backend: Backend) {
    let linked = Linked::on(backend).await;
    for uid in ["old", "new"] {
        linked.evict(uid, "").await;
    }
    assert!(!has_former(&linked, "h", "new").await, "nothing holds it");
    let held = linked.archive.hold(&seen("old", "old").key, &name("h"), at(1)).await;
    assert!(matches!(held, Ok(Held::By { is_new: true, .. })), "{held:?}");
    assert!(has_former(&linked, "h", "new").await);
    assert!(!has_former(&linked, "h", "old").await, "its field names that");
    assert!(
        !has_former(&linked, "another", "new").await,
        "the row is of another object"
    );
    linked.delete_held("old").await;
    assert!(!has_former(&linked, "h", "new").await, "it is being deleted");
}

/// As if only archived objects had rows: what an archived one holds has one in the cluster too, also once the holder is
/// restored.
async fn what_was_moved_from_an_object_in_the_cluster_is_held_there_by_its_row(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("h", "old").await;
    linked.backend.write(child("old", "").live(), at(0)).await;
    linked.hold("old", "h").await;
    assert!(has_former(&linked, "h", "new").await);
    assert!(!has_former(&linked, "h", "old").await, "its field names that");
    let leaving = Widget {
        version: 11,
        deletion: Some("2024-03-01T00:00:00Z".to_owned()),
        ..child("old", "")
    };
    linked.backend.write(leaving.live(), at(1)).await;
    assert!(!has_former(&linked, "h", "new").await, "it is being deleted");
}

/// As if an object that is neither archived any more nor seen in the cluster yet had held nothing.
async fn what_was_moved_from_an_object_that_was_just_restored_is_held_by_the_new_one(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("old", "").await;
    let held = linked
        .archive
        .hold(&seen("old", "old").key, &name(UNKNOWN), at(1))
        .await;
    assert!(matches!(held, Ok(Held::By { is_new: true, .. })), "{held:?}");
    let restored = |version, finalizers| Widget {
        finalizers,
        ..widget("restored", "old", version).annotation("test/RestoredFrom", "old")
    };
    let bears = vec![name(UNKNOWN).to_string()];
    linked.backend.write(restored(80, bears).live(), at(2)).await;
    assert_eq!(linked.backend.life("old").await, Some(Life::Deleted));
    assert!(has_former(&linked, UNKNOWN, "new").await);
    assert!(!has_former(&linked, UNKNOWN, "old").await, "its field names that");
    linked.backend.write(restored(81, Vec::new()).live(), at(3)).await;
    assert!(!has_former(&linked, UNKNOWN, "new").await, "it has released the holder");
}

/// As if an object had been moved from whatever has its reference, or its uid.
async fn nothing_is_held_by_what_its_fields_may_not_name_or_by_the_reference_of_another_object(backend: Backend) {
    let registry = registry(&BOTH);
    let backend = backend.with_registry(registry).await;
    let archive = SqlArchive::new(backend.store.clone(), registry, Kinds::of(&registry));
    let linked = Linked { backend, archive };
    linked.evict("old", "").await;
    let keepsake = [child("k", "").store(Life::Archived, false)];
    let store = linked.backend.store.clone();
    store.write(&LINKING, &keepsake, at(0)).await.expect("written");
    let place = async |kind: &Kind, uid: &str, name: &ReferenceName| {
        let placed = store.place_reference(kind, &Uid::from(uid), name, "jane", at(1)).await;
        placed.expect("placed");
    };
    place(&LINKING, "k", &name("h")).await;
    assert!(!has_former(&linked, "h", "new").await, "its fields name no keepsakes");
    let elsewhere = ReferenceName::new("Widget", "other.kindex", "h").expect("a name");
    place(&LINKED, "old", &elsewhere).await;
    assert!(
        !has_former(&linked, "h", "new").await,
        "another service has that holder"
    );
    place(&LINKED, "old", &name("h")).await;
    assert!(has_former(&linked, "h", "new").await);
}

/// A service that deletes a network with these references, and what it was asked to release.
async fn region(references: [&ReferenceName; 2]) -> (Address, Arc<Mutex<Vec<String>>>) {
    let version = json!({"groupVersion": "region.example.com/v1", "version": "v1"});
    let groups = json!({"kind": "APIGroupList", "apiVersion": "v1",
        "groups": [{"name": "region.example.com", "versions": [version], "preferredVersion": version}]});
    let resources = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "region.example.com/v1",
        "resources": [{"name": "networks", "singularName": "network", "namespaced": true, "kind": "Network",
            "verbs": ["get"]}]});
    let references: Vec<Value> = references.iter().map(|name| json!({"name": name.as_str()})).collect();
    let network = json!({"target": {"uid": "n", "state": "Deleting"}, "references": references});
    let released: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = released.clone();
    let router: Router = Router::new().fallback(move |method: Method, at: Uri| {
        if method == Method::DELETE {
            heard.lock().expect("nobody panics").push(at.path().to_owned());
        }
        ready(match at.path() {
            "/apis" => Json(groups.clone()),
            "/apis/region.example.com/v1" => Json(resources.clone()),
            _ => Json(network.clone()),
        })
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

/// A process that ended early has left the reference there. As if an object that nothing in the archive holds were
/// done with: who deletes it would wait for ever.
async fn another_service_releases_what_was_deleted_out_of_the_archive_though_nobody_else_holds_its_object(
    backend: Backend,
) {
    let linked = Linked::on(backend).await;
    linked.evict(DELETED, "").await;
    let (store, uid) = (&linked.backend.store, Uid::from(DELETED));
    let deleted = store.delete_direct(&LINKED, &uid, None, at(1)).await;
    assert_eq!(deleted.expect("an answer"), Deletion::Done);
    let (left, unknown) = (name(DELETED), name(UNKNOWN));
    let (address, released) = region([&left, &unknown]).await;

    let (kinds, network) = (
        Kinds::of(&registry(&KINDS)),
        KindName::new("region.example.com", "Network"),
    );
    let text = Text::parse_str(&widget("n", "blue", 5).text()).expect("an object");
    let task = Task {
        object: Object::read(network.clone(), &text.metadata, &kinds.names, false, Vec::new()),
        others: Vec::new(),
        step: Step::Sweep,
        target: None,
    };
    let nobody: Router = Router::new();
    let cluster = Cluster::new(Client::new(nobody, "default"), kinds)
        .with_archive(Arc::new(linked.archive))
        .beside(Peers::new([(network, address)], &Transport::Events));
    let outcome = carry_out(&cluster, &task, at(2)).await;
    assert_eq!(outcome.failed, None);
    assert!(outcome.swept.is_some(), "the deletion goes on");
    let references = "/api/v1/networks.region.example.com/shop/blue/references";
    assert_eq!(
        *released.lock().expect("nobody panics"),
        [format!("{references}/{left}")]
    );
}
