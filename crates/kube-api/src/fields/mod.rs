//! Field management: which manager owns which fields of an object, kept on every write, and server-side apply,
//! which merges by that knowledge. Follows the API server (structured merge and diff): sets of paths, lists and
//! maps that merge by schema, conflicts. Pure functions, which know nothing of HTTP, storage and clocks.
//!
//! All versions of a resource share one shape here: managers of other versions are compared as if they spoke this
//! one, which holds as long as definitions convert with strategy `None`.

mod element;

mod set;

mod managers;

mod shape;

mod walk;

mod conflict;

mod update;

mod apply;

use std::sync::LazyLock;

use serde_json::{Map, Value};

pub use apply::{NotApplied, apply};
pub use update::update;

use set::FieldSet;

/// Whose fields are whose would make an object larger than the largest.
#[derive(Debug, PartialEq)]
pub struct TooLarge;

/// Fields that the server fills in or that identify the object: nobody owns them.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Takes `metadata.managedFields` out of an object.
fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

/// Whether two states of an object differ in nothing, or in whose fields are whose and nothing else.
fn differ_in_managers_alone(a: &Value, b: &Value) -> bool {
    let metadata = match (&a["metadata"], &b["metadata"]) {
        (Value::Object(a), Value::Object(b)) => equal_but_for("managedFields", a, b),
        (a, b) => a == b,
    };
    metadata && matches!((a, b), (Value::Object(a), Value::Object(b)) if equal_but_for("metadata", a, b))
}

/// Whether two states of an object differ in nothing but the times at which managers touched them.
pub fn differ_in_times_alone(a: &Value, b: &Value) -> bool {
    let (managers, others) = (&a["metadata"]["managedFields"], &b["metadata"]["managedFields"]);
    let same_managers = match (managers, others) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|both| match both {
                    (Value::Object(a), Value::Object(b)) => equal_but_for("time", a, b),
                    (a, b) => a == b,
                })
        }
        (a, b) => a == b,
    };
    same_managers && differ_in_managers_alone(a, b)
}

fn equal_but_for(name: &str, a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    let count = |fields: &Map<String, Value>| fields.len() - usize::from(fields.contains_key(name));
    count(a) == count(b)
        && a.iter()
            .all(|(field, value)| field == name || b.get(field) == Some(value))
}

/// What `managedFields` of an object say.
fn stored_managers(object: &Value) -> Option<managers::Managers> {
    managers::Managers::read(object.get("metadata")?.get("managedFields")?)
}

/// Puts the managers into an object; without any, the field is left out.
fn put_managed_fields(object: &mut Value, managers: managers::Managers) {
    if managers.0.is_empty() {
        return;
    }
    if let Value::Object(fields) = object {
        let metadata = fields.entry("metadata").or_insert_with(|| serde_json::json!({}));
        if let Value::Object(metadata) = metadata {
            metadata.insert("managedFields".to_owned(), managers.into_json());
        }
    }
}

#[cfg(test)]
mod tests;
