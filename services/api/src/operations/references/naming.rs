//! Which objects name another one by a declared field: the condition for SQL, and the same as a function of the
//! object's text, for fields that have no columns. And the reverse: which objects one names. Pure.

use kindex_model::kind::{Kind, Registry, Scope};
use kindex_model::named_object::{naming_field, naming_fields};
use kindex_model::reference::{Named, Reference};
use kindex_query::select::Select;

use super::named_object::named;
use super::tree::{Field, NamingField, Node};

/// The object that is named.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct TargetKey<'a> {
    pub(in super::super) kind: &'static Kind,
    pub(in super::super) namespace: &'a str,
    pub(in super::super) name: &'a str,
}

/// The rows of a kind that may name an object by a reference: exactly those that do where the reference has columns,
/// else all that are not deleted.
pub(in super::super) fn select(holder: &'static Kind, reference: &Reference, key: TargetKey<'_>) -> Select {
    let namespace = (key.kind.scope == Scope::Namespaced).then_some(key.namespace);
    kindex_store::select_naming(holder, reference, key.kind.name, namespace, key.name)
}

/// Whether an object, in the version of its kind that has the field, names another one by a reference. Its kind has
/// been checked where a column has it.
pub(in super::super) fn names(reference: &Reference, holder: &str, key: TargetKey<'_>) -> bool {
    let Ok(object) = naming_field(reference, holder) else {
        return false;
    };
    let field = reference.path.iter().fold(&object, |value, part| &value[*part]);
    let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let (namespace, name) = match reference.named {
        Named::Name => (own, field.as_str()),
        Named::Identifier => {
            let namespace = field["namespace"].as_str().filter(|namespace| !namespace.is_empty());
            (namespace.unwrap_or(own), field["name"].as_str())
        }
    };
    let is_there = key.kind.scope == Scope::Cluster || namespace == key.namespace;
    name == Some(key.name) && is_there
}

/// The fields by which an object, in the version of its kind that has them, holds others.
pub(in super::super) fn targets(registry: &Registry, holder: &'static Kind, object: &str) -> Vec<NamingField> {
    let waiting: Vec<_> = holder.references.iter().filter(|reference| reference.waits()).collect();
    if waiting.is_empty() {
        return Vec::new();
    }
    let Ok(object) = naming_fields(holder, object) else {
        return Vec::new();
    };
    let naming = waiting.into_iter().filter_map(|reference| {
        let found = named(registry, holder, reference, &object)?;
        Some(NamingField {
            field: field(reference),
            group: found.group().to_owned(),
            kind: found.kind().to_owned(),
            namespace: found.namespace,
            name: found.name,
        })
    });
    naming.collect()
}

/// A holder with those of its fields that name this object, as far as they are known.
pub(in super::super) fn by_fields(holder: Node, of: &Node) -> Node {
    let naming = holder.targets.iter().filter(|target| is_it(target, of));
    Node {
        fields: naming.map(|target| target.field.clone()).collect(),
        targets: Vec::new(),
        ..holder
    }
}

/// Whether a field names this object. Whether that has a namespace is known best to its own service.
fn is_it(target: &NamingField, object: &Node) -> bool {
    let is_there = object.namespace.is_empty() || target.namespace == object.namespace;
    target.group == object.group && target.kind == object.kind && target.name == object.name && is_there
}

