//! Which objects the declared fields of an object name, as edges of the graph. Looks nothing up.

use kindex_model::kind::{Kind, Scope};
use kindex_model::named_object::named;
use kindex_model::reference::Target;
use serde_json::Value;

use crate::object::{Edge, Key, KindName};

/// The objects that an object names and waits with, in the order of crds.toml. `scope` knows whether the objects of a
/// target live in namespaces.
pub fn edges(kind: &Kind, object: &Value, scope: impl Fn(&Target) -> Scope) -> Vec<Edge> {
    let references = kind.references.iter().filter(|reference| reference.waits());
    let edges = references.filter_map(|reference| {
        let found = named(kind, reference, object, &scope)?;
        Some(Edge {
            reference: reference.name,
            target: Key {
                kind: KindName::new(found.target.group, found.target.kind),
                namespace: found.namespace.into(),
                name: found.name.into(),
            },
            owned: reference.owned,
            on_delete: reference.on_delete,
        })
    });
    edges.collect()
}

#[cfg(test)]
mod tests {
    use kindex_model::kind::{Column, ColumnType, Registry};
    use kindex_model::reference::{Named, OnDelete, Reference, Service};
    use serde_json::json;

    use super::*;

    const fn target(kind: &'static str) -> Target {
        Target {
            service: None,
            group: "x.example.com",
            kind,
        }
    }

    const NETWORK: Reference = Reference {
        name: "network",
        targets: &[target("Network")],
        kind_column: None,
        path: &["spec", "network"],
        named: Named::Name,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Cascade,
    };
    const ABOUT: Reference = Reference {
        name: "about",
        targets: &[target("Network"), target("Cluster")],
        kind_column: Some("about_kind"),
        path: &["spec", "about"],
        named: Named::Identifier,
        ..NETWORK
    };
    const LEFT: Reference = Reference {
        name: "left",
        on_delete: OnDelete::Orphan,
        ..NETWORK
    };

    const NOTES: Kind = Kind {
        name: "Note",
        group: "x.example.com",
        version: "v1",
        plural: "notes",
        singular: "note",
        table: "note",
        columns: &[Column {
            name: "about_kind",
            path: &["spec", "aboutKind"],
            ty: ColumnType::Text { chars: 63 },
            own_namespace: false,
        }],
        references: &[NETWORK, ABOUT, LEFT],
        ..Kind::EMPTY
    };
    static NOTE: Kind = NOTES;

    fn named(spec: &Value) -> Vec<(&'static str, String)> {
        let object = json!({"metadata": {"namespace": "own"}, "spec": spec});
        let found = edges(&NOTE, &object, |target| match target.kind {
            "Cluster" => Scope::Cluster,
            _ => Scope::Namespaced,
        });
        found
            .into_iter()
            .map(|edge| (edge.reference, edge.target.to_string()))
            .collect()
    }

    #[test]
    fn a_name_is_in_the_namespace_of_its_holder_and_an_identifier_where_it_says() {
        let spec = json!({"network": "n", "aboutKind": "Network", "about": {"namespace": "other", "name": "m"}});
        let network = |name: &str| format!("network.x.example.com {name}");
        assert_eq!(
            named(&spec),
            [("network", network("own/n")), ("about", network("other/m"))]
        );
        let spec = json!({"aboutKind": "Network", "about": {"namespace": "", "name": "m"}});
        assert_eq!(named(&spec), [("about", network("own/m"))]);
    }

    #[test]
    fn the_column_says_which_kind_is_meant_and_its_scope_counts() {
        let spec = json!({"aboutKind": "Cluster", "about": {"namespace": "other", "name": "c"}});
        assert_eq!(named(&spec), [("about", "cluster.x.example.com c".to_owned())]);
        for kind in ["Other", ""] {
            assert!(named(&json!({"aboutKind": kind, "about": {"name": "c"}})).is_empty());
        }
    }

    #[test]
    fn what_is_empty_or_absent_names_nothing() {
        for spec in [
            json!({}),
            json!({"network": ""}),
            json!({"network": null}),
            json!({"about": {"name": "m"}}),
        ] {
            assert!(named(&spec).is_empty());
        }
    }

    #[test]
    fn kinds_are_in_the_graph_where_a_deletion_waits() {
        static ALONE: Kind = Kind {
            name: "Alone",
            references: &[LEFT],
            ..NOTES
        };
        static NETWORKS: Kind = Kind {
            name: "Network",
            references: &[],
            ..NOTES
        };
        const REGISTRY: Registry = Registry {
            kinds: &[&NOTE, &ALONE, &NETWORKS],
            ..Registry::EMPTY
        };
        assert!(REGISTRY.is_of_graph(&NOTE) && REGISTRY.is_of_graph(&NETWORKS));
        assert!(!REGISTRY.is_of_graph(&ALONE));

        static COMPUTE: Service = Service {
            name: "compute",
            group: "compute.example.com",
            cluster_scoped: &[],
            plurals: &[],
            refers_to: &["Alone"],
            address: "https://compute.example.com",
            ca_file: None,
            token_file: None,
        };
        const BESIDE: Registry = Registry {
            services: &[&COMPUTE],
            ..REGISTRY
        };
        assert!(BESIDE.is_of_graph(&ALONE), "another service refers to it");
    }
}
