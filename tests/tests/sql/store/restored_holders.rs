//! Archived objects that hold others and are restored, over every database: what the old object held, the new one holds
//! from the moment on in which the old row is closed, whoever closes it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::archive::{Archive, Left};
use kindex_deletion::kinds::Kinds;
use kindex_deletion::object::{KindName, Object as Node};
use kindex_kube_client::CreateApi;
use kindex_maintenance::restore::{Mode, Outcome, Restorer};
use kindex_maintenance::retries::RetryBudget;
use kindex_maintenance::sides::Sides;
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::reference::{Named, OnDelete, Reference as Field, Service, Target};
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;
use kindex_store::{HolderRow, ReadVersion, Reference, SqlOnlyWrite, SqlOnlyWritten};
use serde_json::json;

use super::backend::Backend;
use super::shelf::Shelf;
use super::widget::{KEEPSAKE, KEEPSAKE_PARTS, PARTS, REGISTRY, Widget, at, soft_delete, widget};

scenarios!(
    what_an_archived_object_holds_the_restored_one_holds,
    an_ingester_that_closes_the_row_hands_over_what_it_held,
    nothing_goes_over_to_an_object_that_took_the_name_or_is_gone,
    a_reference_that_is_a_finalizer_still_is_a_row_before,
    an_object_that_the_cluster_refuses_goes_on_holding_what_it_names,
    a_reference_on_an_object_that_no_cluster_has_is_a_row_before,
    a_deletion_that_found_the_holder_by_its_field_waits_for_the_restored_one,
    what_is_being_deleted_in_the_archive_is_refused_until_it_is_gone,
    under_another_name_a_reference_at_another_service_would_be_lost,
    at_another_service_the_former_reference_stays_until_the_new_one_is_there,
);

const PARENT: Field = Field {
    name: "parent",
    targets: &[Target {
        service: None,
        group: "test.kindex",
        kind: "Widget",
    }],
    kind_column: None,
    path: &["spec", "group"],
    named: Named::Name,
    columns: &["group"],
    owned: false,
    on_delete: OnDelete::Block,
};
/// Widgets that name each other.
pub(super) static LINKED: Kind = Kind {
    references: &[PARENT],
    ..PARTS
};

static REGION: Service = Service {
    name: "region",
    group: "region.example.com",
    cluster_scoped: &[],
    plurals: &[],
    refers_to: &[],
    address: "https://region.example.com",
    ca_file: None,
    token_file: None,
};
/// Widgets that name networks of another service.
pub(super) static HOSTED: Kind = Kind {
    references: &[Field {
        targets: &[Target {
            service: Some(&REGION),
            group: "region.example.com",
            kind: "Network",
        }],
        ..PARENT
    }],
    ..PARTS
};

/// Keepsakes that no cluster has.
static KEPT: Kind = Kind {
    cluster: false,
    ..KEEPSAKE_PARTS
};
/// Widgets that name such keepsakes.
static KEEPING: Kind = Kind {
    references: &[Field {
        targets: &[Target {
            service: None,
            group: "test.kindex",
            kind: "Keepsake",
        }],
        ..PARENT
    }],
    ..PARTS
};

pub(super) static LINKED_KINDS: [&Kind; 2] = [&LINKED, &KEEPSAKE];
static KEEPING_KINDS: [&Kind; 2] = [&KEEPING, &KEPT];
pub(super) static HOSTED_KINDS: [&Kind; 1] = [&HOSTED];

pub(super) fn registry(kinds: &'static [&'static Kind]) -> Registry {
    Registry {
        kinds,
        queries: &[],
        ..REGISTRY
    }
}

/// In version 70, and names another one.
pub(super) fn old() -> Widget {
    widget("u1", "a", 70).spec(json!({"group": "t"}))
}

pub(super) fn name(holder: &str) -> ReferenceName {
    ReferenceName::new("Widget", "test.kindex", holder).expect("a name")
}

async fn restored(backend: &Backend, shelf: &Arc<Shelf>, mode: Mode) -> Outcome {
    restored_as(backend, shelf, &LINKED_KINDS, mode, None).await
}

