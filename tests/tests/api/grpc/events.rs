//! Events over gRPC: the contract of all transports, the look-up of one object, and who may ask for them.

use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use kindex_events::contract;
use kindex_events::{Event, Message, Position, Source, SourceError, Subscribe, Subscription};
use kindex_harness::wait::eventually;
use prost_reflect::{DescriptorPool, MethodDescriptor};
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::client::{Body, Client};
use crate::api::events::{OF_THE_CLUSTER, SQL_ONLY, TOPIC, Transport};
use crate::api::stage::{Stage, send};

fn method(name: &str) -> MethodDescriptor {
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/../services/api/proto");
    let files = protox::compile(["kindex/events/v1/events.proto"], [proto]).unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
    let service = pool.get_service_by_name("kindex.events.v1.Events").unwrap();
    service.methods().find(|method| method.name() == name).unwrap()
}

fn subscribe() -> MethodDescriptor {
    method("Subscribe")
}

/// The event of an object, with its message around it.
async fn looked_up(client: &Client, topic: &str, uid: &str) -> Result<Value, Status> {
    let request = json!({"topic": topic, "resourceId": uid});
    let answer = client.answered_by(&method("Get"), Body::Json(&request)).await;
    answer.map(|(answer, _)| answer)
}

/// The service as a transport.
struct OverGrpc(Client);

#[async_trait]
impl Source for OverGrpc {
    async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError> {
        let from = to.from.as_ref().map(Position::as_str).unwrap_or_default();
        let request = json!({"topic": to.topic, "from": from, "deleting": to.deleting});
        let method = subscribe();
        let answers = self.0.stream(&method, Body::Json(&request)).await.map_err(refused)?;
        let client = self.0.clone();
        let messages = answers.map(move |answer| {
            let answer = client.json(&method, answer.map_err(refused)?);
            Ok(message(&answer))
        });
        // An error that is known when it begins comes first.
        let mut messages = messages.boxed();
        let first = messages.next().await.transpose()?;
        Ok(stream::iter(first.map(Ok)).chain(messages).boxed())
    }
}

fn message(answer: &Value) -> Message {
    let position = Position::parse(answer["position"].as_str().unwrap()).unwrap();
    if answer.get("replayed").is_some() {
        return Message::Replayed(Some(position));
    }
    let Some(event) = answer.get("event") else {
        return Message::Alive(Some(position));
    };
    let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let event = Event {
        resource_id: text("resourceId").as_str().into(),
        deletion_timestamp: event["deletionTimestamp"].as_str().map(|time| time.parse().unwrap()),
        topic: text("topic"),
        namespace: text("namespace"),
        name: text("name"),
        erased: event["erased"] == true,
    };
    Message::Event(event, Some(position))
}

fn refused(status: Status) -> SourceError {
    let message = status.message().to_owned();
    match status.code() {
        Code::NotFound => SourceError::UnknownTopic(message),
        Code::OutOfRange => SourceError::Gone(message),
        Code::Unavailable | Code::ResourceExhausted => SourceError::interrupted(message),
        _ => SourceError::Refused(message),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_over_grpc_fulfill_the_contract() {
    let stage = Stage::with_events().await;
    let source = OverGrpc(Client::plain(stage.address).await);
    let transport = Transport::of_outbox(&stage, &OF_THE_CLUSTER, source);
    assert_eq!(contract::check(&transport).await, Ok(()));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_over_grpc_of_what_no_cluster_has_fulfill_the_contract() {
    let stage = Stage::with_events_of_sql_only_projects().await;
    let source = OverGrpc(Client::plain(stage.address).await);
    let transport = Transport::of_outbox(&stage, &SQL_ONLY, source);
    assert_eq!(contract::check(&transport).await, Ok(()));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_subscription_has_the_code_of_its_kind() {
    let stage = Stage::with_events().await;
    let client = Client::plain(stage.address).await;
    for (topic, from, code) in [
        ("nonsense", "", Code::NotFound),
        ("projects", "", Code::InvalidArgument),
        (TOPIC, "abc", Code::InvalidArgument),
    ] {
        let request = json!({"topic": topic, "from": from});
        let answers = client.stream(&subscribe(), Body::Json(&request)).await;
        let status = match answers {
            Err(status) => status,
            Ok(mut answers) => answers.next().await.unwrap().unwrap_err(),
        };
        assert_eq!(status.code(), code, "{topic}: {status}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_finds_the_object_of_a_uid_as_it_does_over_http() {
    let stage = Stage::with_events().await;
    let client = Client::plain(stage.address).await;
    let created = stage.create("a", json!({}), json!({})).await;
    let uid = created["metadata"]["uid"].as_str().unwrap();
    eventually("its row", async || looked_up(&client, TOPIC, uid).await.is_ok()).await;
    let answer = looked_up(&client, "models", uid).await.unwrap();
    let path = format!("/api/v1/events/{TOPIC}/{uid}");
    let (_, found) = send(&stage.api, "GET", &path, &Value::Null).await;
    assert_eq!(answer["event"]["resourceId"], found["resourceID"], "{answer}");
    for field in ["topic", "namespace", "name", "deletionTimestamp"] {
        assert_eq!(answer["event"][field], found[field], "{answer}");
    }
    for (topic, uid, words) in [
        ("nonsense", uid, "write its plural, or plural.group"),
        (TOPIC, "u", "has no object with uid u"),
    ] {
        let status = looked_up(&client, topic, uid).await.unwrap_err();
        assert_eq!(status.code(), Code::NotFound, "{status}");
        assert!(status.message().contains(words), "{status}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_watch_a_kind_everywhere_hears_nothing_of_it() {
    let stage = Stage::with_rights().await;
    let client = Client::plain(stage.address).await;
    let code = async |client: Client| {
        let to = Subscribe::to("projects.michelangelo.api");
        match OverGrpc(client.clone()).subscribe(&to).await {
            Ok(_) => Code::Ok,
            Err(_) => {
                let request = json!({"topic": to.topic});
                let answers = client.stream(&subscribe(), Body::Json(&request)).await;
                answers.map(drop).unwrap_err().code()
            }
        }
    };
    assert_eq!(code(client.clone()).await, Code::Unauthenticated);
    assert_eq!(code(client.with_token("jane-token")).await, Code::PermissionDenied);
    assert_eq!(code(client.with_token("root-token")).await, Code::Ok);
    for (client, code) in [
        (client.clone(), Code::Unauthenticated),
        (client.with_token("jane-token"), Code::PermissionDenied),
        (client.with_token("root-token"), Code::NotFound),
    ] {
        let refused = looked_up(&client, "projects.michelangelo.api", "uid").await;
        assert_eq!(refused.map(drop).unwrap_err().code(), code);
    }
    stage.end().await;
}
