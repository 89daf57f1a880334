//! Events of a real ingester and a real cluster, and of a kind that no cluster has: the contract over server-sent
//! events, refusals, and subscriptions that are cut anywhere.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Instant;

use async_trait::async_trait;
use futures::StreamExt;
use kindex_api::operations::RightsOf;
use kindex_events::contract::{self, Stage as Contract};
use kindex_events::http_source::{HttpSource, Token};
use kindex_events::list_watch::ListWatch;
use kindex_events::{Message, Position, Source, SourceError, Subscribe};
use kindex_generated::kinds::{model, project};
use kindex_harness::wait::WAIT_MAX;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kube::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::alone::{NOTICED, NOTICED_PROJECT};
use super::stage::{FINAL, Stage, model, send, send_with};

static MODEL: Kind = Kind {
    events: true,
    ..model::KIND
};
static PROJECT: Kind = Kind {
    events: false,
    ..project::KIND
};
static KINDS: &[&Kind] = &[&MODEL, &PROJECT];
pub(super) const TOPIC: &str = "models.michelangelo.api";
/// Models, which the cluster has.
pub(super) static OF_THE_CLUSTER: Subject = Subject {
    kind: &MODEL,
    topic: TOPIC,
    namespace: "default",
};
/// Projects, which no cluster has.
pub(super) static SQL_ONLY: Subject = Subject {
    kind: &NOTICED_PROJECT,
    topic: "projects.michelangelo.api",
    namespace: "nowhere",
};
/// Resource versions at which no watch begins.
const SQL_GAVE_IT: u64 = (1 << 62) + 1;
const NO_CLUSTER_CAME_TO_IT: u64 = 1 << 40;
/// What holds an object until it is erased.
const HOLDER: &str = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

/// Whose objects a test changes, in one namespace.
pub(super) struct Subject {
    kind: &'static Kind,
    topic: &'static str,
    namespace: &'static str,
}

impl Subject {
    fn objects(&self) -> String {
        format!(
            "/apis/{}/namespaces/{}/{}",
            self.kind.api_version(),
            self.namespace,
            self.kind.plural
        )
    }

    fn object(&self, name: &str) -> String {
        format!("{}/{name}", self.objects())
    }

    fn reference(&self, name: &str) -> String {
        let Self { kind, namespace, .. } = self;
        format!("/api/v1/{}/{namespace}/{name}/references/{HOLDER}", kind.plural)
    }

    async fn create_in_use(&self, api: &Client, name: &str) -> Uid {
        let object = json!({"apiVersion": self.kind.api_version(), "kind": self.kind.name, "spec": {},
            "metadata": {"name": name, "finalizers": [HOLDER]}});
        let (code, created) = send(api, "POST", &self.objects(), &object).await;
        assert_eq!(code, 201, "{created}");
        Uid::from(created["metadata"]["uid"].as_str().unwrap())
    }

    async fn let_go(&self, api: &Client, name: &str) {
        let (code, answer) = send(api, "DELETE", &self.reference(name), &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
    }
}

impl Stage {
    pub(super) async fn with_events() -> Self {
        Self::of_kinds(KINDS).await
    }

    pub(super) async fn with_events_of_sql_only_projects() -> Self {
        Self::of_kinds(NOTICED).await
    }

    async fn create_in_use(&self, name: &str) -> Uid {
        OF_THE_CLUSTER.create_in_use(&self.api, name).await
    }

    async fn let_go(&self, name: &str) {
        OF_THE_CLUSTER.let_go(&self.api, name).await;
    }
}

/// One transport over a stage.
pub(super) struct Transport<'a, S> {
    stage: &'a Stage,
    subject: &'static Subject,
    source: S,
    forgotten: Position,
    /// A position of a topic, as another life of it would have given it.
    of_another_life: fn(&str, &Position) -> Position,
}

