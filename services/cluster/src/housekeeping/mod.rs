//! The controllers that every cluster needs: they empty namespaces and definitions that are being deleted, collect
//! dependents of deleted owners, and expire events. One task, driven by the log; every action is idempotent.

mod drain;
mod events;
mod owners;

use std::time::Duration;

use kindex_kube_api::meta;
use kindex_kube_api::status::Status;
use tokio::time::Instant;

use crate::api::Api;
use crate::mutate::{DEFINITIONS, FOREGROUND_FINALIZER, ORPHAN_FINALIZER};
use crate::namespaces;
use crate::store::{Change, FeedError, PageRequest, Revision, StoreError};

/// After a failure everything is looked at again, this much later.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How often old events are looked for.
const EVENTS_EVERY: Duration = Duration::from_secs(60);
/// Revisions read at once.
const CHUNK: u32 = 500;

/// Runs until the server stops.
pub(crate) async fn run(api: Api) {
    let mut feed = api.store.subscribe(None);
    let mut position = api.store.committed(None).unwrap_or_default();
    let mut sweep_at = Some(Instant::now());
    let mut events_at = Instant::now() + EVENTS_EVERY;
    loop {
        let sweep = sweep_at.unwrap_or(events_at + EVENTS_EVERY);
        let done = tokio::select! {
            biased;
            () = api.shutdown.cancelled() => return,
            () = tokio::time::sleep_until(sweep), if sweep_at.is_some() => {
                sweep_at = None;
                look_at_everything(&api).await
            }
            () = tokio::time::sleep_until(events_at) => {
                events_at = Instant::now() + EVENTS_EVERY;
                events::expire(&api).await
            }
            received = feed.next() => match received {
                Ok(revision) if revision.rv <= position => Ok(()),
                Ok(revision) => {
                    position = revision.rv;
                    look_at(&api, &revision).await
                }
                Err(FeedError::Lagged) => catch_up(&api, &mut position, &mut sweep_at).await,
                Err(FeedError::Closed) => return,
            },
        };
        if let Err(status) = done {
            tracing::debug!(reason = status.message, "housekeeping will try again");
            sweep_at = Some(Instant::now() + RETRY_AFTER);
        }
    }
}

/// Reads from the log what the feed could not hold.
async fn catch_up(api: &Api, position: &mut u64, sweep_at: &mut Option<Instant>) -> Result<(), Status> {
    loop {
        let page = match api.store.log_after(None, *position, CHUNK).await {
            Ok(page) => page,
            Err(StoreError::Compacted { .. }) => {
                *position = api.store.committed(None).unwrap_or_default();
                *sweep_at = Some(Instant::now());
                return Ok(());
            }
            Err(error) => return Err(crate::mutate::store_failed(&error)),
        };
        for revision in &page.objects {
            *position = revision.rv;
            look_at(api, revision).await?;
        }
        if page.objects.len() < CHUNK as usize {
            return Ok(());
        }
    }
}

fn says(revision: &Revision, words: &[&str]) -> bool {
    std::str::from_utf8(&revision.text).is_ok_and(|text| words.iter().any(|word| text.contains(word)))
}

/// Whether an object that is there can be of interest, without parsing it: it names an owner, or is being deleted and
/// has content to delete or dependents to look after.
fn may_matter(revision: &Revision) -> bool {
    let is_container = || matches!(&*revision.key.resource, namespaces::STORAGE | DEFINITIONS);
    says(revision, &["\"ownerReferences\""])
        || says(revision, &["\"deletionTimestamp\""])
            && (is_container() || says(revision, &[ORPHAN_FINALIZER, FOREGROUND_FINALIZER]))
}

async fn look_at(api: &Api, revision: &Revision) -> Result<(), Status> {
    if revision.change == Change::Deleted {
        return after_deletion(api, revision).await;
    }
    if !may_matter(revision) {
        return Ok(());
    }
    let object = revision.object().map_err(|error| crate::mutate::store_failed(&error))?;
    if meta::is_deleting(object) {
        match &*revision.key.resource {
            namespaces::STORAGE => drain::namespace(api, &revision.key.name).await?,
            DEFINITIONS => drain::definition(api, &revision.key.name).await?,
            _ => {}
        }
        return owners::before_removal(api, &revision.key, object).await;
    }
    owners::check_new(api, &revision.key, object).await
}

