//! Who may do what in a cluster: a table of the services' roles, and those for people, which Kubernetes adds to its own
//! roles `view` and `edit`.

mod conditions;
mod manifest;

use super::api_service::aggregated_group;
use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::model::{Kind, Model, OnDelete, SubresourceStatus, TargetKind};
use manifest::{People, Role, Rule, Verb};

/// Where the roles are for people, and where the chart has the same files, to the byte.
const DIRECTORIES: [&str; 2] = ["schema/rbac", "deploy/helm/kindex/files/rbac"];

/// What a service asks a cluster for in its own name.
struct ServiceRole {
    /// Of the file, and after `kindex-` of the role.
    name: &'static str,
    description: &'static str,
    scope: Scope,
    /// On which kinds.
    of: Kinds,
    /// What is done with these.
    kinds: &'static [Verb],
    /// What is done with the status of those that have conditions in it.
    status: &'static [Verb],
    /// On Kubernetes' own resources: group, resource and verbs.
    others: &'static [(&'static str, &'static str, &'static [Verb])],
    /// Whether it reads which cluster this is, since a database has the objects of one.
    needs_identity: bool,
    /// On the CustomResourceDefinitions of the kinds, and on no other.
    definitions: Option<Definitions>,
}

/// What a service does with definitions, by name.
#[derive(Clone, Copy)]
struct Definitions {
    resource: &'static str,
    verbs: &'static [Verb],
    /// Names beside those of the kinds.
    beside: &'static [&'static str],
}

/// Which kinds a service works with.
#[derive(Clone, Copy)]
enum Kinds {
    All,
    /// Those that wait for each other when they are deleted.
    OfGraph,
}

/// Where a role holds.
#[derive(Clone, Copy)]
enum Scope {
    Cluster,
    /// Where the service itself is.
    Namespace,
}

