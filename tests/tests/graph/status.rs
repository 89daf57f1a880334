//! The conditions of objects whose deletion waits.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::StatusCode;
use futures::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::{Value, json};

use super::kubernetes::start;
use super::{Stage, WATCH_SECONDS, between, phases};

const CLEANUP: &str = "example.com/cleanup";
const RECORDED: &str = "platform.example.com/deletion-conditions";

impl Stage {
    /// A condition of an object, without its time.
    async fn condition(&self, (kind, name): (&str, &str), of: &str) -> Option<Value> {
        let found = self.get(kind, name).await?;
        let conditions = found.data["status"]["conditions"].as_array()?;
        let found = conditions.iter().find(|condition| condition["type"] == of);
        found.map(|found| json!([found["status"], found["reason"], found["message"]]))
    }

    async fn until_condition(&self, object: (&str, &str), of: &str, status: &str, reason: &str, names: &str) {
        let holds = || async {
            let found = self.condition(object, of).await.unwrap_or_default();
            found[0] == status && found[1] == reason && found[2].as_str().is_some_and(|message| message.contains(names))
        };
        self.until(holds).await;
    }

    /// The same in the annotation of an object whose kind has no conditions.
    async fn until_recorded(&self, (kind, name): (&str, &str), of: &str, status: &str, reason: &str) {
        let holds = || async {
            let Some(found) = self.get(kind, name).await else {
                return false;
            };
            let text = found.annotations().get(RECORDED);
            let conditions: Vec<Value> = text.map_or(Vec::new(), |text| serde_json::from_str(text).expect("JSON"));
            let mut said = conditions.iter().filter(|condition| condition["type"] == of);
            said.any(|said| {
                said["status"] == status && said["reason"] == reason && said["lastTransitionTime"].is_string()
            })
        };
        self.until(holds).await;
    }

    async fn until_not_recorded(&self, kind: &str, name: &str) {
        let holds = || async {
            let found = self.get(kind, name).await.expect("it is there");
            !found.annotations().contains_key(RECORDED)
        };
        self.until(holds).await;
    }

    /// What waits says so in its conditions, and that it goes on too.
    async fn conditions_follow_the_deletion(&self) {
        let (stop, running) = self.run();
        self.project().await;
        let finalizers = self
            .get("Cluster", "c")
            .await
            .expect("it is there")
            .finalizers()
            .to_vec();
        let kept = [&finalizers[..], &[CLEANUP.to_owned()]].concat();
        self.patch("Cluster", "c", json!({"metadata": {"finalizers": kept}}))
            .await;
        // The controller of networks has written one of its own.
        let ready = json!({"type": "Ready", "status": "True", "reason": "Provisioned", "message": ""});
        let network = self.api("Network");
        let status = Patch::Merge(json!({"status": {"conditions": [ready]}}));
        let written = network.patch_status("n", &PatchParams::default(), &status).await;
        written.expect("it has a status");
        // It stays when the cluster has gone.
        let network = self.get("Network", "n").await.expect("it is there");
        let kept = [network.finalizers(), &[CLEANUP.to_owned()]].concat();
        self.patch("Network", "n", json!({"metadata": {"finalizers": kept}}))
            .await;

        let before = self.version().await;
        self.delete("Project", "a").await;
        let (cluster, network) = (("Cluster", "c"), ("Network", "n"));
        self.until_condition(network, "DeletionPhase", "True", "Deleting", "DELETING since")
            .await;
        let project = ("Project", "a");
        self.until_recorded(project, "DeletionPhase", "True", "Deleting").await;
        self.until_recorded(project, "DeletionBlocked", "True", "DeletionBlocked")
            .await;
        let holder = "cluster.platform.example.com default/c";
        self.until_condition(network, "DeletionBlocked", "True", "DeletionBlocked", holder)
            .await;
        self.until_condition(cluster, "DeletionPhase", "True", "Draining", "DRAINING since")
            .await;
        self.until_condition(cluster, "DeletionBlocked", "True", "DeletionDraining", CLEANUP)
            .await;
        assert_eq!(
            self.condition(network, "Ready").await,
            Some(json!(["True", "Provisioned", ""]))
        );

        self.finish("Cluster", "c").await;
        self.until_condition(network, "DeletionPhase", "True", "Draining", "DRAINING since")
            .await;
        self.until_condition(network, "DeletionBlocked", "True", "DeletionDraining", CLEANUP)
            .await;
        let entered = phases(&self.get("Network", "n").await.expect("it waits"));
        let entered: Vec<&Value> = entered.iter().map(|phase| &phase[0]).collect();
        assert_eq!(entered, ["Deleting", "Draining"]);
        self.finish("Network", "n").await;
        self.until(|| self.is_empty()).await;
        let said = self.said_of("Network", &before).await;
        let expected = [["Deleting", "True"], ["Draining", "True"], ["Finalizing", "False"]];
        assert_eq!(said, expected);
        stop.cancel();
        running.await.expect("it ends");
    }

