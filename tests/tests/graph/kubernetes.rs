//! The graph beside a garbage collector that follows the owner references of the same objects: that of Kubernetes, and
//! in one story that of the embedded cluster.

use k8s_openapi::api::core::v1::ConfigMap;
use kindex_harness::controlplane::ControlPlane;
use kindex_harness::require::require;
use kube::api::{Api, DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};

use super::kinds::GROUP;
use super::{Stage, assert_order};

const PHASE: &str = "platform.example.com/deletion-phase";

/// A control plane of its own, and a client of it; `None` where none is installed.
pub(crate) async fn start() -> Option<(ControlPlane, Stage)> {
    if !require("controlplane", ControlPlane::installed()) {
        return None;
    }
    let plane = ControlPlane::start();
    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let stage = Stage {
        client: Client::try_from(config.expect("a configuration")).expect("a client"),
        _embedded: None,
    };
    stage.define().await;
    Some((plane, stage))
}

impl Stage {
    /// Makes one object the owner of another, which keeps an owner that is deleted in the foreground.
    async fn own(&self, (kind, name): (&str, &str), (owned, of): (&str, &str)) {
        let owner = self.owner(kind, name).await;
        self.patch(owned, of, json!({"metadata": {"ownerReferences": [owner]}}))
            .await;
    }

    async fn owner(&self, kind: &str, name: &str) -> Value {
        let uid = self.get(kind, name).await.expect("it is there").uid();
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": kind,
            "name": name,
            "uid": uid,
            "blockOwnerDeletion": true,
        })
    }

    /// The project with owner references beside its fields, and what a controller has made for the cluster.
    async fn owned_project(&self) {
        self.project().await;
        self.own(("Project", "a"), ("CloudIdentity", "i")).await;
        self.own(("CloudIdentity", "i"), ("Network", "n")).await;
        self.own(("CloudIdentity", "i"), ("ServerGroup", "g")).await;
        let settings = json!({
            "metadata": {"name": "settings", "ownerReferences": [self.owner("Cluster", "c").await]},
        });
        let settings = serde_json::from_value(settings).expect("an object");
        let created = self.settings().create(&PostParams::default(), &settings).await;
        created.expect("an object is taken");
    }

    async fn drains(&self, (kind, name): (&str, &str)) -> bool {
        let found = self.get(kind, name).await;
        let phase = found.and_then(|found| found.annotations().get(PHASE).cloned());
        phase.as_deref() == Some("DRAINING")
    }

    /// A network names the project in owner references alone, and somebody cleans up after it.
    async fn waits_for_a_dependent(&self) {
        let (stop, running) = self.run();
        let own = format!("{GROUP}/deletion");
        let objects = [("Network", "n"), ("Project", "a")];
        for (kind, name) in objects {
            self.create(kind, name, json!({})).await;
            self.until(|| self.has((kind, name), &own)).await;
        }
        self.own(("Project", "a"), ("Network", "n")).await;
        let held = json!({"metadata": {"finalizers": [own.as_str(), "example.com/cleanup"]}});
        self.patch("Network", "n", held).await;

        let before = self.version().await;
        let deleted = self.api("Project").delete("a", &DeleteParams::foreground()).await;
        deleted.expect("it is there");
        for object in objects {
            self.until(|| self.drains(object)).await;
        }
        let cleaned_up = json!({"metadata": {"finalizers": [own.as_str()]}});
        self.patch("Network", "n", cleaned_up).await;
        self.until(|| async { self.get("Project", "a").await.is_none() }).await;
        assert_eq!(self.order_of(&objects, &before).await, ["Network", "Project"]);
        stop.cancel();
        running.await.expect("it ends");
    }

    fn settings(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.client.clone())
    }

    /// Until the garbage collector has found that the cluster is gone.
    async fn until_collected(&self) {
        self.until(|| async { self.settings().get_opt("settings").await.expect("an answer").is_none() })
            .await;
    }
}

#[tokio::test]
async fn the_garbage_collector_changes_nothing_of_the_order() {
    let Some((_plane, stage)) = start().await else {
        return;
    };
    for way in [DeleteParams::foreground(), DeleteParams::background()] {
        let (stop, running) = stage.run();
        stage.owned_project().await;
        let before = stage.version().await;
        // In the foreground, the collector deletes what is owned at once, and each waits for its references still.
        stage.api("Project").delete("a", &way).await.expect("it is there");
        stage.until(|| stage.is_empty()).await;
        assert_order(&stage.order(&before).await);
        stage.until_collected().await;
        stop.cancel();
        running.await.expect("it ends");
    }
}

#[tokio::test]
async fn an_owner_that_is_deleted_in_the_foreground_drains_until_its_dependents_are_gone() {
    let Some((_plane, stage)) = start().await else {
        return;
    };
    stage.waits_for_a_dependent().await;
}

#[tokio::test]
async fn a_process_that_is_killed_again_and_again_keeps_the_order_beside_the_garbage_collector() {
    let Some((_plane, stage)) = start().await else {
        return;
    };
    let (stop, running) = stage.run();
    stage.owned_project().await;
    stop.cancel();
    running.await.expect("it ends");
    let before = stage.version().await;
    let deleted = stage.api("Project").delete("a", &DeleteParams::foreground()).await;
    deleted.expect("it is there");
    stage.runs_that_are_killed().await;
    assert_order(&stage.order(&before).await);
    stage.until_collected().await;
}
