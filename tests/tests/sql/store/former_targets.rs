//! References of holders that use an object no more, as the graph asks SQL for them: archived objects hold what was
//! moved from them still, and other services release what was deleted out of the archive.

use std::sync::Arc;

use axum::response::IntoResponse as _;
use axum::{Json, Router};
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::archive::{Archive as _, PlacementOutcome};
use kindex_deletion::cluster::Cluster;
use kindex_deletion::cluster::carry_out::carry_out;
use kindex_deletion::cluster::outcome::Task;
use kindex_deletion::decide::Step;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::object::{KindName, Object};
use kindex_deletion::peer::{Peers, Transport};
use kindex_model::kind::Kind;
use kindex_model::object::{Object as Text, Uid};
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;
use kindex_store::Deletion;
use kube::Client;
use serde_json::json;

use super::backend::Backend;
use super::region::{GROUP, NETWORKS, Region};
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
    assert!(
        matches!(held, Ok(PlacementOutcome::By { is_new: true, .. })),
        "{held:?}"
    );
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
    assert!(
        matches!(held, Ok(PlacementOutcome::By { is_new: true, .. })),
        "{held:?}"
    );
    let restored = |version, finalizers| Widget {
        finalizers,
        ..widget("restored", "old", version).annotation("test/RestoredFrom", "old")
    };
    let references = vec![name(UNKNOWN).to_string()];
    linked.backend.write(restored(80, references).live(), at(2)).await;
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
    let keepsake = [child("k", "").archived()];
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
    let references = [&left, &unknown].map(|name| json!({"name": name.as_str()}));
    let network = json!({"target": {"uid": "n", "state": "Deleting"}, "references": references});
    let region = Region::start(move |_| Json(&network).into_response()).await;

    let (kinds, network) = (Kinds::of(&registry(&KINDS)), KindName::new(GROUP, "Network"));
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
        .beside(Peers::new([(network, region.address.clone())], &Transport::Events));
    let outcome = carry_out(&cluster, &task, at(2)).await;
    assert_eq!(outcome.failed, None);
    assert!(outcome.swept.is_some(), "the deletion goes on");
    assert_eq!(region.asked(), [format!("DELETE {NETWORKS}/blue/references/{left}")]);
}
