//! What wakes the trigger: definitions that changed, and states that somebody deleted.

use std::collections::BTreeSet;

use futures::{Stream, StreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Error, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt};

use super::Migrator;
use crate::wire::StorageState;

/// Wakes the trigger for ever. While a watch fails, rounds come in every period alone.
pub(super) async fn follow(migrator: &Migrator) {
    let client: Client = migrator.cluster.first().clone();
    let wanted: BTreeSet<String> = migrator.options.wanted.iter().map(ToString::to_string).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.contains(name);
    // Those of states and migrations are installed again where somebody deleted them.
    let manifests = migrator.options.manifests.iter();
    let installed: BTreeSet<&str> = manifests
        .filter_map(|manifest| manifest["metadata"]["name"].as_str())
        .collect();
    let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let states: Api<PartialObjectMeta<StorageState>> = Api::all(client);
    let definitions = watcher(definitions, Config::default()).default_backoff();
    let states = watcher(states, Config::default()).default_backoff();
    tokio::join!(
        wake(migrator, definitions, |event| match event {
            Event::Apply(object) => is_wanted(&object.name_any()),
            Event::Delete(object) => is_wanted(&object.name_any()) || installed.contains(object.name_any().as_str()),
            // A watch that began again may have missed something.
            Event::InitDone => true,
            Event::Init | Event::InitApply(_) => false,
        }),
        wake(migrator, states, |event| match event {
            Event::Delete(_) | Event::InitDone => true,
            Event::Apply(_) | Event::Init | Event::InitApply(_) => false,
        }),
    );
}

async fn wake<K: ResourceExt>(
    migrator: &Migrator,
    events: impl Stream<Item = Result<Event<K>, Error>>,
    concerns: impl Fn(&Event<K>) -> bool,
) {
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) if concerns(&event) => migrator.changed.notify_one(),
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "A watch of the trigger begins again"),
        }
    }
}
