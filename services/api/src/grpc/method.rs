//! Maps the path of a call to its action and kind, from the descriptors.

use std::collections::BTreeMap;

use kindex_kube_api::request::Verb;
use kindex_model::kind::{Kind, Registry};
use prost::{DecodeError, Message};
use prost_types::{FileDescriptorSet, ServiceDescriptorProto};

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    Get,
    Update,
    UpdateStatus,
    Delete,
    DeleteCollection,
    List,
    Watch,
}

impl Action {
    const ALL: [Self; 8] = [
        Self::Create,
        Self::Get,
        Self::Update,
        Self::UpdateStatus,
        Self::Delete,
        Self::DeleteCollection,
        Self::List,
        Self::Watch,
    ];

    /// The name of the call for a kind.
    fn of(self, kind: &str) -> String {
        match self {
            Self::Create => format!("Create{kind}"),
            Self::Get => format!("Get{kind}"),
            Self::Update => format!("Update{kind}"),
            Self::UpdateStatus => format!("Update{kind}Status"),
            Self::Delete => format!("Delete{kind}"),
            Self::DeleteCollection => format!("Delete{kind}Collection"),
            Self::List => format!("List{kind}"),
            Self::Watch => format!("Watch{kind}"),
        }
    }

    /// As Kubernetes names it.
    pub(super) fn verb(self) -> Verb {
        match self {
            Self::Create => Verb::Create,
            Self::Get => Verb::Get,
            Self::Update | Self::UpdateStatus => Verb::Update,
            Self::Delete => Verb::Delete,
            Self::DeleteCollection => Verb::DeleteCollection,
            Self::List => Verb::List,
            Self::Watch => Verb::Watch,
        }
    }

    /// Whether it changes something.
    pub(super) fn writes(self) -> bool {
        match self {
            Self::Create | Self::Update | Self::UpdateStatus | Self::Delete | Self::DeleteCollection => true,
            Self::Get | Self::List | Self::Watch => false,
        }
    }
}

/// One call of one service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method {
    pub(super) kind: &'static Kind,
    pub(super) action: Action,
}

/// All calls that are served.
#[derive(Debug, Default)]
pub(super) struct Methods {
    by_path: BTreeMap<String, Method>,
    /// Full names.
    pub(super) services: Vec<String>,
}

impl Methods {
    /// Those of the kinds that have a service among the descriptors.
    ///
    /// # Errors
    /// Descriptors that are none.
    pub(super) fn of(registry: &Registry) -> Result<Self, DecodeError> {
        let mut methods = Self::default();
        for file in FileDescriptorSet::decode(registry.descriptors)?.file {
            for service in &file.service {
                let kinds = registry.kinds.iter();
                let kind = kinds
                    .copied()
                    .find(|kind| service.name() == format!("{}Service", kind.name));
                if let Some(kind) = kind {
                    methods.add(file.package(), service, kind);
                }
            }
        }
        Ok(methods)
    }

    fn add(&mut self, package: &str, service: &ServiceDescriptorProto, kind: &'static Kind) {
        let dot = if package.is_empty() { "" } else { "." };
        let name = format!("{package}{dot}{}", service.name());
        for method in &service.method {
            let action = Action::ALL
                .into_iter()
                .find(|action| action.of(kind.name) == method.name());
            if let Some(action) = action {
                let path = format!("/{name}/{}", method.name());
                self.by_path.insert(path, Method { kind, action });
            }
        }
        self.services.push(name);
    }

    pub(super) fn find(&self, path: &str) -> Option<Method> {
        self.by_path.get(path).copied()
    }
}
