//! Archived objects that hold others and that two processes restore at once, or one that ends early, over every
//! database: whoever ends takes nothing from who goes on.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join3;
use kindex_harness::wait::WAIT_MAX;
use kindex_kube_client::{ClusterError, CreateApi, ObjectName};
use kindex_maintenance::references::{
    Class, ListedPage, PeerApi, PeerFailure, ReferencedObject, ReferencedState, verify,
};
use kindex_maintenance::restore::{Mode, Outcome};
use kindex_maintenance::retries::RetryBudget;
use kindex_maintenance::sides::Sides;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, Uid};
use kindex_query::Life;
use kindex_store::progress::NoProgress;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::backend::Backend;
use super::restored_holders::{LINKED, LINKED_KINDS, holders, name, new, old, reason, registry, restored_through};
use super::shelf::Shelf;
use super::widget::{REGISTRY, Widget, at, widget};

scenarios!(
    of_two_restorations_the_one_that_is_refused_takes_nothing_from_the_other,
    one_whose_name_is_taken_takes_nothing_from_one_under_another_name,
    an_object_that_comes_after_a_refusal_holds_what_the_archived_one_names,
    what_is_left_of_a_process_that_ended_before_the_creation_hurts_nobody,
);

/// The cluster as a restoration sees it that waits before it creates the object.
struct Turn<'a> {
    shelf: &'a Shelf,
    is_there: Notify,
    goes_on: Notify,
}

impl<'a> Turn<'a> {
    fn new(shelf: &'a Shelf) -> Self {
        Self {
            shelf,
            is_there: Notify::new(),
            goes_on: Notify::new(),
        }
    }
}

#[async_trait]
impl CreateApi for Turn<'_> {
    async fn create(&self, kind: &Kind, name: &ObjectName, text: &str) -> Result<Object, ClusterError> {
        self.is_there.notify_one();
        self.goes_on.notified().await;
        self.shelf.create(kind, name, text).await
    }

    async fn rehearse(&self, kind: &Kind, name: &ObjectName, text: &str) -> Result<(), ClusterError> {
        self.shelf.rehearse(kind, name, text).await
    }

    async fn set_status(
        &self,
        kind: &Kind,
        name: &ObjectName,
        uid: &Uid,
        status: &RawValue,
    ) -> Result<Object, ClusterError> {
        self.shelf.set_status(kind, name, uid, status).await
    }
}

/// There are none.
struct Nobody;

impl PeerApi for Nobody {
    async fn look(&self, _: &ReferencedObject) -> Result<Option<ReferencedState>, PeerFailure> {
        Ok(None)
    }

    async fn list(&self, _: &'static str, _: &'static str, _: Option<&str>) -> Result<ListedPage, PeerFailure> {
        Ok(ListedPage::default())
    }
}

/// The widget is archived. In the cluster is what it names, and whose deletion waits for it.
async fn archived(backend: &Backend) -> Arc<Shelf> {
    backend.write(old().archived(), at(1)).await;
    let shelf = Arc::new(Shelf::default());
    shelf.put(&Widget {
        finalizers: vec!["test.kindex/deletion".to_owned()],
        ..widget("t", "t", 60)
    });
    shelf
}

async fn restored(backend: &Backend, shelf: &Arc<Shelf>, creator: &dyn CreateApi, new_name: Option<&str>) -> Outcome {
    restored_through(backend, shelf, creator, &LINKED_KINDS, Mode::Create, new_name).await
}

/// Two restorations. The first one is about to create the object when the second one begins, and ends before the
/// second one creates it.
async fn at_once(backend: &Backend, shelf: &Arc<Shelf>, second_name: Option<&str>) -> (Outcome, Outcome) {
    let (one, other) = (Turn::new(shelf), Turn::new(shelf));
    let first = async {
        let outcome = restored(backend, shelf, &one, None).await;
        other.goes_on.notify_one();
        outcome
    };
    let second = async {
        one.is_there.notified().await;
        restored(backend, shelf, &other, second_name).await
    };
    let between = async {
        other.is_there.notified().await;
        one.goes_on.notify_one();
    };
    let all = timeout(WAIT_MAX, join3(first, second, between)).await;
    let (first, second, ()) = all.expect("each of them gets its turn");
    (first, second)
}

