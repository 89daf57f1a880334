//! Live objects that were moved and that the object from which they were moved holds still: nothing that they name now
//! deletes them with it, or waits for them. The cluster of these tests changes nothing and notes what it is sent.

use std::convert::Infallible;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};
use futures::stream;
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::archive::{Archive as _, PlacementOutcome};
use kindex_deletion::cluster::Cluster;
use kindex_deletion::cluster::carry_out::carry_out;
use kindex_deletion::cluster::outcome::Task;
use kindex_deletion::decide::{Cause, Step};
use kindex_deletion::kinds::Kinds;
use kindex_deletion::metrics::Metrics;
use kindex_deletion::service::{Deletion, Options};
use kindex_harness::wait::eventually;
use kindex_model::object::{Object as Text, Uid};
use kindex_query::Life;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::absent::absent;
use super::backend::Backend;
use super::tombstones::{KINDS, LINKED, Linked, child, name, registry, seen};
use super::widget::{Widget, at};

scenarios!(
    what_was_moved_goes_only_once_no_archived_object_holds_it,
    what_is_deleted_ends_without_a_holder_that_an_archived_object_holds,
    a_tombstone_takes_a_holder_along_once_it_is_known_that_nothing_else_holds_it,
    a_tombstone_ends_without_holders_that_others_hold_in_the_cluster_or_the_archive,
);

