//! A role as a manifest.

use std::collections::BTreeMap;

use serde::Serialize;

/// What a rule lets be done.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

/// Kubernetes' own roles for people.
#[derive(Clone, Copy)]
pub(super) enum People {
    View,
    Edit,
}

impl People {
    /// By which a role becomes a part of it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::View => "rbac.authorization.k8s.io/aggregate-to-view",
            Self::Edit => "rbac.authorization.k8s.io/aggregate-to-edit",
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Role {
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    pub(super) metadata: Metadata,
    pub(super) rules: Vec<Rule>,
}

#[derive(Serialize)]
pub(super) struct Metadata {
    name: String,
    labels: BTreeMap<String, &'static str>,
    annotations: Annotations,
}

#[derive(Serialize)]
struct Annotations {
    #[serde(rename = "kubernetes.io/description")]
    description: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule {
    pub(super) api_groups: [String; 1],
    pub(super) resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) resource_names: Vec<String>,
    pub(super) verbs: &'static [Verb],
}

impl Role {
    /// For the whole cluster.
    pub(super) fn cluster(name: &'static str, description: &'static str, rules: Vec<Rule>) -> Self {
        Self {
            api_version: "rbac.authorization.k8s.io/v1",
            kind: "ClusterRole",
            metadata: Metadata {
                name: format!("kindex-{name}"),
                labels: BTreeMap::from([("app.kubernetes.io/name".to_owned(), "kindex")]),
                annotations: Annotations { description },
            },
            rules,
        }
    }

    /// As a part of one of Kubernetes' own roles for people.
    /// <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles>
    pub(super) fn added_to(mut self, role: People) -> Self {
        self.metadata.labels.insert(role.label().to_owned(), "true");
        self
    }
}

impl Rule {
    pub(super) fn new(
        group: &str,
        resources: impl IntoIterator<Item = impl Into<String>>,
        verbs: &'static [Verb],
    ) -> Self {
        Self {
            api_groups: [group.to_owned()],
            resources: resources.into_iter().map(Into::into).collect(),
            resource_names: Vec::new(),
            verbs,
        }
    }
}