/// A reference as it is shown.
pub(in super::super) fn field(reference: &Reference) -> Field {
    Field {
        reference: reference.name.to_owned(),
        path: reference.path.join("."),
        on_delete: reference.on_delete.as_str().to_owned(),
        owned: reference.owned,
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::reference::{OnDelete, Service, Target};
    use serde_json::{Value, json};

    use super::*;
    use crate::operations::references::tree::tests::node;
    use crate::operations::token::tests::KIND;

    const PIPELINE: Reference = Reference {
        name: "pipeline",
        targets: &[],
        kind_column: None,
        path: &["spec", "pipeline"],
        named: Named::Identifier,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Cascade,
    };
    static ZONE: Kind = Kind {
        name: "Zone",
        scope: Scope::Cluster,
        ..KIND
    };

    fn holder(pipeline: &Value) -> String {
        json!({"metadata": {"name": "h", "namespace": "n"}, "spec": {"pipeline": pipeline}}).to_string()
    }

    #[test]
    fn a_field_names_an_object_of_its_namespace_unless_it_says_another() {
        let key = |kind, namespace| TargetKey {
            kind,
            namespace,
            name: "a",
        };
        let by_name = Reference {
            named: Named::Name,
            ..PIPELINE
        };
        for (reference, field, kind, namespace, expected) in [
            (&PIPELINE, json!({"name": "a"}), &KIND, "n", true),
            (&PIPELINE, json!({"name": "a", "namespace": ""}), &KIND, "n", true),
            (&PIPELINE, json!({"name": "a", "namespace": "m"}), &KIND, "n", false),
            (&PIPELINE, json!({"name": "a", "namespace": "m"}), &KIND, "m", true),
            (&PIPELINE, json!({"name": "b"}), &KIND, "n", false),
            (&PIPELINE, json!("a"), &KIND, "n", false),
            (&PIPELINE, Value::Null, &KIND, "n", false),
            (&by_name, json!("a"), &KIND, "n", true),
            (&by_name, json!("a"), &KIND, "m", false),
            (&by_name, json!("a"), &ZONE, "", true),
            (&by_name, json!({"name": "a"}), &KIND, "n", false),
        ] {
            let found = names(reference, &holder(&field), key(kind, namespace));
            assert_eq!(found, expected, "{field} {namespace}");
        }
    }

    #[test]
    fn sql_is_asked_by_the_columns_that_there_are() {
        let key = TargetKey {
            kind: &KIND,
            namespace: "m",
            name: "a",
        };
        let asked = |reference: &Reference, key| {
            let select = select(&KIND, reference, key);
            let texts = select.equal_texts();
            texts
                .iter()
                .map(|(column, text)| format!("{column}={text}"))
                .collect::<Vec<_>>()
        };
        let both = Reference {
            columns: &["pipeline_namespace", "pipeline_name"],
            ..PIPELINE
        };
        assert_eq!(asked(&both, key), ["pipeline_namespace=m", "pipeline_name=a"]);
        let of_a_kind = Reference {
            kind_column: Some("base_type"),
            ..both
        };
        assert_eq!(
            asked(&of_a_kind, key),
            ["pipeline_namespace=m", "pipeline_name=a", "base_type=Run"]
        );
        let one = Reference {
            columns: &["pipeline"],
            ..PIPELINE
        };
        assert_eq!(asked(&one, key), ["namespace=m", "pipeline=a"]);
        assert_eq!(
            asked(
                &one,
                TargetKey {
                    kind: &ZONE,
                    namespace: "",
                    name: "a"
                }
            ),
            ["pipeline=a"]
        );
        assert!(asked(&PIPELINE, key).is_empty());
    }

    static REGION: Service = Service {
        name: "region",
        group: "r",
        cluster_scoped: &["Zone"],
        plurals: &[],
        refers_to: &[],
        address: "",
        ca_file: None,
        token_file: None,
    };

    const NETWORK_THERE: Target = Target {
        service: Some(&REGION),
        group: "r",
        kind: "Network",
    };
    const ZONE_THERE: Target = Target {
        kind: "Zone",
        ..NETWORK_THERE
    };

    static HOLDERS: Kind = Kind {
        references: &[
            Reference {
                targets: &[Target {
                    service: None,
                    group: KIND.group,
                    kind: KIND.name,
                }],
                owned: true,
                ..PIPELINE
            },
            Reference {
                name: "network",
                targets: &[NETWORK_THERE],
                path: &["spec", "network"],
                on_delete: OnDelete::Block,
                ..PIPELINE
            },
            Reference {
                name: "zone",
                targets: &[ZONE_THERE],
                path: &["spec", "zone"],
                named: Named::Name,
                ..PIPELINE
            },
            Reference {
                name: "left",
                targets: &[NETWORK_THERE],
                path: &["spec", "left"],
                on_delete: OnDelete::Orphan,
                ..PIPELINE
            },
        ],
        ..KIND
    };
    const REGISTRY: Registry = Registry {
        kinds: &[&HOLDERS],
        ..Registry::EMPTY
    };

    fn targets_of(spec: &Value) -> Vec<NamingField> {
        let object = json!({"metadata": {"name": "h", "namespace": "n"}, "spec": spec});
        targets(&REGISTRY, &HOLDERS, &object.to_string())
    }

    /// As the service of a holder says it.
    fn said(spec: &Value) -> Node {
        let said = Node {
            targets: targets_of(spec),
            ..node("h")
        };
        serde_json::from_str(&said.to_json()).expect("a node")
    }

    #[test]
    fn the_fields_by_which_an_object_holds_others_are_said_with_what_they_name() {
        let spec = json!({"pipeline": {"name": "a"}, "network": {"name": "b", "namespace": "m"}, "zone": "c",
            "left": {"name": "d"}});
        assert_eq!(
            serde_json::to_value(targets_of(&spec)).expect("JSON"),
            json!([
                {"reference": "pipeline", "path": "spec.pipeline", "onDelete": "cascade", "owned": true, "group": "g",
                    "kind": "Run", "namespace": "n", "name": "a"},
                {"reference": "network", "path": "spec.network", "onDelete": "block", "group": "r", "kind": "Network",
                    "namespace": "m", "name": "b"},
                {"reference": "zone", "path": "spec.zone", "onDelete": "cascade", "group": "r", "kind": "Zone",
                    "name": "c"},
            ])
        );
        assert!(targets(&REGISTRY, &HOLDERS, "no JSON").is_empty());
        assert!(targets(&REGISTRY, &KIND, &holder(&json!({"name": "a"}))).is_empty());
    }

    /// As if it held nothing.
    #[test]
    fn a_holder_that_is_nested_too_deeply_for_a_value_names_what_it_names() {
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        let spec = json!({"pipeline": {"name": "a", "deep": deep}, "zone": "c", "deep": deep});
        let plain = json!({"pipeline": {"name": "a"}, "zone": "c"});
        assert_eq!(targets_of(&spec), targets_of(&plain));
        let holder = json!({"metadata": {"namespace": "n"}, "spec": spec}).to_string();
        let key = TargetKey {
            kind: &KIND,
            namespace: "n",
            name: "a",
        };
        assert!(names(&PIPELINE, &holder, key));
    }

    #[test]
    fn of_all_fields_of_a_holder_those_count_that_name_the_object() {
        let network = |namespace: &str, name: &str| Node {
            kind: "Network".to_owned(),
            group: "r".to_owned(),
            namespace: namespace.to_owned(),
            ..node(name)
        };
        let zone = Node {
            kind: "Zone".to_owned(),
            ..network("", "c")
        };
        let holder = said(&json!({"network": {"name": "b", "namespace": "m"}, "zone": "c"}));
        for (of, how) in [
            (network("m", "b"), "spec.network: block, reference"),
            (network("n", "b"), "reference"),
            (network("m", "c"), "reference"),
            (node("b"), "reference"),
            (zone.clone(), "spec.zone: cascade, reference"),
        ] {
            let found = by_fields(holder.clone(), &of);
            assert_eq!((found.how().as_str(), found.targets.len()), (how, 0), "{of:?}");
        }
        // Who declares that a zone has a namespace means the same one.
        let mut holder = holder;
        holder.targets[1].namespace = "n".to_owned();
        assert_eq!(by_fields(holder, &zone).fields.len(), 1);
    }

    #[test]
    fn what_its_service_says_to_cascade_goes_along_and_stays_where_that_says_nothing() {
        let zone = Node {
            kind: "Zone".to_owned(),
            group: "r".to_owned(),
            ..node("c")
        };
        let forecast = |holder: Node| {
            let tree = Node {
                holders: vec![by_fields(holder, &zone)],
                ..zone.clone()
            };
            tree.forecast()
        };
        assert_eq!(
            forecast(said(&json!({"zone": "c"}))),
            ["zone/c: thing/h would be deleted first (spec.zone: cascade, reference)"]
        );
        // A service of an older version.
        assert_eq!(
            forecast(said(&json!({}))),
            ["zone/c: waits for thing/h, which somebody has to delete (reference)"]
        );
    }
}