/// The finalizer of the graph.
pub(super) const FINALIZER: &str = "test.kindex/deletion";
/// A holder: finalizers name only what has a UUID.
const HELD: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
/// What a request has that deletes something.
const DELETES: &[&str] = &["DELETE /"];
/// What a request has that takes the last finalizer off the widget `t`.
const FREES: &[&str] = &["PATCH /", "/widgets/t ", r#""finalizers":[]"#];
/// What an event has that says that something waits for the widget `h`, which is not archived.
const WAITS: &[&str] = &["POST /", "still in use by widget.test.kindex shop/h"];

/// A cluster with these widgets.
struct Served {
    live: Vec<Widget>,
    /// Whether it answers a list of them.
    is_listed: bool,
    /// The requests that would change something.
    sent: Mutex<Vec<String>>,
}

impl Served {
    fn of(live: Vec<Widget>, is_listed: bool) -> Arc<Self> {
        Arc::new(Self {
            live,
            is_listed,
            sent: Mutex::default(),
        })
    }

    fn answer(&self, method: &Method, uri: &Uri, body: &str) -> Response {
        if *method != Method::GET {
            let sent = format!("{method} {} {body}", uri.path());
            self.sent.lock().expect("nobody panics").push(sent);
            return absent(uri);
        }
        if uri.query().is_some_and(|query| query.contains("watch=true")) {
            return Response::new(Body::from_stream(stream::pending::<Result<String, Infallible>>()));
        }
        let text = match uri.path().rsplit('/').next() {
            Some("widgets") => self.is_listed.then(|| self.list()),
            name => self
                .live
                .iter()
                .find(|one| name == Some(one.name.as_str()))
                .map(Widget::text),
        };
        text.map_or_else(|| absent(uri), IntoResponse::into_response)
    }

    fn list(&self) -> String {
        let items: Vec<String> = self.live.iter().map(Widget::text).collect();
        format!(
            r#"{{"metadata":{{"resourceVersion":"100"}},"items":[{}]}}"#,
            items.join(",")
        )
    }

    /// How many requests that have all of this would have changed something.
    fn sent(&self, parts: &[&str]) -> usize {
        let sent = self.sent.lock().expect("nobody panics");
        let found = sent.iter().filter(|one| parts.iter().all(|part| one.contains(*part)));
        found.count()
    }
}

fn cluster(linked: &Linked, served: &Arc<Served>) -> Cluster {
    let served = served.clone();
    let router: Router = Router::new()
        .fallback(move |method: Method, uri: Uri, body: String| ready(served.answer(&method, &uri, &body)));
    let registry = registry(&KINDS);
    let kinds = Kinds::of(&registry);
    let archive = SqlArchive::new(linked.backend.store.clone(), registry, kinds.clone());
    Cluster::new(Client::new(router, "default"), kinds).with_archive(Arc::new(archive))
}

/// The deletion service is at work until that holds.
async fn work_until(linked: &Linked, served: &Arc<Served>, what: &str, holds: impl AsyncFnMut() -> bool) {
    let options = Options {
        blocked_after: Duration::ZERO,
    };
    let deletion = Deletion::new(cluster(linked, served), options, Metrics::default());
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let work = tokio::spawn(async move { deletion.run(&stopped).await });
    eventually(what, holds).await;
    stop.cancel();
    work.await.expect("it ends");
}

/// A widget of the cluster that names another one.
pub(super) fn live(uid: &str, parent: &str) -> Widget {
    Widget {
        finalizers: vec![FINALIZER.to_owned()],
        ..child(uid, parent)
    }
}

/// A widget of the cluster that is being deleted.
fn deleted() -> Widget {
    Widget {
        deletion: Some("2024-03-01T00:00:00Z".to_owned()),
        ..live("t", "").annotation("test.kindex/deletion-phase", "DELETING")
    }
}

/// Archives a widget that holds a live one, which was moved from there.
async fn archive_former(linked: &Linked, former: &str, holder: &str) {
    linked.evict(former, "").await;
    let key = seen(former, former).key;
    let held = linked.archive.hold(&key, &name(holder), at(1)).await;
    assert!(
        matches!(held, Ok(PlacementOutcome::By { is_new: true, .. })),
        "{held:?}"
    );
}

/// Somebody deletes an archived widget that these live ones name.
pub(super) async fn delete_archived(linked: &Linked, holders: &[&str]) {
    linked.evict("t", "").await;
    for holder in holders {
        linked.backend.write(live(holder, "t").live(), at(0)).await;
    }
    let (store, uid) = (&linked.backend.store, Uid::from("t"));
    let made = store.make_tombstone(&LINKED, &uid, None, at(2)).await;
    made.expect("a tombstone");
}

/// Carries a step of the holder out. Whether it has found that an archived object holds that one, and how many
/// requests would have changed something.
async fn carried_out(linked: &Linked, step: &Step) -> (Option<bool>, usize) {
    let holder = live("h", "t");
    let text = Text::parse_str(&holder.text()).expect("an object");
    let served = Served::of(vec![deleted(), holder], true);
    let cluster = cluster(linked, &served);
    let task = Task {
        object: cluster.kinds().read(&LINKED, &text),
        others: Vec::new(),
        step: step.clone(),
        target: None,
    };
    let outcome = carry_out(&cluster, &task, at(3)).await;
    assert_eq!(outcome.failed, None);
    (outcome.has_former, served.sent(&[]))
}

/// As if it were enough that the target is being deleted, or as if only what is held were deleted with it.
async fn what_was_moved_goes_only_once_no_archived_object_holds_it(backend: Backend) {
    let linked = Linked::on(backend).await;
    archive_former(&linked, "old", "h").await;
    let cause = Cause::Target {
        reference: "parent",
        target: seen("t", "t"),
        held: false,
    };
    let steps = [Step::Delete(cause.clone()), Step::Request(cause)];
    for step in &steps {
        assert_eq!(carried_out(&linked, step).await, (Some(true), 0), "{step:?}");
    }
    let released = linked.archive.release(&seen("old", "old"), &name("h")).await;
    released.expect("released");
    for step in &steps {
        assert_eq!(carried_out(&linked, step).await, (Some(false), 1), "{step:?}");
    }
}

/// As if nobody kept in mind what the archive has answered: it would wait for the holder, which stays.
async fn what_is_deleted_ends_without_a_holder_that_an_archived_object_holds(backend: Backend) {
    let linked = Linked::on(backend).await;
    archive_former(&linked, "old", "h").await;
    let served = Served::of(vec![deleted(), live("h", "t")], true);
    let is_over = async || served.sent(FREES) + served.sent(DELETES) > 0;
    work_until(&linked, &served, "the end of what is deleted", is_over).await;
    assert_eq!(served.sent(DELETES), 0);
}

/// As if a holder that the service has not read yet were held by nothing, or as if it never went.
async fn a_tombstone_takes_a_holder_along_once_it_is_known_that_nothing_else_holds_it(backend: Backend) {
    let linked = Linked::on(backend).await;
    delete_archived(&linked, &["h"]).await;
    let unknown = Served::of(vec![live("h", "t")], false);
    work_until(&linked, &unknown, "a wait", async || unknown.sent(WAITS) > 0).await;
    assert_eq!(unknown.sent(DELETES), 0);
    let known = Served::of(vec![live("h", "t")], true);
    work_until(&linked, &known, "a deletion", async || known.sent(DELETES) > 0).await;
}

/// As if it were enough to ask one of the two, or none.
async fn a_tombstone_ends_without_holders_that_others_hold_in_the_cluster_or_the_archive(backend: Backend) {
    let linked = Linked::on(backend).await;
    delete_archived(&linked, &[HELD, "b"]).await;
    archive_former(&linked, "archived", "b").await;
    let former = Widget {
        finalizers: vec![FINALIZER.to_owned(), name(HELD).to_string()],
        ..live("former", "")
    };
    let served = Served::of(vec![former, live(HELD, "t"), live("b", "t")], true);
    let is_over = async || served.sent(DELETES) > 0 || linked.backend.life("t").await == Some(Life::Deleted);
    work_until(&linked, &served, "the end of the tombstone", is_over).await;
    assert_eq!(served.sent(DELETES), 0);
}