async fn restored_as(
    backend: &Backend,
    shelf: &Arc<Shelf>,
    kinds: &'static [&'static Kind],
    mode: Mode,
    new_name: Option<&str>,
) -> Outcome {
    restored_through(backend, shelf, shelf.as_ref(), kinds, mode, new_name).await
}

/// Restores the widget, which is of the first kind, with objects created through `creator`.
pub(super) async fn restored_through(
    backend: &Backend,
    shelf: &Arc<Shelf>,
    creator: &dyn CreateApi,
    kinds: &'static [&'static Kind],
    mode: Mode,
    new_name: Option<&str>,
) -> Outcome {
    let sides = Sides {
        platform: REGISTRY.platform,
        cluster: shelf.clone(),
        storage: backend.store.clone(),
    };
    let restorer = Restorer {
        sides: &sides,
        creator,
        registry: &registry(kinds),
        mode,
        new_name,
        retry_budget: RetryBudget(Duration::ZERO),
    };
    let object = Object::parse_str(&old().text()).expect("an object");
    let done = restorer.restore(kinds[0], &object).await;
    done.expect("both sides answer").outcome
}

pub(super) fn new(name: &str) -> Outcome {
    let new_uid = format!("new-{name}");
    Outcome::Restored { new_uid }
}

pub(super) fn reason(outcome: Outcome) -> String {
    match outcome {
        Outcome::Refused { reason } => reason,
        other => panic!("{other:?}"),
    }
}

/// The archived widget holds the keepsake `k`.
async fn hold(backend: &Backend) {
    backend.write(old().archived(), at(1)).await;
    let (names, target) = ([name("u1")], Uid::from("k"));
    let target = (&KEEPSAKE, &target);
    let kept = backend
        .store
        .keep_references(&LINKED, &names, target, "jane", at(2))
        .await;
    assert_eq!(kept.expect("kept"), [HolderRow::Archived]);
}

async fn rows(backend: &Backend, kind: &Kind, uid: &str) -> Vec<Reference> {
    let found = backend.store.references(kind, &[Uid::from(uid)]).await;
    found.expect("readable")
}

pub(super) async fn holders(backend: &Backend, kind: &Kind, uid: &str) -> Vec<String> {
    let rows = rows(backend, kind, uid).await;
    rows.into_iter().map(|row| row.name).collect()
}

fn as_read(uid: &str, version: u64) -> [ReadVersion; 1] {
    [ReadVersion {
        uid: Uid::from(uid),
        version: ResourceVersion(version),
    }]
}

async fn what_an_archived_object_holds_the_restored_one_holds(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    hold(&backend).await;
    assert_eq!(restored(&backend, &shelf, Mode::Create).await, new("a"));
    let held = Reference {
        kind: "Keepsake".to_owned(),
        uid: Uid::from("k"),
        name: name("new-a").to_string(),
        placed: at(2),
        placed_by: Some("jane".to_owned()),
    };
    assert_eq!(rows(&backend, &KEEPSAKE, "k").await, [held]);
    assert_eq!(backend.life("u1").await, Some(Life::Deleted));
}

async fn an_ingester_that_closes_the_row_hands_over_what_it_held(backend: Backend) {
    hold(&backend).await;
    let back = widget("new-a", "a", 80).annotation("test/RestoredFrom", "u1");
    backend.write(back.live(), at(3)).await;
    assert_eq!(backend.life("u1").await, Some(Life::Deleted));
    assert_eq!(
        holders(&backend, &KEEPSAKE, "k").await,
        [name("new-a").to_string()],
        "nobody has to end the restoration for that"
    );
}

async fn nothing_goes_over_to_an_object_that_took_the_name_or_is_gone(backend: Backend) {
    hold(&backend).await;
    backend.write(widget("u2", "a", 80).live(), at(3)).await;
    let former = [name("u1").to_string()];
    assert_eq!(holders(&backend, &KEEPSAKE, "k").await, former);
    let back = widget("new-b", "b", 90).annotation("test/RestoredFrom", "u1");
    backend.write(back.live(), at(4)).await;
    assert_eq!(
        holders(&backend, &KEEPSAKE, "k").await,
        former,
        "its row is not closed by this"
    );
    backend.write(soft_delete("new-b"), at(5)).await;
    let late = Widget { version: 89, ..back };
    backend.write_all(&[soft_delete("u1"), late.live()], at(6)).await;
    assert_eq!(
        holders(&backend, &KEEPSAKE, "k").await,
        former,
        "nobody would release what an object holds that is gone"
    );
}