    /// What the conditions of the only object of a kind have said since a version, until it went: the phase, and
    /// whether it is blocked.
    async fn said_of(&self, kind: &str, since: &str) -> Vec<[String; 2]> {
        let api = self.api(kind);
        let parameters = WatchParams::default().disable_bookmarks().timeout(WATCH_SECONDS);
        let mut events = pin!(api.watch(&parameters, since).await.expect("a watch"));
        let mut said = Vec::new();
        loop {
            let event = events.next().await;
            let event = event.unwrap_or_else(|| panic!("the watch ended before the {kind} was gone: {said:?}"));
            match event.expect("an event") {
                WatchEvent::Modified(object) => said.extend(reason_and_status(&object)),
                WatchEvent::Deleted(_) => break,
                other => panic!("{other:?}"),
            }
        }
        said.dedup();
        said
    }

    /// Its controller has cleaned up.
    async fn finish(&self, kind: &str, name: &str) {
        let found = self.get(kind, name).await.expect("it waits");
        let left: Vec<_> = found
            .finalizers()
            .iter()
            .filter(|one| *one != CLEANUP)
            .cloned()
            .collect();
        self.patch(kind, name, json!({"metadata": {"finalizers": left}})).await;
    }
}

fn reason_and_status(object: &DynamicObject) -> Option<[String; 2]> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    let field = |of: &str, field: &str| {
        let found = conditions.iter().find(|condition| condition["type"] == of)?;
        found[field].as_str().map(ToOwned::to_owned)
    };
    Some([field("DeletionPhase", "reason")?, field("DeletionBlocked", "status")?])
}

#[tokio::test]
async fn what_a_live_object_cannot_hold_is_in_its_conditions_until_it_is_placed() {
    let stage = Stage::start().await;
    let (stop, running) = stage.run();
    stage.project().await;
    stage.create("Cluster", "d", json!({"network": "m"})).await;
    let (cluster, refused) = (("Cluster", "d"), "ReferenceRefused");
    let target = "network.platform.example.com default/m, which does not exist";
    stage.until_condition(cluster, refused, "True", refused, target).await;
    stage.create("Network", "m", json!({})).await;
    stage
        .until_condition(cluster, refused, "False", "ReferencesPlaced", "")
        .await;
    let reference = stage.reference("Cluster", "d").await;
    assert!(stage.has(("Network", "m"), &reference).await);
    stop.cancel();
    running.await.expect("it ends");
}

#[tokio::test]
async fn a_condition_whose_removal_fails_is_removed_though_nothing_changes() {
    let mut stage = Stage::start().await;
    let has_failed = Arc::new(AtomicBool::new(false));
    let fails = has_failed.clone();
    stage.client = between::client(stage.client.clone(), move |change| {
        let is_first = change.body.contains("ReferencesPlaced") && !fails.swap(true, Ordering::SeqCst);
        ready(is_first.then_some(StatusCode::INTERNAL_SERVER_ERROR))
    });
    let (stop, running) = stage.run();
    stage.create("Cluster", "d", json!({"network": "m"})).await;
    let (cluster, refused) = (("Cluster", "d"), "ReferenceRefused");
    stage
        .until_condition(cluster, refused, "True", refused, "does not exist")
        .await;
    stage.create("Network", "m", json!({})).await;
    stage
        .until_condition(cluster, refused, "False", "ReferencesPlaced", "")
        .await;
    assert!(has_failed.load(Ordering::SeqCst), "the first write has failed");
    stop.cancel();
    running.await.expect("it ends");
}

/// Its kind had no conditions when they were written there: they would stay as they were for ever.
#[tokio::test]
async fn the_annotation_goes_once_a_kind_has_conditions() {
    let stage = Stage::start().await;
    let refusal = json!([{"type": "ReferenceRefused", "status": "True", "reason": "ReferenceRefused", "message": ""}]);
    let annotations = json!({"metadata": {"annotations": {RECORDED: refusal.to_string()}}});
    let (stop, running) = stage.run();
    stage.project().await;
    // Its status has nothing to say.
    stage.patch("Cluster", "c", annotations.clone()).await;
    stage.until_not_recorded("Cluster", "c").await;
    // Its status says something else.
    stage.create("Cluster", "d", json!({"network": "m"})).await;
    let (cluster, refused) = (("Cluster", "d"), "ReferenceRefused");
    stage
        .until_condition(cluster, refused, "True", refused, "does not exist")
        .await;
    stage.patch("Cluster", "d", annotations).await;
    stage.create("Network", "m", json!({})).await;
    stage
        .until_condition(cluster, refused, "False", "ReferencesPlaced", "")
        .await;
    stage.until_not_recorded("Cluster", "d").await;
    stop.cancel();
    running.await.expect("it ends");
}

#[tokio::test]
async fn conditions_name_the_phase_and_what_is_waited_for() {
    Stage::start().await.conditions_follow_the_deletion().await;
}

#[tokio::test]
async fn conditions_are_written_on_kube_apiserver_too() {
    if let Some((_plane, stage)) = start().await {
        stage.conditions_follow_the_deletion().await;
    }
}
