//! A Kubernetes API of one loaded kind: pages of a list of any length, made as they are asked for,
//! and a watch whose events the load program sends. All other kinds are empty. Says which cluster it is, without which
//! no ingester begins. Keeps nothing but the number of objects, so that its memory does not grow with them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use futures::StreamExt as _;
use futures::stream;
use kindex_model::kind::Kind;
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::broadcast;

/// Events that a slow watch may lag behind before it is cut off.
const EVENTS_MAX: usize = 65_536;
/// About half a page of a book: with the rest of the object 2 to 3 KiB of JSON.
const FILLER_BYTES: usize = 1_500;

/// A running server.
pub struct LoadServer {
    address: SocketAddr,
    load: Arc<Load>,
}

struct Load {
    kind: &'static Kind,
    objects: usize,
    filler: String,
    version: AtomicU64,
    events: broadcast::Sender<Bytes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListQuery {
    limit: Option<usize>,
    #[serde(rename = "continue")]
    token: Option<String>,
    watch: Option<String>,
}

impl LoadServer {
    /// Serves so many objects of the kind on a free loopback port, for as long as the runtime lives.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn start(kind: &'static Kind, objects: usize) -> Self {
        let filler = (0..FILLER_BYTES).map(|at| char::from(b'a' + u8::try_from(mixed(at) % 26).expect("below 26")));
        let load = Arc::new(Load {
            kind,
            objects,
            filler: filler.collect(),
            version: AtomicU64::new(objects as u64 + 1),
            events: broadcast::Sender::new(EVENTS_MAX),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        // As kube-apiserver has it: otherwise an event waits for the acknowledgement of the one before,
        // which the receiver delays by up to 40 ms.
        let listener = listener.tap_io(|stream| {
            let _slower = stream.set_nodelay(true);
        });
        let router = Router::new().fallback(answer).with_state(load.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, load }
    }

    /// A kubeconfig that leads here.
    pub fn kubeconfig(&self) -> String {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "load",
            "contexts": [{"name": "load", "context": {"cluster": "load", "user": "load"}}],
            "clusters": [{"name": "load", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "load", "user": {}}],
        });
        config.to_string()
    }

    /// The way here for a client in this process.
    ///
    /// # Panics
    /// Never: the address of a server is one of the web.
    pub fn config(&self) -> kube::Config {
        let address = format!("http://{}", self.address);
        kube::Config::new(address.parse().expect("an address of the web"))
    }

    /// How many watches are open on the loaded kind.
    pub fn watches(&self) -> usize {
        self.load.events.receiver_count()
    }

    /// Sends a new version of an object to all watches, and says which version it is.
    pub fn update(&self, index: usize) -> u64 {
        let version = self.load.version.fetch_add(1, Ordering::Relaxed) + 1;
        self.send(self.load.event("MODIFIED", index, version));
        version
    }

    /// Events of a type, such as `ADDED`, of so many objects, for [`send`](Self::send): making them takes a processor
    /// from what is measured. Each object has a new version, and another state than in the events made before.
    ///
    /// # Panics
    /// When there are more than a watch may lag behind.
    pub fn events(&self, event: &str, objects: usize) -> Vec<Bytes> {
        assert!(objects <= EVENTS_MAX, "a watch would be cut off");
        // The version decides which of three states an object has, so that its next one must not be a multiple of
        // three away.
        let versions = objects.next_multiple_of(3) as u64 + 1;
        let first = self.load.version.fetch_add(versions, Ordering::Relaxed) + 1;
        let made = (0..objects).map(|index| self.load.event(event, index, first + index as u64));
        made.collect()
    }

    /// Sends an event to all watches.
    pub fn send(&self, event: Bytes) {
        // Nobody watches: nobody misses it.
        let _receivers = self.load.events.send(event);
    }
}

