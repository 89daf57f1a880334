//! Field management: which manager owns which fields of an object, kept on every write, and server-side apply,
//! which merges by that knowledge. Follows the API server (structured merge and diff): sets of paths, lists and
//! maps that merge by schema, conflicts. Pure functions; refuses to know HTTP, storage and clocks.
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

use serde_json::Value;

pub use apply::apply;
pub use conflict::{Conflict, conflict_message};
pub use update::update;

use set::FieldSet;

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

/// Puts the managers into an object; without any, the field is left out.
fn put_managed_fields(object: &mut Value, managers: &managers::Managers) {
    if managers.0.is_empty() {
        return;
    }
    if let Value::Object(fields) = object {
        let metadata = fields.entry("metadata").or_insert_with(|| serde_json::json!({}));
        if let Value::Object(metadata) = metadata {
            metadata.insert("managedFields".to_owned(), managers.write());
        }
    }
}

#[cfg(test)]
mod tests;