/// What differs between fields and references.
async fn differing(backend: &Backend, shelf: &Arc<Shelf>) -> Vec<Class> {
    static ALONE: [&Kind; 1] = [&LINKED];
    let sides = Sides {
        platform: REGISTRY.platform,
        cluster: shelf.clone(),
        storage: backend.store.clone(),
    };
    let budget = RetryBudget(Duration::ZERO);
    let report = verify(&sides, &registry(&ALONE), &Nobody, Duration::ZERO, budget, &NoProgress).await;
    let differences = report.expect("both sides answer").differences;
    differences.into_iter().map(|difference| difference.class).collect()
}

/// As if the first one took the row back that it had placed and the second one had found.
async fn of_two_restorations_the_one_that_is_refused_takes_nothing_from_the_other(backend: Backend) {
    let shelf = archived(&backend).await;
    *shelf.creations_refused.lock().expect("no panic") = 1;
    let (refused, created) = at_once(&backend, &shelf, None).await;
    assert_eq!((reason(refused).as_str(), created), ("no room today", new("a")));
    assert_eq!(holders(&backend, &LINKED, "t").await, [name("new-a").to_string()]);
}

/// As if it were enough to look for the new object under the name of the old one.
async fn one_whose_name_is_taken_takes_nothing_from_one_under_another_name(backend: Backend) {
    let shelf = archived(&backend).await;
    shelf.put(&widget("u9", "a", 5));
    let by_uid = "u9".to_owned();
    let outcomes = at_once(&backend, &shelf, Some("b")).await;
    assert_eq!(outcomes, (Outcome::Taken { by_uid }, new("b")));
    assert_eq!(holders(&backend, &LINKED, "t").await, [name("new-b").to_string()]);
}

/// As if a request without an answer could not create the object after another one was refused.
async fn an_object_that_comes_after_a_refusal_holds_what_the_archived_one_names(backend: Backend) {
    let shelf = archived(&backend).await;
    *shelf.creations_refused.lock().expect("no panic") = 1;
    reason(restored(&backend, &shelf, shelf.as_ref(), None).await);
    let late = widget("new-a", "a", 80).annotation("test/RestoredFrom", "u1");
    backend.write(late.live(), at(3)).await;
    assert_eq!(backend.life("u1").await, Some(Life::Deleted));
    assert_eq!(holders(&backend, &LINKED, "t").await, [name("new-a").to_string()]);
}

/// As if it were a row of nobody, were not reported once it is wrong, or did not go over with the next restoration.
async fn what_is_left_of_a_process_that_ended_before_the_creation_hurts_nobody(backend: Backend) {
    let shelf = archived(&backend).await;
    let turn = Turn::new(&shelf);
    let outcome = async {
        tokio::select! {
            outcome = restored(&backend, &shelf, &turn, None) => Some(outcome),
            () = turn.is_there.notified() => None,
        }
    };
    let outcome = timeout(WAIT_MAX, outcome).await;
    let outcome = outcome.expect("it ends, or is about to create the object");
    assert_eq!(outcome, None, "it is dropped before it creates anything");
    assert_eq!(shelf.shown("a"), None);
    assert_eq!(holders(&backend, &LINKED, "t").await, [name("u1").to_string()]);
    assert_eq!(differing(&backend, &shelf).await, [], "it says what the field says");
    let moved = widget("u1", "a", 71).spec(json!({"group": "other"}));
    backend.write(moved.archived(), at(3)).await;
    assert_eq!(differing(&backend, &shelf).await, [Class::HolderElsewhere]);
    assert_eq!(restored(&backend, &shelf, shelf.as_ref(), None).await, new("a"));
    assert_eq!(holders(&backend, &LINKED, "t").await, [name("new-a").to_string()]);
    assert_eq!(differing(&backend, &shelf).await, []);
}
