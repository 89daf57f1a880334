//! Moves and creations while a proxy before the cluster answers a request itself, or a webhook denies a write: neither
//! says anything of an object.

use std::future::IntoFuture as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use kindex_api::operations::{Caller, NamedObject, ObjectKey, WriteOptions};
use kindex_generated::kinds::{model, project};
use kindex_harness::wait::eventually;
use kindex_kube_api::status::Outcome;
use kindex_model::kind::Kind;
use kindex_model::reference::{Named, OnDelete, Reference, Target};
use kindex_query::Life;
use kindex_store::MetadataStorage;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::auth_proxy::pass_on;
use super::moves_across::{Both, GROUP, HOLDERS, PROJECTS, changes, faulty_region};
use super::stage::{FINAL, Stage, model as model_at, send};

/// Serves before a cluster, and answers itself what this has an answer to: a method and a path.
async fn serve_before<F>(cluster: Client, own: impl Fn(String) -> F + Clone + Send + Sync + 'static) -> Config
where
    F: Future<Output = Option<Response>> + Send + 'static,
{
    let answer = move |request: Request| {
        let cluster = cluster.clone();
        let own = own(format!("{} {}", request.method(), request.uri().path()));
        async move {
            if let Some(answer) = own.await {
                return answer;
            }
            let (parts, body) = request.into_parts();
            let body = to_bytes(body, usize::MAX).await.unwrap();
            pass_on(&cluster, parts, body).await
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
    Config::new(format!("http://{address}").parse().unwrap())
}

/// Which read of the holder a proxy answers itself.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// The first one after the new target was asked to take the reference.
    Placed,
    /// The first one by which the archived holder names the new target, and the region was asked so much more since.
    Written { asked: usize },
}

/// A proxy that answers one read of the holder with a page of its own.
struct Proxy {
    moment: Moment,
    store: Arc<dyn MetadataStorage>,
    /// What the region was asked.
    asked: Arc<Mutex<Vec<String>>>,
    /// How much that was when the holder was read after the write.
    written_after: OnceLock<usize>,
    has_answered: AtomicBool,
}

impl Proxy {
    async fn answer(&self, what: &str) -> Option<Response> {
        if what != format!("GET {PROJECTS}/p") || !self.has_come().await {
            return None;
        }
        let is_first = !self.has_answered.swap(true, Ordering::SeqCst);
        is_first.then(|| (StatusCode::NOT_FOUND, "404 page not found\n").into_response())
    }

    async fn has_come(&self) -> bool {
        let count = self.asked.lock().unwrap().len();
        match self.moment {
            Moment::Placed => !changes(&self.asked).is_empty(),
            Moment::Written { asked } => {
                self.is_written().await && count - self.written_after.get_or_init(|| count) >= asked
            }
        }
    }

    async fn is_written(&self) -> bool {
        let rows = self.store.rows_of_name(&HOLDERS, "default", "p").await.unwrap();
        rows.first().is_some_and(|row| {
            let object: Value = serde_json::from_str(row.object.text()).unwrap();
            object["spec"]["description"] == "b"
        })
    }
}

/// Moves the project to `b` behind a proxy that answers at this moment: the code of the refusal, if it is one, and the
/// changes that the region was asked for. One of its answers is an outage.
async fn moved_behind_a_proxy(both: &Both, moment: Moment, outage: &'static str) -> (Option<u16>, Vec<String>) {
    let (peers, asked) = faulty_region(outage).await;
    let proxy = Arc::new(Proxy {
        moment,
        store: both.compute.store.clone(),
        asked: asked.clone(),
        written_after: OnceLock::new(),
        has_answered: AtomicBool::new(false),
    });
    let asking = proxy.clone();
    let config = serve_before(both.compute.cluster.clone(), move |what| {
        let proxy = asking.clone();
        async move { proxy.answer(&what).await }
    });
    let operations = both.compute.operations_at(config.await).with_peers(peers);
    let moved = both.try_to_move(&operations, "b", false).await;
    assert!(proxy.has_answered.load(Ordering::SeqCst), "{moment:?}");
    (moved.err().map(|refusal| refusal.code), changes(&asked))
}

/// As if a live holder were gone, of which nobody would need the reference that was just placed.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_s_404_takes_back_no_reference() {
    let both = Both::start().await;
    both.create(json!({})).await;
    let (code, changed) = moved_behind_a_proxy(&both, Moment::Placed, "PUT b?renew=true").await;
    assert_eq!((code, both.named().await), (Some(503), json!("a")));
    assert_eq!(changed, ["PUT b?renew=true"]);
    both.end().await;
}

/// As if the holder were gone after its move: the new target would not be held again, or would be released although it
/// is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_s_404_ends_no_archived_holder_that_has_moved() {
    let (placed, released) = ("PUT b?renew=true", "DELETE a");
    for (asked, expected) in [(0, vec![placed, placed, released]), (1, vec![placed, released])] {
        let both = Both::start().await;
        both.create_archived().await;
        let (code, changed) = moved_behind_a_proxy(&both, Moment::Written { asked }, "").await;
        assert_eq!((code, both.named().await), (None, json!("b")), "{asked}");
        assert_eq!(changed, expected, "{asked}");
        both.end().await;
    }
}

