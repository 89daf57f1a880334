//! Live holders of archived objects whose change a webhook denies: they keep no others from going, and are sent few
//! requests at a time. The cluster of these tests denies changes of some objects, and notes what it is sent.

use std::convert::Infallible;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use futures::stream;
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::archive::{Archive as _, HolderScope, PlacementOutcome};
use kindex_deletion::cluster::Cluster;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::metrics::Metrics;
use kindex_deletion::service::{Deletion, Options};
use kindex_harness::wait::eventually;
use kindex_model::object::Uid;
use kube::Client;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::absent::absent;
use super::backend::Backend;
use super::moved_holders::{FINALIZER, delete_archived, live};
use super::tombstones::{KINDS, LINKED, Linked, name, registry, seen};
use super::widget::{Widget, at};

scenarios!(
    a_live_holder_that_is_denied_keeps_no_other_from_going,
    a_row_that_cannot_be_released_keeps_no_other_from_being_released,
    a_denied_holder_that_has_a_row_and_names_the_object_is_sent_one_request_a_sweep,
    very_many_that_are_denied_keep_no_other_from_going_and_are_sent_few_requests_at_a_time,
);

/// Requests of one sweep that are refused.
const REFUSED_MAX: usize = 64;
/// Finalizers name only what has a UUID.
const HOLDERS: [&str; 3] = [
    "1f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce",
    "2f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce",
    "3f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce",
];

/// A cluster with these widgets.
struct Denying {
    live: Vec<Widget>,
    /// The names of those whose changes a webhook denies.
    denied: Vec<String>,
    /// The requests for single widgets: the method and the name.
    sent: Mutex<Vec<(Method, String)>>,
}

impl Denying {
    fn of(live: Vec<Widget>, denied: &[&str]) -> Arc<Self> {
        Arc::new(Self {
            live,
            denied: denied.iter().map(|name| (*name).to_owned()).collect(),
            sent: Mutex::default(),
        })
    }

    fn answer(&self, method: Method, uri: &Uri) -> Response {
        if uri.query().is_some_and(|query| query.contains("watch=true")) {
            return Response::new(Body::from_stream(stream::pending::<Result<String, Infallible>>()));
        }
        let name = uri.path().rsplit('/').next().unwrap_or_default();
        if name == "widgets" && method == Method::GET {
            return self.list().into_response();
        }
        let mut sent = self.sent.lock().expect("nobody panics");
        sent.push((method.clone(), name.to_owned()));
        let found = self.live.iter().find(|one| one.name == name);
        match found {
            Some(_) if method != Method::GET && self.denied.iter().any(|denied| denied == name) => {
                let denial = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
                    "code": 403, "message": "admission webhook \"a.b.c\" denied the request: no"});
                (StatusCode::FORBIDDEN, Json(denial)).into_response()
            }
            Some(found) if method != Method::DELETE => found.text().into_response(),
            Some(_) | None => absent(uri),
        }
    }

    fn list(&self) -> String {
        let items: Vec<String> = self.live.iter().map(Widget::text).collect();
        format!(
            r#"{{"metadata":{{"resourceVersion":"100"}},"items":[{}]}}"#,
            items.join(",")
        )
    }

    fn sent(&self) -> Vec<(Method, String)> {
        self.sent.lock().expect("nobody panics").clone()
    }

    /// How many requests with this method were sent for a widget.
    fn count(&self, method: &Method, name: &str) -> usize {
        let sent = self.sent().into_iter();
        sent.filter(|(sent, other)| sent == method && other == name).count()
    }

    /// Whether the deletion of a widget was sent.
    fn is_deleted(&self, name: &str) -> bool {
        self.count(&Method::DELETE, name) > 0
    }

    /// How many deletions at most were denied between two readings of the object that the holders wait for: a sweep
    /// reads it at its beginning, and before the deletions of each page.
    fn denied_at_most(&self) -> usize {
        let (mut most, mut now) = (0, 0);
        for (method, name) in self.sent() {
            if method == Method::GET && name == "t" {
                now = 0;
            } else if method == Method::DELETE && self.denied.contains(&name) {
                now += 1;
            }
            most = most.max(now);
        }
        most
    }
}

/// The deletion service is at work until that holds.
async fn work_until(linked: &Linked, denying: &Arc<Denying>, what: &str, holds: impl AsyncFnMut() -> bool) {
    let answering = denying.clone();
    let router: Router = Router::new().fallback(move |method: Method, uri: Uri| ready(answering.answer(method, &uri)));
    let registry = registry(&KINDS);
    let kinds = Kinds::of(&registry);
    let archive = SqlArchive::new(linked.backend.store.clone(), registry, kinds.clone());
    let cluster = Cluster::new(Client::new(router, "default"), kinds).with_archive(Arc::new(archive));
    let options = Options {
        blocked_after: Duration::ZERO,
    };
    let deletion = Deletion::new(cluster, options, Metrics::default());
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let work = tokio::spawn(async move { deletion.run(&stopped).await });
    eventually(what, holds).await;
    stop.cancel();
    work.await.expect("it ends");
}

