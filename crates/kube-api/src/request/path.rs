//! The URL paths of the Kubernetes API, read and written.

use super::escape::{escaped, unescaped};

/// What a path points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz`
    Health,
    /// `/`
    Root,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`; the group is empty in the core group.
    GroupVersion(String, String),
    /// `/openapi/v3`
    OpenApiIndex,
    /// `/openapi/v3/apis/<group>/<version>`
    OpenApiDocument(String, String),
    /// `/openapi/v2`
    Swagger,
    /// Objects.
    Resource(ResourcePath),
    /// Nothing.
    Unknown,
}

/// What hangs below an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    /// `/status`
    Status,
    /// `/finalize` of a namespace
    Finalize,
}

impl Subresource {
    /// The word in the path.
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Finalize => "finalize",
        }
    }
}

/// A collection or one object in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourcePath {
    /// Empty in the core group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// The resource.
    pub plural: String,
    /// The namespace, where one is named.
    pub namespace: Option<String>,
    /// The object, where one is named.
    pub name: Option<String>,
    /// What of the object.
    pub subresource: Option<Subresource>,
}

/// The group of leases.
const LEASES: &str = "coordination.k8s.io";

impl ResourcePath {
    /// Whether it is about the leases by which programs say in time who of them leads.
    pub fn is_lease(&self) -> bool {
        self.group == LEASES
    }
}

/// The objects of a resource, for those who ask for them: [`parse`] reads the paths that are written here.
///
/// # Example
/// ```
/// use kindex_kube_api::request::Collection;
///
/// let pods = Collection { group: "", version: "v1", plural: "pods", namespace: Some("a") };
/// assert_eq!(pods.path(), "/api/v1/namespaces/a/pods");
/// assert_eq!(pods.object("b"), "/api/v1/namespaces/a/pods/b");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Collection<'a> {
    /// Empty in the core group.
    pub group: &'a str,
    /// Its version.
    pub version: &'a str,
    /// The resource.
    pub plural: &'a str,
    /// One namespace; without one, all of them or the cluster.
    pub namespace: Option<&'a str>,
}

impl Collection<'_> {
    /// The path of all of them.
    pub fn path(&self) -> String {
        let api = group_version(self.group, self.version);
        match self.namespace {
            Some(namespace) => format!("{api}/namespaces/{}/{}", escaped(namespace), self.plural),
            None => format!("{api}/{}", self.plural),
        }
    }

    /// The path of one of them.
    pub fn object(&self, name: &str) -> String {
        format!("{}/{}", self.path(), escaped(name))
    }
}

/// The path of the core group.
pub const API: &str = "/api";
/// The path of all other groups.
pub const APIS: &str = "/apis";

/// The path of a group; the core group is empty.
pub fn group_path(name: &str) -> String {
    match name {
        "" => API.to_owned(),
        name => format!("{APIS}/{name}"),
    }
}

/// The path of what is served in a version of a group.
pub fn group_version(name: &str, version: &str) -> String {
    format!("{}/{version}", group_path(name))
}