impl<'a, S> Transport<'a, S> {
    /// One that reads the outbox.
    pub(super) fn of_outbox(stage: &'a Stage, subject: &'static Subject, source: S) -> Self {
        let nothing_is_known = json!({"after": [1, 1], "past": 1, "seen": [1, 1]});
        Self {
            stage,
            subject,
            source,
            forgotten: Position::encode("outbox", subject.topic, &nothing_is_known),
            of_another_life: |topic, position| {
                let mut place: Value = position.decode("outbox", topic).unwrap();
                // The same number, of another transaction.
                let stamp = place["after"][1].as_u64().unwrap();
                place["after"][1] = (stamp ^ 1).into();
                Position::encode("outbox", topic, &place)
            },
        }
    }
}

#[async_trait]
impl<S: Source> Contract for Transport<'_, S> {
    fn source(&self) -> &dyn Source {
        &self.source
    }

    fn topic(&self) -> &str {
        self.subject.topic
    }

    fn forgotten(&self) -> Position {
        self.forgotten.clone()
    }

    fn of_another_life(&self, position: &Position) -> Position {
        (self.of_another_life)(self.subject.topic, position)
    }

    async fn create(&self, name: &str) -> Uid {
        self.subject.create_in_use(&self.stage.api, name).await
    }

    async fn archive(&self, name: &str) {
        if !self.subject.kind.cluster {
            return;
        }
        let patch = json!({"metadata": {"annotations": {FINAL: "true"}}});
        let (code, answer) = send(&self.stage.api, "PATCH", &model(name), &patch).await;
        assert_eq!(code, 200, "{answer}");
        let deadline = Instant::now() + WAIT_MAX;
        while send(&self.stage.cluster, "GET", &model(name), &Value::Null).await.0 != 404 {
            assert!(Instant::now() < deadline, "{name} is not archived");
        }
    }

    async fn delete(&self, name: &str) {
        let (code, answer) = send(&self.stage.api, "DELETE", &self.subject.object(name), &Value::Null).await;
        assert!(matches!(code, 200 | 202), "{answer}");
    }

    async fn erase(&self, name: &str) {
        self.subject.let_go(&self.stage.api, name).await;
    }

    async fn settle(&self) {
        // What no cluster has is told once, and needs no mark of a cluster's version.
        if self.subject.kind.cluster {
            self.stage.marked(self.subject.kind).await;
        }
    }
}

