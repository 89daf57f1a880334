//! Clients that watch: what they are told, and what they believe to be there.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures::{AsyncBufRead, AsyncBufReadExt, StreamExt};
use kindex_harness::wait::WAIT_MAX;
use kindex_model::kind::Kind;
use kindex_model::object::ResourceVersion;
use kindex_model::row_version::RowVersion;
use kube::Client;
use serde_json::{Value, json};

use super::stage::{MODELS, Stage, model, send};

/// Every scenario on an embedded cluster with SQLite, with MariaDB, and on a kube-apiserver.
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        $(mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread")]
            async fn sqlite() {
                super::$name(Stage::on_sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn mariadb() {
                if let Some(stage) = Stage::on_mariadb().await {
                    super::$name(stage).await;
                }
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn kube_apiserver() {
                if let Some(stage) = Stage::on_control_plane(RightsOf::Server).await {
                    super::$name(stage).await;
                }
            }
        })*
    };
}

pub(super) use scenarios;

/// What a client that lists once and then watches believes to be there, with one label of each.
pub(super) type Cache = BTreeMap<String, String>;

pub(super) fn believed(object: &Value) -> (String, String) {
    let label = object["metadata"]["labels"]["n"].as_str().unwrap_or_default();
    (name(object).to_owned(), label.to_owned())
}

/// A watch under way.
pub(super) struct Watch {
    lines: futures::io::Lines<Pin<Box<dyn AsyncBufRead + Send>>>,
}

impl Watch {
    pub(super) async fn begin(client: &Client, query: &str) -> Self {
        let path = format!("{MODELS}?watch=true&timeoutSeconds=3600&{query}");
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let request = http::Request::get(&path).body(Vec::new()).unwrap();
            match client.request_stream(request).await {
                Ok(body) => {
                    let body: Pin<Box<dyn AsyncBufRead + Send>> = Box::pin(body);
                    return Self { lines: body.lines() };
                }
                // As a client does that is told to try again.
                Err(kube::Error::Api(status)) if status.code == 503 && Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(error) => panic!("{path}: {error}"),
            }
        }
    }

    /// Type and object of the next event.
    pub(super) async fn next(&mut self) -> (String, Value) {
        let line = tokio::time::timeout(WAIT_MAX, self.lines.next()).await;
        let line = line.expect("an event in time").expect("the watch goes on").unwrap();
        let mut event: Value = serde_json::from_str(&line).unwrap();
        (event["type"].as_str().unwrap().to_owned(), event["object"].take())
    }

    /// The next that is no bookmark, as `TYPE name`.
    pub(super) async fn received(&mut self) -> String {
        loop {
            match self.next().await {
                (kind, _) if kind == "BOOKMARK" => {}
                (kind, object) => return format!("{kind} {}", name(&object)),
            }
        }
    }

    /// What a client believes that believed this before, once that is as it should be.
    pub(super) async fn until(&mut self, mut cache: Cache, is_enough: impl Fn(&Cache) -> bool) -> Cache {
        while !is_enough(&cache) {
            println!("believed: {cache:?}");
            let (kind, object) = self.next().await;
            match kind.as_str() {
                "DELETED" => drop(cache.remove(name(&object))),
                _ => cache.extend([believed(&object)]),
            }
        }
        cache
    }

    /// What is told up to this, and this.
    pub(super) async fn received_until(&mut self, last: &str) -> Vec<String> {
        let mut received = vec![self.received().await];
        while received.last().unwrap() != last {
            received.push(self.received().await);
        }
        received
    }
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(super) fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}

pub(super) fn is_direct(version: &str) -> bool {
    RowVersion::unpack(ResourceVersion(version.parse().unwrap())).is_direct()
}

pub(super) async fn list_version(client: &Client) -> String {
    let (code, list) = send(client, "GET", &format!("{MODELS}?limit=1"), &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    version(&list).to_owned()
}

pub(super) async fn label(client: &Client, name: &str, labels: Value) -> Value {
    let patch = json!({"metadata": {"labels": labels}});
    let (code, answer) = send(client, "PATCH", &model(name), &patch).await;
    assert_eq!(code, 200, "{answer}");
    answer
}

pub(super) async fn delete(client: &Client, name: &str) {
    let (code, answer) = send(client, "DELETE", &model(name), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
}

impl Stage {
    /// Until who resumes a watch of a kind is not told again of what SQL has changed so far.
    pub(super) async fn marked(&self, kind: &Kind) {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let recorded = self.store.watermark_before(kind, ResourceVersion(u64::MAX >> 2)).await;
            let positions = self.store.positions().await.expect("readable");
            if recorded.expect("readable") == positions.get(kind.name).copied() {
                return;
            }
            assert!(Instant::now() < deadline, "the changes of {} are not marked", kind.name);
        }
    }
}