async fn answer(State(load): State<Arc<Load>>, uri: Uri, Query(query): Query<ListQuery>) -> Response {
    let path = uri.path().trim_matches('/');
    if path == "api/v1/namespaces/kube-system" {
        let metadata = json!({"name": "kube-system", "uid": uid(load.objects)});
        return Json(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).into_response();
    }
    let Some(plural) = path.strip_prefix(&format!("apis/{}/{}/", load.kind.group, load.kind.version)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let is_loaded = plural == load.kind.plural;
    let body = match (query.watch.is_some(), is_loaded) {
        (true, true) => load.watch(),
        (true, false) => Body::from_stream(stream::pending::<Result<Bytes, std::convert::Infallible>>()),
        (false, true) => Body::from(load.page(query.limit.unwrap_or(500), query.token.as_deref())),
        (false, false) => Body::from(load.list(std::iter::empty(), None)),
    };
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

impl Load {
    fn watch(&self) -> Body {
        let receiver = self.events.subscribe();
        let events = stream::unfold(receiver, |mut receiver| async {
            let event = receiver.recv().await.ok()?;
            Some((Ok::<_, std::convert::Infallible>(event), receiver))
        });
        Body::from_stream(events.boxed())
    }

    fn page(&self, limit: usize, token: Option<&str>) -> String {
        let first: usize = token.and_then(|token| token.parse().ok()).unwrap_or(0);
        let end = first.saturating_add(limit).min(self.objects);
        let next = (end < self.objects).then(|| end.to_string());
        self.list(first..end, next)
    }

    fn list(&self, indices: impl Iterator<Item = usize>, next: Option<String>) -> String {
        let items: Vec<String> = indices.map(|index| self.object(index, index as u64 + 1)).collect();
        let metadata = json!({
            "resourceVersion": self.version.load(Ordering::Relaxed).to_string(),
            "continue": next.unwrap_or_default(),
        });
        format!(
            r#"{{"apiVersion":"{}","kind":"{}List","metadata":{metadata},"items":[{}]}}"#,
            self.kind.api_version(),
            self.kind.name,
            items.join(",")
        )
    }

    fn event(&self, event: &str, index: usize, version: u64) -> Bytes {
        let object = self.object(index, version);
        format!("{{\"type\":\"{event}\",\"object\":{object}}}\n").into()
    }

    fn object(&self, index: usize, version: u64) -> String {
        let state = ["RUNNING", "SUCCEEDED", "FAILED"][usize::try_from(version % 3).expect("below 3")];
        let object = json!({
            "apiVersion": self.kind.api_version(),
            "kind": self.kind.name,
            "metadata": {
                "namespace": format!("team-{}", index % 50),
                "name": format!("run-{index:08}"),
                "uid": uid(index),
                "resourceVersion": version.to_string(),
                "generation": 1,
                "creationTimestamp": "2026-05-06T06:00:00Z",
                "labels": {
                    "app.kubernetes.io/name": "trainer",
                    "app.kubernetes.io/instance": format!("trainer-{}", index % 100),
                    "pipeline": format!("pipeline-{}", index % 500),
                    "team": format!("team-{}", index % 50),
                    "week": format!("{}", index % 52),
                },
                "annotations": {
                    "example.org/owner": format!("user-{}@example.org", index % 200),
                    "example.org/note": &self.filler[..200],
                    "example.org/trace": uid(index + self.objects),
                },
            },
            "spec": {
                "pipeline": {"namespace": "shared", "name": format!("pipeline-{}", index % 500)},
                "actor": {"name": format!("user-{}", index % 200)},
                "parameters": &self.filler,
            },
            "status": {"state": format!("PIPELINE_RUN_STATE_{state}")},
        });
        object.to_string()
    }
}

/// The uid of an object: random to look at, the same for the same index.
pub fn uid(index: usize) -> String {
    let (high, low) = (mixed(index), mixed(index ^ 0x5555_5555));
    let digits = format!("{high:016x}{low:016x}");
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
    format!("{a}-{b}-{c}-{d}-{e}")
}

/// SplitMix64: <https://prng.di.unimi.it/splitmix64.c>
fn mixed(index: usize) -> u64 {
    let mut z = (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use kindex_generated::kinds::pipeline_run;
    use kindex_kube_client::Identity;
    use kindex_kube_client::kube_cluster::KubeCluster;
    use kindex_model::object::Uid;
    use serde_json::Value;

    use super::*;

    /// Otherwise an ingester waits, and a load program for its rows.
    #[tokio::test]
    async fn it_says_which_cluster_it_is() {
        let server = LoadServer::start(&pipeline_run::KIND, 1).await;
        let client = kube::Client::try_from(server.config()).expect("a client");
        let identity = KubeCluster::from(client).identity().await.expect("an answer");
        assert_eq!(identity, Identity::Known(Uid::from(uid(1).as_str())));
    }

    fn state(event: &Bytes) -> Value {
        let event: Value = serde_json::from_slice(event).expect("a line of JSON");
        event["object"]["status"]["state"].clone()
    }

    /// Otherwise an update changes nothing, and its row is not written.
    #[tokio::test]
    async fn an_object_has_another_state_in_its_next_event() {
        let server = LoadServer::start(&pipeline_run::KIND, 0).await;
        for objects in 1..=4 {
            let [before, after] = ["ADDED", "MODIFIED"].map(|event| server.events(event, objects));
            assert_eq!((before.len(), after.len()), (objects, objects));
            for (before, after) in before.iter().zip(&after) {
                assert_ne!(state(before), state(after));
            }
        }
    }
}
