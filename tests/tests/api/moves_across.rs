//! Moves to objects of another service: a field of a project here names a model there.

use std::future::IntoFuture as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::{Json, Router};
use kindex_api::operations::{
    Answer, Caller, Moved, NamedObject, ObjectKey, Operations, Part, Peers, Refusal, WriteOptions,
};
use kindex_generated::kinds::{model, project};
use kindex_harness::wait::eventually;
use kindex_kube_api::patch::PatchType;
use kindex_model::kind::Kind;
use kindex_model::reference::{Named, OnDelete, Reference, Service, Target};
use kindex_query::Life;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::stage::{FINAL, Stage, model as model_at, send};

pub(super) const GROUP: &str = "michelangelo.api";
pub(super) const PROJECTS: &str = "/apis/michelangelo.api/v2/namespaces/default/projects";

/// Nobody answers where crds.toml says.
pub(super) static REGION: Service = Service {
    name: "region",
    group: GROUP,
    cluster_scoped: &[],
    plurals: &[],
    refers_to: &[],
    address: "http://127.0.0.1:1",
    ca_file: None,
    token_file: None,
};
pub(super) static HOLDERS: Kind = Kind {
    references: &[Reference {
        name: "model",
        targets: &[Target {
            service: Some(&REGION),
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

static OF_REGION: &[&Kind] = &[&model::KIND];
static OF_COMPUTE: &[&Kind] = &[&HOLDERS];

/// Two services: models in the one, and projects that name them in the other.
pub(super) struct Both {
    region: Stage,
    pub(super) compute: Stage,
    pub(super) operations: Operations,
}

impl Both {
    pub(super) async fn start() -> Self {
        let region = Stage::of_kinds(OF_REGION).await;
        for name in ["a", "b"] {
            region.create(name, json!({}), json!({})).await;
        }
        let compute = Stage::of_kinds(OF_COMPUTE).await;
        let peers = Peers::default().at(GROUP, &format!("http://{}", region.address));
        let operations = compute.operations().with_peers(peers);
        Self {
            region,
            compute,
            operations,
        }
    }

    /// Creates the project, which names `a`; the name of its reference.
    pub(super) async fn create(&self, annotations: Value) -> String {
        let project = json!({"apiVersion": "michelangelo.api/v2", "kind": "Project",
            "metadata": {"name": "p", "annotations": annotations}, "spec": {"description": "a"}});
        let (code, created) = send(&self.compute.api, "POST", PROJECTS, &project).await;
        assert_eq!(code, 201, "{created}");
        format!("project.{GROUP}/{}", created["metadata"]["uid"].as_str().unwrap())
    }

    pub(super) async fn create_archived(&self) -> String {
        let held = self.create(json!({FINAL: "true"})).await;
        eventually("archived", async || {
            let rows = self.compute.store.rows_of_name(&HOLDERS, "default", "p").await.unwrap();
            rows.first().is_some_and(|row| row.life == Life::Archived)
        })
        .await;
        held
    }

    pub(super) async fn try_to_move(&self, operations: &Operations, to: &str, dry_run: bool) -> Result<Moved, Refusal> {
        let to = NamedObject::of_peer(&REGION, "Model", "default", to);
        let (caller, holder) = (Caller::default(), holder());
        operations.move_holder(&caller, &holder, None, &to, dry_run).await
    }

    pub(super) async fn named(&self) -> Value {
        let (_, found) = send(&self.compute.api, "GET", &format!("{PROJECTS}/p"), &Value::Null).await;
        found["spec"]["description"].clone()
    }

    /// Whether a model has a reference.
    pub(super) async fn has_reference(&self, model: &str, reference: &str) -> bool {
        let path = format!("/api/v1/models/default/{model}/references");
        let (code, answer) = send(&self.region.api, "GET", &path, &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
        let mut references = answer["references"].as_array().unwrap().iter();
        references.any(|held| held["name"] == reference)
    }

    async fn place(&self, model: &str, reference: &str) {
        let path = format!("/api/v1/models/default/{model}/references/{reference}");
        let (code, answer) = send(&self.region.api, "PUT", &path, &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
    }

    /// Somebody deletes a model, which something holds.
    pub(super) async fn delete(&self, model: &str) {
        self.place(
            model,
            "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce",
        )
        .await;
        let (code, answer) = send(&self.region.api, "DELETE", &model_at(model), &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
    }

    pub(super) async fn end(self) {
        drop(self.operations);
        self.compute.end().await;
        self.region.end().await;
    }
}

/// The field changes by a plain patch.
async fn update(operations: &Operations, name: &str) -> Result<Answer, Refusal> {
    let patch = json!({"spec": {"description": name}}).to_string().into();
    let (caller, holder, options) = (Caller::default(), holder(), WriteOptions::default());
    let patched = operations.patch(&caller, &holder, Part::Main, PatchType::Merge, patch, &options);
    patched.await
}

pub(super) fn holder() -> ObjectKey<'static> {
    ObjectKey {
        resource: (&HOLDERS).into(),
        namespace: "default",
        name: "p",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_target_is_held_at_its_service_before_the_field_names_it() {
    let both = Both::start().await;
    let held = both.create(json!({})).await;
    let tried = both
        .try_to_move(&both.operations, "b", true)
        .await
        .expect("it would do");
    assert_eq!(
        (tried.from.as_deref(), tried.to.as_str(), tried.unchanged),
        (Some("model/default/a"), "model/default/b", false)
    );
    assert!(
        both.named().await == "a" && !both.has_reference("b", &held).await,
        "nothing was written"
    );

    both.try_to_move(&both.operations, "b", false).await.expect("moved");
    assert!(both.named().await == "b" && both.has_reference("b", &held).await);
    let again = both.try_to_move(&both.operations, "b", false).await.expect("it is so");
    assert!(again.unchanged);
    let absent = both
        .try_to_move(&both.operations, "c", false)
        .await
        .expect_err("not there");
    assert_eq!(
        (absent.code, absent.message.as_str()),
        (404, "model/default/c not found")
    );
    both.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_moves_from_or_to_what_another_service_deletes() {
    let both = Both::start().await;
    let held = both.create(json!({})).await;
    both.delete("b").await;
    let refused = both
        .try_to_move(&both.operations, "b", false)
        .await
        .expect_err("deleted");
    let why = "spec.description would name model/default/b, which is being deleted, so that it cannot change; see \
               `kindex why model/b -n default` at the service region";
    assert!(refused.code == 409 && refused.message.ends_with(why), "{refused}");
    let refused = update(&both.operations, "b").await.expect_err("deleted");
    assert!(refused.code == 409 && refused.message.ends_with(why), "{refused}");
    assert!(both.named().await == "a" && !both.has_reference("b", &held).await);

    both.region.create("c", json!({}), json!({})).await;
    both.delete("a").await;
    let refused = both
        .try_to_move(&both.operations, "c", false)
        .await
        .expect_err("deleted");
    assert!(
        refused.code == 409
            && refused
                .message
                .contains("spec.description named model/default/a, which is being"),
        "{refused}"
    );
    assert!(both.named().await == "a" && !both.has_reference("c", &held).await);
    both.end().await;
}

/// Whoever moves knows that both targets stay; a plain update is not kept waiting by another service.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_does_not_answer_refuses_a_move_and_delays_no_update() {
    let both = Both::start().await;
    both.create(json!({})).await;
    let alone = both.compute.operations();
    let refused = both.try_to_move(&alone, "b", false).await.expect_err("nobody answers");
    let why = "the service region at http://127.0.0.1:1 does not answer: ";
    assert!(refused.code == 503 && refused.message.starts_with(why), "{refused}");
    let details = refused.details.as_ref().expect("whose silence it is");
    assert_eq!((details.group.as_str(), details.retry_after_seconds), (GROUP, Some(1)));
    assert_eq!(both.named().await, "a");
    let patch = json!({"spec": {"description": "b"}});
    let (code, patched) = send(&both.compute.api, "PATCH", &format!("{PROJECTS}/p"), &patch).await;
    assert_eq!((code, both.named().await), (200, json!("b")), "{patched}");

    // Who is there and never answers is not waited for either.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peers = Peers::default().at(GROUP, &format!("http://{}", silent.local_addr().unwrap()));
    let operations = both.compute.operations().with_peers(peers);
    let written = timeout(Duration::from_secs(60), update(&operations, "a"));
    written.await.expect("in time").expect("taken");
    assert_eq!(both.named().await, "a");
    both.end().await;
}

/// No field of an archived object is followed: who moves it releases the former target.
#[tokio::test(flavor = "multi_thread")]
async fn an_archived_holder_releases_the_former_target_at_its_service() {
    let both = Both::start().await;
    let held = both.create_archived().await;
    both.place("a", &held).await;
    let moved = both.try_to_move(&both.operations, "b", false).await.expect("moved");
    assert_eq!(moved.state.as_str(), "Archived");
    assert!(both.named().await == "b" && both.has_reference("b", &held).await);
    assert!(!both.has_reference("a", &held).await);
    both.end().await;
}

/// How a service says at a path that it has models.
pub(super) fn discovery(path: &str) -> Option<Value> {
    let version = json!({"groupVersion": "michelangelo.api/v2", "version": "v2"});
    let groups = json!([{"name": GROUP, "versions": [version], "preferredVersion": version}]);
    let resources = json!([{"name": "models", "singularName": "model", "namespaced": true, "kind": "Model",
        "verbs": ["get"]}]);
    match path {
        "/apis" => Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})),
        "/apis/michelangelo.api/v2" => Some(json!({"kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": "michelangelo.api/v2", "resources": resources})),
        _ => None,
    }
}

/// A region that says of every model that it is live, and writes down what is asked. One of its answers is an outage.
pub(super) async fn faulty_region(outage: &'static str) -> (Peers, Arc<Mutex<Vec<String>>>) {
    let live = json!({"target": {"uid": "u", "state": "Live"}, "references": []});
    region_that_says(live, outage, None).await
}

/// Another move of the project of this service, back to `a`, which comes in between.
#[derive(Clone)]
struct OtherMove {
    /// While the last one of these changes is made.
    during: &'static [&'static str],
    client: Client,
}

impl OtherMove {
    async fn make(self) {
        let field = json!({"spec": {"description": "a"}});
        let (code, patched) = send(&self.client, "PATCH", &format!("{PROJECTS}/p"), &field).await;
        assert_eq!(code, 200, "{patched}");
    }
}

/// The same, where this is said of every model.
async fn region_that_says(
    of_model: Value,
    outage: &'static str,
    other: Option<OtherMove>,
) -> (Peers, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = asked.clone();
    let answer = move |request: Request| {
        let path = request.uri().path();
        let found = discovery(path).unwrap_or_else(|| of_model.clone());
        let model = path.split('/').nth(5).unwrap_or_default();
        let query = request.uri().query().map(|query| format!("?{query}"));
        let what = format!("{} {model}{}", request.method(), query.unwrap_or_default());
        let code = if what == outage { 503 } else { 200 };
        let is_change = !what.starts_with("GET");
        noted.lock().unwrap().push(what);
        let other = other
            .clone()
            .filter(|other| is_change && changes(&noted) == other.during);
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503, "message": "down"});
        let (found, code) = if code == 503 { (status, code) } else { (found, code) };
        async move {
            if let Some(other) = other {
                other.make().await;
            }
            (StatusCode::from_u16(code).unwrap(), Json(found))
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
    (Peers::default().at(GROUP, &format!("http://{address}")), asked)
}

pub(super) fn changes(asked: &Mutex<Vec<String>>) -> Vec<String> {
    let asked = asked.lock().unwrap();
    asked.iter().filter(|what| !what.starts_with("GET")).cloned().collect()
}

/// There may be very many of them.
#[tokio::test(flavor = "multi_thread")]
async fn no_references_are_asked_for_to_know_how_far_a_target_is() {
    let both = Both::start().await;
    both.create(json!({})).await;
    let (peers, asked) = faulty_region("").await;
    let operations = both.compute.operations().with_peers(peers);
    both.try_to_move(&operations, "b", false).await.expect("moved");
    let asked = asked.lock().unwrap().clone();
    for model in ["a", "b"] {
        let looks = asked.iter().filter(|what| what.starts_with(&format!("GET {model}")));
        let looks: Vec<_> = looks.collect();
        let expected = format!("GET {model}?limit=0");
        assert!(
            !looks.is_empty() && looks.iter().all(|look| **look == expected),
            "{asked:?}"
        );
    }
    both.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_long_is_none() {
    let both = Both::start().await;
    both.create(json!({})).await;
    let long = "x".repeat(17 * 1024 * 1024);
    let long = json!({"target": {"uid": "u", "state": "Live"}, "references": [long]});
    let (peers, _) = region_that_says(long, "", None).await;
    let operations = both.compute.operations().with_peers(peers);
    let refused = both.try_to_move(&operations, "b", false).await.expect_err("too long");
    let why = "does not answer: its answer has more than 16777216 bytes";
    assert!(refused.code == 503 && refused.message.contains(why), "{refused}");
    both.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_placed_for_nothing_is_taken_back_also_where_no_answer_came() {
    let both = Both::start().await;
    both.create(json!({})).await;
    let (peers, asked) = faulty_region("PUT b?renew=true").await;
    let operations = both.compute.operations().with_peers(peers);
    let refused = both.try_to_move(&operations, "b", false).await.expect_err("no answer");
    assert_eq!((refused.code, both.named().await), (503, json!("a")), "{refused}");
    assert_eq!(changes(&asked), ["PUT b?renew=true", "DELETE b"]);
    both.end().await;
}

/// As if an archived holder that is moved back while its former target is released needed no reference there, or as if
/// one that is moved back before that left the reference on its new target.
#[tokio::test(flavor = "multi_thread")]
async fn an_archived_holder_that_others_move_meanwhile_holds_what_it_names_and_nothing_else() {
    static TO_B: [&str; 3] = ["PUT b?renew=true", "PUT b?renew=true", "DELETE a"];
    for (during, ends) in [
        (&TO_B[..], &["PUT a?renew=true"][..]),
        (&TO_B[..2], &["DELETE b", "PUT a?renew=true"]),
    ] {
        let both = Both::start().await;
        both.create_archived().await;
        let live = json!({"target": {"uid": "u", "state": "Live"}, "references": []});
        let other = OtherMove {
            during,
            client: both.compute.api.clone(),
        };
        let (peers, asked) = region_that_says(live, "", Some(other)).await;
        let operations = both.compute.operations().with_peers(peers);
        both.try_to_move(&operations, "b", false).await.expect("moved");
        assert_eq!(both.named().await, "a", "it came back after that");
        assert_eq!(changes(&asked), [during, ends].concat());
        both.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_target_stays_held_where_the_former_one_is_not_released() {
    let both = Both::start().await;
    both.create_archived().await;
    let (peers, asked) = faulty_region("DELETE a").await;
    let operations = both.compute.operations().with_peers(peers);
    let refused = both
        .try_to_move(&operations, "b", false)
        .await
        .expect_err("not released");
    let done = "; model/default/a keeps the reference; spec.description names model/default/b now";
    assert!(refused.code == 503 && refused.message.ends_with(done), "{refused}");
    assert_eq!(
        (both.named().await, changes(&asked)),
        (
            json!("b"),
            ["PUT b?renew=true", "PUT b?renew=true", "DELETE a"]
                .map(str::to_owned)
                .to_vec()
        )
    );
    both.end().await;
}
