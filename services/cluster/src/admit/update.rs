//! Updates: what a client may change is taken, what it may not is kept, the generation counts real changes.

use std::collections::HashSet;

use kindex_kube_api::identity::check_update;
use kindex_kube_api::request::Subresource;
use kindex_kube_api::status::{FieldProblem, Status};
use kindex_kube_api::{fields, meta, schema};
use serde_json::Value;

use super::{Author, create, kinds};
use crate::definition::{self, Claims};
use crate::resource::{Resource, ResourceType};

/// Fields of metadata that only the server sets.
const SYSTEM_FIELDS: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

/// What an update leads to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// Nothing would change: nothing is written.
    Unchanged,
    /// The object to store.
    Changed(Value),
    /// The object was being deleted and nothing keeps it any more: its last state.
    Gone(Value),
}

/// What an update of `before` to `object` leads to.
///
/// # Errors
/// 400 when the object contradicts the request, 409 when it is of another version or another object, 422 when it is
/// invalid.
pub(crate) fn update(
    resource: &Resource,
    before: &Value,
    mut object: Value,
    claims: &Claims,
    author: &Author<'_>,
) -> Result<Outcome, Status> {
    let is_version_required = !resource.allows_unconditional_update();
    check_update(resource.group_resource(), before, &object, is_version_required)?;
    meta::set(&mut object, "namespace", before["metadata"].get("namespace").cloned());
    for field in SYSTEM_FIELDS {
        meta::set(&mut object, field, before["metadata"].get(field).cloned());
    }
    meta::set(
        &mut object,
        "resourceVersion",
        before["metadata"].get("resourceVersion").cloned(),
    );
    object = confine(resource, before, object, author.subresource);
    if let Some(structural) = &resource.schema {
        schema::apply_defaults(structural, &mut object).map_err(|schema::TooLarge| Status::object_too_large())?;
    }
    if resource.has_generation() && content_differs(resource, before, &object) {
        let generation = before["metadata"]["generation"].as_u64().unwrap_or_default();
        meta::set(&mut object, "generation", Some((generation + 1).into()));
    }
    let mut problems = create::problems(resource, &object, Some(before));
    problems.extend(refused_finalizers(before, &object));
    if !problems.is_empty() {
        return Err(Status::invalid(
            &resource.group,
            &resource.names.kind,
            meta::name(before),
            &problems,
        ));
    }
    if resource.resource_type == ResourceType::Definition && author.subresource.is_none() {
        definition::settle(&mut object, claims, &meta::time(author.now));
    }
    if !author.applied {
        let subresource = author.subresource.map(Subresource::name);
        object = fields::update(
            resource.schema.as_ref(),
            Some(before),
            object,
            author.manager,
            subresource,
            author.now,
        )
        .map_err(|fields::TooLarge| Status::object_too_large())?;
    }
    if meta::is_deleting(&object) && kinds::is_released(resource, &object) {
        return Ok(Outcome::Gone(object));
    }
    Ok(if fields::differ_in_times_alone(before, &object) {
        Outcome::Unchanged
    } else {
        Outcome::Changed(object)
    })
}

/// Lets the request change only what its subresource is for.
fn confine(resource: &Resource, before: &Value, mut object: Value, subresource: Option<Subresource>) -> Value {
    match subresource {
        None => {
            if resource.has_status {
                kinds::copy(before, &mut object, "status");
            }
            kinds::prepare_updated(resource, before, &mut object);
            object
        }
        Some(Subresource::Status) => with_only(before, &object, "status"),
        Some(Subresource::Finalize) => with_only(before, &object, "spec"),
    }
}

/// `before` with one field of `object`, and its managed fields.
fn with_only(before: &Value, object: &Value, field: &str) -> Value {
    let mut kept = before.clone();
    kinds::copy(object, &mut kept, field);
    meta::set(
        &mut kept,
        "managedFields",
        object["metadata"].get("managedFields").cloned(),
    );
    kept
}

/// Whether anything differs but metadata and, where it is a subresource, the status.
fn content_differs(resource: &Resource, before: &Value, object: &Value) -> bool {
    let (Some(before), Some(object)) = (before.as_object(), object.as_object()) else {
        return before != object;
    };
    let counts = |name: &str| name != "metadata" && !(resource.has_status && name == "status");
    let content =
        |fields: &serde_json::Map<String, Value>| -> usize { fields.keys().filter(|name| counts(name)).count() };
    content(before) != content(object)
        || object
            .iter()
            .any(|(name, value)| counts(name) && before.get(name) != Some(value))
}

fn refused_finalizers(before: &Value, object: &Value) -> Option<FieldProblem> {
    if !meta::is_deleting(before) {
        return None;
    }
    let present: HashSet<&str> = meta::finalizers(before).into_iter().collect();
    let added: Vec<_> = meta::finalizers(object)
        .into_iter()
        .filter(|finalizer| !present.contains(finalizer))
        .collect();
    if added.is_empty() {
        return None;
    }
    let shown: Vec<_> = added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
    let rule = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        shown.join(", ")
    );
    Some(FieldProblem::forbidden("metadata.finalizers", &rule))
}
