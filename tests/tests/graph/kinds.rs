//! The kinds of a project: a cluster on a network and a server group, both of a cloud identity. Beside them zones,
//! whose fields name other zones and regions, which are of the whole cluster and name networks.

use kindex_deletion::kinds::Kinds;
use kindex_model::kind::{Kind, Platform, Registry, Scope};
use kindex_model::object::Object;
use kindex_model::reference::{Named, OnDelete, Reference, Service, Target};
use serde_json::{Value, json};

pub(crate) const GROUP: &str = "platform.example.com";
const PLATFORM: Platform = Platform {
    group: GROUP,
    version: "v1",
    finalizer: "platform.example.com/kindex",
    deleting: "platform.example.com/deleting",
    immutable: "platform.example.com/immutable",
    ..Platform::EMPTY
};

const fn reference(name: &'static str, path: &'static [&'static str], targets: &'static [Target]) -> Reference {
    Reference {
        name,
        targets,
        kind_column: None,
        path,
        named: Named::Name,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Cascade,
    }
}

const fn target(kind: &'static str) -> Target {
    Target {
        service: None,
        group: GROUP,
        kind,
    }
}

pub(crate) const fn kind(
    name: &'static str,
    plural: &'static str,
    singular: &'static str,
    references: &'static [Reference],
) -> Kind {
    Kind {
        name,
        group: GROUP,
        version: "v1",
        plural,
        singular,
        table: singular,
        references,
        ..Kind::EMPTY
    }
}

static PROJECTS: Kind = kind("Project", "projects", "project", &[]);
static IDENTITIES: Kind = kind(
    "CloudIdentity",
    "cloudidentities",
    "cloudidentity",
    &[reference("project", &["spec", "project"], &[target("Project")])],
);
static NETWORKS: Kind = kind(
    "Network",
    "networks",
    "network",
    &[reference(
        "cloud_identity",
        &["spec", "cloudIdentity"],
        &[target("CloudIdentity")],
    )],
);
static GROUPS: Kind = kind(
    "ServerGroup",
    "servergroups",
    "servergroup",
    &[reference(
        "cloud_identity",
        &["spec", "cloudIdentity"],
        &[target("CloudIdentity")],
    )],
);
pub(crate) static CLUSTERS: Kind = kind(
    "Cluster",
    "clusters",
    "cluster",
    &[
        reference("network", &["spec", "network"], &[target("Network")]),
        reference("server_group", &["spec", "serverGroup"], &[target("ServerGroup")]),
    ],
);

const PARENT: Reference = Reference {
    owned: true,
    ..reference("parent", &["spec", "parent"], &[target("Zone")])
};
const BACKUP: Reference = reference("backup", &["spec", "backup"], &[target("Zone")]);
const USES: Reference = Reference {
    on_delete: OnDelete::Block,
    ..reference("uses", &["spec", "uses"], &[target("Zone")])
};
const REGION: Reference = reference("region", &["spec", "region"], &[target("Region")]);
static ZONES: Kind = kind("Zone", "zones", "zone", &[PARENT, BACKUP, USES, REGION]);

const BACKBONE: Reference = Reference {
    named: Named::Identifier,
    ..reference("backbone", &["spec", "backbone"], &[target("Network")])
};
static REGIONS: Kind = Kind {
    scope: Scope::Cluster,
    ..kind("Region", "regions", "region", &[BACKBONE])
};

static KINDS: [&Kind; 7] = [&PROJECTS, &IDENTITIES, &NETWORKS, &GROUPS, &CLUSTERS, &ZONES, &REGIONS];

pub(crate) fn registry() -> Registry {
    Registry {
        platform: PLATFORM,
        kinds: &KINDS,
        ..Registry::EMPTY
    }
}

/// The definition of a kind whose objects may have anything in their spec. All but projects have conditions.
pub(crate) fn definition(kind: &Kind) -> Value {
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let text = json!({"type": "string"});
    let condition = json!({
        "type": text,
        "status": text,
        "reason": text,
        "message": text,
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    });
    let conditions = json!({"type": "array", "items": {"type": "object", "properties": condition}});
    let (schema, subresources) = match kind.name {
        "Project" => (json!({"spec": spec}), json!({})),
        _ => (
            json!({"spec": spec, "status": {"type": "object", "properties": {"conditions": conditions}}}),
            json!({"status": {}}),
        ),
    };
    let scope = match kind.scope {
        Scope::Namespaced => "Namespaced",
        Scope::Cluster => "Cluster",
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name()},
        "spec": {
            "group": kind.group,
            "scope": scope,
            "names": {"kind": kind.name, "plural": kind.plural, "singular": kind.singular},
            "versions": [{
                "name": kind.version,
                "served": true,
                "storage": true,
                "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": schema}},
            }],
        },
    })
}

static IDENTITY: Service = Service {
    name: "identity",
    group: "identity.example.com",
    cluster_scoped: &["Organization"],
    plurals: &[],
    refers_to: &[],
    address: "https://identity.example.com",
    ca_file: None,
    token_file: None,
};

const fn foreign(kind: &'static str) -> Target {
    Target {
        service: Some(&IDENTITY),
        group: IDENTITY.group,
        kind,
    }
}

static ROLES: Kind = kind(
    "Role",
    "roles",
    "role",
    &[
        reference("organization", &["spec", "organization"], &[foreign("Organization")]),
        reference("team", &["spec", "team"], &[foreign("Team")]),
    ],
);

#[test]
fn objects_of_another_service_have_namespaces_unless_it_says_otherwise() {
    static KINDS: [&Kind; 1] = [&ROLES];
    let kinds = Kinds::of(&Registry {
        kinds: &KINDS,
        ..registry()
    });
    let role = json!({
        "apiVersion": "platform.example.com/v1",
        "kind": "Role",
        "metadata": {"name": "r", "namespace": "default", "uid": "u", "resourceVersion": "1"},
        "spec": {"organization": "o", "team": "t"},
    });
    let role = kinds.read(&ROLES, &Object::parse_str(&role.to_string()).expect("an object"));
    let named: Vec<_> = role.edges.iter().map(|edge| edge.target.to_string()).collect();
    assert_eq!(
        named,
        [
            "organization.identity.example.com o",
            "team.identity.example.com default/t"
        ]
    );
}
