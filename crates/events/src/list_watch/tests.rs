//! Positions, what is said of an object, and which answers end a subscription for ever.

use std::convert::Infallible;
use std::future::ready;

use kube::client::Body;
use serde_json::{Value, json};

use super::*;

const SQL_GAVE_IT: &str = "4611703610613432327";
const CLUSTER: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

fn topic(deleting: bool) -> Topic {
    Topic {
        name: "runs.g".to_owned(),
        deleting,
        cluster: Some(CLUSTER.to_owned()),
    }
}

fn message(topic: &Topic, r#type: &str, metadata: &Value) -> Result<Option<Message>, SourceError> {
    let object = json!({"apiVersion": "g/v1", "kind": "Run", "metadata": metadata});
    let event = serde_json::from_value(json!({"type": r#type, "object": object}));
    topic.message_of(event.expect("an event"))
}

#[test]
fn an_event_is_resumed_at_a_version_of_the_cluster_alone() {
    let place = |version: &str| {
        let metadata = json!({"name": "a", "uid": "u", "resourceVersion": version});
        let message = message(&topic(false), "MODIFIED", &metadata).expect("no error");
        message.and_then(|message| message.position().cloned())
    };
    let known = place("7").expect("a position");
    let seven = ResumePoint {
        cluster: Some(CLUSTER.to_owned()),
        version: 7,
    };
    assert_eq!(ResumePoint::read(&known, "runs.g"), Ok(seven));
    assert_eq!(place(SQL_GAVE_IT), None);
    assert_eq!(place("nonsense"), None);
}

#[test]
fn a_position_of_another_cluster_is_gone_whatever_its_number_is() {
    let is_gone = |position: &Position, cluster| {
        let place = ResumePoint::read(position, "runs.g").expect("a position of ours");
        assert_eq!(place.version, 7);
        matches!(place.check(cluster), Err(SourceError::Gone(_)))
    };
    let known = topic(false).position(ResourceVersion(7)).expect("the cluster gave it");
    assert!(!is_gone(&known, Some(CLUSTER)));
    assert!(is_gone(&known, Some("another")));
    assert!(is_gone(&known, None));
    let unnamed = Topic {
        cluster: None,
        ..topic(false)
    };
    let unnamed = unnamed.position(ResourceVersion(7)).expect("the cluster gave it");
    let before = Position::encode(VIA, "runs.g", &7_u64);
    for position in [unnamed, before] {
        assert!(is_gone(&position, Some(CLUSTER)));
        assert!(!is_gone(&position, None), "nobody says anything but the number");
    }
    let nonsense = Position::encode(VIA, "runs.g", &"seven");
    assert!(matches!(
        ResumePoint::read(&nonsense, "runs.g"),
        Err(PositionError::Malformed(_))
    ));
}

#[test]
fn what_the_filter_holds_back_moves_the_position() {
    let live = json!({"name": "a", "uid": "u", "resourceVersion": "7"});
    let leaving = json!({"name": "a", "uid": "u", "resourceVersion": "7",
        "deletionTimestamp": "2026-01-01T00:00:00Z"});
    let sent = |deleting, r#type, metadata: &Value| {
        let message = message(&topic(deleting), r#type, metadata).expect("no error");
        let message = message.expect("a message");
        assert!(message.position().is_some(), "{message:?}");
        message
            .event()
            .map(|event| (event.deletion_timestamp.is_some(), event.erased))
    };
    assert_eq!(sent(false, "ADDED", &live), Some((false, false)));
    assert_eq!(sent(true, "ADDED", &live), None);
    assert_eq!(sent(true, "MODIFIED", &leaving), Some((true, false)));
    assert_eq!(sent(true, "DELETED", &live), Some((false, true)));
    assert_eq!(sent(false, "BOOKMARK", &live), None);
    let nobody = json!({"name": "a", "resourceVersion": "7"});
    assert_eq!(message(&topic(false), "ADDED", &nobody), Ok(None));
}

#[test]
fn a_version_that_is_forgotten_is_gone_and_an_outage_is_not() {
    let said = |code: u16| {
        let status = json!({"code": code, "message": "m"});
        refused(&serde_json::from_value(status).expect("a status"))
    };
    assert_eq!(said(410), SourceError::gone("m"));
    assert_eq!(said(403), SourceError::Refused("m".to_owned()));
    for code in [404, 408, 429, 500, 504] {
        assert!(matches!(said(code), SourceError::Interrupted { .. }), "{code}");
    }
}

/// As if a subscription ended for ever because something before the server answers 404, or JSON of its own.
#[tokio::test]
async fn a_topic_is_unknown_only_where_a_discovery_was_read_without_it() {
    let page = |text: &'static str| move |_: &str| (404_u16, text.to_owned());
    let empty = |_: &str| (200, "{}".to_owned());
    let lists = |resources: &'static str| {
        move |path: &str| {
            let text = match path {
                "/apis" => {
                    r#"{"groups": [{"name": "g.example",
                    "versions": [{"groupVersion": "g.example/v1", "version": "v1"}]}]}"#
                }
                _ => resources,
            };
            (200, text.to_owned())
        }
    };
    let whole = r#"{"groupVersion": "g.example/v1", "resources": []}"#;
    assert!(
        is_unknown("runs.g.example", lists(whole)).await,
        "the group has no runs"
    );
    assert!(
        is_unknown("runs.h.example", lists(whole)).await,
        "there is no such group"
    );
    assert!(is_unknown("runs", empty).await, "the topic has no group");
    assert!(!is_unknown("runs.g.example", lists("{}")).await);
    assert!(!is_unknown("runs.g.example", empty).await);
    for text in ["404 page not found", r#"{"code": 404, "message": "no route"}"#] {
        assert!(!is_unknown("runs.g.example", page(text)).await, "{text}");
    }
}

/// Whether the topic counts as unknown at a server that answers so. Otherwise it may be there.
async fn is_unknown(topic: &str, answers: impl Fn(&str) -> (u16, String) + Send + 'static) -> bool {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (code, text) = answers(request.uri().path());
        let response = http::Response::builder()
            .status(code)
            .body(Body::from(text.into_bytes()));
        ready(Ok::<_, Infallible>(response.expect("an answer")))
    });
    let found = ListWatch::new(Client::new(service, "default")).objects(topic).await;
    match found.expect_err("there is none") {
        SourceError::UnknownTopic(_) => true,
        SourceError::Interrupted { .. } => false,
        other => panic!("{topic}: {other}"),
    }
}