/// The roles of the services, with the verbs that they ask for and no other.
const SERVICES: &[ServiceRole] = &[
    // Also for the commands that compare and fill: `status`, `verify`, `backfill`.
    ServiceRole {
        name: "ingester",
        description: "What kindex ingester asks a cluster for.",
        scope: Scope::Cluster,
        of: Kinds::All,
        kinds: &[Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Watch],
        status: &[],
        others: &[
            ("", "events", &[Verb::Create]),
            ("apiextensions.k8s.io", "customresourcedefinitions", &[Verb::Get]),
        ],
        needs_identity: true,
        definitions: None,
    },
    // With `--leader-elect` or `--shards`.
    ServiceRole {
        name: "ingester-leases",
        description: "What several ingesters need beside that, in the namespace of their leases.",
        scope: Scope::Namespace,
        of: Kinds::All,
        kinds: &[],
        status: &[],
        others: &[(
            "coordination.k8s.io",
            "leases",
            &[Verb::Create, Verb::Delete, Verb::List, Verb::Update],
        )],
        needs_identity: false,
        definitions: None,
    },
    // With `--rights caller`.
    ServiceRole {
        name: "api",
        description: "What kindex api asks a cluster for in its own name, beside what it does with each caller's rights.",
        scope: Scope::Cluster,
        of: Kinds::All,
        kinds: &[Verb::Delete, Verb::Get, Verb::List, Verb::Patch],
        status: &[],
        others: &[
            ("apiextensions.k8s.io", "customresourcedefinitions", &[Verb::Get]),
            ("authentication.k8s.io", "tokenreviews", &[Verb::Create]),
            ("authorization.k8s.io", "subjectaccessreviews", &[Verb::Create]),
        ],
        needs_identity: true,
        definitions: None,
    },
    // Without `--webhook-only`.
    ServiceRole {
        name: "migrator",
        description: "What kindex migrator asks a cluster for, to migrate the kinds.",
        scope: Scope::Cluster,
        of: Kinds::All,
        kinds: &[Verb::List, Verb::Patch],
        status: &[],
        others: &[
            (
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                &[Verb::Create, Verb::Get, Verb::List, Verb::Watch],
            ),
            (
                "migration.k8s.io",
                "storagestates",
                &[Verb::Create, Verb::Delete, Verb::List, Verb::Watch],
            ),
            ("migration.k8s.io", "storagestates/status", &[Verb::Update]),
            (
                "migration.k8s.io",
                "storageversionmigrations",
                &[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Watch],
            ),
            ("migration.k8s.io", "storageversionmigrations/status", &[Verb::Update]),
            // To name those that never leave an object as it is.
            (
                "admissionregistration.k8s.io",
                "mutatingwebhookconfigurations",
                &[Verb::List],
            ),
            ("authorization.k8s.io", "selfsubjectaccessreviews", &[Verb::Create]),
        ],
        needs_identity: false,
        definitions: Some(Definitions {
            resource: "customresourcedefinitions",
            verbs: &[Verb::Patch],
            beside: &[
                "storagestates.migration.k8s.io",
                "storageversionmigrations.migration.k8s.io",
            ],
        }),
    },
    // With `--resource all`.
    ServiceRole {
        name: "migrator-all",
        description: "What kindex migrator needs beside that to migrate every resource of the cluster.",
        scope: Scope::Cluster,
        of: Kinds::All,
        kinds: &[],
        status: &[],
        others: &[("*", "*", &[Verb::List, Verb::Patch])],
        needs_identity: false,
        definitions: None,
    },
    // With `--in-tree`.
    ServiceRole {
        name: "migrator-in-tree",
        description: "What kindex migrator needs beside that to go through Kubernetes' own migrator.",
        scope: Scope::Cluster,
        of: Kinds::All,
        kinds: &[],
        status: &[],
        others: &[(
            "storagemigration.k8s.io",
            "storageversionmigrations",
            &[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Watch],
        )],
        needs_identity: false,
        definitions: Some(Definitions {
            resource: "customresourcedefinitions/status",
            verbs: &[Verb::Patch],
            beside: &[],
        }),
    },
    ServiceRole {
        name: "migrator-leases",
        description: "What several migrators need beside that, in the namespace of their lease.",
        scope: Scope::Namespace,
        of: Kinds::All,
        kinds: &[],
        status: &[],
        others: &[(
            "coordination.k8s.io",
            "leases",
            &[Verb::Create, Verb::Delete, Verb::List, Verb::Update],
        )],
        needs_identity: false,
        definitions: None,
    },
    ServiceRole {
        name: "deletion",
        description: "What kindex deletion asks a cluster for.",
        scope: Scope::Cluster,
        of: Kinds::OfGraph,
        kinds: &[Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Watch],
        status: &[Verb::Patch],
        others: &[
            ("", "events", &[Verb::Create]),
            ("apiextensions.k8s.io", "customresourcedefinitions", &[Verb::Get]),
        ],
        needs_identity: true,
        definitions: None,
    },
    ServiceRole {
        name: "deletion-leases",
        description: "What several replicas of kindex deletion need beside that, in the namespace of their lease.",
        scope: Scope::Namespace,
        of: Kinds::OfGraph,
        kinds: &[],
        status: &[],
        others: &[(
            "coordination.k8s.io",
            "leases",
            &[Verb::Create, Verb::Delete, Verb::List, Verb::Update],
        )],
        needs_identity: false,
        definitions: None,
    },
    // With `--aggregated`: what callers may do there, the server does in its own name.
    ServiceRole {
        name: "api-aggregated",
        description: "What kindex api needs beside that behind kube-apiserver, where no token of a caller reaches it.",
        scope: Scope::Cluster,
        of: Kinds::All,
        kinds: &[Verb::Create, Verb::DeleteCollection, Verb::Watch],
        status: &[],
        others: &[],
        needs_identity: false,
        definitions: None,
    },
];

impl ServiceRole {
    fn role(&self, model: &Model) -> Role {
        let others = self.others.iter();
        let others = others.map(|(group, resource, verbs)| Rule::new(group, [*resource], verbs));
        let kinds = self.on(model, self.kinds, |kind| Some(kind.plural.clone()));
        let status = self.on(model, self.status, |kind| {
            status_of(kind).filter(|_| conditions::has_some(model, kind))
        });
        let of_the_cluster = self.needs_identity.then(of_the_cluster);
        let definitions = self.definitions.map(|definitions| definitions.rule(model));
        let rules = kinds.into_iter().chain(status).chain(others);
        let rules = rules.chain(of_the_cluster).chain(definitions);
        let role = Role::cluster(self.name, self.description, rules.collect());
        match self.scope {
            Scope::Cluster => role,
            Scope::Namespace => Role { kind: "Role", ..role },
        }
    }