fn over_http(address: SocketAddr) -> HttpSource {
    HttpSource::new(&format!("http://{address}"), None, None).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn server_sent_events_fulfill_the_contract() {
    let stage = Stage::with_events().await;
    let transport = Transport::of_outbox(&stage, &OF_THE_CLUSTER, over_http(stage.address));
    assert_eq!(contract::check(&transport).await, Ok(()));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_sent_events_of_what_no_cluster_has_fulfill_the_contract() {
    let stage = Stage::with_events_of_sql_only_projects().await;
    let transport = Transport::of_outbox(&stage, &SQL_ONLY, over_http(stage.address));
    assert_eq!(contract::check(&transport).await, Ok(()));
    stage.end().await;
}

async fn check_lists_and_watches(stage: &Stage) {
    let mut transport = Transport {
        stage,
        subject: &OF_THE_CLUSTER,
        source: ListWatch::new(stage.api.clone()),
        forgotten: Position::encode("watch", TOPIC, &SQL_GAVE_IT),
        of_another_life: |topic, position| {
            let mut place: Value = position.decode("watch", topic).unwrap();
            assert!(place["cluster"].is_string(), "{place}");
            place["cluster"] = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce".into();
            Position::encode("watch", topic, &place)
        },
    };
    assert_eq!(contract::check(&transport).await, Ok(()));
    transport.forgotten = Position::encode("watch", TOPIC, &NO_CLUSTER_CAME_TO_IT);
    assert_eq!(contract::what_is_not_known_is_refused(&transport).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_watches_fulfill_the_contract() {
    let stage = Stage::with_events().await;
    check_lists_and_watches(&stage).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_watches_over_kube_apiserver_fulfill_the_contract() {
    let Some(stage) = Stage::on_control_plane(RightsOf::Server).await else {
        return;
    };
    check_lists_and_watches(&stage).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_tells_a_deletion_from_an_eviction() {
    let stage = Stage::with_events().await;
    // The archived text has the deletionTimestamp with which it leaves the cluster.
    stage.create_held("a", json!({})).await;
    stage.release("a").await;
    let (_, object) = send(&stage.api, "GET", &model("a"), &Value::Null).await;
    let path = format!("/api/v1/events/{TOPIC}/{}", object["metadata"]["uid"].as_str().unwrap());
    let (code, found) = send(&stage.api, "GET", &path, &Value::Null).await;
    assert_eq!((code, &found["deletionTimestamp"]), (200, &Value::Null), "{found}");
    let (code, answer) = send(&stage.api, "PUT", &OF_THE_CLUSTER.reference("a"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let (code, leaving) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!(code, 202, "{leaving}");
    let (_, found) = send(&stage.api, "GET", &path, &Value::Null).await;
    assert!(found["deletionTimestamp"].is_string(), "{found}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_events_is_refused_with_a_hint() {
    let stage = Stage::with_events().await;
    for (path, code, words) in [
        ("nonsense", 404, "write its plural, or plural.group"),
        (
            "projects?from=abc",
            422,
            "has no events: write `events = true` under [kinds.Project]",
        ),
        ("models?from=abc", 400, "is not a position"),
        ("models?deleting=maybe", 400, "deleting: Invalid value: \"maybe\""),
        ("models/u", 404, "has no object with uid u"),
    ] {
        let path = format!("/api/v1/events/{path}");
        let (found, answer) = send(&stage.api, "GET", &path, &Value::Null).await;
        assert_eq!(found, code, "{path}: {answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains(words), "{path}: {message}");
    }
    let (code, _) = send(&stage.api, "POST", "/api/v1/events/models", &json!({})).await;
    assert_eq!(code, 405);
    let uid = stage.create_in_use("a").await;
    let source = over_http(stage.address);
    let mut messages = source.subscribe(&Subscribe::to(TOPIC)).await.unwrap();
    while messages.next().await.unwrap().unwrap().event().is_none() {}
    let path = format!("/api/v1/events/models/{uid}");
    let (code, event) = send(&stage.api, "GET", &path, &Value::Null).await;
    assert_eq!((code, &event["name"]), (200, &json!("a")), "{event}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_watch_a_kind_everywhere_hears_nothing_of_it() {
    let stage = Stage::with_rights().await;
    for path in ["projects", "projects.michelangelo.api/uid"] {
        let path = format!("/api/v1/events/{path}");
        for (token, code) in [("", 401), ("jane-token", 403)] {
            let token = format!("Bearer {token}");
            let headers = [("authorization", token.as_str())];
            // Who is let in is answered without an end.
            let answer = send_with(&stage.api, "GET", &path, &headers, String::new());
            let answer = tokio::time::timeout(WAIT_MAX, answer).await;
            let (found, answer) = answer.unwrap_or_else(|_| panic!("{path}: events are told to whom {token:?} is"));
            assert_eq!(found, code, "{path}: {answer}");
        }
    }
    let token = Token::Text("root-token".to_owned());
    let source = HttpSource::new(&format!("http://{}", stage.address), None, Some(token)).unwrap();
    let topic = Subscribe::to("projects.michelangelo.api");
    let mut messages = source.subscribe(&topic).await.unwrap();
    assert!(messages.next().await.unwrap().is_ok());
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_the_server_does_not_take_is_told_from_other_refusals() {
    let stage = Stage::with_events().await;
    let source = over_http(stage.address);
    stage.create_in_use("a").await;
    let subscribed = async |from: Position| {
        let to = Subscribe {
            from: Some(from),
            ..Subscribe::to(TOPIC)
        };
        source.subscribe(&to).await.map(drop)
    };
    for wrong in [
        Position::encode("outbox", "projects.michelangelo.api", &1),
        Position::encode("nats", TOPIC, &1),
        Position::encode("outbox", TOPIC, &json!({"after": [-1, 1], "past": 1, "seen": [1, 1]})),
    ] {
        let refused = subscribed(wrong).await;
        assert!(matches!(refused, Err(SourceError::Position(_))), "{refused:?}");
    }
    let unknown = json!({"after": [1, 1], "past": 1, "seen": [1, 1]});
    let refused = subscribed(Position::encode("outbox", TOPIC, &unknown)).await;
    let why =
        "the position is not known any more: it is older than seven days, or from before the database was restored";
    assert_eq!(refused.map_err(|error| error.to_string()), Err(why.to_owned()));
    stage.end().await;
}

/// Leads one connection to the server, and cuts it after so many bytes of the answer.
async fn cut_after(bytes: usize, server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut server = TcpStream::connect(server).await.unwrap();
        let (mut from_client, mut to_client) = client.split();
        let (from_server, mut to_server) = server.split();
        let mut answer = from_server.take(bytes as u64);
        tokio::select! {
            _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
            _ = tokio::io::copy(&mut answer, &mut to_client) => {}
        }
        // What was let through arrives.
        let _gone = to_client.shutdown().await;
    });
    address
}

/// The uids that are erased, and the last position, of a subscription until it ends or all are there.
async fn erased(
    source: &HttpSource,
    from: Option<Position>,
    wanted: usize,
    found: &mut BTreeSet<Uid>,
) -> Option<Position> {
    let to = Subscribe {
        from: from.clone(),
        ..Subscribe::to(TOPIC)
    };
    let mut position = from;
    let mut messages = match source.subscribe(&to).await {
        Ok(messages) => messages,
        Err(SourceError::Interrupted { .. }) => return position,
        Err(error) => panic!("{error}"),
    };
    while found.len() < wanted
        && let Some(Ok(message)) = messages.next().await
    {
        if let Message::Event(event, _) = &message
            && event.erased
        {
            found.insert(event.resource_id.clone());
        }
        position = message.position().cloned().or(position);
    }
    position
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_is_cut_at_any_byte_lacks_no_tombstone() {
    let stage = Stage::with_events().await;
    let whole = over_http(stage.address);
    stage.create_in_use("stays").await;
    let mut uids = BTreeSet::new();
    for number in 0..4 {
        uids.insert(stage.create_in_use(&format!("goes-{number}")).await);
    }
    let mut messages = whole.subscribe(&Subscribe::to(TOPIC)).await.unwrap();
    let mut seen = BTreeSet::new();
    let mut before = None;
    while !uids.is_subset(&seen) {
        let message = messages.next().await.unwrap().unwrap();
        seen.extend(message.event().map(|event| event.resource_id.clone()));
        if message.event().is_none() || uids.is_subset(&seen) {
            before = message.position().cloned();
        }
    }
    for number in 0..4 {
        let name = format!("goes-{number}");
        send(&stage.api, "DELETE", &model(&name), &Value::Null).await;
        stage.let_go(&name).await;
    }
    let mut found = BTreeSet::new();
    erased(&whole, before.clone(), uids.len(), &mut found).await;
    assert_eq!(found, uids);
    for from in [before, None] {
        for bytes in (1..3000).step_by(37) {
            let cut = over_http(cut_after(bytes, stage.address).await);
            let mut found = BTreeSet::new();
            let position = erased(&cut, from.clone(), uids.len(), &mut found).await;
            erased(&whole, position, uids.len(), &mut found).await;
            assert_eq!(found, uids, "cut after {bytes} bytes");
        }
    }
    stage.end().await;
}
