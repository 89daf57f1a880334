//! The three mutations (create, update, delete) with optimistic concurrency: read, decide, write, and repeat after a
//! conflict. Used by requests and by housekeeping.

use std::sync::Arc;

use kindex_kube_api::meta;
use kindex_kube_api::size::{OBJECT_BYTES_MAX, text_bytes};
use kindex_kube_api::status::Status;
use serde_json::Value;

use crate::admit::{self, Author, Outcome};
use crate::api::Api;
use crate::definition::Claims;
use crate::namespaces::{self, Phase};
use crate::resource::{NotShown, Resource, ResourceType, is_stored_form, shown, stored};
use crate::store::{Intent, Mutation, ObjectKey, Precondition, Revision, StoreError, WriteError};

mod delete;

pub(crate) use delete::{DeleteOptions, Deleted, FOREGROUND_FINALIZER, ORPHAN_FINALIZER, delete};

/// The resource name of definitions in the store.
pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// How often a change is tried again when the object is created or removed in the meantime: others wait for their turn.
const ATTEMPTS_MAX: usize = 20;

/// What a mutation left behind.
#[derive(Debug)]
pub(crate) enum Written {
    /// A revision in the store, new or, where nothing changed, the present one.
    Revision(Arc<Revision>),
    /// What would have been written, in the resource's form.
    Dry(Box<Value>),
}

/// Where an object of `resource` lives.
pub(crate) fn key(resource: &Resource, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(Arc::clone(&resource.storage), namespace, name)
}

/// A store failure as a Status; the cause goes to the log.
pub(crate) fn store_failed(error: &StoreError) -> Status {
    match error {
        StoreError::Compacted { rv, floor } => Status::expired(*rv, *floor),
        StoreError::Open { .. } | StoreError::Statement(_) | StoreError::Damaged { .. } => {
            tracing::error!(
                error = error as &(dyn std::error::Error + 'static),
                "the cluster database failed"
            );
            Status::internal(error)
        }
        StoreError::Elsewhere(why) => Status::unavailable(why),
    }
}

/// An object that cannot be shown or stored, as a Status.
pub(crate) fn not_shown(error: &NotShown) -> Status {
    match error {
        NotShown::Store(error) => store_failed(error),
        NotShown::Conversion(message) => Status::unexplained(message.clone()),
    }
}

fn write_failed(resource: &Resource, name: &str, error: WriteError) -> Status {
    match error {
        WriteError::Exists => Status::already_exists(resource.group_resource(), name),
        WriteError::Changed => Status::modified(resource.group_resource(), name),
        WriteError::Unmet(Precondition::Live(parent)) if &*parent.resource == namespaces::STORAGE => {
            Status::not_found(NAMESPACES, &parent.name)
        }
        WriteError::Unmet(Precondition::Live(_)) => Status::unknown_path(),
        WriteError::Unmet(Precondition::NamespaceEmpty(_) | Precondition::ResourceEmpty(_)) => {
            Status::conflict(resource.group_resource(), name, "it still has content")
        }
        WriteError::Database(what) => Status::internal(&what),
        WriteError::Elsewhere(why) => Status::unavailable(&why),
        WriteError::Closed => Status::unavailable("the cluster is shutting down"),
    }
}

const NAMESPACES: kindex_kube_api::status::GroupResource<'static> = kindex_kube_api::status::GroupResource {
    group: "",
    plural: namespaces::STORAGE,
};

/// The names that a definition may not take.
fn claims(api: &Api, resource: &Resource, object: &Value) -> Claims {
    if resource.resource_type != ResourceType::Definition {
        return Claims::default();
    }
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    api.registry.catalog().claims(group, meta::name(object))
}

/// Creates `object` in `namespace` (empty for cluster scope).
pub(crate) async fn create(
    api: &Api,
    resource: &Resource,
    namespace: &str,
    object: Value,
    author: &Author<'_>,
    dry_run: bool,
) -> Result<Written, Status> {
    let mut preconditions = Vec::new();
    // Elsewhere a namespace is a part of the name.
    if resource.namespaced && api.is_cluster {
        let name = meta::name(&object);
        match api.namespaces.phase(namespace) {
            None => return Err(Status::not_found(NAMESPACES, namespace)),
            Some(Phase::Terminating) => {
                return Err(Status::namespace_terminating(
                    resource.group_resource(),
                    name,
                    namespace,
                ));
            }
            Some(Phase::Active) => {
                preconditions.push(Precondition::Live(ObjectKey::new(namespaces::STORAGE, "", namespace)));
            }
        }
    }
    if resource.resource_type == ResourceType::Custom && api.is_cluster {
        if resource.terminating {
            return Err(Status::definition_terminating(resource.group_resource()));
        }
        preconditions.push(Precondition::Live(ObjectKey::new(DEFINITIONS, "", &*resource.storage)));
    }
    let claims = claims(api, resource, &object);
    let object = admit::create(resource, object, namespace, &claims, author)?;
    check_size(&object)?;
    let name = meta::name(&object).to_owned();
    let key = key(resource, namespace, &name);
    if dry_run {
        return match api.store.get(&key).await.map_err(|error| store_failed(&error))? {
            Some(_) => Err(exists(api, resource, &key).await),
            None => Ok(Written::Dry(Box::new(object))),
        };
    }
    let mutation = Mutation {
        key: key.clone(),
        intent: Intent::Create,
        object: stored(resource, object).await.map_err(|error| not_shown(&error))?,
        preconditions,
    };
    match api.store.write(mutation).await {
        Ok(revision) => Ok(Written::Revision(revision)),
        Err(WriteError::Exists) => Err(exists(api, resource, &key).await),
        Err(error) => Err(write_failed(resource, &name, error)),
    }
}