async fn a_reference_that_is_a_finalizer_still_is_a_row_before(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    backend.write(old().archived(), at(1)).await;
    let target = Widget {
        finalizers: vec!["test.kindex/deletion".to_owned(), name("u1").to_string()],
        ..widget("t", "t", 60)
    };
    shelf.put(&target);
    assert_eq!(restored(&backend, &shelf, Mode::DryRun).await, Outcome::WouldRestore);
    let none: [String; 0] = [];
    assert_eq!(holders(&backend, &LINKED, "t").await, none, "a dry run stores nothing");
    assert_eq!(restored(&backend, &shelf, Mode::Create).await, new("a"));
    assert_eq!(holders(&backend, &LINKED, "t").await, [name("new-a").to_string()]);
}

/// As if a refusal took off what the object holds that stays in the archive, or what others had placed.
async fn an_object_that_the_cluster_refuses_goes_on_holding_what_it_names(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    hold(&backend).await;
    shelf.put(&Widget {
        finalizers: vec!["test.kindex/deletion".to_owned()],
        ..widget("t", "t", 60)
    });
    *shelf.creations_refused.lock().expect("no panic") = 1;
    let reason = reason(restored(&backend, &shelf, Mode::Create).await);
    assert_eq!(reason, "no room today");
    shelf.put(&widget("u9", "a", 5));
    let by_uid = "u9".to_owned();
    assert_eq!(
        restored(&backend, &shelf, Mode::Create).await,
        Outcome::Taken { by_uid }
    );
    for (kind, uid, placed_by) in [(&LINKED, "t", "kindex-restore"), (&KEEPSAKE, "k", "jane")] {
        let row = rows(&backend, kind, uid).await.remove(0);
        assert_eq!(
            (row.name, row.placed_by.as_deref()),
            (name("u1").to_string(), Some(placed_by))
        );
    }
    shelf.take("a");
    assert_eq!(restored(&backend, &shelf, Mode::Create).await, new("a"));
    assert_eq!(holders(&backend, &LINKED, "t").await, [name("new-a").to_string()]);
}

/// As if such a target held itself, or the cluster were asked for it.
async fn a_reference_on_an_object_that_no_cluster_has_is_a_row_before(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    backend.write(old().archived(), at(1)).await;
    let target = Widget {
        finalizers: vec!["test.kindex/deletion".to_owned(), name("u1").to_string()],
        ..widget("t", "t", 0)
    };
    let target = Object::parse_str(&target.text().replace("Widget", "Keepsake")).expect("an object");
    let create = SqlOnlyWrite::Create;
    let written = backend.store.write_sql_only(&KEPT, &target, create, at(1)).await;
    assert!(matches!(written, Ok(SqlOnlyWritten::Done(_))), "{written:?}");
    let outcome = restored_as(&backend, &shelf, &KEEPING_KINDS, Mode::Create, None).await;
    assert_eq!(outcome, new("a"));
    assert_eq!(holders(&backend, &KEPT, "t").await, [name("new-a").to_string()]);
}

async fn a_deletion_that_found_the_holder_by_its_field_waits_for_the_restored_one(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    backend.write(old().archived(), at(1)).await;
    backend.write(widget("t", "t", 60).archived(), at(1)).await;
    let made = backend.store.make_tombstones(&LINKED, &as_read("t", 60), at(2)).await;
    assert_eq!(made.expect("tombstones"), [Uid::from("t")]);
    assert_eq!(restored(&backend, &shelf, Mode::Create).await, new("a"));
    assert_eq!(holders(&backend, &LINKED, "t").await, [name("new-a").to_string()]);
    let ended = backend.store.delete_unheld(&LINKED, &as_read("t", 60), at(3)).await;
    assert_eq!(ended.expect("an answer").held, [Uid::from("t")]);
}