    /// A rule for each API group of its kinds that the cluster has; none without verbs.
    fn on(&self, model: &Model, verbs: &'static [Verb], resource: impl Fn(&Kind) -> Option<String>) -> Vec<Rule> {
        let resource = |kind: &Kind| resource(kind).filter(|_| kind.cluster);
        match (verbs, self.of) {
            ([], _) => Vec::new(),
            (verbs, Kinds::All) => grouped(model, verbs, resource),
            (verbs, Kinds::OfGraph) => of_graph(model, verbs, resource),
        }
    }
}

/// The namespace whose uid tells one cluster from another, and no other.
fn of_the_cluster() -> Rule {
    Rule {
        resource_names: vec!["kube-system".to_owned()],
        ..Rule::new("", ["namespaces"], &[Verb::Get])
    }
}

impl Definitions {
    fn rule(self, model: &Model) -> Rule {
        let kinds = model.kinds.iter().filter(|kind| kind.cluster);
        let names = kinds.map(|kind| format!("{}.{}", kind.plural, kind.group));
        let beside = self.beside.iter().map(|name| (*name).to_owned());
        Rule {
            resource_names: names.chain(beside).collect(),
            ..Rule::new("apiextensions.k8s.io", [self.resource], self.verbs)
        }
    }
}

/// One file for each role, in each of the directories.
pub(super) fn emit(model: &Model) -> Artifacts {
    let services = SERVICES.iter().map(|service| (service.name, service.role(model)));
    let people = [
        ("view", view(model)),
        ("edit", edit(model)),
        ("references", references(model)),
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
    let files = services.chain(people).flat_map(|(name, role)| {
        let yaml = serde_saphyr::to_string(&role).expect("a manifest holds only text");
        let text = format!("# {HEADER}\n{yaml}");
        DIRECTORIES.map(|directory| (RelativePath::new(format!("{directory}/{name}.yaml")), text.clone()))
    });
    files.collect()
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
            "view-archive",
            "Reads objects of the kinds by way of kube-apiserver; a part of view.",
        ),
        People::Edit => (
            "edit-archive",
            "Changes objects of the kinds by way of kube-apiserver; a part of edit.",
        ),
    };
    Role::cluster(name, description, rules).added_to(role)
}

fn view(model: &Model) -> Role {
    let mut rules = of_kinds(model, &[Verb::Get, Verb::List, Verb::Watch]);
    rules.extend(grouped(model, &[Verb::Get], status_of));
    let role = Role::cluster("view", "Reads objects of the kinds; a part of view.", rules);
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
    let role = Role::cluster("edit", "Changes objects of the kinds; a part of edit.", rules);
    role.added_to(People::Edit)
}

/// For controllers: by this right the API server takes it that somebody speaks for a holder.
fn references(model: &Model) -> Role {
    let mut rules = of_graph(model, &[Verb::Get], |kind| Some(kind.plural.clone()));
    rules.extend(of_graph(model, &[Verb::Update], |kind| {
        Some(format!("{}/references", kind.plural))
    }));
    Role::cluster(
        "references",
        "Sets and releases references by way of kindex api; for the accounts of controllers.",
        rules,
    )
}

/// The same verbs for every kind whose deletion waits for others, or is waited for.
fn of_graph(model: &Model, verbs: &'static [Verb], resource: impl Fn(&Kind) -> Option<String>) -> Vec<Rule> {
    let waiting = |kind: &Kind| {
        let references = kind.references.iter();
        let waiting = references.filter(|reference| reference.owned || reference.on_delete != OnDelete::Orphan);
        waiting
            .flat_map(|reference| reference.target.kinds().to_vec())
            .collect::<Vec<TargetKind>>()
    };
    let targets: Vec<TargetKind> = model.kinds.iter().flat_map(waiting).collect();
    let is_target = |kind: &Kind| {
        let mut targets = targets.iter();
        targets.any(|target| target.service.is_none() && target.kind == kind.name)
    };
    let is_referred_to = |kind: &Kind| {
        let mut services = model.services.iter();
        services.any(|service| service.refers_to.contains(&kind.name))
    };
    grouped(model, verbs, |kind| {
        resource(kind).filter(|_| is_target(kind) || is_referred_to(kind) || !waiting(kind).is_empty())
    })
}

/// The status subresource of a kind that has one.
fn status_of(kind: &Kind) -> Option<String> {
    match kind.status {
        SubresourceStatus::Present(_) => Some(format!("{}/status", kind.plural)),
        SubresourceStatus::Absent => None,
    }
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
