//! A notice as a Kubernetes event on its object.

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Api, PostParams};

use super::Cluster;
use crate::notice::{MESSAGE_CHARS_MAX, Notice};
use crate::object::Object;

/// Whom events are from.
const COMPONENT: &str = "kindex-deletion";

impl Cluster {
    /// Reports a notice, and logs it.
    pub(crate) async fn report(&self, object: &Object, notice: &Notice) {
        tracing::warn!(object = %object.key, reason = notice.reason, "{}", notice.message);
        if let Err(error) = self.create_event(object, notice).await {
            tracing::warn!(object = %object.key, %error, "An event cannot be recorded");
        }
    }

    async fn create_event(&self, object: &Object, notice: &Notice) -> Result<(), kube::Error> {
        let kind = self.kind(&object.key);
        let namespace = match object.key.namespace.as_str() {
            "" => "default",
            namespace => namespace,
        };
        let now = Time(k8s_openapi::jiff::Timestamp::now());
        let short: String = object.key.name.chars().take(200).collect();
        let event = Event {
            metadata: ObjectMeta {
                name: Some(format!("{short}.{:x}", now.0.as_nanosecond())),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(kind.api_version()),
                kind: Some(kind.name.to_owned()),
                namespace: Some(object.key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
                name: Some(object.key.name.clone()),
                uid: Some(object.uid.clone()),
                resource_version: Some(object.version.to_string()),
                ..ObjectReference::default()
            },
            reason: Some(notice.reason.to_owned()),
            message: Some(notice.message.chars().take(MESSAGE_CHARS_MAX).collect()),
            type_: Some("Warning".to_owned()),
            source: Some(EventSource {
                component: Some(COMPONENT.to_owned()),
                host: None,
            }),
            count: Some(1),
            first_timestamp: Some(now.clone()),
            last_timestamp: Some(now),
            ..Event::default()
        };
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        events.create(&PostParams::default(), &event).await.map(drop)
    }
}
