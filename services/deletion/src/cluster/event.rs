//! A notice as a Kubernetes event on its object, and as a post to a web server.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kindex_kube_client::namespace::is_without_namespace;
use kindex_model::kind::Kind;
use kube::api::{Api, PostParams};
use sha2::{Digest as _, Sha256};

use super::Cluster;
use crate::notice::Notice;
use crate::object::Object;
use crate::web::Post;

/// Whom events are from.
const COMPONENT: &str = "kindex-deletion";
/// How much of an object's name an event's has: the API server refuses names of more than 253 characters.
const NAME_CHARS_MAX: usize = 200;

impl Cluster {
    /// Reports a notice, and logs it. What an event of the cluster says already is not reported again: a process before
    /// this one has done that.
    pub(crate) async fn report(&self, object: &Object, notice: &Notice) {
        tracing::warn!(object = %object.key, reason = notice.reason, "{}", notice.text());
        let (kind, now) = (self.kind(&object.key), Timestamp::now());
        let mut created = self
            .create_event(kind, object, &object.key.namespace, notice, now)
            .await;
        if !kind.cluster && created.as_ref().is_err_and(is_without_namespace) {
            // The namespace of an SQL-only object need not exist in the cluster, or may be going there.
            created = self.create_event(kind, object, "", notice, now).await;
        }
        match created {
            Ok(()) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => return,
            Err(error) => tracing::warn!(object = %object.key, %error, "An event cannot be recorded"),
        }
        if let Some(web) = &self.web {
            web.add(Post::new(&kind.api_version(), object, notice, now));
        }
    }

    /// In this namespace, or among the events of what has none.
    async fn create_event(
        &self,
        kind: &Kind,
        object: &Object,
        namespace: &str,
        notice: &Notice,
        now: Timestamp,
    ) -> Result<(), kube::Error> {
        let about = Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty());
        let namespace = about.as_deref().unwrap_or("default");
        let now = Time(now);
        let event = Event {
            metadata: ObjectMeta {
                name: Some(event_name(object, notice)),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(kind.api_version()),
                kind: Some(kind.name.to_owned()),
                namespace: about.clone(),
                name: Some(object.key.name.clone()),
                uid: Some(object.uid.clone()),
                resource_version: Some(object.version.to_string()),
                ..ObjectReference::default()
            },
            reason: Some(notice.reason.to_owned()),
            message: Some(notice.text()),
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

/// What the event of a notice is called, in every process: follows from the object and from what the notice says. What
/// the object waits for in the end may change from one process to the next, as its age does.
fn event_name(object: &Object, notice: &Notice) -> String {
    let text = [object.uid.as_str(), notice.reason, notice.message.as_str()].join("\n");
    let digest = Sha256::digest(text);
    let hash: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let short: String = object.key.name.chars().take(NAME_CHARS_MAX).collect();
    // A dot may only follow a letter or a digit.
    format!("{}.{hash}", short.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use kindex_model::object::ResourceVersion;

    use super::*;
    use crate::fixture::{deleting, key};
    use crate::notice::About;

    fn object(name: &str, uid: &str, version: u64) -> Object {
        Object {
            version: ResourceVersion(version),
            ..deleting(key("Network", name), uid)
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

    #[test]
    fn an_event_has_the_same_name_in_every_process_and_for_nothing_else() {
        let blocked = notice("DeletionBlocked", "still in use by c");
        let name = event_name(&object("n", "u", 1), &blocked);
        assert_eq!(name, "n.145d22c8cb7d0b31");
        assert_eq!(event_name(&object("n", "u", 2), &blocked), name, "a version changes");
        let aged = Notice {
            roots: "d (2h)".to_owned(),
            ..blocked.clone()
        };
        assert_eq!(event_name(&object("n", "u", 1), &aged), name, "time passes");
        for (uid, other) in [
            ("v", blocked.clone()),
            ("u", notice("DeletionDraining", "still in use by c")),
            ("u", notice("DeletionBlocked", "still in use by d")),
        ] {
            assert_ne!(event_name(&object("n", uid, 1), &other), name, "{uid} {other:?}");
        }
    }

    #[test]
    fn the_name_of_an_event_is_one_that_the_cluster_takes() {
        let long = |end: &str| format!("{}{end}{}", "a".repeat(NAME_CHARS_MAX - end.len()), "b".repeat(50));
        let name_of = |name: &str| event_name(&object(name, "u", 1), &notice("DeletionBlocked", "m"));
        for end in ["", "-", "."] {
            let name = name_of(&long(end));
            let (short, hash) = name.rsplit_once('.').expect("a hash");
            assert_eq!(short.len(), NAME_CHARS_MAX - end.len(), "{name}");
            assert!(short.chars().all(|one| one == 'a'), "{name}");
            assert_eq!(hash.len(), 16, "{name}");
            assert!(hash.chars().all(|one| one.is_ascii_hexdigit()), "{name}");
        }
    }
}
