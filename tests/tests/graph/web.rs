//! Notices that a web server gets: one for each object and what it waits for, until the server takes it. Nothing waits
//! for the server.

use std::collections::{BTreeSet, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kindex_deletion::cluster::Cluster;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::metrics::Metrics;
use kindex_deletion::service::{Deletion, Options};
use kindex_deletion::web::WebNotices;
use kindex_deletion::web::server::{Endpoint, Server};
use kindex_harness::scrape::Scrape;
use kindex_harness::wait::WAIT_MAX;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use prometheus::{Registry, TextEncoder};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Stage;
use super::kinds::registry;
use super::kubernetes::start;

const CLEANUP: &str = "example.com/cleanup";
/// What the notice of a network says that a cluster holds.
const IN_USE: &str = "still in use by cluster.platform.example.com default/";

/// A web server that keeps what it gets. Clones are the same.
#[derive(Clone, Default)]
struct Receiver {
    got: Arc<Mutex<Vec<Value>>>,
    /// What it answers first. After that, it takes everything.
    answers: Arc<Mutex<VecDeque<StatusCode>>>,
    /// Whether it never answers.
    is_silent: bool,
}

async fn take(State(receiver): State<Receiver>, Json(notice): Json<Value>) -> StatusCode {
    receiver.got.lock().expect("no panic").push(notice);
    if receiver.is_silent {
        pending::<()>().await;
    }
    let answer = receiver.answers.lock().expect("no panic").pop_front();
    answer.unwrap_or(StatusCode::NO_CONTENT)
}

impl Receiver {
    fn that_answers(answers: &[StatusCode]) -> Self {
        let receiver = Self::default();
        receiver.answers.lock().expect("no panic").extend(answers);
        receiver
    }

    /// Where it answers from now on.
    async fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new().route("/kindex", post(take)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}/kindex")
    }

    fn got(&self) -> Vec<Value> {
        self.got.lock().expect("no panic").clone()
    }

    /// The notices about an object that say this.
    fn about(&self, name: &str, message: &str) -> Vec<Value> {
        let says = |notice: &Value| notice["message"].as_str().is_some_and(|said| said.contains(message));
        let mut got = self.got();
        got.retain(|notice| notice["name"] == name && says(notice));
        got
    }
}

/// A service at work.
struct Service {
    metrics: Registry,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Service {
    fn sum(&self, metric: &str, label: (&str, &str)) -> f64 {
        let text = TextEncoder::new().encode_to_string(&self.metrics.gather());
        Scrape::parse(&text.expect("a text")).sum_of(metric, &[label])
    }

    fn notices(&self, result: &str) -> f64 {
        self.sum("kindex_deletion_web_notices_total", ("result", result))
    }

    /// Of how many objects and what they wait for people were told, with this reason.
    fn reported(&self, reason: &str) -> f64 {
        self.sum("kindex_deletion_notices_total", ("reason", reason))
    }

    fn blocked(&self, kind: &str) -> f64 {
        self.sum("kindex_deletion_blocked", ("kind", kind))
    }

    /// What it leaves of its metrics.
    async fn end(mut self) -> Self {
        self.stop.cancel();
        let ended = timeout(WAIT_MAX, &mut self.running).await;
        ended.expect("it takes too long").expect("it ends");
        self
    }
}

impl Stage {
    async fn run_notifying(&self, url: &str) -> Service {
        let place = Endpoint {
            url: url.to_owned(),
            token_file: None,
            ca_file: None,
        };
        let server = Server::open(&place).await.expect("a server");
        let (shown, stop) = (Registry::new(), CancellationToken::new());
        let metrics = Metrics::new(&shown);
        let cluster = Cluster::new(self.client.clone(), Kinds::of(&registry()));
        let cluster = cluster.notifying(WebNotices::new(server, &metrics));
        let options = Options {
            blocked_after: Duration::from_millis(500),
        };
        let (deletion, stopped) = (Deletion::new(cluster, options, metrics), stop.clone());
        Service {
            metrics: shown,
            stop,
            running: tokio::spawn(async move { deletion.run(&stopped).await }),
        }
    }

    /// Deletes a network of which a cluster is left, which waits for a controller.
    async fn block(&self, network: &str, cluster: &str) {
        self.create("Network", network, json!({})).await;
        self.create("Cluster", cluster, json!({"network": network})).await;
        let reference = self.reference("Cluster", cluster).await;
        self.until(|| self.has(("Network", network), &reference)).await;
        let found = self.get("Cluster", cluster).await.expect("it is there");
        let finalizers = [found.finalizers(), &[CLEANUP.to_owned()]].concat();
        self.patch("Cluster", cluster, json!({"metadata": {"finalizers": finalizers}}))
            .await;
        self.delete("Network", network).await;
    }

    /// What the events of the service say, of which object.
    async fn events(&self) -> Vec<String> {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let events = events.list(&ListParams::default()).await.expect("events").items;
        let ours = events.into_iter().filter(|event| {
            let source = event.source.as_ref();
            source.is_some_and(|source| source.component.as_deref() == Some("kindex-deletion"))
        });
        let said = ours.map(|event| {
            let (name, message) = (event.involved_object.name, event.message);
            format!("{}: {}", name.unwrap_or_default(), message.unwrap_or_default())
        });
        said.collect()
    }

