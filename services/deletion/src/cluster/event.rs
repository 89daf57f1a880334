//! A notice as a Kubernetes event on its object, and as a post to a web server.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kindex_kube_client::event::{NewEvent, create};
use kindex_kube_client::{Outcome, outcome};
use kindex_model::kind::Kind;
use sha2::{Digest as _, Sha256};

use super::Cluster;
use crate::notice::Notice;
use crate::object::Object;
use crate::web::Post;

impl Cluster {
    /// Reports a notice, logs it and counts it. What an event of the cluster says already is not reported again: a
    /// process before this one has done that.
    pub(crate) async fn report(&self, object: &Object, notice: &Notice) {
        tracing::warn!(object = %object.key, reason = notice.reason, "{}", notice.text());
        let (kind, now) = (self.kind(&object.key), Timestamp::now());
        match create(&self.client, &event(kind, object, notice, now)).await {
            Ok(()) => {}
            Err(error) if is_known(&error) => return,
            Err(error) => tracing::warn!(object = %object.key, %error, "An event cannot be recorded"),
        }
        self.metrics.noticed(kind.name, notice.reason);
        if let Some(web) = &self.web {
            web.add(Post::new(&kind.api_version(), object, notice, now));
        }
    }
}

/// Whether an event was not created because it is there. Another conflict, such as one of a quota, does not say so.
fn is_known(error: &kube::Error) -> bool {
    outcome(error) == Some(Outcome::AlreadyExists)
}

fn event(kind: &Kind, object: &Object, notice: &Notice, now: Timestamp) -> NewEvent {
    NewEvent {
        about: ObjectReference {
            api_version: Some(kind.api_version()),
            kind: Some(kind.name.to_owned()),
            namespace: Some(object.key.namespace.to_string()),
            name: Some(object.key.name.to_string()),
            uid: Some(object.uid.clone()),
            resource_version: Some(object.version.to_string()),
            ..ObjectReference::default()
        },
        is_of_cluster: kind.cluster,
        component: "kindex-deletion",
        suffix: digest(object, notice),
        warning: true,
        reason: notice.reason,
        message: notice.text(),
        time: now,
    }
}

/// The end of an event's name, which is the same in every process: it follows from the object and from what the notice
/// says. What the object waits for in the end may change from one process to the next, as its age does.
pub(crate) fn digest(object: &Object, notice: &Notice) -> String {
    let text = [object.uid.as_str(), notice.reason, notice.message.as_str()].join("\n");
    let digest = Sha256::digest(text);
    digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use kindex_model::object::ResourceVersion;
    use kube::core::Status;

    use super::*;
    use crate::fixture::{deleting, key};
    use crate::notice::About;

    fn object(uid: &str, version: u64) -> Object {
        Object {
            version: ResourceVersion(version),
            ..deleting(key("Network", "n"), uid)
        }
    }

    fn notice(reason: &'static str, message: &str) -> Notice {
        Notice {
            reason,
            message: message.to_owned(),
            roots: String::new(),
            about: About::Deletion,
        }
    }

    /// As if a quota that is full had reported a notice to the web server.
    #[test]
    fn only_an_event_that_is_there_is_known() {
        let refused = |code, reason: &str| {
            let status = Status::failure("", reason).with_code(code);
            is_known(&kube::Error::Api(status.boxed()))
        };
        assert!(refused(409, "AlreadyExists"));
        assert!(!refused(409, "Conflict"));
        assert!(!refused(409, ""));
        assert!(!refused(403, "Forbidden"));
        assert!(!refused(503, "AlreadyExists"));
    }

    #[test]
    fn an_event_has_the_same_name_in_every_process_and_for_nothing_else() {
        let blocked = notice("DeletionBlocked", "still in use by c");
        let known = digest(&object("u", 1), &blocked);
        assert_eq!(known, "145d22c8cb7d0b31");
        assert_eq!(digest(&object("u", 2), &blocked), known, "a version changes");
        let aged = Notice {
            roots: "d (2h)".to_owned(),
            ..blocked.clone()
        };
        assert_eq!(digest(&object("u", 1), &aged), known, "time passes");
        for (uid, other) in [
            ("v", blocked.clone()),
            ("u", notice("DeletionDraining", "still in use by c")),
            ("u", notice("DeletionBlocked", "still in use by d")),
        ] {
            assert_ne!(digest(&object(uid, 1), &other), known, "{uid} {other:?}");
        }
        let created = event(&Kind::EMPTY, &object("u", 1), &blocked, Timestamp::UNIX_EPOCH);
        assert_eq!(created.suffix, known);
    }
}
