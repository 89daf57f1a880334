//! What a service is asked about an object and its references, and what follows from its answers.

use std::collections::BTreeSet;

use kindex_kube_client::ClusterError;
use kindex_model::deletion::Phase;
use kindex_model::object::ResourceVersion;
use kindex_model::reference_name::ReferenceName;
use kube::core::{ApiResource, Status};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::object::{Key, Names, Object, Standing};

/// The path of an object's references, or of one of them. Its name is what somebody wrote into a field: escaped, it is
/// one part of the path, whatever it holds.
pub(super) fn path(topic: &str, key: &Key, reference: Option<&str>) -> String {
    let parts = [&key.namespace, &key.name].into_iter().filter(|part| !part.is_empty());
    let object: String = parts
        .map(|part| format!("/{}", utf8_percent_encode(part, NON_ALPHANUMERIC)))
        .collect();
    let reference = reference.map(|name| format!("/{name}")).unwrap_or_default();
    format!("/api/v1/{topic}{object}/references{reference}")
}

/// The topic of a kind's events: `networks.region.example.com`.
pub(super) fn topic(api: &ApiResource) -> String {
    format!("{}.{}", api.plural, api.group)
}

/// Why a service has not given what it was asked for.
pub(super) enum Unanswered {
    /// It says why.
    Status(Box<Status>),
    /// It was not asked, or has not answered.
    Other(ClusterError),
}

impl From<ClusterError> for Unanswered {
    fn from(error: ClusterError) -> Self {
        Self::Other(error)
    }
}

impl Unanswered {
    /// Whether the service says that it has no such object. That is said of this object, and not of the path: an
    /// address that leads elsewhere says nothing.
    pub(super) fn is_absence(&self, key: &Key) -> bool {
        match self {
            Self::Status(status) => {
                let named = status.details.as_ref().is_some_and(|details| details.name == key.name);
                status.code == 404 && named
            }
            Self::Other(_) => false,
        }
    }
}

/// What is known of an object from the answer about its references. Its service judges whether it is deleted or leaves
/// for the archive. What it owns here goes as what cascades does: it drains only once it is released.
pub(super) fn object(key: &Key, number: u64, answer: &Value) -> Option<Object> {
    let uid = answer["target"]["uid"].as_str().filter(|uid| !uid.is_empty())?;
    let is_deleted = match answer["target"]["state"].as_str()? {
        "Live" | "Archived" => false,
        "Deleting" => true,
        _ => return None,
    };
    let names = answer["references"]
        .as_array()?
        .iter()
        .filter_map(|held| held["name"].as_str());
    let references: BTreeSet<_> = names.filter_map(ReferenceName::of_finalizer).collect();
    // The guard is its service's, whatever it is called there.
    let guard = Names::of_service(&key.kind.group).finalizer;
    Some(Object {
        key: key.clone(),
        uid: uid.to_owned(),
        version: ResourceVersion(number),
        standing: if is_deleted { Standing::Deleting } else { Standing::Live },
        requested: false,
        immutable: false,
        finalizers: vec![guard],
        guarded: true,
        references,
        others: BTreeSet::new(),
        phase: is_deleted.then_some(Phase::Draining),
        edges: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::KindName;

    fn network() -> Key {
        Key {
            kind: KindName::new("region.example.com", "Network"),
            namespace: "default".to_owned(),
            name: "blue".to_owned(),
        }
    }

    fn answer(state: &str) -> Value {
        let held = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
        json!({"target": {"uid": "u", "state": state}, "references": [{"name": held}]})
    }

    #[test]
    fn an_object_is_as_far_as_its_service_says() {
        let live = object(&network(), 7, &answer("Live")).expect("an object");
        assert_eq!((live.standing, live.phase), (Standing::Live, None));
        assert_eq!((live.version, live.references.len()), (ResourceVersion(7), 1));
        let archived = object(&network(), 7, &answer("Archived")).expect("an object");
        assert_eq!(archived, live, "who is archived is held as before");
        let deleted = object(&network(), 7, &answer("Deleting")).expect("an object");
        assert!(deleted.is_leaving() && deleted.phase.is_some());
        for unclear in [answer("Unknown"), answer("Deleted"), json!({}), Value::Null] {
            assert_eq!(object(&network(), 7, &unclear), None, "{unclear}");
        }
    }

    #[test]
    fn a_name_cannot_lead_to_another_object() {
        let topic = "networks.region.example.com";
        let reference = "cluster.compute.example.com/7f7a15ab";
        assert_eq!(
            path(topic, &network(), Some(reference)),
            "/api/v1/networks.region.example.com/default/blue/references/cluster.compute.example.com/7f7a15ab"
        );
        for name in ["red/references/cluster.x/1?", "red#", "..", "a b", "ä"] {
            let key = Key {
                name: name.to_owned(),
                ..network()
            };
            let path = path(topic, &key, None);
            assert_eq!(path.matches('/').count(), 6, "{path}");
            assert!(
                path.parse::<http::Uri>().is_ok_and(|uri| uri.query().is_none()),
                "{path}"
            );
        }
    }

    #[test]
    fn only_what_is_said_of_this_object_is_an_absence() {
        let said = |code: u16, name: &str| {
            let status = json!({"code": code, "message": "", "details": {"name": name}});
            Unanswered::Status(serde_json::from_value(status).expect("a status"))
        };
        assert!(said(404, "blue").is_absence(&network()));
        assert!(!said(404, "").is_absence(&network()), "a path that leads nowhere");
        assert!(!said(500, "blue").is_absence(&network()));
    }
}
