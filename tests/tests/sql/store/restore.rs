//! Objects that come back from SQL into a cluster which counts its versions anew, over every
//! database: what is created, and what the rows say afterwards.

use std::sync::Arc;
use std::time::Duration;

use kindex_maintenance::restore::{Mode, Outcome, RestoreReport, Restorer};
use kindex_maintenance::retries::RetryBudget;
use kindex_maintenance::sides::Sides;
use kindex_model::object::{Object, Uid};
use kindex_query::{Life, Revive};
use serde_json::json;

use super::backend::Backend;
use super::shelf::Shelf;
use super::widget::{REGISTRY, WIDGET, Widget, at, widget};

scenarios!(
    a_restored_object_is_live_and_its_old_row_is_closed_though_its_version_is_lower,
    references_go_over_to_the_restored_object,
    an_ingester_that_was_faster_and_closed_the_new_row_is_put_right,
    a_second_call_creates_nothing_and_gives_the_status_that_was_refused,
    a_name_that_is_taken_stays_as_it_is,
    a_dry_run_changes_neither_side,
    an_owner_that_is_gone_is_left_out_and_one_that_came_back_is_named_anew,
    an_archived_object_whose_name_was_taken_comes_back_under_another,
);

async fn restored(backend: &Backend, shelf: &Arc<Shelf>, thing: &Widget, mode: Mode) -> RestoreReport {
    restored_text(backend, shelf, &thing.text(), mode).await
}

async fn restored_text(backend: &Backend, shelf: &Arc<Shelf>, text: &str, mode: Mode) -> RestoreReport {
    restored_as(backend, shelf, text, mode, None).await
}

async fn restored_as(
    backend: &Backend,
    shelf: &Arc<Shelf>,
    text: &str,
    mode: Mode,
    new_name: Option<&str>,
) -> RestoreReport {
    let sides = Sides {
        platform: REGISTRY.platform,
        cluster: shelf.clone(),
        storage: backend.store.clone(),
    };
    let restorer = Restorer {
        sides: &sides,
        creator: shelf.as_ref(),
        registry: &REGISTRY,
        mode,
        new_name,
        retry_budget: RetryBudget(Duration::ZERO),
    };
    let object = Object::parse_str(text).expect("an object");
    restorer.restore(&WIDGET, &object).await.expect("both sides answer")
}

/// In version 70 of a cluster that is no more.
fn old() -> Widget {
    widget("u1", "a", 70)
        .label("team", "risk")
        .annotation("test/Immutable", "true")
        .spec(json!({"group": "g"}))
        .status(json!({"ready": true}))
}

fn new_uid() -> String {
    "new-a".to_owned()
}

async fn state(backend: &Backend, uid: &str) -> Option<(u64, Life)> {
    let state = backend.state(uid).await?;
    Some((state.cluster_version().0, state.life))
}

async fn a_restored_object_is_live_and_its_old_row_is_closed_though_its_version_is_lower(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    for (uid, name, life) in [("u1", "a", Life::Archived), ("u2", "b", Life::Deleted)] {
        let thing = Widget {
            uid: uid.to_owned(),
            name: name.to_owned(),
            ..old()
        };
        backend.write(thing.store(life, Revive::Never), at(1)).await;
        let done = restored(&backend, &shelf, &thing, Mode::Create).await;
        let new_uid = format!("new-{name}");
        assert_eq!(
            done.outcome,
            Outcome::Restored {
                new_uid: new_uid.clone()
            }
        );
        let shown = shelf.shown(name).expect("it is there");
        assert_eq!(shown["metadata"]["annotations"], json!({"test/RestoredFrom": uid}));
        assert_eq!(
            (&shown["spec"], &shown["status"]),
            (&json!({"group": "g"}), &json!({"ready": true}))
        );
        let (version, life) = state(&backend, &new_uid).await.expect("a row");
        assert!(version < 70 && life == Life::Live, "{version} {life:?}");
        assert_eq!(state(&backend, uid).await, Some((70, Life::Deleted)));
    }
    let row = backend
        .store
        .get_by_id(&WIDGET, &Uid::from("new-a"))
        .await
        .expect("read");
    let annotations = row.expect("a row").object.metadata.annotations.clone();
    assert_eq!(annotations.get("test/RestoredFrom").map(String::as_str), Some("u1"));
}

async fn references_go_over_to_the_restored_object(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    backend.write(old().archived(), at(1)).await;
    let holder = "cluster.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
    let name = holder.parse().expect("a name");
    let uid = Uid::from("u1");
    let placed = backend.store.place_reference(&WIDGET, &uid, &name, "jane", at(2)).await;
    placed.expect("placed");
    restored(&backend, &shelf, &old(), Mode::Create).await;
    let shown = shelf.shown("a").expect("it is there");
    assert_eq!(shown["metadata"]["finalizers"], json!([holder]));
    let left = backend.store.references(&WIDGET, &[uid]).await.expect("readable");
    assert_eq!(left, [], "the old row has none");
}