/// Many small changes make no object larger than one request could.
fn check_size(object: &Value) -> Result<(), Status> {
    match text_bytes(object) > OBJECT_BYTES_MAX {
        true => Err(Status::object_too_large()),
        false => Ok(()),
    }
}

/// The refusal of a name that is taken, by an object that may be leaving the cluster.
async fn exists(api: &Api, resource: &Resource, key: &ObjectKey) -> Status {
    let mut status = Status::already_exists(resource.group_resource(), &key.name);
    // Where it cannot be read, or is gone by now, the name was taken all the same.
    let found = api.store.get(key).await.ok().flatten();
    if found.is_some_and(|revision| revision.object().is_ok_and(meta::is_deleting)) {
        status.message.insert_str(0, "object is being deleted: ");
    }
    status
}

/// The live revision of an object, or 404.
pub(crate) async fn find(api: &Api, resource: &Resource, key: &ObjectKey) -> Result<Arc<Revision>, Status> {
    let found = api.store.get(key).await.map_err(|error| store_failed(&error))?;
    found.ok_or_else(|| Status::not_found(resource.group_resource(), &key.name))
}

/// Nothing may be left behind by a container that goes.
fn removal_preconditions(resource: &Resource, object: &Value) -> Vec<Precondition> {
    match resource.resource_type {
        ResourceType::Namespace => vec![Precondition::NamespaceEmpty(meta::name(object).to_owned())],
        ResourceType::Definition => vec![Precondition::ResourceEmpty(meta::name(object).into())],
        ResourceType::Custom
        | ResourceType::CoreEvent
        | ResourceType::Event
        | ResourceType::Plain
        | ResourceType::Review => Vec::new(),
    }
}

/// Updates an object with `edit`, which may be called several times.
pub(crate) async fn change(
    api: &Api,
    resource: &Resource,
    key: &ObjectKey,
    author: &Author<'_>,
    dry_run: bool,
    mut edit: impl FnMut(&Value) -> Result<Value, Status>,
) -> Result<Written, Status> {
    let _lock = api.object_locks.lock(key).await;
    for _ in 0..ATTEMPTS_MAX {
        let revision = find(api, resource, key).await?;
        let before = shown(resource, &revision).await.map_err(|error| not_shown(&error))?;
        let before = before.value().map_err(|error| store_failed(&error))?;
        let edited = edit(before)?;
        let claims = claims(api, resource, before);
        let present = || Arc::clone(&revision);
        let is_stored = is_stored_form(resource, &revision).map_err(|error| store_failed(&error))?;
        let (object, intent, preconditions) = match admit::update(resource, before, edited, &claims, author)? {
            Outcome::Unchanged if is_stored => return Ok(Written::Revision(revision)),
            // What is stored in another version is written in that of today.
            Outcome::Unchanged => (before.clone(), Intent::Replace(present()), Vec::new()),
            Outcome::Changed(object) => (object, Intent::Replace(present()), Vec::new()),
            Outcome::Gone(object) => {
                let preconditions = removal_preconditions(resource, before);
                (object, Intent::Remove(present()), preconditions)
            }
        };
        check_size(&object)?;
        if dry_run {
            return Ok(Written::Dry(Box::new(object)));
        }
        let mutation = Mutation {
            key: key.clone(),
            intent,
            object: stored(resource, object).await.map_err(|error| not_shown(&error))?,
            preconditions,
        };
        match api.store.write(mutation).await {
            Ok(revision) => return Ok(Written::Revision(revision)),
            Err(WriteError::Changed) => {}
            Err(error) => return Err(write_failed(resource, &key.name, error)),
        }
    }
    Err(Status::modified(resource.group_resource(), &key.name))
}
