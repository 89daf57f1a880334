//! Who may do what in a cluster: a role for each role of the program, with the verbs that it asks for and no other,
//! and two for people, which Kubernetes adds to its own roles `view` and `edit`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::api_service::aggregated_group;
use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::model::{Kind, Model, SubresourceStatus};

/// Where the roles are for people, and where the chart has the same files, to the byte.
const DIRECTORIES: [&str; 2] = ["schema/rbac", "deploy/helm/kindex/files/rbac"];

/// What a rule lets be done.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verb {
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
enum People {
    View,
    Edit,
}

impl People {
    /// By which a role becomes a part of it.
    const fn label(self) -> &'static str {
        match self {
            Self::View => "rbac.authorization.k8s.io/aggregate-to-view",
            Self::Edit => "rbac.authorization.k8s.io/aggregate-to-edit",
        }
    }
}

/// One file for each role, in each of the directories.
pub(super) fn emit(model: &Model) -> Artifacts {
    let roles = [
        ("ingester", ingester(model)),
        ("ingester-leases", ingester_leases()),
        ("api", api(model)),
        ("view", view(model)),
        ("edit", edit(model)),
        ("api-aggregated", api_aggregated(model)),
        (
            "view-archive",
            of_archive(model, People::View, &[Verb::Get, Verb::List, Verb::Watch]),
        ),
        (
            "edit-archive",
            of_archive(
                model,
                People::Edit,
                &[Verb::Delete, Verb::DeleteCollection, Verb::Patch],
            ),
        ),
    ];
    let files = roles.into_iter().flat_map(|(name, role)| {
        let yaml = serde_saphyr::to_string(&role).expect("a manifest holds only text");
        let text = format!("# {HEADER}\n{yaml}");
        DIRECTORIES.map(|directory| (RelativePath::new(format!("{directory}/{name}.yaml")), text.clone()))
    });
    files.collect()
}

/// `kindex ingester`, and the commands that compare and fill: `status`, `verify`, `backfill`.
fn ingester(model: &Model) -> Role {
    let mut rules = of_kinds(model, &[Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Watch]);
    rules.push(Rule::new("", ["events"], &[Verb::Create]));
    Role::cluster("kindex-ingester", "What kindex ingester asks a cluster for.", rules)
}

/// `kindex ingester --leader-elect` and `--shards`, in the namespace of their leases alone.
fn ingester_leases() -> Role {
    let verbs = &[Verb::Create, Verb::Delete, Verb::List, Verb::Update];
    let rules = vec![Rule::new("coordination.k8s.io", ["leases"], verbs)];
    Role {
        kind: "Role",
        ..Role::cluster(
            "kindex-ingester-leases",
            "What several ingesters need beside that, in the namespace of their leases.",
            rules,
        )
    }
}

/// `kindex api --rights caller`: what it does in its own name. All else it does in its callers'.
fn api(model: &Model) -> Role {
    let mut rules = of_kinds(model, &[Verb::Delete, Verb::Get, Verb::List, Verb::Patch]);
    rules.push(Rule::new("authentication.k8s.io", ["tokenreviews"], &[Verb::Create]));
    rules.push(Rule::new(
        "authorization.k8s.io",
        ["subjectaccessreviews"],
        &[Verb::Create],
    ));
    Role::cluster(
        "kindex-api",
        "What kindex api asks a cluster for in its own name, beside what it does with each caller's rights.",
        rules,
    )
}

/// `kindex api --aggregated` beside that: what callers may do there, the server does in its own name.
fn api_aggregated(model: &Model) -> Role {
    Role::cluster(
        "kindex-api-aggregated",
        "What kindex api needs beside that behind kube-apiserver, where no token of a caller reaches it.",
        of_kinds(model, &[Verb::Create, Verb::DeleteCollection, Verb::Watch]),
    )
}

/// The same people in the groups that kube-apiserver passes on: it asks for rights there, and Kindex for those on the
/// kinds themselves.
fn of_archive(model: &Model, role: People, verbs: &'static [Verb]) -> Role {
    let mut rules = of_kinds(model, verbs);
    for rule in &mut rules {
        rule.api_groups = rule.api_groups.each_ref().map(|group| aggregated_group(group));
    }
    let (name, description) = match role {
        People::View => (
            "kindex-view-archive",
            "Reads objects of the kinds by way of kube-apiserver; a part of view.",
        ),
        People::Edit => (
            "kindex-edit-archive",
            "Changes objects of the kinds by way of kube-apiserver; a part of edit.",
        ),
    };
    Role::cluster(name, description, rules).added_to(role)
}

fn view(model: &Model) -> Role {
    let mut rules = of_kinds(model, &[Verb::Get, Verb::List, Verb::Watch]);
    rules.extend(grouped(model, &[Verb::Get], |kind| match kind.status {
        SubresourceStatus::Present(_) => Some(format!("{}/status", kind.plural)),
        SubresourceStatus::Absent => None,
    }));
    let role = Role::cluster("kindex-view", "Reads objects of the kinds; a part of view.", rules);
    role.added_to(People::View)
}

fn edit(model: &Model) -> Role {
    let verbs = &[
        Verb::Create,
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Patch,
        Verb::Update,
    ];
    let rules = of_kinds(model, verbs);
    let role = Role::cluster("kindex-edit", "Changes objects of the kinds; a part of edit.", rules);
    role.added_to(People::Edit)
}

/// The same verbs for every kind.
fn of_kinds(model: &Model, verbs: &'static [Verb]) -> Vec<Rule> {
    grouped(model, verbs, |kind| Some(kind.plural.clone()))
}

/// A rule for each API group, in the order of the kinds.
fn grouped(model: &Model, verbs: &'static [Verb], resource: impl Fn(&Kind) -> Option<String>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for kind in &model.kinds {
        let Some(resource) = resource(kind) else { continue };
        let group = kind.group.as_str();
        match rules.iter_mut().find(|rule| rule.api_groups[0] == group) {
            Some(rule) => rule.resources.push(resource),
            None => rules.push(Rule::new(group, [resource], verbs)),
        }
    }
    rules
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Role {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
struct Metadata {
    name: &'static str,
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
struct Rule {
    api_groups: [String; 1],
    resources: Vec<String>,
    verbs: &'static [Verb],
}

impl Role {
    /// For the whole cluster.
    fn cluster(name: &'static str, description: &'static str, rules: Vec<Rule>) -> Self {
        Self {
            api_version: "rbac.authorization.k8s.io/v1",
            kind: "ClusterRole",
            metadata: Metadata {
                name,
                labels: BTreeMap::from([("app.kubernetes.io/name".to_owned(), "kindex")]),
                annotations: Annotations { description },
            },
            rules,
        }
    }

    /// As a part of one of Kubernetes' own roles for people.
    /// <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles>
    fn added_to(mut self, role: People) -> Self {
        self.metadata.labels.insert(role.label().to_owned(), "true");
        self
    }
}

impl Rule {
    fn new(group: &str, resources: impl IntoIterator<Item = impl Into<String>>, verbs: &'static [Verb]) -> Self {
        Self {
            api_groups: [group.to_owned()],
            resources: resources.into_iter().map(Into::into).collect(),
            verbs,
        }
    }
}