async fn an_ingester_that_was_faster_and_closed_the_new_row_is_put_right(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    backend.write(old().archived(), at(1)).await;
    // What an ingester stores of the first version while the old row is open and has a higher one.
    backend.write(widget("new-a", "a", 1).live(), at(2)).await;
    assert_eq!(state(&backend, "new-a").await, Some((1, Life::Deleted)));
    restored(&backend, &shelf, &old(), Mode::Create).await;
    assert_eq!(state(&backend, "new-a").await, Some((2, Life::Live)));
    assert_eq!(backend.life("u1").await, Some(Life::Deleted));
}

async fn a_second_call_creates_nothing_and_gives_the_status_that_was_refused(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    *shelf.statuses_refused.lock().expect("no panic") = 1;
    backend.write(old().archived(), at(1)).await;
    let first = restored(&backend, &shelf, &old(), Mode::Create).await.outcome;
    assert!(
        matches!(&first, Outcome::WithoutStatus { reason, .. } if reason.contains("no status today")),
        "{first:?}"
    );
    assert_eq!(state(&backend, "new-a").await, Some((1, Life::Live)));
    for version in [2, 2] {
        let again = restored(&backend, &shelf, &old(), Mode::Create).await.outcome;
        assert_eq!(again, Outcome::AlreadyRestored { new_uid: new_uid() });
        assert_eq!(state(&backend, "new-a").await, Some((version, Life::Live)));
    }
    assert_eq!(shelf.shown("a").expect("there")["status"], json!({"ready": true}));
}

async fn a_name_that_is_taken_stays_as_it_is(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    shelf.put(&widget("u9", "a", 5));
    backend.write(old().archived(), at(1)).await;
    let by_uid = "u9".to_owned();
    for mode in [Mode::DryRun, Mode::Create] {
        let done = restored(&backend, &shelf, &old(), mode).await;
        assert_eq!(done.outcome, Outcome::Taken { by_uid: by_uid.clone() });
        assert_eq!(shelf.shown("a").expect("there")["metadata"]["resourceVersion"], "5");
        assert_eq!(state(&backend, "u1").await, Some((70, Life::Archived)));
        assert_eq!(state(&backend, "u9").await, None);
    }
}

async fn a_dry_run_changes_neither_side(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    backend.write(old().archived(), at(1)).await;
    let done = restored(&backend, &shelf, &old(), Mode::DryRun).await;
    assert_eq!(done.outcome, Outcome::WouldRestore);
    assert_eq!(shelf.shown("a"), None);
    assert_eq!(state(&backend, "u1").await, Some((70, Life::Archived)));
}

async fn an_owner_that_is_gone_is_left_out_and_one_that_came_back_is_named_anew(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    shelf.put(&widget("o1", "stays", 1));
    shelf.put(&widget("o4", "back", 2).annotation("test/RestoredFrom", "o2"));
    let owner =
        |name: &str, uid: &str, api: &str| json!({"apiVersion": api, "kind": "Widget", "name": name, "uid": uid});
    let mut object: serde_json::Value = serde_json::from_str(&old().text()).expect("JSON");
    object["metadata"]["ownerReferences"] = json!([
        owner("stays", "o1", "test.kindex/v1"),
        owner("back", "o2", "test.kindex/v0"),
        owner("away", "o3", "test.kindex/v1"),
        owner("foreign", "o5", "elsewhere/v1"),
    ]);
    let done = restored_text(&backend, &shelf, &object.to_string(), Mode::Create).await;
    let left_out: Vec<&str> = done.owners_left_out.iter().map(|owner| owner.owner.as_str()).collect();
    assert_eq!(left_out, ["Widget/away", "Widget/foreign"]);
    let shown = shelf.shown("a").expect("it is there");
    let uids: Vec<_> = shown["metadata"]["ownerReferences"]
        .as_array()
        .expect("owners")
        .iter()
        .map(|owner| owner["uid"].as_str().expect("a uid"))
        .collect();
    assert_eq!(uids, ["o1", "o4"]);
}

async fn an_archived_object_whose_name_was_taken_comes_back_under_another(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    backend.write(old().archived(), at(1)).await;
    let thief = widget("u2", "a", 80);
    shelf.put(&thief);
    backend.write(thief.live(), at(2)).await;
    let read = async |uid: &str| {
        let row = backend.store.get_by_id(&WIDGET, &Uid::from(uid)).await;
        row.expect("readable").expect("stored")
    };
    assert_eq!(read("u1").await.replaced_by, Some(Uid::from("u2")));
    let done = restored_as(&backend, &shelf, &old().text(), Mode::Create, Some("b")).await;
    let new_uid = "new-b".to_owned();
    assert_eq!(done.outcome, Outcome::Restored { new_uid });
    let shown = shelf.shown("b").expect("it is there");
    assert_eq!(shown["metadata"]["annotations"]["test/RestoredFrom"], "u1");
    assert_eq!(shown["spec"], json!({"group": "g"}));
    assert_eq!(shelf.shown("a").expect("as it was")["metadata"]["uid"], "u2");
    assert_eq!(
        (backend.life("u2").await, backend.life("new-b").await),
        (Some(Life::Live), Some(Life::Live))
    );
    assert_eq!(
        read("u1").await.replaced_by,
        Some(Uid::from("u2")),
        "what happened stays"
    );
}