/// Whichever of them comes first. As if one that is denied ended the sweep.
async fn a_live_holder_that_is_denied_keeps_no_other_from_going(backend: Backend) {
    let linked = Linked::on(backend).await;
    let holders = ["a", "b", "c"];
    delete_archived(&linked, &holders).await;
    let denying = Denying::of(holders.map(|holder| live(holder, "t")).to_vec(), &["a", "c"]);
    let all_are_sent = async || holders.iter().all(|holder| denying.is_deleted(holder));
    work_until(&linked, &denying, "a deletion of each", all_are_sent).await;
}

/// These have a row on an archived widget, and a field that names this one. Then somebody deletes it.
async fn delete_with_rows(linked: &Linked, parent: &str) {
    linked.evict("t", "").await;
    for holder in HOLDERS {
        linked.backend.write(live(holder, parent).live(), at(0)).await;
        let held = linked.archive.hold(&seen("t", "t").key, &name(holder), at(1)).await;
        assert!(
            matches!(held, Ok(PlacementOutcome::By { is_new: true, .. })),
            "{held:?}"
        );
    }
    let (store, uid) = (&linked.backend.store, Uid::from("t"));
    let made = store.make_tombstone(&LINKED, &uid, None, at(2)).await;
    made.expect("a tombstone");
}

/// The same of holders whose field names another object by now, which they hold, too.
async fn a_row_that_cannot_be_released_keeps_no_other_from_being_released(backend: Backend) {
    let linked = Linked::on(backend).await;
    delete_with_rows(&linked, "other").await;
    let mut all = HOLDERS.map(|holder| live(holder, "other")).to_vec();
    let references = HOLDERS.iter().map(|holder| name(holder).to_string());
    all.push(Widget {
        finalizers: std::iter::once(FINALIZER.to_owned()).chain(references).collect(),
        ..live("other", "")
    });
    let denying = Denying::of(all, &[HOLDERS[0], HOLDERS[2]]);
    let left = async || {
        let left = linked.holders("t", HolderScope::Rows).await.into_iter();
        left.map(|holder| holder.uid).collect::<Vec<_>>()
    };
    let is_released = async || !left().await.contains(&HOLDERS[1].to_owned());
    work_until(&linked, &denying, "the release of a row", is_released).await;
    assert_eq!(left().await, [HOLDERS[0], HOLDERS[2]], "those hold it still");
}

/// As if such a holder were sent each request twice, and counted twice.
async fn a_denied_holder_that_has_a_row_and_names_the_object_is_sent_one_request_a_sweep(backend: Backend) {
    let linked = Linked::on(backend).await;
    delete_with_rows(&linked, "t").await;
    let denying = Denying::of(HOLDERS.map(|holder| live(holder, "t")).to_vec(), &HOLDERS);
    let sent = || denying.count(&Method::DELETE, HOLDERS[0]);
    work_until(&linked, &denying, "some sweeps", async || sent() >= 5).await;
    let sweeps = denying.count(&Method::GET, "t") / 2;
    assert!(sent() <= sweeps, "{} requests in {sweeps} sweeps", sent());
}

/// Whichever of them come first. As if each sweep were denied all of them, or the first ones alone, for ever.
async fn very_many_that_are_denied_keep_no_other_from_going_and_are_sent_few_requests_at_a_time(backend: Backend) {
    let linked = Linked::on(backend).await;
    let denied: Vec<String> = (0..REFUSED_MAX + 8).map(|number| format!("a{number:04}")).collect();
    let denied: Vec<&str> = denied.iter().map(String::as_str).collect();
    let free = ["0", "z"];
    let holders = [&denied[..], &free[..]].concat();
    delete_archived(&linked, &holders).await;
    let all = holders.iter().map(|holder| live(holder, "t")).collect();
    let denying = Denying::of(all, &denied);
    // At first, it is not known of all of them that they go.
    let is_enough = || denying.denied_at_most() >= REFUSED_MAX;
    let all_are_sent = async || is_enough() && holders.iter().all(|holder| denying.is_deleted(holder));
    work_until(&linked, &denying, "a deletion of each", all_are_sent).await;
    assert_eq!(denying.denied_at_most(), REFUSED_MAX);
}
