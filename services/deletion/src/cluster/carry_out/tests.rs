//! What is known of the writes of a step once it is over.

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use kindex_kube_client::peer::Address;
use kindex_model::deletion::{Annotations, Phase};
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::ResourceVersion;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::fixture::{CLUSTER, GROUP, deleting, key, key_in, live};
use crate::kinds::Kinds;
use crate::peer::{Peers, Transport};

const UID: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
/// Where nobody listens.
const NOWHERE: &str = "http://127.0.0.1:1";

static KINDS: [&Kind; 1] = [&CLUSTER];

/// A cluster that answers like this, and names the object where it has none.
fn cluster(answers: impl Fn(Method) -> Response + Clone + Send + Sync + 'static) -> Cluster {
    cluster_of(Router::new().fallback(move |method: Method, at: Uri| {
        let answer = answers(method);
        ready(match answer.status() {
            StatusCode::NOT_FOUND => absent(at.path()),
            _ => answer,
        })
    }))
}

/// What a cluster says of an object that it does not have.
fn absent(path: &str) -> Response {
    let (_, name) = path.rsplit_once('/').expect("the path of an object");
    let details = json!({"name": name, "group": GROUP, "kind": CLUSTER.plural});
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "message": "absent",
        "details": details});
    (StatusCode::NOT_FOUND, Json(status)).into_response()
}

fn cluster_of(router: Router) -> Cluster {
    let kinds = Kinds::of(&Registry {
        kinds: &KINDS,
        ..Registry::EMPTY
    });
    Cluster::new(Client::new(router, "default"), kinds)
}

/// The same beside the service of projects at this URL.
fn beside(cluster: Cluster, url: &str) -> Cluster {
    let address = Address {
        name: "identity".to_owned(),
        url: url.to_owned(),
        ca_file: None,
        token_file: None,
    };
    cluster.beside(Peers::new([(project().key.kind, address)], &Transport::Events))
}

fn project() -> Object {
    live(key_in("y.example.com", "Project", "a"), "p")
}

fn task(object: Object, step: Step) -> Task {
    Task {
        object,
        others: Vec::new(),
        step,
        target: None,
    }
}

/// The step by which a cluster in version 5 releases the project.
fn release(object: Object) -> Task {
    let object = Object {
        version: ResourceVersion(5),
        ..object
    };
    Task {
        target: Some(project()),
        ..task(object, Step::Release(Seen::of(&project())))
    }
}

#[tokio::test]
async fn only_a_write_whose_answer_fails_to_come_may_have_taken_something_off() {
    const OUTAGE: u16 = 503;
    for (reads, writes, confirms, is_unclear, is_overtaken) in [
        (OUTAGE, OUTAGE, true, false, false),
        (OUTAGE, OUTAGE, false, true, false),
        (404, OUTAGE, true, true, false),
        (OUTAGE, 403, false, false, false),
        (404, 409, false, false, true),
        (404, 404, false, false, true),
        // Another process may have done it, which is seen later.
        (OUTAGE, 409, false, true, true),
    ] {
        let cluster = cluster(move |method| {
            let code = if method == Method::GET { reads } else { writes };
            StatusCode::from_u16(code).expect("a code").into_response()
        });
        let confirm = if confirms {
            vec![key("Cluster", "b")]
        } else {
            Vec::new()
        };
        let task = task(deleting(key("Cluster", "a"), UID), Step::Free { confirm });
        let known = carry_out(&cluster, &task, Timestamp::UNIX_EPOCH).await.writes;
        let found = (known.is_unclear, known.is_overtaken);
        let case = format!("{reads} {writes} {:?}", task.step);
        assert_eq!(found, (is_unclear, is_overtaken), "{case}");
    }
}

