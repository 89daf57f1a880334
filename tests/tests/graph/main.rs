//! The graph at work on the embedded cluster: a project with what hangs on it, deleted, moved, evicted, and with a
//! process that is killed between any two requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kindex_cluster::Cluster as Embedded;
use kindex_deletion::cleanup::Cleanups;
use kindex_deletion::cluster::Cluster;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::metrics::Metrics;
use kindex_deletion::service::{Deletion, Options};
use kindex_harness::wait::WAIT_MAX;
use kindex_model::kind::Scope;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::core::ApiResource;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

mod between;
mod kinds;
mod kubernetes;

mod cluster_scoped;
mod cycles;
mod deleters;
mod every_write;
mod outside;
mod owned;
mod placed;
mod status;
mod vanished;
mod web;

use kinds::{GROUP, definition, registry};

/// Between two looks of a test that waits.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How long a watch lasts that waits for something: longer than [`WAIT_MAX`], and shorter than a client waits.
const WATCH_SECONDS: u32 = 290;

struct Stage {
    client: Client,
    /// `None` where another cluster is used.
    _embedded: Option<Embedded>,
}

/// The objects of the project, by kind and name, in the order in which they go.
const PROJECT: [(&str, &str); 5] = [
    ("Cluster", "c"),
    ("Network", "n"),
    ("ServerGroup", "g"),
    ("CloudIdentity", "i"),
    ("Project", "a"),
];

impl Stage {
    async fn start() -> Self {
        let embedded = Embedded::ephemeral().await.expect("the cluster opens");
        let stage = Self {
            client: Client::new(embedded.in_process(([127, 0, 0, 1], 1).into()), "default"),
            _embedded: Some(embedded),
        };
        stage.define().await;
        stage
    }

