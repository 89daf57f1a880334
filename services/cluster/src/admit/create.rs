//! Creation: names are made, system fields set, the object validated.

use kindex_kube_api::status::{FieldProblem, FieldReason, Status};
use kindex_kube_api::{fields, meta, names, schema};
use serde_json::Value;
use uuid::Uuid;

use super::{Author, kinds, known, metadata};
use crate::definition::{self, Claims};
use crate::resource::{Resource, ResourceType};

/// The object to store for a creation of `object` in `namespace` (empty for cluster scope).
///
/// # Errors
/// 400 when the object contradicts the request, 422 when it is invalid.
pub(crate) fn create(
    resource: &Resource,
    mut object: Value,
    namespace: &str,
    claims: &Claims,
    author: &Author<'_>,
) -> Result<Value, Status> {
    check_namespace(resource, &object, namespace)?;
    if !meta::resource_version(&object).is_empty() {
        return Err(Status::unexplained(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    set_system_fields(resource, &mut object, namespace, author);
    if resource.has_status
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    kinds::prepare_created(resource, &mut object);
    if let Some(structural) = &resource.schema {
        schema::apply_defaults(structural, &mut object).map_err(|schema::TooLarge| Status::object_too_large())?;
    }
    let problems = problems(resource, &object, None);
    if let Some(problem) = undecodable(resource, &problems) {
        return Err(known::unreadable(resource, &problem.message));
    }
    if !problems.is_empty() {
        return Err(Status::invalid(
            &resource.group,
            &resource.names.kind,
            meta::name(&object),
            &problems,
        ));
    }
    if resource.resource_type == ResourceType::Definition {
        definition::settle(&mut object, claims, &meta::time(author.now));
    }
    if author.applied {
        return Ok(object);
    }
    fields::update(resource.schema.as_ref(), None, object, author.manager, None, author.now)
        .map_err(|fields::TooLarge| Status::object_too_large())
}

/// Everything that is wrong with an object that is about to be stored.
pub(super) fn problems(resource: &Resource, object: &Value, before: Option<&Value>) -> Vec<FieldProblem> {
    let mut problems = metadata::problems(resource, object);
    if let Some(structural) = &resource.schema {
        problems.extend(
            schema::validate_update(structural, object, before)
                .into_iter()
                .map(FieldProblem::from),
        );
    }
    if resource.resource_type == ResourceType::Definition && problems.is_empty() {
        problems.extend(definition::problems(object, before));
    }
    problems
}

/// A value that the type of a built-in kind cannot hold: of what is no object of the kind, nothing else is said.
fn undecodable<'a>(resource: &Resource, problems: &'a [FieldProblem]) -> Option<&'a FieldProblem> {
    let is_typed = !matches!(resource.resource_type, ResourceType::Custom | ResourceType::Definition);
    let mut wrong = problems
        .iter()
        .filter(|problem| problem.reason == FieldReason::TypeInvalid);
    wrong.next().filter(|_| is_typed)
}

/// The namespace of the body may be absent, but not another one.
fn check_namespace(resource: &Resource, object: &Value, namespace: &str) -> Result<(), Status> {
    let sent = meta::namespace(object);
    // What belongs to no namespace loses the one that was sent.
    if !resource.namespaced || sent.is_empty() || sent == namespace {
        return Ok(());
    }
    Err(Status::namespace_differs())
}

fn set_system_fields(resource: &Resource, object: &mut Value, namespace: &str, author: &Author<'_>) {
    let base = object["metadata"]["generateName"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if meta::name(object).is_empty() && !base.is_empty() {
        let [.., a, b, c, d, e] = Uuid::new_v4().into_bytes();
        meta::set(object, "name", Some(names::generated(&base, [a, b, c, d, e]).into()));
    }
    let namespace = (!namespace.is_empty()).then(|| Value::from(namespace));
    meta::set(object, "namespace", namespace);
    meta::set(object, "uid", Some(Uuid::new_v4().to_string().into()));
    meta::set(object, "creationTimestamp", Some(meta::time(author.now).into()));
    meta::set(object, "generation", resource.has_generation().then(|| 1.into()));
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        meta::set(object, field, None);
    }
}
