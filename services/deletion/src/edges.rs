//! Which objects the declared fields of an object name. Reads its text; looks nothing up.

use kindex_model::kind::{Kind, Scope};
use kindex_model::reference::{Named, Reference, Target};
use serde_json::Value;

use crate::object::{Edge, Key, KindName};

/// The objects that an object names and waits with, in the order of crds.toml. `scope` knows whether the objects of a
/// target live in namespaces.
pub fn edges(kind: &Kind, object: &Value, scope: impl Fn(&Target) -> Scope) -> Vec<Edge> {
    let references = kind.references.iter().filter(|reference| reference.waits());
    let named = references.filter_map(|reference| {
        let target = target_of(kind, reference, object)?;
        let key = key(object, reference, target, scope(target))?;
        Some(Edge {
            reference: reference.name,
            target: key,
            owned: reference.owned,
            on_delete: reference.on_delete,
        })
    });
    named.collect()
}

/// Whether a kind has references that wait, or is named by one of them.
pub fn is_in_graph(kinds: &[&Kind], kind: &Kind) -> bool {
    let names = |reference: &Reference| reference.waits() && reference.target(kind.group, kind.name).is_some();
    let waits = kind.references.iter().any(Reference::waits);
    waits || kinds.iter().any(|other| other.references.iter().any(names))
}

/// The kind that is named: the only one, or the one that a column says.
fn target_of<'r>(kind: &Kind, reference: &'r Reference, object: &Value) -> Option<&'r Target> {
    let Some(column) = reference.kind_column else {
        return reference.targets.first();
    };
    let column = kind.columns.iter().find(|other| other.name == column)?;
    let named = at(object, column.path)?.as_str()?;
    let mut targets = reference.targets.iter();
    targets.find(|target| target.kind == named)
}

fn key(object: &Value, reference: &Reference, target: &Target, scope: Scope) -> Option<Key> {
    let field = at(object, reference.path)?;
    let own = || object["metadata"]["namespace"].as_str();
    let (namespace, name) = match reference.named {
        Named::Name => (own(), field.as_str()),
        Named::Identifier => {
            let said = field["namespace"].as_str().filter(|namespace| !namespace.is_empty());
            (said.or_else(own), field["name"].as_str())
        }
    };
    // An empty name names nothing: it must never be taken for a filter that everything passes.
    let name = name.filter(|name| !name.is_empty())?;
    Some(Key {
        kind: KindName::new(target.group, target.kind),
        namespace: match scope {
            Scope::Namespaced => namespace.unwrap_or_default().to_owned(),
            Scope::Cluster => String::new(),
        },
        name: name.to_owned(),
    })
}

fn at<'v>(object: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}
