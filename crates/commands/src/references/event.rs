//! The event on an object that says who has released a reference and why. Releases nothing.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kindex_api::operations::Target;
use kindex_kube_client::event::{MESSAGE_CHARS_MAX, NewEvent, create};
use kindex_model::kind::Kind;
use kube::Client;

use crate::error::{CommandError, CommandResult, chain};

/// By whom a reference was released, and why.
pub(super) fn message(reference: &str, user: &str, reason: &str) -> String {
    let message = format!("{reference} was released by {user} with force: {reason}");
    message.chars().take(MESSAGE_CHARS_MAX).collect()
}

/// A time as Kubernetes writes it.
pub(super) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Writes the event: without one, nothing is released.
pub(super) async fn record(
    client: &Client,
    kind: &Kind,
    target: &Target,
    message: &str,
    now: Timestamp,
) -> CommandResult {
    let created = create(client, &event(kind, target, message, now)).await;
    created.map_err(|error| {
        CommandError::failure(format_args!(
            "nothing was released, for no event can be written: {}",
            chain(&error)
        ))
    })
}

fn event(kind: &Kind, target: &Target, message: &str, now: Timestamp) -> NewEvent {
    NewEvent {
        about: ObjectReference {
            api_version: Some(target.api_version.clone()),
            kind: Some(target.kind.clone()),
            namespace: Some(target.namespace.clone()),
            name: Some(target.name.clone()),
            uid: Some(target.uid.clone()),
            ..ObjectReference::default()
        },
        is_of_cluster: kind.cluster,
        component: "kindex-references",
        suffix: format!("{:x}", now.as_nanosecond()),
        warning: true,
        reason: "ReferenceDropped",
        message: message.to_owned(),
        time: now,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use axum::http::{Request, Response};
    use http_body_util::BodyExt as _;
    use kindex_api::operations::State;
    use kindex_generated::kinds::model;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// Paths, and what was posted to each.
    type Posted = Arc<Mutex<Vec<(String, Value)>>>;

    fn now() -> Timestamp {
        "2026-11-24T12:00:00Z".parse().expect("a time")
    }

    fn target(namespace: &str) -> Target {
        Target {
            api_version: "g.example/v1".to_owned(),
            kind: "Network".to_owned(),
            namespace: namespace.to_owned(),
            name: "blue".to_owned(),
            uid: "t".to_owned(),
            state: Some(State::Deleting),
            archived: false,
            resource_version: String::new(),
            released_reference: String::new(),
            released_references: Vec::new(),
        }
    }

    /// A cluster that takes events at this path alone, and what it was sent.
    fn cluster(events: &'static str) -> (Client, Posted) {
        let posted = Posted::default();
        let seen = posted.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let seen = seen.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.expect("a body").to_bytes();
                let body: Value = serde_json::from_slice(&body).expect("JSON");
                let path = head.uri.path().to_owned();
                let (code, answer) = match path == events {
                    true => (201_u16, body.clone()),
                    false => (
                        404,
                        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                            "reason": "NotFound", "message": "namespaces \"gone\" not found"}),
                    ),
                };
                seen.lock().expect("no panic").push((path, body));
                let body = Body::from(answer.to_string().into_bytes());
                let response = Response::builder().status(code).body(body);
                Ok::<_, Infallible>(response.expect("an answer"))
            }
        });
        (Client::new(service, "default"), posted)
    }

    #[tokio::test]
    async fn the_event_says_what_was_released_and_why() {
        let written = message("cluster.g.example/u", "ada", "gone for good");
        assert_eq!(
            written,
            "cluster.g.example/u was released by ada with force: gone for good"
        );
        let events = "/api/v1/namespaces/n/events";
        let (client, posted) = cluster(events);
        let recorded = record(&client, &model::KIND, &target("n"), &written, now()).await;
        recorded.expect("it is recorded");
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": format!("blue.{:x}", now().as_nanosecond()), "namespace": "n"},
            "involvedObject": {"apiVersion": "g.example/v1", "kind": "Network", "namespace": "n", "name": "blue",
                "uid": "t"},
            "reason": "ReferenceDropped",
            "message": written,
            "type": "Warning",
            "source": {"component": "kindex-references"},
            "count": 1,
            "firstTimestamp": "2026-11-24T12:00:00Z",
            "lastTimestamp": "2026-11-24T12:00:00Z",
        });
        assert_eq!(*posted.lock().expect("no panic"), [(events.to_owned(), expected)]);
        assert_eq!(seconds(now()), "2026-11-24T12:00:00Z");
    }

    /// As if every object were in a namespace of the cluster, or a namespace that is gone excused a missing event.
    #[tokio::test]
    async fn an_event_about_an_object_that_no_cluster_has_needs_no_namespace_there() {
        let stored = Kind {
            cluster: false,
            ..model::KIND
        };
        let (client, posted) = cluster("/api/v1/namespaces/default/events");
        let recorded = record(&client, &stored, &target("gone"), "m", now()).await;
        recorded.expect("it is in another namespace");
        let refused = record(&client, &model::KIND, &target("gone"), "m", now()).await;
        let error = refused.expect_err("the cluster has its namespace").to_string();
        assert!(error.contains("nothing was released"), "{error}");
        let namespaces = |(_, event): &(String, Value)| event["metadata"]["namespace"].clone();
        let posted: Vec<Value> = posted.lock().expect("no panic").iter().map(namespaces).collect();
        assert_eq!(posted, ["gone", "default", "gone"]);
    }
}
