//! A Kubernetes event about an object: its name, its namespace and its creation. Does not know what it reports.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kindex_kube_api::request::Collection;
use kube::Client;
use kube::api::PostParams;
use kube::core::Request;

use super::namespace::is_without_namespace;

/// The API server refuses longer texts in events.
pub const MESSAGE_CHARS_MAX: usize = 1024;
/// How much of an object's name an event's has: the API server refuses names of more than 253 characters.
const NAME_CHARS_MAX: usize = 200;
/// Where the events about objects without a namespace are.
const DEFAULT_NAMESPACE: &str = "default";

/// An event as it is to be created.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The object, with its own namespace.
    pub about: ObjectReference,
    /// Whether it is an object of the cluster. The namespace of one that is only in SQL need not exist there.
    pub is_of_cluster: bool,
    /// Who reports it, such as `kindex-ingester`.
    pub component: &'static str,
    /// What the event is called after the name of its object. Two with the same are one event.
    pub suffix: String,
    /// Whether something is wrong.
    pub warning: bool,
    /// A word in CamelCase, such as `ProjectionIncomplete`.
    pub reason: &'static str,
    /// A sentence for people, which is cut after [`MESSAGE_CHARS_MAX`].
    pub message: String,
    /// When it happened.
    pub time: Timestamp,
}

impl NewEvent {
    /// The event in this namespace, or among those of objects that have none.
    fn within(&self, namespace: Option<&str>) -> Event {
        let time = Time(self.time);
        Event {
            metadata: ObjectMeta {
                name: Some(self.name()),
                namespace: Some(namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                namespace: namespace.map(ToOwned::to_owned),
                ..self.about.clone()
            },
            reason: Some(self.reason.to_owned()),
            message: Some(self.message.chars().take(MESSAGE_CHARS_MAX).collect()),
            type_: Some(if self.warning { "Warning" } else { "Normal" }.to_owned()),
            source: Some(EventSource {
                component: Some(self.component.to_owned()),
                host: None,
            }),
            count: Some(1),
            first_timestamp: Some(time.clone()),
            last_timestamp: Some(time),
            ..Event::default()
        }
    }

    fn name(&self) -> String {
        let name = self.about.name.as_deref().unwrap_or_default();
        let short: String = name.chars().take(NAME_CHARS_MAX).collect();
        // A dot may only follow a letter or a digit.
        format!("{}.{}", short.trim_end_matches(['-', '.']), self.suffix)
    }
}

/// Creates an event in the namespace of its object. If the cluster lacks the namespace of an object that is only in
/// SQL, the event is among those of objects that have none.
///
/// # Errors
/// As the client has them: who creates an event that is there already may want to know.
pub async fn create(client: &Client, event: &NewEvent) -> Result<(), kube::Error> {
    let namespace = event.about.namespace.as_deref().filter(|name| !name.is_empty());
    let created = post(client, &event.within(namespace)).await;
    if !event.is_of_cluster && created.as_ref().is_err_and(is_without_namespace) {
        // It need not exist in the cluster, or may be going there.
        return post(client, &event.within(None)).await;
    }
    created
}

async fn post(client: &Client, event: &Event) -> Result<(), kube::Error> {
    let events = Collection {
        group: "",
        version: "v1",
        plural: "events",
        namespace: event.metadata.namespace.as_deref(),
    };
    let body = serde_json::to_vec(event).expect("events are JSON");
    let request = Request::new(events.path()).create(&PostParams::default(), body);
    let request = request.map_err(kube::Error::BuildRequest)?;
    client.request_text(request).await.map(drop)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;
    use std::sync::{Arc, Mutex};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    fn event(name: &str, namespace: &str, is_of_cluster: bool) -> NewEvent {
        NewEvent {
            about: ObjectReference {
                api_version: Some("g.example/v1".to_owned()),
                kind: Some("Network".to_owned()),
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                uid: Some("u".to_owned()),
                ..ObjectReference::default()
            },
            is_of_cluster,
            component: "kindex-ingester",
            suffix: "0123456789abcdef".to_owned(),
            warning: true,
            reason: "DeletionBlocked",
            message: "in use".to_owned(),
            time: "2026-11-24T12:00:00.25Z".parse().expect("a time"),
        }
    }

    fn json_of(event: &NewEvent, namespace: Option<&str>) -> Value {
        serde_json::to_value(event.within(namespace)).expect("events are JSON")
    }

    #[test]
    fn an_event_is_written_as_people_and_tools_read_it() {
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "blue.0123456789abcdef", "namespace": "n"},
            "involvedObject": {"apiVersion": "g.example/v1", "kind": "Network", "namespace": "n", "name": "blue",
                "uid": "u"},
            "reason": "DeletionBlocked",
            "message": "in use",
            "type": "Warning",
            "source": {"component": "kindex-ingester"},
            "count": 1,
            "firstTimestamp": "2026-11-24T12:00:00Z",
            "lastTimestamp": "2026-11-24T12:00:00Z",
        });
        assert_eq!(json_of(&event("blue", "n", true), Some("n")), expected);
        let of_none = json_of(&event("blue", "n", true), None);
        assert_eq!(of_none["metadata"]["namespace"], "default");
        assert_eq!(of_none["involvedObject"]["namespace"], Value::Null);
    }

    /// As if an event had any name, or any length: the cluster would refuse it.
    #[test]
    fn the_name_and_the_message_of_an_event_are_such_as_the_cluster_takes() {
        let long = |end: &str| format!("{}{end}{}", "a".repeat(NAME_CHARS_MAX - end.len()), "b".repeat(50));
        for end in ["", "-", "."] {
            let name = event(&long(end), "n", true).name();
            let expected = format!("{}.0123456789abcdef", "a".repeat(NAME_CHARS_MAX - end.len()));
            assert_eq!(name, expected, "{end:?}");
        }
        let wordy = NewEvent {
            message: "ä".repeat(MESSAGE_CHARS_MAX + 1),
            ..event("blue", "n", true)
        };
        assert_eq!(json_of(&wordy, Some("n"))["message"], "ä".repeat(MESSAGE_CHARS_MAX));
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
                    json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"}),
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
        let (gone, default) = ("/api/v1/namespaces/gone/events", "/api/v1/namespaces/default/events");
        for (namespace, is_of_cluster, is_created, paths) in [
            ("gone", false, true, vec![gone, default]),
            ("gone", true, false, vec![gone]),
            ("", true, true, vec![default]),
        ] {
            let (client, asked) = cluster();
            let created = create(&client, &event("blue", namespace, is_of_cluster)).await;
            assert_eq!(created.is_ok(), is_created, "{namespace:?} {is_of_cluster}");
            assert_eq!(*asked.lock().expect("no panic"), paths);
        }
    }
}