async fn after_deletion(api: &Api, revision: &Revision) -> Result<(), Status> {
    let key = &revision.key;
    if &*key.resource == DEFINITIONS {
        api.store.close_feed(&key.name);
    }
    // Where nothing has an owner, nothing is parsed or asked.
    if api.store.has_owners() || says(revision, &["\"ownerReferences\""]) {
        let object = revision.object().map_err(|error| crate::mutate::store_failed(&error))?;
        owners::after_removal(api, object).await?;
    }
    if api.namespaces.phase(&key.namespace) == Some(namespaces::Phase::Terminating) {
        drain::finish_namespace(api, &key.namespace).await?;
    }
    let terminating = api
        .registry
        .catalog()
        .of_storage(&key.resource)
        .is_some_and(|resource| resource.terminating);
    if terminating {
        drain::finish_definition(api, &key.resource).await?;
    }
    Ok(())
}

/// Checks every object once: at the start, and after the log was compacted past its position.
/// One object that fails stops no other.
async fn look_at_everything(api: &Api) -> Result<(), Status> {
    let mut failed = None;
    for resource in api.registry.catalog().stored() {
        let mut request = PageRequest {
            resource: resource.storage.to_string(),
            limit: Some(CHUNK),
            ..PageRequest::default()
        };
        loop {
            let page = api
                .store
                .list(&request)
                .await
                .map_err(|error| crate::mutate::store_failed(&error))?;
            for revision in &page.objects {
                if let Err(status) = look_at(api, revision).await {
                    failed.get_or_insert(status);
                }
            }
            if page.objects.len() < CHUNK as usize {
                break;
            }
            request.after = page
                .objects
                .last()
                .map(|last| (last.key.namespace.clone(), last.key.name.clone()));
        }
    }
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::admit::Author;
    use crate::cluster::Cluster;
    use crate::mutate::{self, DeleteOptions, Deleted, Written};
    use crate::store::ObjectKey;

    fn matters(resource: &str, metadata: &Value) -> bool {
        let text = json!({"metadata": metadata}).to_string();
        let key = ObjectKey::new(resource, "", "a");
        may_matter(&Revision::new(1, Change::Modified, key, text.into(), None))
    }

    #[test]
    fn what_is_being_deleted_matters_for_its_content_and_its_dependents() {
        let going = |finalizer: &str| json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [finalizer]});
        assert!(!matters("configmaps", &going("example.com/other")));
        assert!(matters("configmaps", &going(ORPHAN_FINALIZER)));
        assert!(matters("configmaps", &going(FOREGROUND_FINALIZER)));
        assert!(matters(namespaces::STORAGE, &going("example.com/other")));
        assert!(matters(DEFINITIONS, &going("example.com/other")));
        assert!(matters("configmaps", &json!({"ownerReferences": [{"uid": "a"}]})));
        assert!(!matters(
            namespaces::STORAGE,
            &json!({"finalizers": [ORPHAN_FINALIZER]})
        ));
    }

    #[tokio::test]
    async fn dependents_go_after_their_owner() {
        let cluster = Cluster::ephemeral().await.expect("a cluster");
        let api = &cluster.api;
        let catalog = api.registry.catalog();
        let resource = catalog.find("", "v1", "configmaps").expect("built in");
        let author = Author {
            manager: "tests",
            subresource: None,
            applied: false,
            now: api.now(),
        };
        let create = async |metadata: Value| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            match mutate::create(api, resource, "default", object, &author, false).await {
                Ok(Written::Revision(revision)) => revision,
                other => panic!("not created: {other:?}"),
            }
        };
        let owner = create(json!({"name": "owner"})).await;
        let uid = meta::uid(owner.object().expect("an object"));
        let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
        let dependent = create(json!({"name": "dependent", "ownerReferences": [reference]})).await;
        let deleted = mutate::delete(api, resource, &owner.key, &DeleteOptions::default()).await;
        let Ok(Deleted::Gone(owner)) = deleted else {
            panic!("its finalizers keep it");
        };
        look_at(api, &owner).await.expect("looked at");
        assert!(api.store.get(&dependent.key).await.expect("read").is_none());
    }
}
