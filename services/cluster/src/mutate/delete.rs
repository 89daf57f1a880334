//! Deletion: at once, or marked and kept until the last finalizer is gone.

use std::sync::Arc;

use kindex_kube_api::identity::Preconditions;
use kindex_kube_api::meta;
use kindex_kube_api::request::Propagation;
use kindex_kube_api::status::Status;
use serde_json::Value;

use super::{ATTEMPTS_MAX, find, not_shown, removal_preconditions, store_failed, write_failed};
use crate::admit;
use crate::api::Api;
use crate::resource::{Resource, ResourceType, shown, stored};
use crate::store::{Intent, Mutation, ObjectKey, Revision, WriteError};

/// Namespaces that cannot be deleted.
const PROTECTED_NAMESPACES: [&str; 2] = ["default", "kube-system"];
/// Keeps an owner until its dependents are gone.
pub(crate) const FOREGROUND_FINALIZER: &str = "foregroundDeletion";
/// Keeps an owner until its dependents have forgotten it.
pub(crate) const ORPHAN_FINALIZER: &str = "orphan";

/// How an object is deleted.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) rv: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    fn preconditions(&self) -> Preconditions<'_> {
        Preconditions {
            uid: self.uid.as_deref(),
            resource_version: self.rv.as_deref(),
        }
    }
}

/// What a deletion did.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Arc<Revision>),
    /// The object stays until its finalizers are gone.
    Marked(Arc<Revision>),
    /// What would have been left, for a dry run that would have marked the object.
    Dry(Box<Value>),
}

/// Deletes the object at `key`, which must satisfy the preconditions of the options.
pub(crate) async fn delete(
    api: &Api,
    resource: &Resource,
    key: &ObjectKey,
    options: &DeleteOptions,
) -> Result<Deleted, Status> {
    if resource.resource_type == ResourceType::Namespace && PROTECTED_NAMESPACES.contains(&key.name.as_str()) {
        return Err(Status::forbidden(
            resource.group_resource(),
            &key.name,
            "this namespace may not be deleted",
        ));
    }
    let _lock = api.object_locks.lock(key).await;
    for _ in 0..ATTEMPTS_MAX {
        let revision = find(api, resource, key).await?;
        let before = shown(resource, &revision).await.map_err(|error| not_shown(&error))?;
        let before = before.value().map_err(|error| store_failed(&error))?;
        let (uid, version) = (meta::uid(before), meta::resource_version(before));
        options
            .preconditions()
            .check(&resource.group, &resource.names.kind, &key.name, uid, version)?;
        let mut object = before.clone();
        // Elsewhere nobody would ever take these finalizers off.
        set_propagation(&mut object, options.propagation.filter(|_| api.is_cluster));
        let kept = resource.resource_type == ResourceType::Definition || !admit::is_released(resource, &object);
        let (intent, preconditions) = if !kept || (meta::is_deleting(before) && admit::is_released(resource, &object)) {
            (
                Intent::Remove(Arc::clone(&revision)),
                removal_preconditions(resource, before),
            )
        } else {
            if !meta::is_deleting(before) {
                admit::mark_deleting(resource, &mut object, api.now());
            }
            if object == *before {
                return Ok(Deleted::Marked(revision));
            }
            (Intent::Replace(Arc::clone(&revision)), Vec::new())
        };
        let marked = matches!(intent, Intent::Replace(_));
        if options.dry_run {
            return Ok(if marked {
                Deleted::Dry(Box::new(object))
            } else {
                Deleted::Gone(revision)
            });
        }
        let mutation = Mutation {
            key: key.clone(),
            intent,
            object: stored(resource, object).await.map_err(|error| not_shown(&error))?,
            preconditions,
        };
        match api.store.write(mutation).await {
            Ok(revision) if marked => return Ok(Deleted::Marked(revision)),
            Ok(revision) => return Ok(Deleted::Gone(revision)),
            Err(WriteError::Changed) => {}
            Err(error) => return Err(write_failed(resource, &key.name, error)),
        }
    }
    Err(Status::modified(resource.group_resource(), &key.name))
}

/// The garbage collector's finalizers say what the client chose; without a choice they stay as they are.
fn set_propagation(object: &mut Value, propagation: Option<Propagation>) {
    let (add, remove): (Option<&str>, &[&str]) = match propagation {
        None => return,
        Some(Propagation::Background) => (None, &[FOREGROUND_FINALIZER, ORPHAN_FINALIZER]),
        Some(Propagation::Foreground) => (Some(FOREGROUND_FINALIZER), &[ORPHAN_FINALIZER]),
        Some(Propagation::Orphan) => (Some(ORPHAN_FINALIZER), &[FOREGROUND_FINALIZER]),
    };
    for finalizer in remove {
        meta::remove_finalizer(object, finalizer);
    }
    if let Some(finalizer) = add {
        meta::add_finalizer(object, finalizer);
    }
}
