//! Garbage collection by owner references: dependents whose owners are all gone are deleted; an owner that is
//! deleted in the foreground waits for its dependents, and one that orphans them waits until they have forgotten
//! it.

use std::sync::Arc;

use kindex_kube_api::meta;
use kindex_kube_api::status::Status;
use serde_json::Value;

use crate::admit::Author;
use crate::api::Api;
use crate::mutate::{self, DeleteOptions, FOREGROUND_FINALIZER, ORPHAN_FINALIZER, store_failed};
use crate::resource::Resource;
use crate::store::ObjectKey;

const MANAGER: &str = "kindex-cluster";

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

fn owner_uid(reference: &Value) -> &str {
    reference["uid"].as_str().unwrap_or_default()
}

/// Follows the removal of an object: its dependents lose an owner, its own owners may have waited for it.
pub(super) async fn after_removal(api: &Api, object: &Value) -> Result<(), Status> {
    let uid = meta::uid(object);
    for dependent in dependents(api, uid).await? {
        lose_owners(api, &dependent, &[uid]).await?;
    }
    for reference in owners(object) {
        let Some(owner) = find_uid(api, owner_uid(reference)).await? else {
            continue;
        };
        let Some(revision) = api.store.get(&owner).await.map_err(|error| store_failed(&error))? else {
            continue;
        };
        let owner_object = revision.object().map_err(|error| store_failed(&error))?;
        if meta::is_deleting(owner_object) {
            before_removal(api, &owner, owner_object).await?;
        }
    }
    Ok(())
}

/// Does for an object that is being deleted what its finalizers for dependents ask.
pub(super) async fn before_removal(api: &Api, key: &ObjectKey, object: &Value) -> Result<(), Status> {
    let finalizers = meta::finalizers(object);
    let uid = meta::uid(object);
    if finalizers.contains(&ORPHAN_FINALIZER) {
        for dependent in dependents(api, uid).await? {
            forget_owners(api, &dependent, &[uid]).await?;
        }
        release(api, key, uid, ORPHAN_FINALIZER).await?;
    } else if finalizers.contains(&FOREGROUND_FINALIZER) {
        let mut blocked = false;
        for dependent in dependents(api, uid).await? {
            blocked |= delete_blocking(api, &dependent, uid).await?;
        }
        if !blocked {
            release(api, key, uid, FOREGROUND_FINALIZER).await?;
        }
    }
    Ok(())
}

/// An object that was written with owners that do not exist has lost them already.
pub(super) async fn check_new(api: &Api, key: &ObjectKey, object: &Value) -> Result<(), Status> {
    let catalog = api.registry.catalog();
    let mut missing = Vec::new();
    for reference in owners(object) {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        // Of kinds that are not served nothing is known.
        let known = catalog.of_kind(text("apiVersion"), text("kind")).is_some();
        if known && find_uid(api, owner_uid(reference)).await?.is_none() {
            missing.push(owner_uid(reference));
        }
    }
    if missing.is_empty() {
        Ok(())
    } else {
        lose_owners(api, key, &missing).await
    }
}

/// Takes `gone` owners from a dependent: with another owner alive it stays, else it is deleted.
async fn lose_owners(api: &Api, key: &ObjectKey, gone: &[&str]) -> Result<(), Status> {
    let Some((resource, object)) = load(api, key).await? else {
        return Ok(());
    };
    // The event may be outdated: the object may have other owners now, or its name may belong to another object.
    if !owners(&object).any(|reference| gone.contains(&owner_uid(reference))) {
        return Ok(());
    }
    let mut alive = false;
    for reference in owners(&object) {
        let uid = owner_uid(reference);
        alive |= !gone.contains(&uid) && find_uid(api, uid).await?.is_some();
    }
    if alive {
        return forget_owners(api, key, gone).await;
    }
    if meta::is_deleting(&object) {
        return Ok(());
    }
    // Whoever changes it meanwhile has it looked at again.
    unless_settled(delete_exactly(api, &resource, key, &object).await)
}

/// Deletes a dependent of an owner in foreground deletion; whether the owner must wait for it.
async fn delete_blocking(api: &Api, key: &ObjectKey, owner: &str) -> Result<bool, Status> {
    let Some((resource, object)) = load(api, key).await? else {
        return Ok(false);
    };
    if !owners(&object).any(|reference| owner_uid(reference) == owner) {
        return Ok(false);
    }
    let blocks =
        owners(&object).any(|reference| owner_uid(reference) == owner && reference["blockOwnerDeletion"] == true);
    let others = owners(&object)
        .filter(|reference| owner_uid(reference) != owner)
        .count();
    if others > 0 {
        forget_owners(api, key, &[owner]).await?;
        return Ok(false);
    }
    if !meta::is_deleting(&object) {
        delete_exactly(api, &resource, key, &object).await?;
    }
    Ok(blocks
        && api
            .store
            .get(key)
            .await
            .map_err(|error| store_failed(&error))?
            .is_some())
}