    async fn a_service_that_starts_again_repeats_nothing(&self) {
        let receiver = Receiver::default();
        let url = receiver.serve().await;
        let first = self.run_notifying(&url).await;
        self.block("n", "c").await;
        let is_sent = || !receiver.about("n", IN_USE).is_empty() && !receiver.about("c", CLEANUP).is_empty();
        self.until(|| async { is_sent() }).await;
        first.end().await;
        let recorded = self.events().await;

        let second = self.run_notifying(&url).await;
        // A look counts what the look before it has reported.
        let has_reported = || second.blocked("Network") >= 1.0 && second.blocked("Cluster") >= 1.0;
        self.until(|| async { has_reported() }).await;
        second.end().await;
        let events = self.events().await;
        assert!(recorded.iter().any(|event| event.contains(IN_USE)), "{recorded:?}");
        assert_distinct(&events);
        let posted: Vec<_> = receiver.got().iter().map(without_time).collect();
        assert_distinct(&posted);
    }
}

fn without_time(notice: &Value) -> String {
    let mut notice = notice.clone();
    notice["time"].take();
    notice.to_string()
}

fn assert_distinct(all: &[String]) {
    let distinct: BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "{all:#?}");
}

#[tokio::test]
async fn a_web_server_gets_one_notice_of_an_object_and_what_it_waits_for() {
    let (stage, receiver) = (Stage::start().await, Receiver::default());
    let service = stage.run_notifying(&receiver.serve().await).await;
    stage.block("n", "c").await;
    stage.until(|| async { !receiver.about("n", IN_USE).is_empty() }).await;
    // The looks that report this one would report the other one again.
    stage.block("m", "d").await;
    stage.until(|| async { !receiver.about("m", IN_USE).is_empty() }).await;
    let service = service.end().await;
    let uid = stage.get("Network", "n").await.expect("it waits").uid();
    let mut notices = receiver.about("n", IN_USE);
    assert_eq!(notices.len(), 1, "{notices:?}");
    let time = notices[0]["time"].take();
    let time = time.as_str().expect("a text").parse::<Timestamp>();
    assert!(time.is_ok_and(|time| time <= Timestamp::now()));
    let expected = json!({
        "apiVersion": "platform.example.com/v1",
        "kind": "Network",
        "namespace": "default",
        "name": "n",
        "uid": uid,
        "reason": "DeletionBlocked",
        "message": format!("{IN_USE}c"),
        "roots": notices[0]["roots"],
        "waits": true,
        "time": null,
    });
    assert_eq!(notices[0], expected);
    let roots = notices[0]["roots"].as_str().expect("a text");
    assert!(roots.starts_with("cluster.platform.example.com default/c ("), "{roots}");
    let posted: Vec<_> = receiver.got().iter().map(without_time).collect();
    assert_distinct(&posted);
    assert!(service.notices("sent") >= 3.0 && service.notices("failed") < 1.0);
    let is_blocked = |notice: &Value| notice["reason"] == "DeletionBlocked";
    let blocked = receiver.got().into_iter().filter(is_blocked).count();
    assert_eq!(service.reported("DeletionBlocked").to_string(), blocked.to_string());
}

#[tokio::test]
async fn a_notice_is_posted_until_the_server_takes_it() {
    let receiver = Receiver::that_answers(&[StatusCode::INTERNAL_SERVER_ERROR, StatusCode::TOO_MANY_REQUESTS]);
    let stage = Stage::start().await;
    let service = stage.run_notifying(&receiver.serve().await).await;
    stage.block("n", "c").await;
    stage.until(|| async { service.notices("sent") >= 2.0 }).await;
    let service = service.end().await;
    let got = receiver.got();
    assert!(got[0] == got[1] && got[1] == got[2] && got[2] != got[3], "{got:?}");
    assert!(service.notices("failed") < 1.0);
}

#[tokio::test]
async fn a_notice_that_the_server_refuses_is_not_posted_again() {
    let receiver = Receiver::that_answers(&[StatusCode::BAD_REQUEST]);
    let stage = Stage::start().await;
    let service = stage.run_notifying(&receiver.serve().await).await;
    stage.block("n", "c").await;
    stage.until(|| async { service.notices("sent") >= 1.0 }).await;
    let service = service.end().await;
    let posted: Vec<_> = receiver.got().iter().map(without_time).collect();
    assert_distinct(&posted);
    assert!(service.notices("failed") >= 1.0);
}

#[tokio::test]
async fn a_web_server_that_never_answers_holds_up_no_deletion_and_not_the_end() {
    let receiver = Receiver {
        is_silent: true,
        ..Receiver::default()
    };
    let stage = Stage::start().await;
    let service = stage.run_notifying(&receiver.serve().await).await;
    stage.project().await;
    stage.block("m", "d").await;
    stage.until(|| async { !receiver.got().is_empty() }).await;
    stage.delete("Project", "a").await;
    stage.until(|| stage.is_empty()).await;
    let service = service.end().await;
    assert!(service.notices("sent") < 1.0);
    assert!(service.notices("failed") + service.notices("dropped") >= 1.0);
}

#[tokio::test]
async fn a_service_that_starts_again_repeats_no_event_and_no_notice() {
    Stage::start().await.a_service_that_starts_again_repeats_nothing().await;
}

#[tokio::test]
async fn it_repeats_none_on_kube_apiserver_either() {
    if let Some((_plane, stage)) = start().await {
        stage.a_service_that_starts_again_repeats_nothing().await;
    }
}