/// Projects that name models of the same service.
static NAMING: Kind = Kind {
    references: &[Reference {
        name: "model",
        targets: &[Target {
            service: None,
            group: GROUP,
            kind: "Model",
        }],
        kind_column: None,
        path: &["spec", "description"],
        named: Named::Name,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Block,
    }],
    ..project::KIND
};
static KINDS: &[&Kind] = &[&model::KIND, &NAMING];

/// An archived project that names the model `a`, which it holds.
async fn create_archived_holder(stage: &Stage) {
    let project = json!({"apiVersion": "michelangelo.api/v2", "kind": "Project",
        "metadata": {"name": "p", "annotations": {FINAL: "true"}}, "spec": {"description": "a"}});
    let (code, created) = send(&stage.api, "POST", PROJECTS, &project).await;
    assert_eq!(code, 201, "{created}");
    eventually("archived", async || {
        let rows = stage.store.rows_of_name(&NAMING, "default", "p").await.unwrap();
        let (code, _) = send(&stage.cluster, "GET", &format!("{PROJECTS}/p"), &Value::Null).await;
        code == 404 && rows.first().is_some_and(|row| row.life == Life::Archived)
    })
    .await;
    let uid = created["metadata"]["uid"].as_str().unwrap();
    let path = format!("/api/v1/models/default/a/references/project.{GROUP}/{uid}");
    let (code, answer) = send(&stage.api, "PUT", &path, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
}

/// As if a new object could name one that is being deleted, because a proxy said that there is none, or as if none
/// could name an object of a kind that is not installed.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_s_404_lets_no_new_object_name_what_may_be_deleted() {
    let stage = Stage::of_kinds(KINDS).await;
    stage.create("a", json!({}), json!({})).await;
    let project = json!({"apiVersion": "michelangelo.api/v2", "kind": "Project", "metadata": {"name": "p"},
        "spec": {"description": "a"}});
    let version = json!({"groupVersion": "apps/v1", "version": "v1"});
    let group = json!({"name": "apps", "versions": [version], "preferredVersion": version});
    let others = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]});
    let read = format!("GET {}", model_at("a"));
    for (is_served, expected) in [(true, Some(503)), (false, None)] {
        let (others, read) = (others.clone(), read.clone());
        let config = serve_before(stage.cluster.clone(), move |what| {
            let answer = match what.as_str() {
                "GET /apis" if !is_served => Some(Json(others.clone()).into_response()),
                what if what == read => Some((StatusCode::NOT_FOUND, "404 page not found\n").into_response()),
                _ => None,
            };
            async move { answer }
        });
        let operations = stage.operations_at(config.await);
        let (caller, options, text) = (Caller::default(), WriteOptions::default(), project.to_string());
        let created = operations.create(&caller, &NAMING, "default", &text, &options).await;
        let refused = created.err();
        assert_eq!(refused.as_ref().map(|refusal| refusal.code), expected, "{refused:?}");
        let why = "it is not known whether model/default/a is being deleted: ";
        assert!(refused.is_none_or(|refusal| refusal.message.starts_with(why)));
        let (code, _) = send(&stage.cluster, "GET", &format!("{PROJECTS}/p"), &Value::Null).await;
        assert_eq!(code == 200, expected.is_none(), "{code}");
    }
    stage.end().await;
}

/// As if the former target were gone, because a webhook did not find what it looked up.
#[tokio::test(flavor = "multi_thread")]
async fn a_denied_release_of_the_former_target_is_reported_as_a_denial() {
    let stage = Stage::of_kinds(KINDS).await;
    for name in ["a", "b"] {
        stage.create(name, json!({}), json!({})).await;
    }
    create_archived_holder(&stage).await;
    let denial = "admission webhook \"w\" denied the request: owners \"o\" not found";
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
        "reason": "NotFound", "message": denial, "details": {"name": "a", "kind": "models"}});
    let config = serve_before(stage.cluster.clone(), move |what| {
        let is_denied = what == format!("PATCH {}", model_at("a"));
        let answer = is_denied.then(|| (StatusCode::NOT_FOUND, Json(status.clone())).into_response());
        async move { answer }
    });
    let operations = stage.operations_at(config.await);
    let key = |kind: &'static Kind, name| ObjectKey {
        resource: kind.into(),
        namespace: "default",
        name,
    };
    let to = NamedObject::of(&key(&model::KIND, "b"));
    let (caller, holder) = (Caller::default(), key(&NAMING, "p"));
    let refused = operations.move_holder(&caller, &holder, None, &to, false).await;
    let refused = refused.expect_err("denied");
    assert_eq!(refused.outcome(), Outcome::Denied { again: false }, "{refused}");
    let done = "; model/default/a keeps the reference; spec.description names model/default/b now";
    assert_eq!(refused.message, format!("{denial}{done}"));
    let (_, moved) = send(&stage.api, "GET", &format!("{PROJECTS}/p"), &Value::Null).await;
    assert_eq!(moved["spec"]["description"], "b");
    drop(operations);
    stage.end().await;
}
