//! What wakes the trigger: definitions that changed, and states that somebody deleted. And whether the definitions of
//! `migration.k8s.io` are still there.

use std::collections::BTreeSet;

use futures::{Stream, StreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Error, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};

use super::Migrator;
use crate::wire::StorageState;

/// Wakes the trigger for ever, and brings definitions of `migration.k8s.io` back that somebody deletes. While a watch
/// fails, looks come in every period alone.
pub(super) async fn follow(migrator: &Migrator) {
    let client: Client = migrator.cluster.first().clone();
    let wanted: BTreeSet<String> = migrator.options.wanted.iter().map(ToString::to_string).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.contains(name);
    let manifests = migrator.options.manifests.iter();
    let bundled: BTreeSet<&str> = manifests.filter_map(|one| one["metadata"]["name"].as_str()).collect();
    let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let states: Api<PartialObjectMeta<StorageState>> = Api::all(client);
    let definitions = watcher(definitions, Config::default()).default_backoff();
    let states = watcher(states, Config::default()).default_backoff();
    tokio::join!(
        each(definitions, |event| match event {
            Event::Delete(object) if bundled.contains(&*object.name_any()) => migrator.uninstalled.notify_one(),
            Event::Apply(object) | Event::Delete(object) if is_wanted(&object.name_any()) => {
                migrator.changed.notify_one();
            }
            // A watch that began again may have missed something.
            Event::InitDone => {
                migrator.uninstalled.notify_one();
                migrator.changed.notify_one();
            }
            Event::Apply(_) | Event::Delete(_) | Event::Init | Event::InitApply(_) => {}
        }),
        each(states, |event| match event {
            Event::Delete(_) | Event::InitDone => migrator.changed.notify_one(),
            Event::Apply(_) | Event::Init | Event::InitApply(_) => {}
        }),
    );
}

async fn each<K>(events: impl Stream<Item = Result<Event<K>, Error>>, act: impl Fn(Event<K>)) {
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => act(event),
            Err(error) => tracing::debug!(%error, "A watch of the trigger begins again"),
        }
    }
}