/// As if an object for whose annotations there is no more room were never deleted.
#[tokio::test]
async fn a_phase_is_recorded_without_the_list_where_the_list_is_refused() {
    let names = Annotations::of(Registry::EMPTY.platform.group);
    let refused = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422,
        "message": "metadata.annotations: Too long: may not be more than 262144 bytes"});
    let after = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Cluster",
        "metadata": {"name": "a", "namespace": "default", "uid": UID, "resourceVersion": "6",
            "deletionTimestamp": "2026-11-24T11:55:00Z", "annotations": {&names.phase: "DRAINING"}},
    });
    let patches: Arc<Mutex<Vec<Value>>> = Arc::default();
    let (noted, list) = (patches.clone(), names.phases.clone());
    let cluster = cluster_of(Router::new().fallback(move |body: String| {
        let patch: Value = serde_json::from_str(&body).unwrap_or_default();
        let has_list = patch["metadata"]["annotations"][&list].is_string();
        noted.lock().expect("nobody panics").push(patch["metadata"].clone());
        ready(match has_list {
            true => (StatusCode::UNPROCESSABLE_ENTITY, Json(refused.clone())),
            false => (StatusCode::OK, Json(after.clone())),
        })
    }));
    let task = task(
        deleting(key("Cluster", "a"), UID),
        Step::Record(Phase::Draining, Vec::new()),
    );
    let outcome = carry_out(&cluster, &task, Timestamp::UNIX_EPOCH).await;
    assert_eq!(outcome.failed, None);
    let patches = patches.lock().expect("nobody panics");
    let [first, second] = &patches[..] else {
        panic!("{patches:?}");
    };
    assert_eq!(
        first["resourceVersion"], second["resourceVersion"],
        "it is the same version"
    );
    let annotations = second["annotations"].as_object().expect("annotations");
    assert_eq!(annotations[&names.phase], "DRAINING");
    assert_eq!(annotations[&names.phases], Value::Null, "what is there makes room");
}

/// Otherwise what somebody else takes off meanwhile passes for the work of this step.
#[tokio::test(start_paused = true)]
async fn a_step_that_ends_before_it_asks_for_the_release_has_released_nothing() {
    let changed = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Cluster",
        "metadata": {"name": "a", "namespace": "default", "uid": UID, "resourceVersion": "6"},
    });
    let cluster = cluster(move |_| Json(changed.clone()).into_response());
    let task = release(live(key("Cluster", "a"), UID));
    let outcome = carry_out(&beside(cluster, NOWHERE), &task, Timestamp::UNIX_EPOCH).await;
    assert_eq!(outcome.failed, None);
    assert!(outcome.writes.released.is_empty(), "{:?}", outcome.writes);
    assert!(!outcome.writes.is_unclear, "{:?}", outcome.writes);
}

/// The service of projects, which shows one in this state. A cluster holds it, unless nobody wants to know that.
async fn identity(state: &str) -> String {
    identity_that_shows(json!({"uid": "p", "state": state}), Arc::default()).await
}

