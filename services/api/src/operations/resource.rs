//! A kind in one of the versions in which it is served: whose paths requests have, and whose form objects.

use kindex_kube_api::request::Collection;
use kindex_model::kind::{Kind, Scope};

/// A kind in one of its served versions.
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    /// The kind.
    pub kind: &'static Kind,
    /// The kind's own version, or another one.
    pub version: &'static str,
}

impl From<&'static Kind> for Resource {
    fn from(kind: &'static Kind) -> Self {
        Self {
            kind,
            version: kind.version,
        }
    }
}

impl Resource {
    /// All versions of a kind that are served, its own first.
    pub fn all(kind: &'static Kind) -> impl Iterator<Item = Self> {
        let others = kind.versions.iter().filter(|version| version.served);
        let others = others.map(move |version| Self {
            kind,
            version: version.name,
        });
        std::iter::once(kind.into()).chain(others)
    }

    /// What who asks for it in this version is warned of.
    pub fn deprecation(&self) -> Option<&'static str> {
        let mut others = self.kind.versions.iter();
        others.find(|version| version.name == self.version)?.deprecated
    }

    /// `group/version`, as in `apiVersion`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.kind.group, self.version)
    }

    pub(super) fn objects<'a>(&self, namespace: Option<&'a str>) -> Collection<'a> {
        Collection {
            group: self.kind.group,
            version: self.version,
            plural: self.kind.plural,
            namespace: namespace.filter(|_| self.kind.scope == Scope::Namespaced),
        }
    }

    /// The path of its objects, in one namespace or in all.
    pub(super) fn collection(&self, namespace: Option<&str>) -> String {
        self.objects(namespace).path()
    }
}
