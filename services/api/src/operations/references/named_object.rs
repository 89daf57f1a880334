//! An object that a field names, of this program or of another service. It need not exist.

use kindex_kube_client::ObjectName;
use kindex_model::kind::{Kind, Registry, Scope};
use kindex_model::named_object;
use kindex_model::reference::{Reference, Service, Target};
use serde_json::Value;

use crate::operations::ObjectKey;

/// The kind of an object that a field names.
#[derive(Clone, Copy, Debug)]
enum NamedKind {
    /// Of this program.
    Own(&'static Kind),
    /// Of another service.
    OfPeer(&'static Service, &'static str),
}

/// An object that a field names, of this program or of another service.
#[derive(Clone, Debug)]
pub struct NamedObject {
    kind: NamedKind,
    /// Empty for kinds of the whole cluster.
    pub(super) namespace: String,
    pub(super) name: String,
}

/// Where the object is that a field names.
pub(super) enum Located<'a> {
    /// In this program.
    Own(ObjectKey<'a>),
    /// In another service.
    AtPeer {
        service: &'static Service,
        kind: &'static str,
        name: ObjectName,
    },
}

impl NamedObject {
    /// An object of this program.
    pub fn of(key: &ObjectKey<'_>) -> Self {
        Self::at(NamedKind::Own(key.resource.kind), key.namespace, key.name)
    }

    /// An object of another service.
    pub fn of_peer(service: &'static Service, kind: &'static str, namespace: &str, name: &str) -> Self {
        Self::at(NamedKind::OfPeer(service, kind), namespace, name)
    }

    fn at(kind: NamedKind, namespace: &str, name: &str) -> Self {
        let has_namespace = kind.scope() == Scope::Namespaced;
        Self {
            kind,
            namespace: if has_namespace {
                namespace.to_owned()
            } else {
                String::new()
            },
            name: name.to_owned(),
        }
    }

    /// Where it is, if it is of this program.
    pub(in super::super) fn key(&self) -> Option<ObjectKey<'_>> {
        match self.located() {
            Located::Own(key) => Some(key),
            Located::AtPeer { .. } => None,
        }
    }

    /// Where it is.
    pub(super) fn located(&self) -> Located<'_> {
        match self.kind {
            NamedKind::Own(kind) => Located::Own(ObjectKey {
                resource: kind.into(),
                namespace: &self.namespace,
                name: &self.name,
            }),
            NamedKind::OfPeer(service, kind) => Located::AtPeer {
                service,
                kind,
                name: ObjectName {
                    namespace: self.namespace.clone(),
                    name: self.name.clone(),
                },
            },
        }
    }

    /// API group of its kind.
    pub(super) fn group(&self) -> &'static str {
        self.kind.group()
    }

    /// Its kind: `Network`.
    pub(super) fn kind(&self) -> &'static str {
        self.kind.name()
    }

    /// Whether it has a namespace.
    pub(super) fn scope(&self) -> Scope {
        self.kind.scope()
    }

    /// Whether both are the same name of the same kind.
    pub(in super::super) fn is(&self, other: &Self) -> bool {
        let place = |one: &Self| {
            (
                one.kind.group(),
                one.kind.name(),
                one.namespace.clone(),
                one.name.clone(),
            )
        };
        place(self) == place(other)
    }

    /// What tells people why it is still there.
    pub(super) fn why(&self) -> String {
        let Self { kind, namespace, name } = self;
        let place = match kind.scope() {
            Scope::Namespaced => format!("{}/{name} -n {namespace}", kind.singular()),
            Scope::Cluster => format!("{}/{name}", kind.singular()),
        };
        match kind {
            NamedKind::Own(_) => format!("see `kindex why {place}`"),
            NamedKind::OfPeer(service, _) => {
                format!("see `kindex why {place}` at the service {}", service.name)
            }
        }
    }
}

impl NamedKind {
    fn group(self) -> &'static str {
        match self {
            Self::Own(kind) => kind.group,
            Self::OfPeer(service, _) => service.group,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Own(kind) => kind.name,
            Self::OfPeer(_, name) => name,
        }
    }

    fn singular(self) -> String {
        match self {
            Self::Own(kind) => kind.singular.to_owned(),
            Self::OfPeer(_, name) => name.to_ascii_lowercase(),
        }
    }

    fn scope(self) -> Scope {
        match self {
            Self::Own(kind) => kind.scope,
            Self::OfPeer(service, name) if service.has_namespaces(name) => Scope::Namespaced,
            Self::OfPeer(..) => Scope::Cluster,
        }
    }
}

/// `project/b`, `network/default/blue`.
impl std::fmt::Display for NamedObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, namespace, name } = self;
        match namespace.as_str() {
            "" => write!(f, "{}/{name}", kind.singular()),
            namespace => write!(f, "{}/{namespace}/{name}", kind.singular()),
        }
    }
}

/// The object that a field names, where its kind is known.
pub(in super::super) fn named(
    registry: &Registry,
    holder: &Kind,
    reference: &'static Reference,
    object: &Value,
) -> Option<NamedObject> {
    let scope = |target: &Target| known(registry, target).map_or(Scope::Namespaced, |kind| kind.scope());
    let found = named_object::named(holder, reference, object, scope)?;
    Some(NamedObject {
        kind: known(registry, found.target)?,
        namespace: found.namespace,
        name: found.name,
    })
}

fn known(registry: &Registry, target: &Target) -> Option<NamedKind> {
    if let Some(service) = target.service {
        return Some(NamedKind::OfPeer(service, target.kind));
    }
    let mut kinds = registry.kinds.iter().copied();
    let found = kinds.find(|kind| kind.group == target.group && kind.name == target.kind);
    found.map(NamedKind::Own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::token::tests::KIND;

    static IDENTITY: Service = Service {
        name: "identity",
        group: "identity.example.com",
        cluster_scoped: &["Zone"],
        plurals: &[],
        refers_to: &[],
        address: "",
        ca_file: None,
        token_file: None,
    };

    #[test]
    fn it_is_shown_as_it_is_typed_and_people_are_sent_to_its_service() {
        let project = NamedObject::of_peer(&IDENTITY, "Project", "n", "b");
        assert_eq!(project.to_string(), "project/n/b");
        assert_eq!(project.why(), "see `kindex why project/b -n n` at the service identity");
        let zone = NamedObject::of_peer(&IDENTITY, "Zone", "n", "b");
        assert_eq!(zone.to_string(), "zone/b", "it has no namespace");
        let own = NamedObject::of(&ObjectKey {
            resource: (&KIND).into(),
            namespace: "n",
            name: "b",
        });
        assert_eq!(own.why(), "see `kindex why run/b -n n`");
        assert!(!own.is(&project) && project.is(&project.clone()));
        assert!(own.key().is_some() && project.key().is_none());
    }
}