    /// The kinds are known from then on.
    async fn define(&self) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for kind in registry().kinds {
            let definition = serde_json::from_value(definition(kind)).expect("a definition");
            let created = definitions.create(&PostParams::default(), &definition).await;
            created.expect("a definition is taken");
        }
        for kind in registry().kinds {
            let is_served = || async { self.api(kind.name).list(&ListParams::default()).await.is_ok() };
            self.until(is_served).await;
        }
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let kind = registry().find(kind).expect("a kind");
        let resource = ApiResource {
            group: kind.group.to_owned(),
            version: kind.version.to_owned(),
            api_version: kind.api_version(),
            kind: kind.name.to_owned(),
            plural: kind.plural.to_owned(),
        };
        match kind.scope {
            Scope::Namespaced => Api::default_namespaced_with(self.client.clone(), &resource),
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
        }
    }

    fn deletion(&self, cleanups: &Cleanups) -> Deletion {
        let kinds = Kinds::of(&registry());
        let cluster = Cluster::new(self.client.clone(), kinds).with_cleanups(cleanups);
        let options = Options {
            blocked_after: Duration::ZERO,
        };
        Deletion::new(cluster, options, Metrics::default())
    }

    fn run(&self) -> (CancellationToken, JoinHandle<()>) {
        self.run_with(&Cleanups::none())
    }

    fn run_with(&self, cleanups: &Cleanups) -> (CancellationToken, JoinHandle<()>) {
        let (deletion, stop) = (Arc::new(self.deletion(cleanups)), CancellationToken::new());
        let stopped = stop.clone();
        (stop, tokio::spawn(async move { deletion.run(&stopped).await }))
    }

    async fn create(&self, kind: &str, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        });
        let object = serde_json::from_value(object).expect("an object");
        let created = self.api(kind).create(&PostParams::default(), &object).await;
        created.expect("an object is taken");
    }

    async fn patch(&self, kind: &str, name: &str, patch: Value) {
        let patched = self
            .api(kind)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.expect("it is there");
    }

    async fn delete(&self, kind: &str, name: &str) {
        self.api(kind)
            .delete(name, &DeleteParams::default())
            .await
            .expect("it is there");
    }

    async fn get(&self, kind: &str, name: &str) -> Option<DynamicObject> {
        self.api(kind).get_opt(name).await.expect("an answer")
    }

    async fn until<F: Future<Output = bool>>(&self, holds: impl Fn() -> F) {
        let waited = timeout(WAIT_MAX, async {
            while !holds().await {
                sleep(LOOK_AGAIN).await;
            }
        });
        waited.await.expect("it takes too long");
    }

    /// The reference of an object, as others have it.
    async fn reference(&self, kind: &str, name: &str) -> String {
        let uid = self.get(kind, name).await.expect("it is there").uid().expect("a uid");
        format!("{}.{GROUP}/{uid}", kind.to_lowercase())
    }

    async fn has(&self, (kind, name): (&str, &str), finalizer: &str) -> bool {
        let found = self.get(kind, name).await;
        found.is_some_and(|found| found.finalizers().iter().any(|one| one == finalizer))
    }

    /// The objects of a project, each held by those that name it.
    async fn project(&self) {
        self.create("Project", "a", json!({})).await;
        self.create("CloudIdentity", "i", json!({"project": "a"})).await;
        self.create("Network", "n", json!({"cloudIdentity": "i"})).await;
        self.create("ServerGroup", "g", json!({"cloudIdentity": "i"})).await;
        self.create("Cluster", "c", json!({"network": "n", "serverGroup": "g"}))
            .await;
        let held = [
            (("Cluster", "c"), ("Network", "n")),
            (("Cluster", "c"), ("ServerGroup", "g")),
            (("Network", "n"), ("CloudIdentity", "i")),
            (("ServerGroup", "g"), ("CloudIdentity", "i")),
            (("CloudIdentity", "i"), ("Project", "a")),
        ];
        for (holder, target) in held {
            let reference = self.reference(holder.0, holder.1).await;
            self.until(|| self.has(target, &reference)).await;
        }
    }

    /// Runs that are killed, each after a little more time than the one before, until nothing is left.
    async fn runs_that_are_killed(&self) {
        let mut life = Duration::from_millis(1);
        while !self.is_empty().await {
            // What is under way is dropped where it is.
            let deletion = self.deletion(&Cleanups::none());
            let never = CancellationToken::new();
            drop(timeout(life, deletion.run(&never)).await);
            life += Duration::from_millis(1);
        }
    }

    async fn is_empty(&self) -> bool {
        for (kind, name) in PROJECT {
            if self.get(kind, name).await.is_some() {
                return false;
            }
        }
        true
    }

    /// The version of the cluster.
    async fn version(&self) -> String {
        let listed = self.api("Project").list(&ListParams::default()).await;
        let version = listed.expect("a list").metadata.resource_version;
        version.expect("a version")
    }

    /// The kinds in the order in which their objects went since a version, as the watches have it.
    async fn order(&self, since: &str) -> Vec<&'static str> {
        self.order_of(&PROJECT, since).await
    }

    /// The same of the kinds of these objects alone.
    async fn order_of(&self, objects: &[(&'static str, &str)], since: &str) -> Vec<&'static str> {
        let mut gone = BTreeMap::new();
        for &(kind, _) in objects {
            let api = self.api(kind);
            let events = api
                .watch(&WatchParams::default().timeout(WATCH_SECONDS), since)
                .await
                .expect("a watch");
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                if let WatchEvent::Deleted(object) = event.expect("an event") {
                    let version = object.resource_version().expect("a version");
                    gone.insert(version.parse::<u64>().expect("a number"), kind);
                    break;
                }
            }
        }
        gone.into_values().collect()
    }
}

/// The phases that an object has entered, with their reasons and without their times.
fn phases(object: &DynamicObject) -> Vec<Value> {
    let text = &object.annotations()["platform.example.com/deletion-phases"];
    let phases: Vec<Value> = serde_json::from_str(text).expect("JSON");
    assert!(
        phases.iter().all(|phase| phase["lastTransitionTime"].is_string()),
        "{text}"
    );
    let said = phases.iter();
    said.map(|phase| json!([phase["type"], phase["reason"], phase["message"]]))
        .collect()
}

fn phase_number(phase: &str) -> Option<usize> {
    ["DELETING", "DRAINING", "FINALIZING"]
        .iter()
        .position(|one| *one == phase)
}

fn assert_order(order: &[&str]) {
    assert_eq!(order.len(), PROJECT.len(), "{order:?}");
    let at = |kind: &str| order.iter().position(|gone| *gone == kind).expect("it went");
    assert_eq!(at("Cluster"), 0, "{order:?}");
    assert!(at("Network").max(at("ServerGroup")) < at("CloudIdentity"), "{order:?}");
    assert_eq!(at("Project"), 4, "{order:?}");
}

#[tokio::test]
async fn a_project_goes_last_and_what_holds_it_is_named_meanwhile() {
    let stage = Stage::start().await;
    let (stop, running) = stage.run();
    stage.project().await;
    // Somebody cleans up after the cluster.
    let mut finalizers = stage
        .get("Cluster", "c")
        .await
        .expect("it is there")
        .finalizers()
        .to_vec();
    finalizers.push("example.com/cleanup".to_owned());
    stage
        .patch("Cluster", "c", json!({"metadata": {"finalizers": finalizers}}))
        .await;

    let before = stage.version().await;
    stage.delete("Project", "a").await;
    let events: Api<Event> = Api::default_namespaced(stage.client.clone());
    let named = || async {
        let events = events.list(&ListParams::default()).await.expect("events").items;
        events.into_iter().any(|event| {
            let of_network = event.involved_object.name.as_deref() == Some("n");
            let message = event.message.unwrap_or_default();
            of_network && message.contains("cluster.platform.example.com default/c")
        })
    };
    stage.until(named).await;
    let network = stage.get("Network", "n").await.expect("it waits");
    assert_eq!(network.annotations()["platform.example.com/deletion-phase"], "DELETING");
    let cluster = stage.get("Cluster", "c").await.expect("it waits");
    assert_eq!(cluster.annotations()["platform.example.com/deletion-phase"], "DRAINING");
    let reference = stage.reference("Cluster", "c").await;
    assert_eq!(
        phases(&network),
        [json!([
            "Deleting",
            "InUse",
            format!("others hold or name it: {reference}")
        ])]
    );
    let left = "only what it owns and its cleanup are left: example.com/cleanup";
    assert_eq!(phases(&cluster), [json!(["Draining", "NotInUse", left])]);

    let left: Vec<_> = cluster
        .finalizers()
        .iter()
        .filter(|one| *one != "example.com/cleanup")
        .cloned()
        .collect();
    stage
        .patch("Cluster", "c", json!({"metadata": {"finalizers": left}}))
        .await;
    stage.until(|| stage.is_empty()).await;
    assert_order(&stage.order(&before).await);
    stop.cancel();
    running.await.expect("it ends");
}

#[tokio::test]
async fn a_process_that_is_killed_again_and_again_loses_nothing_and_keeps_the_order() {
    let stage = Stage::start().await;
    let (stop, running) = stage.run();
    stage.project().await;
    stop.cancel();
    running.await.expect("it ends");
    let before = stage.version().await;
    stage.delete("Project", "a").await;
    stage.runs_that_are_killed().await;
    assert_order(&stage.order(&before).await);
}

/// As if what one process has decided counted although the other one has gone on meanwhile.
#[tokio::test]
async fn two_processes_without_a_lease_keep_the_order_and_take_no_phase_back() {
    let stage = Stage::start().await;
    let processes = [stage.run(), stage.run()];
    stage.project().await;
    let before = stage.version().await;
    stage.delete("Project", "a").await;
    stage.until(|| stage.is_empty()).await;
    assert_order(&stage.order(&before).await);
    for (kind, _) in PROJECT {
        let (_, phases) = stage.times_and_phases(kind, &before).await;
        let goes_on = phases
            .windows(2)
            .all(|two| phase_number(&two[0]) < phase_number(&two[1]));
        assert!(goes_on && !phases.is_empty(), "{kind}: {phases:?}");
    }
    for (stop, running) in processes {
        stop.cancel();
        running.await.expect("it ends");
    }
}

#[tokio::test]
async fn what_moved_is_held_by_its_new_target_and_outlives_the_old_one() {
    let stage = Stage::start().await;
    let (stop, running) = stage.run();
    stage.project().await;
    stage.create("CloudIdentity", "j", json!({})).await;
    let reference = stage.reference("Network", "n").await;
    stage
        .patch("Network", "n", json!({"spec": {"cloudIdentity": "j"}}))
        .await;
    stage.until(|| stage.has(("CloudIdentity", "j"), &reference)).await;
    stage
        .until(|| async { !stage.has(("CloudIdentity", "i"), &reference).await })
        .await;
    stage
        .patch("Cluster", "c", json!({"spec": {"serverGroup": null}}))
        .await;

    stage.delete("Project", "a").await;
    stage
        .until(|| async { stage.get("Project", "a").await.is_none() })
        .await;
    for (kind, name) in [("Cluster", "c"), ("Network", "n"), ("CloudIdentity", "j")] {
        let left = stage.get(kind, name).await.expect("it stays");
        assert!(left.metadata.deletion_timestamp.is_none(), "{kind}");
    }
    stop.cancel();
    running.await.expect("it ends");
}

#[tokio::test]
async fn what_leaves_for_the_archive_takes_nothing_along() {
    let stage = Stage::start().await;
    let (stop, running) = stage.run();
    stage.project().await;
    let reference = stage.reference("Network", "n").await;
    // As the ingester does it.
    let immutable = json!({"metadata": {"annotations": {"platform.example.com/immutable": "true"}}});
    stage.patch("Network", "n", immutable).await;
    stage.delete("Network", "n").await;

    // Whatever follows from that would have followed by the time that a later deletion is through.
    stage.create("Project", "other", json!({})).await;
    let has_deletion_finalizer = || stage.has(("Project", "other"), "platform.example.com/deletion");
    stage.until(has_deletion_finalizer).await;
    stage.delete("Project", "other").await;
    stage
        .until(|| async { stage.get("Project", "other").await.is_none() })
        .await;
    // What was to be reported is by the time that it has ended.
    stage
        .until(|| stage.is_reported("n", "DeletionBlocked", "default/c"))
        .await;
    stop.cancel();
    running.await.expect("it ends");
    let network = stage.get("Network", "n").await.expect("the cluster needs it");
    assert!(network.data["status"].is_null(), "{:?}", network.data["status"]);
    let (stop, running) = stage.run();
    assert!(
        !network
            .annotations()
            .contains_key("platform.example.com/deletion-phase")
    );
    let cluster = stage.get("Cluster", "c").await.expect("it stays");
    assert!(cluster.metadata.deletion_timestamp.is_none());

    stage.delete("Cluster", "c").await;
    let is_gone = || async { stage.get("Network", "n").await.is_none() };
    stage.until(is_gone).await;
    assert!(
        stage.has(("CloudIdentity", "i"), &reference).await,
        "what is archived goes on holding"
    );
    stop.cancel();
    running.await.expect("it ends");
}