async fn what_is_being_deleted_in_the_archive_is_refused_until_it_is_gone(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    hold(&backend).await;
    let made = backend.store.make_tombstones(&LINKED, &as_read("u1", 70), at(3)).await;
    assert_eq!(made.expect("tombstones"), [Uid::from("u1")]);
    for mode in [Mode::DryRun, Mode::Create] {
        let reason = reason(restored(&backend, &shelf, mode).await);
        assert!(reason.contains("was deleted in the archive at 2023-11-14"), "{reason}");
        assert!(reason.contains("`kindex why widget/a`"), "{reason}");
    }
    assert_eq!(shelf.shown("a"), None);
    assert_eq!(backend.life("u1").await, Some(Life::Archived));
    assert_eq!(holders(&backend, &KEEPSAKE, "k").await, [name("u1").to_string()]);
    let ended = backend.store.delete_unheld(&LINKED, &as_read("u1", 70), at(4)).await;
    assert_eq!(ended.expect("an answer").deleted, [Uid::from("u1")]);
    assert_eq!(restored(&backend, &shelf, Mode::Create).await, new("a"));
}

async fn under_another_name_a_reference_at_another_service_would_be_lost(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    backend.write(old().archived(), at(1)).await;
    for mode in [Mode::DryRun, Mode::Create] {
        let outcome = restored_as(&backend, &shelf, &HOSTED_KINDS, mode, Some("b")).await;
        let reason = reason(outcome);
        assert!(reason.contains("Network t of the service region"), "{reason}");
        assert!(reason.contains("without --as"), "{reason}");
    }
    assert_eq!((shelf.shown("a"), shelf.shown("b")), (None, None));
    let outcome = restored_as(&backend, &shelf, &HOSTED_KINDS, Mode::Create, Some("a")).await;
    assert_eq!(outcome, new("a"), "this is its own name");
}

async fn at_another_service_the_former_reference_stays_until_the_new_one_is_there(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    let registry = registry(&HOSTED_KINDS);
    let kinds = Kinds::of(&registry);
    let names = kinds.names.clone();
    let archive = SqlArchive::new(backend.store.clone(), registry, kinds);
    let network = |at: &str, references: &[ReferenceName]| {
        let text = widget("network", at, 5).text();
        let metadata = Object::parse_str(&text).expect("an object").metadata;
        let kind = KindName::new("region.example.com", "Network");
        Node {
            references: BTreeSet::from_iter(references.iter().cloned()),
            ..Node::read(kind, &metadata, &names, false, Vec::new())
        }
    };
    let released = async |target: Node| {
        let left = archive.left(&target, &[name("u1")]).await;
        !left.expect("readable").deleted.is_empty()
    };
    backend.write(old().archived(), at(1)).await;
    assert!(!released(network("t", &[])).await, "it is archived");
    let outcome = restored_as(&backend, &shelf, &HOSTED_KINDS, Mode::Create, None).await;
    assert_eq!(outcome, new("a"));
    assert!(
        !released(network("t", &[])).await,
        "the restored one has no reference yet"
    );
    assert!(released(network("t", &[name("new-a")])).await, "it has one");
    assert!(released(network("other", &[])).await, "it names another object");
    backend.write(soft_delete("new-a"), at(3)).await;
    assert!(released(network("t", &[])).await, "it is gone");

    // The second one is archived, and the third one restored from it.
    let widgets = [("b1", 70, ""), ("b2", 80, "b1"), ("b3", 90, "b2")];
    for (uid, version, former) in widgets {
        let names = widget(uid, "b", version).spec(json!({"group": "t"}));
        let restored = names.annotation("test/RestoredFrom", former);
        backend.write(restored.live(), at(4)).await;
        if uid != "b3" {
            let archived = Widget {
                version: version + 1,
                ..restored
            };
            backend.write(archived.archived(), at(4)).await;
        }
    }
    assert_eq!(backend.life("b1").await, Some(Life::Deleted));
    let left = archive.left(&network("t", &[]), &[name("b1")]).await;
    assert_eq!(left, Ok(Left::default()), "the third one has no reference yet");
}
