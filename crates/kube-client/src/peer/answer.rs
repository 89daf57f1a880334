//! The paths of an object's references, and what follows where a service does not answer.

use kube::core::{ApiResource, Status};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::classify::outcome_of;
use crate::{ClusterError, ObjectName};

/// What a request is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum About<'a> {
    /// An object with all references on it.
    All,
    /// An object with none of them. A service of an older version answers with all.
    Object,
    /// One reference on an object.
    One(&'a str),
    /// The same, which is placed by a write in any case. A service of an older version does not write where it is there
    /// already.
    Renewed(&'a str),
    /// The same, which is released only in this version of the object. A service of an older version releases it in any
    /// version.
    At(&'a str, &'a str),
}

impl About<'_> {
    /// The longest answer that is read.
    pub(super) fn answer_max_bytes(self) -> usize {
        match self {
            // A reference with its holder takes up to 300 bytes, and archived holders may be hundreds of thousands.
            Self::All => 256 * 1024 * 1024,
            Self::Object | Self::One(_) | Self::Renewed(_) | Self::At(..) => 16 * 1024 * 1024,
        }
    }
}

/// The path of an object's references, or of one of them. Its name is what somebody wrote into a field: escaped, it is
/// one part of the path, whatever it holds.
pub(super) fn path(topic: &str, object: &ObjectName, about: About<'_>) -> String {
    let parts = [&object.namespace, &object.name];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    let object: String = parts
        .map(|part| format!("/{}", utf8_percent_encode(part, NON_ALPHANUMERIC)))
        .collect();
    let references = format!("/api/v1/{topic}{object}/references");
    match about {
        About::All => references,
        About::Object => format!("{references}?limit=0"),
        About::One(reference) => format!("{references}/{reference}"),
        About::Renewed(reference) => format!("{references}/{reference}?renew=true"),
        About::At(reference, version) => {
            let version = utf8_percent_encode(version, NON_ALPHANUMERIC);
            format!("{references}/{reference}?resourceVersion={version}")
        }
    }
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
    pub(super) fn is_absence(&self, object: &ObjectName) -> bool {
        match self {
            Self::Status(status) => {
                let named = status.details.as_ref();
                outcome_of(status).is_not_found() && named.is_some_and(|details| details.name == object.name)
            }
            Self::Other(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn network(name: &str) -> ObjectName {
        ObjectName {
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_name_cannot_lead_to_another_object() {
        let topic = "networks.region.example.com";
        let reference = "cluster.compute.example.com/7f7a15ab";
        assert_eq!(
            path(topic, &network("blue"), About::One(reference)),
            "/api/v1/networks.region.example.com/default/blue/references/cluster.compute.example.com/7f7a15ab"
        );
        let one = path(topic, &network("blue"), About::One(reference));
        for (about, query) in [
            (About::Renewed(reference), "renew=true"),
            (About::At(reference, "7"), "resourceVersion=7"),
            (About::At(reference, "7&renew"), "resourceVersion=7%26renew"),
        ] {
            assert_eq!(path(topic, &network("blue"), about), format!("{one}?{query}"));
        }
        assert_eq!(
            path(topic, &network("blue"), About::Object),
            "/api/v1/networks.region.example.com/default/blue/references?limit=0"
        );
        for name in ["red/references/cluster.x/1?", "red#", "..", "a b", "ä"] {
            let path = path(topic, &network(name), About::All);
            assert_eq!(path.matches('/').count(), 6, "{path}");
            assert!(!path.contains(['?', '#', ' ']) && path.is_ascii(), "{path}");
        }
    }

    #[test]
    fn only_what_is_said_of_this_object_is_an_absence() {
        let said = |code: u16, name: &str| {
            let status = json!({"code": code, "message": "", "details": {"name": name}});
            Unanswered::Status(serde_json::from_value(status).expect("a status"))
        };
        let blue = network("blue");
        assert!(said(404, "blue").is_absence(&blue));
        assert!(!said(404, "").is_absence(&blue), "a path that leads nowhere");
        assert!(!said(500, "blue").is_absence(&blue));
        let message = "admission webhook \"a.b.c\" denied the request: networks \"blue\" not found";
        let denied = json!({"code": 404, "reason": "NotFound", "message": message, "details": {"name": "blue"}});
        let denied = Unanswered::Status(serde_json::from_value(denied).expect("a status"));
        assert!(!denied.is_absence(&blue));
    }
}
