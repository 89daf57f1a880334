//! The fields by which an object names others: which one is meant by a move, the patch that lets it name another
//! object, and which of them name something else after a change. Pure.

use kindex_model::kind::{Kind, Registry, Scope};
use kindex_model::reference::{Named, Reference};
use serde_json::{Map, Value, json};

use super::named_object::{NamedObject, named};
use crate::operations::Refusal;

/// The reference that a move means: the one of that name, else the only one that may name objects of the kind.
pub(in super::super) fn choose(
    holder: &'static Kind,
    wanted: Option<&str>,
    to: &NamedObject,
) -> Result<&'static Reference, Refusal> {
    let may_name = |reference: &&Reference| reference.target(to.group(), to.kind()).is_some();
    if let Some(wanted) = wanted {
        let found = holder.references.iter().find(|reference| reference.name == wanted);
        return match found {
            Some(found) if may_name(&found) => Ok(found),
            Some(found) => Err(Refusal::bad_request(format!(
                "the reference {wanted} of {} names {}, and never {}",
                holder.name,
                listed(found.targets.iter().map(|target| target.kind.to_owned())),
                to.kind()
            ))),
            None => Err(Refusal::bad_request(format!(
                "{} has no reference {wanted}; {}",
                holder.name,
                all_of(holder)
            ))),
        };
    }
    let fitting: Vec<_> = holder.references.iter().filter(may_name).collect();
    match fitting[..] {
        [only] => Ok(only),
        [] => Err(Refusal::bad_request(format!(
            "no reference of {} names objects of {}; {}",
            holder.name,
            to.kind(),
            all_of(holder)
        ))),
        _ => Err(Refusal::bad_request(format!(
            "several references of {} may name {}: {}; say which one with --reference",
            holder.name,
            to.kind(),
            listed(fitting.iter().map(|reference| field(reference)))
        ))),
    }
}

/// `network (spec.network)`.
fn field(reference: &Reference) -> String {
    format!("{} ({})", reference.name, reference.path.join("."))
}

fn all_of(kind: &Kind) -> String {
    match kind.references {
        [] => "it has no references".to_owned(),
        references => {
            let each = references.iter().map(|reference| {
                let targets = reference.targets.iter().map(|target| target.kind.to_owned());
                format!("{} to {}", reference.name, listed(targets))
            });
            format!("its references are {}", listed(each))
        }
    }
}

