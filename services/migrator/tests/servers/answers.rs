//! What happens between the list and the patch, and what API servers answer to patches.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kindex_harness::wait::eventually;
use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::reconcile::Memory;
use kindex_migrator::cluster::work::work;
use kindex_migrator::run::{VERIFICATIONS_MAX, Verdict};
use kindex_serve::listen::Incoming;
use kube::api::{Api, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::stage::{Plane, Webhook};
use super::zoo::{PACE, Zoo, encodings, versions};

const PETS: usize = 10;

/// The last part of the path of a patch that stores something.
fn patched(request: &Request<Body>) -> Option<String> {
    let is_dry = request.uri().query().is_some_and(|query| query.contains("dryRun"));
    let is_patch = request.method() == Method::PATCH && request.uri().path().contains("/pets/") && !is_dry;
    is_patch.then(|| request.uri().path().rsplit('/').next().unwrap_or_default().to_owned())
}

fn wait_a_second() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    let seconds = HeaderValue::from_static("1");
    response.headers_mut().insert(header::RETRY_AFTER, seconds);
    response
}

/// A client that answers the first patch of each object by itself.
fn that_asks_for_time(client: &Client, asked: Arc<Mutex<BTreeMap<String, Instant>>>) -> Client {
    let client = client.clone();
    let answer = move |request: Request<Body>| {
        let (client, asked) = (client.clone(), asked.clone());
        async move {
            if let Some(name) = patched(&request) {
                let before = asked.lock().expect("nobody panics").get(&name).map(Instant::elapsed);
                let Some(waited) = before else {
                    asked.lock().expect("nobody panics").insert(name, Instant::now());
                    return Ok(wait_a_second());
                };
                assert!(waited >= Duration::from_secs(1), "{name} after {waited:?}");
            }
            client.send(request).await
        }
    };
    Client::new(tower::service_fn(answer), "default")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_for_time_is_given_it() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "slow.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    zoo.store_in("v2").await;
    zoo.reconcile(&mut Memory::default()).await;
    let asked = Arc::new(Mutex::new(BTreeMap::new()));
    let cluster = Cluster::new(that_asks_for_time(&zoo.client, asked.clone()), Vec::new());
    let ended = work(&cluster, zoo.migration().await, PACE).await;
    assert_eq!(ended.expect("saved"), Some(Verdict::Succeeded));
    assert_eq!(asked.lock().expect("nobody panics").len(), PETS);
    let target = "slow.example.com/v2".to_owned();
    assert_eq!(encodings(&plane.etcd.stored(&zoo.prefix())), [(target, PETS)].into());
}

/// A client before whose patches two objects are deleted, each once; the second is created again.
fn with_another_in_between(zoo: &Arc<Zoo>) -> Client {
    let (zoo, left) = (zoo.clone(), Arc::new(Mutex::new(vec!["pet-000", "pet-001"])));
    let answer = move |request: Request<Body>| {
        let (zoo, left) = (zoo.clone(), left.clone());
        async move {
            let name = patched(&request);
            let found = {
                let mut left = left.lock().expect("nobody panics");
                let at = left.iter().position(|one| name.as_deref() == Some(*one));
                at.map(|at| left.remove(at))
            };
            if let Some(name) = found {
                let pets = zoo.pets_at_home("v1");
                let pet = pets.get(name).await.expect("there");
                pets.delete(name, &DeleteParams::default()).await.expect("deleted");
                if name == "pet-001" {
                    pets.create(&PostParams::default(), &created_anew(pet))
                        .await
                        .expect("created");
                }
            }
            zoo.client.send(request).await
        }
    };
    Client::new(tower::service_fn(answer), "default")
}

fn created_anew(pet: DynamicObject) -> DynamicObject {
    let metadata = ObjectMeta {
        name: pet.metadata.name,
        ..ObjectMeta::default()
    };
    DynamicObject { metadata, ..pet }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_deleted_after_the_list_does_not_come_back() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Arc::new(Zoo::open(plane, "gone.example.com").await);
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    zoo.store_in("v2").await;
    zoo.reconcile(&mut Memory::default()).await;
    let cluster = Cluster::new(with_another_in_between(&zoo), Vec::new());
    let ended = work(&cluster, zoo.migration().await, PACE).await;
    assert_eq!(ended.expect("saved"), Some(Verdict::Succeeded));
    let after = versions(&zoo.pets("v2")).await;
    assert!(after.len() == PETS - 1 && !after.contains_key("pet-000"), "{after:?}");
    let target = "gone.example.com/v2".to_owned();
    assert_eq!(
        encodings(&plane.etcd.stored(&zoo.prefix())),
        [(target, PETS - 1)].into()
    );
}

/// Lets every write count up, and says what it has seen.
async fn stamp(number: Arc<AtomicUsize>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    let review: Value = serde_json::from_slice(&body).expect("JSON");
    let number = number.fetch_add(1, Ordering::Relaxed);
    let patch = json!([{"op": "add", "path": "/spec/stamp", "value": number}]);
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
        "uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch",
        "patch": ByteString(patch.to_string().into_bytes()),
    }});
    let mut response = Response::new(Full::from(answer.to_string()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_changes_objects_at_every_write_is_named() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "stamped.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    let webhook = Webhook::start(plane, {
        let number = Arc::<AtomicUsize>::default();
        move |request| stamp(number.clone(), request)
    })
    .await;
    let configuration = json!({"metadata": {"name": "stamps"}, "webhooks": [{
        "name": "stamp.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": webhook.client_config(),
        "rules": [{"operations": ["UPDATE"], "apiGroups": ["stamped.example.com"], "apiVersions": ["*"],
                   "resources": ["pets"]}],
    }]});
    let configuration: MutatingWebhookConfiguration = serde_json::from_value(configuration).expect("it is one");
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(zoo.client.clone());
    let created = configurations.create(&PostParams::default(), &configuration).await;
    let name = created.expect("created").name_any();
    // API servers follow such configurations with some delay.
    let pets = zoo.pets_at_home("v1");
    let label = Patch::Merge(json!({"metadata": {"labels": {"looked": "at"}}}));
    eventually("a stamp", async || {
        let patched = pets.patch("pet-000", &PatchParams::default(), &label).await;
        patched.is_ok_and(|pet| pet.data["spec"]["stamp"].is_number())
    })
    .await;
    zoo.store_in("v2").await;
    zoo.reconcile(&mut Memory::default()).await;
    let verdict = zoo.migrate().await;
    let deleted = configurations.delete(&name, &DeleteParams::default()).await;
    deleted.expect("deleted");
    assert_eq!(verdict, Verdict::NeverUnchanged);
    let status = zoo.migration().await.status.expect("a status");
    assert_eq!(status.passes, VERIFICATIONS_MAX + 1, "it ends");
    let failed = status.conditions.iter().find(|condition| condition.kind == "Failed");
    let message = &failed.expect("it failed").message;
    assert!(
        message.contains("the mutating webhook stamps/stamp.example.com"),
        "{message}"
    );
    let target = "stamped.example.com/v2".to_owned();
    assert_eq!(encodings(&plane.etcd.stored(&zoo.prefix())), [(target, PETS)].into());
}
