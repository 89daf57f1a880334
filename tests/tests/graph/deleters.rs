//! Several who delete the same object.

use std::pin::pin;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use serde_json::json;

use super::{Stage, WATCH_SECONDS};

const CLEANUP: &str = "example.com/cleanup";

impl Stage {
    /// Since a version, the times of deletion and the phases that an object of a kind had until it went, each as often
    /// as it began.
    pub(crate) async fn times_and_phases(&self, kind: &str, since: &str) -> (Vec<Timestamp>, Vec<String>) {
        let api = self.api(kind);
        let parameters = WatchParams::default().disable_bookmarks().timeout(WATCH_SECONDS);
        let mut events = pin!(api.watch(&parameters, since).await.expect("a watch"));
        let (mut times, mut phases) = (Vec::new(), Vec::new());
        loop {
            let event = events.next().await;
            let event = event.unwrap_or_else(|| panic!("the watch ended before the {kind} was gone: {phases:?}"));
            match event.expect("an event") {
                WatchEvent::Modified(object) => {
                    let phase = object.annotations().get("platform.example.com/deletion-phase");
                    phases.extend(phase.cloned());
                    times.extend(object.metadata.deletion_timestamp.map(|time| time.0));
                }
                WatchEvent::Deleted(_) => break,
                other => panic!("{other:?}"),
            }
        }
        times.dedup();
        phases.dedup();
        (times, phases)
    }
}

#[tokio::test]
async fn of_several_deletions_the_first_one_counts_and_is_reported_once() {
    let stage = Stage::start().await;
    let (stop, running) = stage.run();
    stage.project().await;
    let finalizers = stage
        .get("Cluster", "c")
        .await
        .expect("it is there")
        .finalizers()
        .to_vec();
    let kept = [&finalizers[..], &[CLEANUP.to_owned()]].concat();
    stage
        .patch("Cluster", "c", json!({"metadata": {"finalizers": kept}}))
        .await;
    let before = stage.version().await;
    tokio::join!(stage.delete("Network", "n"), stage.delete("Network", "n"));
    stage
        .until(|| stage.is_reported("n", "DeletionBlocked", "default/c"))
        .await;
    let network = stage.get("Network", "n").await.expect("it waits");
    let since = network.metadata.deletion_timestamp.expect("it is being deleted").0;
    // The time of a deletion has no parts of a second.
    stage
        .until(|| async { Timestamp::now().as_second() > since.as_second() })
        .await;
    stage.delete("Network", "n").await;
    let asked = json!({"metadata": {"annotations": {"platform.example.com/deleting": "true"}}});
    stage.patch("Network", "n", asked).await;
    let network = stage.get("Network", "n").await.expect("it waits");
    assert_eq!(network.metadata.deletion_timestamp.map(|time| time.0), Some(since));

    let cluster = stage.get("Cluster", "c").await.expect("it waits");
    let left: Vec<_> = cluster.finalizers().iter().filter(|one| *one != CLEANUP).collect();
    stage
        .patch("Cluster", "c", json!({"metadata": {"finalizers": left}}))
        .await;
    let (times, phases) = stage.times_and_phases("Network", &before).await;
    assert_eq!(times, [since]);
    assert_eq!(phases, ["DELETING", "FINALIZING"]);
    stop.cancel();
    running.await.expect("it ends");
    let events: Api<Event> = Api::default_namespaced(stage.client.clone());
    let events = events.list(&ListParams::default()).await.expect("events").items;
    let blocked = events.iter().filter(|event| {
        let is_of_network = event.involved_object.name.as_deref() == Some("n");
        is_of_network && event.reason.as_deref() == Some("DeletionBlocked")
    });
    assert_eq!(blocked.count(), 1, "{events:?}");
}
