//! Empties what is being deleted: a namespace of its content, a definition of its objects. When nothing is left,
//! the finalizer that kept the container goes, and with it the container.

use std::sync::Arc;

use futures::{TryStreamExt, stream};
use kindex_kube_api::meta;
use kindex_kube_api::request::Subresource;
use kindex_kube_api::status::Status;
use serde_json::json;

use super::CHUNK;
use crate::admit::Author;
use crate::api::Api;
use crate::definition::CLEANUP_FINALIZER;
use crate::mutate::{self, DEFINITIONS, DeleteOptions, store_failed};
use crate::namespaces;
use crate::resource::Resource;
use crate::store::{ObjectKey, PageRequest};

/// Deletions under way at once; the writer commits them together.
const CONCURRENT: usize = 16;
const MANAGER: &str = "kindex-cluster";

/// Deletes everything in a namespace that is being deleted.
pub(super) async fn namespace(api: &Api, name: &str) -> Result<(), Status> {
    for resource in api.registry.catalog().stored() {
        if resource.namespaced {
            delete_all(api, &resource, Some(name)).await?;
        }
    }
    finish_namespace(api, name).await
}

/// Deletes every object of a definition that is being deleted.
pub(super) async fn definition(api: &Api, name: &str) -> Result<(), Status> {
    if let Some(resource) = api.registry.catalog().of_storage(name) {
        delete_all(api, &resource, None).await?;
    }
    finish_definition(api, name).await
}

async fn delete_all(api: &Api, resource: &Arc<Resource>, namespace: Option<&str>) -> Result<(), Status> {
    let mut request = PageRequest {
        resource: resource.storage.to_string(),
        namespace: namespace.map(str::to_owned),
        limit: Some(CHUNK),
        ..PageRequest::default()
    };
    loop {
        let page = api.store.list(&request).await.map_err(|error| store_failed(&error))?;
        let keys: Vec<ObjectKey> = page.objects.iter().map(|revision| revision.key.clone()).collect();
        stream::iter(keys.iter().map(Ok))
            .try_for_each_concurrent(CONCURRENT, |key| async move {
                match mutate::delete(api, resource, key, &DeleteOptions::default()).await {
                    Err(status) if !status.outcome().is_not_found() => Err(status),
                    _ => Ok(()),
                }
            })
            .await?;
        if page.objects.len() < CHUNK as usize {
            return Ok(());
        }
        request.after = keys.last().map(|last| (last.namespace.clone(), last.name.clone()));
    }
}

/// Lets a namespace go that has become empty.
pub(super) async fn finish_namespace(api: &Api, name: &str) -> Result<(), Status> {
    let Some(resource) = api.registry.catalog().of_storage(namespaces::STORAGE) else {
        return Ok(());
    };
    if !api
        .store
        .is_namespace_empty(name)
        .await
        .map_err(|error| store_failed(&error))?
    {
        return Ok(());
    }
    let author = Author {
        manager: MANAGER,
        subresource: Some(Subresource::Finalize),
        applied: false,
        now: api.now(),
    };
    let key = ObjectKey::new(namespaces::STORAGE, "", name);
    let release = |namespace: &serde_json::Value| {
        let mut namespace = namespace.clone();
        if meta::is_deleting(&namespace) {
            namespace["spec"] = json!({});
        }
        Ok(namespace)
    };
    unless_gone(
        mutate::change(api, &resource, &key, &author, false, release)
            .await
            .map(drop),
    )
}

/// Lets a definition go that has no objects left.
pub(super) async fn finish_definition(api: &Api, name: &str) -> Result<(), Status> {
    let Some(resource) = api.registry.catalog().of_storage(DEFINITIONS) else {
        return Ok(());
    };
    if !api
        .store
        .is_resource_empty(name)
        .await
        .map_err(|error| store_failed(&error))?
    {
        return Ok(());
    }
    let author = Author {
        manager: MANAGER,
        subresource: None,
        applied: false,
        now: api.now(),
    };
    let key = ObjectKey::new(DEFINITIONS, "", name);
    let release = |definition: &serde_json::Value| {
        let mut definition = definition.clone();
        if meta::is_deleting(&definition) {
            meta::remove_finalizer(&mut definition, CLEANUP_FINALIZER);
        }
        Ok(definition)
    };
    unless_gone(
        mutate::change(api, &resource, &key, &author, false, release)
            .await
            .map(drop),
    )
}

/// What is gone needs no more care.
fn unless_gone(done: Result<(), Status>) -> Result<(), Status> {
    match done {
        Err(status) if status.outcome().is_not_found() => Ok(()),
        done => done,
    }
}
