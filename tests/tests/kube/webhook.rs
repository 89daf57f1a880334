//! A conversion webhook that is slow, and how many calls the embedded cluster sends it at a time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kindex_cluster::ClusterOptions;
use kindex_harness::wait::eventually;
use kindex_serve::listen::{Incoming, Listener, Tls};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::cluster::{TestCluster, definitions};

const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/tls/first.crt");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/tls/first.key");

/// As many as one webhook is asked at a time.
const CALLS_MAX: usize = 16;
/// As many as want an answer of it.
const READERS: usize = 60;

/// A webhook that answers nobody until it is let.
struct Slow {
    gate: Semaphore,
    called: AtomicUsize,
    most: AtomicUsize,
}

impl Slow {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let called = self.called.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(called, Ordering::SeqCst);
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let review: Value = serde_json::from_slice(&body).unwrap();
        drop(self.gate.acquire().await.unwrap());
        self.called.fetch_sub(1, Ordering::SeqCst);
        let mut objects = review["request"]["objects"].clone();
        for object in objects.as_array_mut().unwrap() {
            object["apiVersion"] = review["request"]["desiredAPIVersion"].clone();
        }
        let answer = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": {
            "uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": objects}});
        Response::new(Full::from(answer.to_string()))
    }
}

async fn client_config(slow: Arc<Slow>, stop: CancellationToken) -> Value {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/convert", socket.local_addr().unwrap());
    let listener = Listener {
        tls: Some(Tls::read(Path::new(CERTIFICATE), Path::new(KEY), None).unwrap()),
        ..Listener::new(socket)
    };
    let answer = move |request| {
        let slow = Arc::clone(&slow);
        async move { slow.answer(request).await }
    };
    tokio::spawn(listener.serve(answer, stop));
    json!({"url": url, "caBundle": STANDARD.encode(std::fs::read(CERTIFICATE).unwrap())})
}

fn definition(client_config: &Value) -> Value {
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pets.slow.dev"},
        "spec": {"group": "slow.dev", "scope": "Namespaced", "names": {"kind": "Pet", "plural": "pets"},
            "versions": [version("v1"), version("v2"), version("v3")],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": client_config}}}})
}

fn pets(cluster: &TestCluster, version: &str) -> Api<DynamicObject> {
    Api::default_namespaced_with(cluster.client.clone(), &kind(version))
}

fn kind(version: &str) -> ApiResource {
    ApiResource {
        group: "slow.dev".to_owned(),
        version: version.to_owned(),
        api_version: format!("slow.dev/{version}"),
        kind: "Pet".to_owned(),
        plural: "pets".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_asked_by_a_few_at_a_time_and_answers_all() {
    let slow = Arc::new(Slow {
        gate: Semaphore::new(0),
        called: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
    });
    let stop = CancellationToken::new();
    let _stopped = stop.clone().drop_guard();
    let cluster = TestCluster::with(ClusterOptions::default()).await;
    let manifest = definition(&client_config(slow.clone(), stop).await);
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &definitions());
    let parameters = PatchParams::apply("tests").force();
    let applied = api.patch("pets.slow.dev", &parameters, &Patch::Apply(&manifest)).await;
    applied.unwrap();
    let own = pets(&cluster, "v1");
    eventually("pets are served", async || {
        own.list(&ListParams::default()).await.is_ok()
    })
    .await;
    let pet = DynamicObject::new("one", &kind("v1")).data(json!({"spec": {"size": 1}}));
    own.create(&PostParams::default(), &pet).await.unwrap();

    // In both of the other versions: they have one webhook.
    let others = ["v2", "v3"].map(|version| pets(&cluster, version));
    let mut readers: FuturesUnordered<_> = (0..READERS)
        .map(|at| {
            let pets = others[at % 2].clone();
            tokio::spawn(async move { pets.get("one").await })
        })
        .collect();
    eventually("as many calls as may be", async || {
        slow.called.load(Ordering::SeqCst) >= CALLS_MAX
    })
    .await;
    // Whoever else would call has had the time to, and who needs no webhook waits for nobody.
    for _ in 0..100 {
        own.get("one").await.unwrap();
    }
    slow.gate.add_permits(READERS);
    while let Some(read) = readers.next().await {
        let read = read.unwrap().unwrap();
        assert_ne!(read.types.unwrap().api_version, "slow.dev/v1");
    }
    assert_eq!(slow.most.load(Ordering::SeqCst), CALLS_MAX);
}