/// Parses the path of a URL.
pub fn parse(path: &str) -> Target {
    // `a//b` names nothing; a slash at the end is allowed.
    if path.trim_end_matches('/').contains("//") {
        return Target::Unknown;
    }
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(unescaped).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        [] => Target::Root,
        ["version"] => Target::Version,
        ["healthz" | "livez" | "readyz", ..] => Target::Health,
        ["api"] => Target::CoreVersions,
        ["apis"] => Target::Groups,
        ["openapi", "v2"] => Target::Swagger,
        ["openapi", "v3"] => Target::OpenApiIndex,
        ["openapi", "v3", "api", version] => Target::OpenApiDocument(String::new(), (*version).to_owned()),
        ["openapi", "v3", "apis", group, version] => {
            Target::OpenApiDocument((*group).to_owned(), (*version).to_owned())
        }
        ["api", version] => Target::GroupVersion(String::new(), (*version).to_owned()),
        ["apis", group] => Target::Group((*group).to_owned()),
        ["apis", group, version] => Target::GroupVersion((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Target::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Target {
    let (namespace, rest) = match rest {
        // A namespace's own subresources look like collections inside it.
        ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, inner @ ..] if !inner.is_empty() => (Some((*namespace).to_owned()), inner),
        _ => (None, rest),
    };
    let mut path = ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace,
        ..ResourcePath::default()
    };
    match rest {
        [plural] => path.plural = (*plural).to_owned(),
        [plural, name] => {
            path.plural = (*plural).to_owned();
            path.name = Some((*name).to_owned());
        }
        [plural, name, subresource] => {
            path.plural = (*plural).to_owned();
            path.name = Some((*name).to_owned());
            path.subresource = match *subresource {
                "status" => Some(Subresource::Status),
                "finalize" if group.is_empty() && *plural == "namespaces" => Some(Subresource::Finalize),
                _ => return Target::Unknown,
            };
        }
        _ => return Target::Unknown,
    }
    Target::Resource(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(group: &str, version: &str, plural: &str, namespace: Option<&str>, name: Option<&str>) -> ResourcePath {
        ResourcePath {
            group: group.into(),
            version: version.into(),
            plural: plural.into(),
            namespace: namespace.map(Into::into),
            name: name.map(Into::into),
            subresource: None,
        }
    }

    #[test]
    fn each_form_of_path_is_understood() {
        let objects = [
            ("/api/v1/namespaces", path("", "v1", "namespaces", None, None)),
            ("/api/v1/namespaces/a", path("", "v1", "namespaces", None, Some("a"))),
            ("/api/v1/namespaces/a/events", path("", "v1", "events", Some("a"), None)),
            ("/apis/x.y/v2/widgets/", path("x.y", "v2", "widgets", None, None)),
            (
                "/apis/x.y/v2/namespaces/a/widgets/b%2Bc",
                path("x.y", "v2", "widgets", Some("a"), Some("b+c")),
            ),
        ];
        for (text, expected) in objects {
            assert_eq!(parse(text), Target::Resource(expected), "{text}");
        }
        let status = ResourcePath {
            subresource: Some(Subresource::Status),
            ..path("", "v1", "namespaces", None, Some("a"))
        };
        assert_eq!(parse("/api/v1/namespaces/a/status"), Target::Resource(status));
        assert_eq!(parse("/apis/x.y"), Target::Group("x.y".into()));
        assert_eq!(
            parse("/openapi/v3/apis/x.y/v1"),
            Target::OpenApiDocument("x.y".into(), "v1".into())
        );
    }

    #[test]
    fn what_is_written_is_read_again() {
        for (group, version, namespace) in [("", "v1", None), ("x.y", "v2", Some("a/b%"))] {
            let collection = Collection {
                group,
                version,
                plural: "widgets",
                namespace,
            };
            let all = path(group, version, "widgets", namespace, None);
            assert_eq!(parse(&collection.path()), Target::Resource(all));
            let one = path(group, version, "widgets", namespace, Some("c d/é?"));
            assert_eq!(parse(&collection.object("c d/é?")), Target::Resource(one));
            let served = Target::GroupVersion(group.into(), version.into());
            assert_eq!(parse(&group_version(group, version)), served);
        }
    }

    #[test]
    fn a_lease_is_known_by_its_group() {
        let is_lease = |text: &str| matches!(parse(text), Target::Resource(path) if path.is_lease());
        assert!(is_lease("/apis/coordination.k8s.io/v1/namespaces/a/leases/b"));
        assert!(is_lease("/apis/coordination.k8s.io/v1/leases"));
        assert!(!is_lease("/apis/coordination.k8s.io.example.org/v1/leases"));
        assert!(!is_lease("/apis/coordination.k8s.io/v1"));
    }

    #[test]
    fn other_paths_point_at_nothing() {
        for text in [
            "/x",
            "/apis/a/b/c/d/e",
            "/apis/a/v1/namespaces/n/w/x/finalize",
            "/api/v1/namespaces/a/w/x/y/z",
        ] {
            assert_eq!(parse(text), Target::Unknown, "{text}");
        }
    }
}