/// Deletes the very object that was looked at, as it was: not one that took its name, and not after somebody gave it
/// another owner.
async fn delete_exactly(api: &Api, resource: &Resource, key: &ObjectKey, object: &Value) -> Result<(), Status> {
    let options = DeleteOptions {
        uid: Some(meta::uid(object).to_owned()),
        rv: Some(meta::resource_version(object).to_owned()),
        ..DeleteOptions::default()
    };
    match mutate::delete(api, resource, key, &options).await {
        Err(status) if status.outcome().is_not_found() => Ok(()),
        done => done.map(drop),
    }
}

async fn forget_owners(api: &Api, key: &ObjectKey, gone: &[&str]) -> Result<(), Status> {
    edit(api, key, |object| {
        let metadata = meta::map_mut(object);
        if let Some(references) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
            references.retain(|reference| !gone.contains(&owner_uid(reference)));
            if references.is_empty() {
                metadata.remove("ownerReferences");
            }
        }
    })
    .await
}

/// Takes a finalizer from the very object that was looked at, not from one that took its name.
async fn release(api: &Api, key: &ObjectKey, uid: &str, finalizer: &str) -> Result<(), Status> {
    edit(api, key, |object| {
        if meta::uid(object) == uid {
            meta::remove_finalizer(object, finalizer);
        }
    })
    .await
}

async fn edit(api: &Api, key: &ObjectKey, change: impl Fn(&mut Value)) -> Result<(), Status> {
    let Some(resource) = api.registry.catalog().of_storage(&key.resource) else {
        return Ok(());
    };
    let author = Author {
        manager: MANAGER,
        subresource: None,
        applied: false,
        now: api.now(),
    };
    let changed = mutate::change(api, &resource, key, &author, false, |object| {
        let mut object = object.clone();
        change(&mut object);
        Ok(object)
    });
    unless_settled(changed.await.map(drop))
}

/// An object as it is stored: its owners are in metadata, which no conversion changes, and one that cannot be converted
/// has owners too.
async fn load(api: &Api, key: &ObjectKey) -> Result<Option<(Arc<Resource>, Value)>, Status> {
    let Some(resource) = api.registry.catalog().of_storage(&key.resource) else {
        return Ok(None);
    };
    let Some(revision) = api.store.get(key).await.map_err(|error| store_failed(&error))? else {
        return Ok(None);
    };
    let object = revision.object().map_err(|error| store_failed(&error))?.clone();
    Ok(Some((resource, object)))
}

async fn dependents(api: &Api, uid: &str) -> Result<Vec<ObjectKey>, Status> {
    api.store.dependents(uid).await.map_err(|error| store_failed(&error))
}

async fn find_uid(api: &Api, uid: &str) -> Result<Option<ObjectKey>, Status> {
    api.store.find_uid(uid).await.map_err(|error| store_failed(&error))
}

/// What is gone, or has become another object, is no longer ours to collect.
fn unless_settled(done: Result<(), Status>) -> Result<(), Status> {
    match done {
        Err(status) if status.outcome().is_overtaken() => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::Cluster;

    /// A cluster without housekeeping, with an object whose owner is gone, and the object as it was created.
    async fn dependent() -> (Cluster, ObjectKey, Value) {
        let cluster = Cluster::ephemeral().await.expect("a cluster");
        let catalog = cluster.api.registry.catalog();
        let resource = catalog.find("", "v1", "configmaps").expect("built in");
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "gone"});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "kept", "ownerReferences": [owner]}});
        let author = Author {
            manager: "tests",
            subresource: None,
            applied: false,
            now: cluster.api.now(),
        };
        let created = mutate::create(&cluster.api, resource, "default", object, &author, false).await;
        created.expect("created");
        let key = ObjectKey::new(resource.storage.clone(), "default", "kept");
        let (_, object) = load(&cluster.api, &key).await.expect("read").expect("there");
        (cluster, key, object)
    }

    async fn is_there(cluster: &Cluster, key: &ObjectKey) -> bool {
        cluster.api.store.get(key).await.expect("the store answers").is_some()
    }

    #[tokio::test]
    async fn what_lost_its_owner_goes() {
        let (cluster, key, object) = dependent().await;
        check_new(&cluster.api, &key, &object).await.expect("looked at");
        assert!(!is_there(&cluster, &key).await);
    }

    /// The owner was deleted with its dependents orphaned before the event about them was received.
    #[tokio::test]
    async fn what_forgot_its_owner_stays_whenever_that_is_received() {
        let (cluster, key, object) = dependent().await;
        forget_owners(&cluster.api, &key, &["gone"]).await.expect("forgotten");
        check_new(&cluster.api, &key, &object).await.expect("looked at");
        let waits = delete_blocking(&cluster.api, &key, "gone").await.expect("looked at");
        assert!(!waits && is_there(&cluster, &key).await);
    }
}
