//! Objects of the whole cluster, which hold objects of namespaces and are held by them: neither side is looked for in
//! the namespace of the other one.

use kube::ResourceExt as _;
use serde_json::json;

use super::Stage;
use super::kubernetes::start;

const CLEANUP: &str = "example.com/cleanup";
const NETWORK: (&str, &str) = ("Network", "n");
const REGION: (&str, &str) = ("Region", "r");
const ZONE: (&str, &str) = ("Zone", "z");

impl Stage {
    /// A region on a network, and a zone in it after which somebody cleans up.
    async fn region(&self) {
        self.create("Network", "n", json!({})).await;
        let backbone = json!({"namespace": "default", "name": "n"});
        self.create("Region", "r", json!({"backbone": backbone})).await;
        self.create("Zone", "z", json!({"region": "r"})).await;
        for ((kind, name), target) in [(REGION, NETWORK), (ZONE, REGION)] {
            let reference = self.reference(kind, name).await;
            self.until(|| self.has(target, &reference)).await;
        }
        self.until(|| self.has(ZONE, "platform.example.com/deletion")).await;
        self.set_cleanup(true).await;
    }

    /// Whether the zone has a finalizer of somebody who cleans up.
    async fn set_cleanup(&self, is_there: bool) {
        let (kind, name) = ZONE;
        let zone = self.get(kind, name).await.expect("it is there");
        let mut finalizers = zone.finalizers().to_vec();
        finalizers.retain(|one| one != CLEANUP);
        finalizers.extend(is_there.then(|| CLEANUP.to_owned()));
        self.patch(kind, name, json!({"metadata": {"finalizers": finalizers}}))
            .await;
    }

    async fn until_gone(&self, (kind, name): (&str, &str)) {
        self.until(|| async { self.get(kind, name).await.is_none() }).await;
    }

    async fn is_deleted(&self, (kind, name): (&str, &str)) -> bool {
        let found = self.get(kind, name).await;
        found.is_some_and(|found| found.metadata.deletion_timestamp.is_some())
    }

    /// An object without a namespace is deleted, while one of a namespace names it.
    async fn a_region_goes_after_its_zone(&self) {
        self.region().await;
        let of_region = self.reference("Region", "r").await;
        let of_zone = self.reference("Zone", "z").await;
        self.delete("Region", "r").await;
        self.until(|| self.is_deleted(ZONE)).await;
        let zone = "zone.platform.example.com default/z";
        self.until(|| self.is_reported("r", "DeletionBlocked", zone)).await;
        assert!(self.has(REGION, &of_zone).await && self.has(NETWORK, &of_region).await);
        self.set_cleanup(false).await;
        self.until_gone(REGION).await;
        assert!(self.get("Zone", "z").await.is_none(), "it goes first");
        self.until(|| async { !self.has(NETWORK, &of_region).await }).await;
        assert!(!self.is_deleted(NETWORK).await, "the region only used it");
        self.delete("Network", "n").await;
        self.until_gone(NETWORK).await;
    }

    /// An object of a namespace is deleted, while one without a namespace names it.
    async fn a_network_goes_after_its_region(&self) {
        self.region().await;
        let of_region = self.reference("Region", "r").await;
        self.delete("Network", "n").await;
        self.until(|| self.is_deleted(ZONE)).await;
        let region = "region.platform.example.com r";
        self.until(|| self.is_reported("n", "DeletionBlocked", region)).await;
        assert!(self.is_deleted(REGION).await, "it is deleted with its network");
        assert!(self.has(NETWORK, &of_region).await);
        self.set_cleanup(false).await;
        self.until_gone(NETWORK).await;
        for (kind, name) in [ZONE, REGION] {
            assert!(self.get(kind, name).await.is_none(), "{kind} goes first");
        }
    }

    async fn holders_go_first_whether_or_not_they_have_a_namespace(&self) {
        let (stop, running) = self.run();
        self.a_region_goes_after_its_zone().await;
        self.a_network_goes_after_its_region().await;
        stop.cancel();
        running.await.expect("it ends");
    }
}

/// As if the holder of an object without a namespace were looked for where that is, or the other way round.
#[tokio::test]
async fn holders_go_first_in_a_namespace_and_without_one() {
    let stage = Stage::start().await;
    stage.holders_go_first_whether_or_not_they_have_a_namespace().await;
}

#[tokio::test]
async fn holders_on_kube_apiserver_go_first_in_a_namespace_and_without_one() {
    if let Some((_plane, stage)) = start().await {
        stage.holders_go_first_whether_or_not_they_have_a_namespace().await;
    }
}
