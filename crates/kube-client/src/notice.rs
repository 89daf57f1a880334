//! A notice as the Kubernetes event that is stored.

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kindex_model::kind::Kind;

use super::{Notice, Target};

/// The API server refuses longer texts in events.
const MESSAGE_CHARS_MAX: usize = 1024;

/// Makes the event that tells of a notice.
pub(super) fn to_event(kind: &Kind, notice: &Notice) -> Event {
    let Target {
        name,
        uid,
        resource_version,
    } = &notice.about;
    let namespace = match name.namespace.as_str() {
        "" => "default".to_owned(),
        namespace => namespace.to_owned(),
    };
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let short: String = name.name.chars().take(200).collect();
    let now = Time(k8s_openapi::jiff::Timestamp::now());
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{short}.{}", &unique[..16])),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(kind.api_version()),
            kind: Some(kind.name.to_owned()),
            namespace: Some(namespace).filter(|_| !name.namespace.is_empty()),
            name: Some(name.name.clone()),
            uid: Some(uid.to_string()),
            resource_version: Some(resource_version.to_string()),
            ..ObjectReference::default()
        },
        reason: Some(notice.reason.to_owned()),
        message: Some(notice.message.chars().take(MESSAGE_CHARS_MAX).collect()),
        type_: Some(if notice.warning { "Warning" } else { "Normal" }.to_owned()),
        source: Some(EventSource {
            component: Some("kindex-ingester".to_owned()),
            host: None,
        }),
        count: Some(1),
        first_timestamp: Some(now.clone()),
        last_timestamp: Some(now),
        ..Event::default()
    }
}
