//! The verbs of requests, as discovery, authorization and metrics name them. Knows nothing of who may do what.

use std::fmt;

use serde::{Serialize, Serializer};

use super::parameter;
use super::path::ResourcePath;
use super::query::Query;

/// What a request does with the objects of a resource.
/// <https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb>
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows the changes of a collection.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes a part of an object.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
    /// Acts as a user, a group or a service account: a right that no request asks for by its method.
    Impersonate,
}

impl Verb {
    /// The verb of a request for objects; none where Kubernetes has no verb for the method.
    pub fn of(method: &str, path: &ResourcePath, query: &Query) -> Option<Self> {
        match (method, &path.name) {
            ("GET", None) if query.is_on(parameter::WATCH) => Some(Self::Watch),
            ("GET", None) => Some(Self::List),
            ("GET", Some(_)) => Some(Self::Get),
            ("POST", _) => Some(Self::Create),
            ("PUT", _) => Some(Self::Update),
            ("PATCH", _) => Some(Self::Patch),
            ("DELETE", Some(_)) => Some(Self::Delete),
            ("DELETE", None) => Some(Self::DeleteCollection),
            _ => None,
        }
    }

    /// As Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Impersonate => "impersonate",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for Verb {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_follows_from_method_path_and_query() {
        let all = ResourcePath::default();
        let one = ResourcePath {
            name: Some("a".to_owned()),
            ..ResourcePath::default()
        };
        for (method, path, query, expected) in [
            ("GET", &all, "", Some("list")),
            ("GET", &all, "watch=0", Some("list")),
            ("GET", &all, "watch=1", Some("watch")),
            ("GET", &one, "", Some("get")),
            ("GET", &one, "watch=1", Some("get")),
            ("POST", &all, "", Some("create")),
            ("POST", &one, "", Some("create")),
            ("PUT", &one, "", Some("update")),
            ("PATCH", &one, "", Some("patch")),
            ("DELETE", &one, "", Some("delete")),
            ("DELETE", &all, "", Some("deletecollection")),
            ("HEAD", &one, "", None),
            ("OPTIONS", &all, "", None),
        ] {
            let verb = Verb::of(method, path, &Query::parse(query));
            assert_eq!(verb.map(Verb::as_str), expected, "{method} {path:?} {query}");
        }
    }
}
