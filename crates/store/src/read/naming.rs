//! Which rows name an object by a declared reference: the condition on their columns.

use kindex_model::kind::Kind;
use kindex_model::reference::Reference;
use kindex_model::value::Value;

use kindex_query::select::{Condition, Select};

/// The rows of a kind that may name an object by a reference: exactly those that do where the reference has columns,
/// else all that are not deleted. An object of the whole cluster has no namespace.
pub fn select_naming(
    holder: &'static Kind,
    reference: &Reference,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> Select {
    let mut select = Select::all(holder).undeleted_by_uid();
    select.scan = true;
    let mut equal = |column: &'static str, text: &str| {
        select
            .conditions
            .push(Condition::equal(column, Value::Text(text.to_owned())));
    };
    match reference.columns {
        [of_namespace, of_name] => {
            if let Some(namespace) = namespace {
                equal(of_namespace, namespace);
            }
            equal(of_name, name);
        }
        [of_name] => {
            if let Some(namespace) = namespace {
                equal("namespace", namespace);
            }
            equal(of_name, name);
        }
        _ => {}
    }
    if let Some(column) = reference.kind_column {
        equal(column, kind);
    }
    select
}
