//! What a migration depends on goes away while it runs, and comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kindex_harness::wait::eventually;
use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::reconcile::Memory;
use kindex_migrator::cluster::settings::Pace;
use kindex_migrator::cluster::work::work;
use kindex_migrator::run::Verdict;
use kindex_serve::listen::Incoming;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::gate::held_after;
use super::stage::{Plane, Webhook};
use super::zoo::{PACE, Zoo, encodings};

const PETS: usize = 100;

/// Of a migration that is interrupted, with five objects each.
const PAGES: usize = PETS / 5;

/// How often the API server is killed: `KINDEX_FAULTS=full` for a release.
fn kills() -> usize {
    match std::env::var("KINDEX_FAULTS").as_deref() {
        Ok("full") => 50,
        _ => 2,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_survives_kills_of_the_api_server() {
    let Some(mut plane) = Plane::start(&[]) else { return };
    let zoo = Zoo::open(&plane, "killed.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    let mut memory = Memory::default();
    for kill in 0..kills() {
        let version = if kill % 2 == 0 { "v2" } else { "v1" };
        zoo.store_in(version).await;
        zoo.reconcile(&mut memory).await;
        let (go_on, goes_on) = watch::channel(false);
        let working = tokio::spawn({
            let cluster = Cluster::new(held_after(PAGES / 2, &zoo.client, goes_on), Vec::new());
            let migration = zoo.migration().await;
            let pace = Pace { page: 5, workers: 2 };
            async move { work(&cluster, migration, pace).await }
        });
        eventually("the first page", async || {
            let status = zoo.migration().await.status;
            status.is_some_and(|status| status.continue_token.is_some())
        })
        .await;
        assert!(!working.is_finished(), "it is killed before the end");
        plane.server.kill();
        go_on.send_replace(true);
        plane.server.restart(&[]);
        let mut verdict = working.await.expect("it does not panic").unwrap_or_default();
        while verdict.is_none() {
            // What a migrator does that could not save.
            verdict = work(&zoo.cluster, zoo.migration().await, Pace { page: 50, workers: 2 })
                .await
                .unwrap_or_default();
        }
        assert_eq!(verdict, Some(Verdict::Succeeded), "kill {kill}");
        let target = format!("killed.example.com/{version}");
        assert_eq!(encodings(&plane.etcd.stored(&zoo.prefix())), [(target, PETS)].into());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_that_fails_at_the_start_is_no_verdict() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "silent.example.com").await;
    zoo.store_in("v1").await;
    zoo.reconcile(&mut Memory::default()).await;
    let cluster = Cluster::new(without(&zoo.client, "/apis"), Vec::new());
    let ended = work(&cluster, zoo.migration().await, PACE).await;
    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(zoo.migrate().await, Verdict::Succeeded);
}

/// A client whose server answers everything but one path, as one that has just begun.
fn without(client: &Client, path: &'static str) -> Client {
    let client = client.clone();
    let answer = move |request: Request<Body>| {
        let client = client.clone();
        async move {
            if request.uri().path() == path {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                return Ok(response);
            }
            client.send(request).await
        }
    };
    Client::new(tower::service_fn(answer), "default")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_waits_for_the_conversion_webhook() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "webhook.example.com").await;
    let webhook = Converter::start(plane).await;
    let define = async |version: &str| {
        let mut definition = zoo.definition(&["v1", "v2"], version);
        definition["spec"]["conversion"] = webhook.conversion();
        zoo.define(&definition).await;
        zoo.shows(&zoo.hash(version)).await;
    };
    define("v1").await;
    zoo.create(0..PETS).await;
    webhook.up.store(false, Ordering::Relaxed);
    define("v2").await;
    zoo.reconcile(&mut Memory::default()).await;

    let asked = webhook.asked.load(Ordering::Relaxed);
    let working = tokio::spawn({
        let (cluster, migration) = (zoo.cluster.clone(), zoo.migration().await);
        async move { work(&cluster, migration, Pace { page: 50, workers: 2 }).await }
    });
    eventually("attempts in vain", async || {
        webhook.asked.load(Ordering::Relaxed) >= asked + 3
    })
    .await;
    assert!(!working.is_finished(), "it waits");
    webhook.up.store(true, Ordering::Relaxed);
    let verdict = working.await.expect("it does not panic").expect("saved");
    assert_eq!(verdict, Some(Verdict::Succeeded));
    let target = "webhook.example.com/v2".to_owned();
    assert_eq!(encodings(&plane.etcd.stored(&zoo.prefix())), [(target, PETS)].into());
}

/// Converts by the name of the version alone, while it is up.
struct Converter {
    webhook: Webhook,
    up: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Converter {
    async fn start(plane: &Plane) -> Self {
        let (up, asked) = (Arc::new(AtomicBool::new(true)), Arc::<AtomicUsize>::default());
        let (is_up, counted) = (up.clone(), asked.clone());
        let answer = move |request| answer(is_up.clone(), counted.clone(), request);
        Self {
            webhook: Webhook::start(plane, answer).await,
            up,
            asked,
        }
    }

    /// `spec.conversion` of a definition.
    fn conversion(&self) -> Value {
        let client_config = self.webhook.client_config();
        json!({"strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client_config}})
    }
}

async fn answer(up: Arc<AtomicBool>, asked: Arc<AtomicUsize>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    asked.fetch_add(1, Ordering::Relaxed);
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    let mut review: Value = serde_json::from_slice(&body).expect("JSON");
    let mut response = Response::new(Full::default());
    if !up.load(Ordering::Relaxed) {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        return response;
    }
    let asked = review["request"].take();
    let mut objects = asked["objects"].as_array().cloned().expect("objects");
    for object in &mut objects {
        object["apiVersion"] = asked["desiredAPIVersion"].clone();
    }
    review["response"] = json!({"uid": asked["uid"], "convertedObjects": objects, "result": {"status": "Success"}});
    *response.body_mut() = Full::from(review.to_string());
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}
