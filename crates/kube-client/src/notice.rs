//! A notice of the ingester as the Kubernetes event that is created.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kindex_model::kind::Kind;

use super::event::NewEvent;
use super::{Notice, Target};

/// The event that tells of a notice.
pub(super) fn event_of(kind: &Kind, notice: &Notice) -> NewEvent {
    let Target {
        name,
        uid,
        resource_version,
    } = &notice.about;
    let mut unique = uuid::Uuid::new_v4().simple().to_string();
    unique.truncate(16);
    NewEvent {
        about: ObjectReference {
            api_version: Some(kind.api_version()),
            kind: Some(kind.name.to_owned()),
            namespace: Some(name.namespace.clone()),
            name: Some(name.name.clone()),
            uid: Some(uid.to_string()),
            resource_version: Some(resource_version.to_string()),
            ..ObjectReference::default()
        },
        is_of_cluster: kind.cluster,
        component: "kindex-ingester",
        suffix: unique,
        warning: notice.warning,
        reason: notice.reason,
        message: notice.message.clone(),
        time: Timestamp::now(),
    }
}