fn listed(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The merge patch by which the field names another object, and nothing else changes, for this version of the holder.
pub(in super::super) fn patch(
    holder: &Kind,
    reference: &Reference,
    object: &Value,
    to: &NamedObject,
) -> Result<Value, Refusal> {
    let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let named = match reference.named {
        Named::Identifier => json!({
            "namespace": Some(&to.namespace).filter(|namespace| !namespace.is_empty()),
            "name": to.name,
        }),
        Named::Name if to.scope() == Scope::Namespaced && to.namespace != own => {
            return Err(Refusal::bad_request(format!(
                "{} holds a name alone, of an object in the namespace {own:?} of the holder; {to} is in another one",
                reference.path.join(".")
            )));
        }
        Named::Name => json!(to.name),
    };
    let metadata = &object["metadata"];
    let mut patch = json!({"metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}});
    put(&mut patch, reference.path, named);
    let columns = holder.columns.iter();
    let mut columns = columns.filter(|column| Some(column.name) == reference.kind_column);
    if let Some(column) = columns.next() {
        put(&mut patch, column.path, json!(to.kind()));
    }
    Ok(patch)
}

fn put(into: &mut Value, path: &[&str], value: Value) {
    let place = path.iter().fold(into, |place, name| {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        &mut place[*name]
    });
    *place = value;
}

/// The references that delay deletions and name something else after a change: with what they named and name.
pub(in super::super) fn changed(
    registry: &Registry,
    kind: &'static Kind,
    old: &Value,
    new: &Value,
) -> Vec<(&'static Reference, [Option<NamedObject>; 2])> {
    let waiting = kind.references.iter().filter(|reference| reference.waits());
    let pairs = waiting.map(|reference| {
        (
            reference,
            [old, new].map(|object| named(registry, kind, reference, object)),
        )
    });
    let changed = pairs.filter(|(_, pair)| match pair {
        [Some(old), Some(new)] => !old.is(new),
        [None, None] => false,
        [Some(_), None] | [None, Some(_)] => true,
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use kindex_model::kind::{Column, ColumnType};
    use kindex_model::reference::{OnDelete, Target};

    use super::*;
    use crate::operations::ObjectKey;
    use crate::operations::objects::tests::PLATFORM;
    use crate::operations::token::tests::KIND;

    const fn target(kind: &'static str) -> Target {
        Target {
            service: None,
            group: KIND.group,
            kind,
        }
    }

    const NETWORK: Reference = Reference {
        name: "network",
        targets: &[target("Network")],
        kind_column: None,
        path: &["spec", "network"],
        named: Named::Identifier,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Block,
    };

    static NETWORKS: Kind = Kind {
        name: "Network",
        singular: "network",
        references: &[],
        ..KIND
    };
    static ZONES: Kind = Kind {
        name: "Zone",
        singular: "zone",
        scope: Scope::Cluster,
        references: &[],
        ..KIND
    };
    static HOLDERS: Kind = Kind {
        name: "Holder",
        columns: &[Column {
            name: "about_kind",
            path: &["spec", "aboutKind"],
            ty: ColumnType::Text { chars: 63 },
            own_namespace: false,
        }],
        references: &[
            NETWORK,
            Reference {
                name: "backup",
                path: &["spec", "backup"],
                named: Named::Name,
                ..NETWORK
            },
            Reference {
                name: "about",
                targets: &[target("Zone"), target("Holder")],
                kind_column: Some("about_kind"),
                path: &["spec", "about"],
                ..NETWORK
            },
            Reference {
                name: "left",
                targets: &[target("Holder")],
                path: &["spec", "left"],
                on_delete: OnDelete::Orphan,
                ..NETWORK
            },
        ],
        ..KIND
    };
    const REGISTRY: Registry = Registry {
        platform: PLATFORM,
        kinds: &[&HOLDERS, &NETWORKS, &ZONES],
        ..Registry::EMPTY
    };

    fn object(spec: &Value) -> Value {
        json!({"metadata": {"namespace": "n", "name": "h", "uid": "u", "resourceVersion": "7"}, "spec": spec})
    }

    fn message(result: Result<&'static Reference, Refusal>) -> String {
        let refusal = result.expect_err("refused");
        assert_eq!(refusal.code, 400);
        refusal.to_string()
    }

    #[test]
    fn the_only_reference_to_the_kind_is_meant_and_of_several_one_has_to_be_said() {
        let name = |wanted, kind| choose(&HOLDERS, wanted, &to(kind, "n")).expect("one is meant").name;
        assert_eq!(name(None, &ZONES), "about");
        assert_eq!(name(Some("backup"), &NETWORKS), "backup");
        assert_eq!(
            message(choose(&HOLDERS, None, &to(&NETWORKS, "n"))),
            "several references of Holder may name Network: network (spec.network), backup (spec.backup); say which \
             one with --reference"
        );
        assert_eq!(
            message(choose(&HOLDERS, Some("about"), &to(&NETWORKS, "n"))),
            "the reference about of Holder names Zone, Holder, and never Network"
        );
        let unknown = message(choose(&HOLDERS, Some("netwrk"), &to(&NETWORKS, "n")));
        assert!(unknown.starts_with("Holder has no reference netwrk; its references are network to Network, "));
        let none = message(choose(&NETWORKS, None, &to(&ZONES, "")));
        assert_eq!(
            none,
            "no reference of Network names objects of Zone; it has no references"
        );
    }

    fn to(kind: &'static Kind, namespace: &str) -> NamedObject {
        NamedObject::of(&ObjectKey {
            resource: kind.into(),
            namespace,
            name: "b",
        })
    }

    #[test]
    fn the_patch_changes_the_field_alone_and_only_in_the_version_that_was_read() {
        let holder = object(&json!({"network": {"namespace": "n", "name": "a"}}));
        let patched = |at: usize, to: &NamedObject| {
            let patch = patch(&HOLDERS, &HOLDERS.references[at], &holder, to)?;
            assert_eq!(patch["metadata"], json!({"uid": "u", "resourceVersion": "7"}));
            Ok::<_, Refusal>(patch["spec"].clone())
        };
        assert_eq!(
            patched(0, &to(&NETWORKS, "m")).expect("a patch"),
            json!({"network": {"namespace": "m", "name": "b"}})
        );
        assert_eq!(
            patched(1, &to(&NETWORKS, "n")).expect("a patch"),
            json!({"backup": "b"})
        );
        let refused = patched(1, &to(&NETWORKS, "m")).expect_err("another namespace");
        assert_eq!(refused.code, 400);
        assert_eq!(
            patched(2, &to(&ZONES, "")).expect("a patch"),
            json!({"about": {"namespace": null, "name": "b"}, "aboutKind": "Zone"})
        );
    }

    #[test]
    fn only_what_names_something_else_and_delays_deletions_has_changed() {
        let changes = |old: &Value, new: &Value| {
            let changed = changed(&REGISTRY, &HOLDERS, &object(old), &object(new));
            let text = |one: &Option<NamedObject>| one.as_ref().map(ToString::to_string).unwrap_or_default();
            let changed = changed
                .iter()
                .map(|(reference, [old, new])| format!("{}: {} {}", reference.name, text(old), text(new)));
            changed.collect::<Vec<_>>()
        };
        let network = |namespace: Value, name: &str| json!({"network": {"namespace": namespace, "name": name}});
        assert!(changes(&network(Value::Null, "a"), &network(json!("n"), "a")).is_empty());
        assert_eq!(
            changes(&network(json!("n"), "a"), &network(json!("m"), "a")),
            ["network: network/n/a network/m/a"]
        );
        assert_eq!(changes(&json!({"backup": "a"}), &json!({})), ["backup: network/n/a "]);
        let about = |kind: &str| json!({"aboutKind": kind, "about": {"name": "a"}});
        assert_eq!(changes(&about("Zone"), &about("Holder")), ["about: zone/a run/n/a"]);
        assert!(
            changes(&json!({"left": {"name": "a"}}), &json!({})).is_empty(),
            "it waits for nobody"
        );
    }
}