/// The same, which shows the project like this. It notes what releases depend on, and refuses those that depend on
/// anything.
async fn identity_that_shows(target: Value, noted: Arc<Mutex<Vec<String>>>) -> String {
    let version = json!({"groupVersion": "y.example.com/v1", "version": "v1"});
    let groups = json!({"kind": "APIGroupList", "apiVersion": "v1",
        "groups": [{"name": "y.example.com", "versions": [version], "preferredVersion": version}]});
    let resources = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "y.example.com/v1",
        "resources": [{"name": "projects", "singularName": "project", "namespaced": true, "kind": "Project",
            "verbs": ["get"]}]});
    let refused = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409, "message": "changed"});
    let all = json!({"target": target, "references": [{"name": format!("cluster.{GROUP}/{UID}")}]});
    let none = json!({"target": target, "references": []});
    let router: Router = Router::new().fallback(move |method: Method, at: Uri| {
        let condition = at.query().filter(|_| method == Method::DELETE);
        noted
            .lock()
            .expect("nobody panics")
            .extend(condition.map(str::to_owned));
        ready(match at.path() {
            "/apis" => (StatusCode::OK, Json(groups.clone())),
            "/apis/y.example.com/v1" => (StatusCode::OK, Json(resources.clone())),
            _ if condition.is_some() => (StatusCode::CONFLICT, Json(refused.clone())),
            _ if at.query() == Some("limit=0") => (StatusCode::OK, Json(none.clone())),
            _ => (StatusCode::OK, Json(all.clone())),
        })
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test]
async fn what_another_service_has_released_is_known() {
    let task = release(deleting(key("Cluster", "a"), UID));
    let there = beside(
        cluster(|_| StatusCode::NOT_FOUND.into_response()),
        &identity("Live").await,
    );
    let outcome = carry_out(&there, &task, Timestamp::UNIX_EPOCH).await;
    assert_eq!(outcome.failed, None);
    assert_eq!(outcome.writes.released, [format!("cluster.{GROUP}/{UID}")]);
    assert!(!outcome.writes.is_unclear, "it was read again");
    let away = beside(cluster(|_| StatusCode::NOT_FOUND.into_response()), NOWHERE);
    let outcome = carry_out(&away, &task, Timestamp::UNIX_EPOCH).await;
    assert!(outcome.writes.released.is_empty() && outcome.writes.is_unclear);
}

/// As if a release that comes late could take the reference of a move that has come back meanwhile.
#[tokio::test]
async fn a_live_holder_releases_at_another_service_in_the_version_that_was_read() {
    let holder = |version: &str| {
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Cluster",
            "metadata": {"name": "a", "namespace": "default", "uid": UID, "resourceVersion": version}})
    };
    let (before, after) = (holder("5"), holder("6"));
    let task = release(live(key("Cluster", "a"), UID));
    for (target, conditions) in [
        (
            json!({"uid": "p", "state": "Live", "resourceVersion": "7"}),
            vec!["resourceVersion=7"; RELEASES_MAX],
        ),
        (json!({"uid": "p", "state": "Live"}), Vec::new()),
    ] {
        let (before, after) = (before.clone(), after.clone());
        let cluster = cluster(move |method| {
            let shown = if method == Method::GET { &before } else { &after };
            Json(shown.clone()).into_response()
        });
        let noted: Arc<Mutex<Vec<String>>> = Arc::default();
        let url = identity_that_shows(target, noted.clone()).await;
        let outcome = carry_out(&beside(cluster, &url), &task, Timestamp::UNIX_EPOCH).await;
        assert_eq!(outcome.failed, None);
        assert_eq!(*noted.lock().expect("nobody panics"), conditions);
        let is_refused = !conditions.is_empty();
        assert_eq!(outcome.writes.is_overtaken, is_refused, "{:?}", outcome.writes);
        assert_eq!(outcome.writes.released.is_empty(), is_refused, "{:?}", outcome.writes);
    }
}

/// As if what has a reference could only be as it was known: a service that was restored from a backup has back what
/// it was about to delete. Also as if each of many holders read the references of all, or as if those were lost that
/// were not asked for.
#[tokio::test]
async fn nothing_is_deleted_with_an_object_of_another_service_before_that_was_asked_again() {
    let (restored, deletes) = (identity("Live").await, identity("Deleting").await);
    for (url, is_deleted, is_failed, reads) in [
        (&*restored, 0, false, 1),
        (&*deletes, 1, false, 0),
        (NOWHERE, 0, true, 0),
    ] {
        for immutable in [false, true] {
            let written = Arc::new(AtomicUsize::new(0));
            let count = written.clone();
            let cluster = cluster(move |method| {
                let writes = usize::from(method != Method::GET);
                count.fetch_add(writes, Ordering::SeqCst);
                StatusCode::NOT_FOUND.into_response()
            });
            let cause = Cause::Target {
                reference: "project",
                target: Seen::of(&project()),
                held: true,
            };
            let step = if immutable {
                Step::Request(cause)
            } else {
                Step::Delete(cause)
            };
            let task = task(live(key("Cluster", "a"), UID), step);
            let outcome = carry_out(&beside(cluster, url), &task, Timestamp::UNIX_EPOCH).await;
            assert_eq!(written.load(Ordering::SeqCst), is_deleted, "{url}");
            assert_eq!(outcome.failed.is_some(), is_failed, "{url}: {:?}", outcome.failed);
            let of_project = outcome.seen.iter().filter(|seen| seen.key == project().key);
            let references: Vec<_> = of_project.map(|seen| seen.references.len()).collect();
            assert_eq!(references, vec![1; reads], "{url}");
        }
    }
}
