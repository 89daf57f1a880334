//! Which object a declared field of an object names. Looks nothing up.

use serde_json::Value;

use crate::kind::{Kind, Scope};
use crate::reference::{Named, Reference, Target};

/// An object that a field names: it need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedObject<'r> {
    /// Its kind.
    pub target: &'r Target,
    /// Empty for kinds of the whole cluster.
    pub namespace: String,
    /// Never empty.
    pub name: String,
}

/// The object that a reference of `holder` names in the text of an object; `None` where the field is absent or empty,
/// or the kind that it says is none of the reference's. `scope` knows whether the objects of a target have namespaces.
pub fn named<'r>(
    holder: &Kind,
    reference: &'r Reference,
    object: &Value,
    scope: impl Fn(&Target) -> Scope,
) -> Option<NamedObject<'r>> {
    let target = match reference.kind_column {
        None => reference.targets.first()?,
        Some(column) => {
            let column = holder.columns.iter().find(|known| known.name == column)?;
            let kind = at(object, column.path)?.as_str()?;
            reference.targets.iter().find(|target| target.kind == kind)?
        }
    };
    let field = at(object, reference.path)?;
    let own = || object["metadata"]["namespace"].as_str();
    let (namespace, name) = match reference.named {
        Named::Name => (own(), field.as_str()),
        Named::Identifier => {
            let namespace = field["namespace"].as_str().filter(|namespace| !namespace.is_empty());
            (namespace.or_else(own), field["name"].as_str())
        }
    };
    Some(NamedObject {
        target,
        namespace: match scope(target) {
            Scope::Namespaced => namespace.unwrap_or_default().to_owned(),
            Scope::Cluster => String::new(),
        },
        name: name.filter(|name| !name.is_empty())?.to_owned(),
    })
}

fn at<'v>(object: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}
