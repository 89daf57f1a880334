//! The event on an object that says who has released a reference and why. Releases nothing.

use jiff::Timestamp;
use kindex_api::operations::Target;
use kindex_kube_client::namespace::is_without_namespace;
use kindex_model::kind::Kind;
use kube::Client;
use serde_json::{Value, json};

use crate::error::{CommandError, CommandResult, chain};

/// Longest text of an event.
const MESSAGE_CHARS: usize = 1024;

/// By whom a reference was released, and why.
pub(super) fn said(reference: &str, user: &str, reason: &str) -> String {
    let said = format!("{reference} was released by {user} with force: {reason}");
    said.chars().take(MESSAGE_CHARS).collect()
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
    let mut written = create(client, &event(target, &target.namespace, message, now)).await;
    if !kind.cluster && written.as_ref().is_err_and(is_without_namespace) {
        // The namespace of an SQL-only object need not exist in the cluster, or may be going there.
        written = create(client, &event(target, "", message, now)).await;
    }
    written.map_err(|error| {
        CommandError::failure(format_args!(
            "nothing was released, for no event can be written: {}",
            chain(&error)
        ))
    })
}

async fn create(client: &Client, event: &Value) -> Result<(), kube::Error> {
    let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default();
    let request = axum::http::Request::post(format!("/api/v1/namespaces/{namespace}/events"))
        .header("content-type", "application/json")
        .body(event.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request::<Value>(request).await.map(drop)
}

/// In this namespace, or among the events of what has none.
fn event(target: &Target, namespace: &str, message: &str, now: Timestamp) -> Value {
    let time = seconds(now);
    let short: String = target.name.chars().take(200).collect();
    let mut object = json!({"apiVersion": target.api_version, "kind": target.kind, "name": target.name,
        "uid": target.uid});
    if !namespace.is_empty() {
        object["namespace"] = namespace.into();
    }
    let namespace = match namespace {
        "" => "default",
        namespace => namespace,
    };
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": format!("{short}.{:x}", now.as_nanosecond()), "namespace": namespace},
        "involvedObject": object,
        "reason": "ReferenceDropped",
        "message": message,
        "type": "Warning",
        "source": {"component": "kindex-references"},
        "count": 1,
        "firstTimestamp": time,
        "lastTimestamp": time,
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;
    use std::sync::{Arc, Mutex};

    use axum::http::{Request, Response};
    use kindex_api::operations::State;
    use kube::client::Body;

    use super::*;

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
        }
    }

    #[test]
    fn the_event_says_what_was_released_and_why() {
        let said = said("cluster.g.example/u", "ada", "gone for good");
        assert_eq!(
            said,
            "cluster.g.example/u was released by ada with force: gone for good"
        );
        let of_namespace = event(&target("n"), "n", &said, now());
        assert_eq!(of_namespace["message"], said.as_str());
        assert_eq!(of_namespace["metadata"]["namespace"], "n");
        assert_eq!(of_namespace["involvedObject"]["namespace"], "n");
        assert_eq!(of_namespace["lastTimestamp"], "2026-11-24T12:00:00Z");
        for namespace in ["", "n"] {
            let event = event(&target(namespace), "", &said, now());
            assert_eq!(
                event["metadata"]["namespace"], "default",
                "that of events about objects of the whole cluster"
            );
            assert_eq!(event["involvedObject"]["namespace"], Value::Null);
        }
    }

    /// A cluster with the namespace `default` alone, and which paths it was asked for.
    fn cluster() -> (Client, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let answer = move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let (code, answer) = match path.as_str() {
                "/api/v1/namespaces/default/events" => (201_u16, json!({})),
                _ => (
                    404,
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                    "reason": "NotFound", "message": "namespaces \"gone\" not found"}),
                ),
            };
            seen.lock().expect("no panic").push(path);
            let body = Body::from(answer.to_string().into_bytes());
            let response = Response::builder().status(code).body(body);
            ready(Ok::<_, Infallible>(response.expect("an answer")))
        };
        (Client::new(tower::service_fn(answer), "default"), asked)
    }

    /// As if every object were in a namespace of the cluster, or a namespace that is gone excused a missing event.
    #[tokio::test]
    async fn an_event_about_an_object_that_no_cluster_has_needs_no_namespace_there() {
        let stored = Kind {
            cluster: false,
            ..Kind::EMPTY
        };
        let (client, asked) = cluster();
        let recorded = record(&client, &stored, &target("gone"), "m", now()).await;
        recorded.expect("it is in another namespace");
        let paths = ["/api/v1/namespaces/gone/events", "/api/v1/namespaces/default/events"];
        assert_eq!(*asked.lock().expect("no panic"), paths);
        let refused = record(&client, &Kind::EMPTY, &target("gone"), "m", now()).await;
        let error = refused.expect_err("the cluster has its namespace").to_string();
        assert!(error.contains("nothing was released"), "{error}");
        assert_eq!(asked.lock().expect("no panic").len(), 3);
    }
}
