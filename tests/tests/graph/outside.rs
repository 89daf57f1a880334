//! Cleanups of what clusters have outside: they wait, fail, panic and hang, and only a confirmation lets the object go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kindex_deletion::cleanup::{Answer, Cleanup, CleanupError, Cleanups, Deleted, InvalidCleanup, async_trait};
use kindex_model::kind::{Kind, Registry};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::kinds::{CLUSTERS, kind, registry};
use super::{Stage, assert_order};

/// What the cloud does when it is asked to remove the machine of a cluster.
#[derive(Clone, Copy, Debug)]
enum Behavior {
    Removed,
    Pending,
    Fails,
    Panics,
    Hangs,
}

/// A cloud with a machine for each cluster that it knows. Clones are the same.
#[derive(Clone)]
struct Cloud {
    behaviors: Arc<Mutex<BTreeMap<String, Behavior>>>,
    /// Calls that should not have been.
    wrong: Arc<Mutex<Vec<String>>>,
    deadline: Duration,
}

impl Cloud {
    fn new(deadline: Duration) -> Self {
        Self {
            behaviors: Arc::default(),
            wrong: Arc::default(),
            deadline,
        }
    }

    fn goes(&self, name: &str, behavior: Behavior) {
        self.behaviors
            .lock()
            .expect("no panic")
            .insert(name.to_owned(), behavior);
    }

    fn behavior(&self, name: &str) -> Behavior {
        let behaviors = self.behaviors.lock().expect("no panic");
        behaviors
            .get(name)
            .copied()
            .expect("only what is deleted is cleaned up")
    }

    fn judge(&self, deleted: &Deleted) {
        let metadata = &deleted.object["metadata"];
        let is_deleted = metadata["deletionTimestamp"].is_string() && metadata["uid"] == *deleted.uid;
        let phase = &metadata["annotations"]["platform.example.com/deletion-phase"];
        let finalizers = metadata["finalizers"].as_array().map_or(0, Vec::len);
        if !is_deleted || phase != "DRAINING" || finalizers != 1 || deleted.kind.name != "Cluster" {
            self.wrong.lock().expect("no panic").push(deleted.object.to_string());
        }
    }

    fn cleanups(&self) -> Cleanups {
        Cleanups::none().with(&CLUSTERS, self.clone())
    }
}

#[async_trait]
impl Cleanup for Cloud {
    async fn clean_up(&self, deleted: &Deleted) -> Result<Answer, CleanupError> {
        self.judge(deleted);
        match self.behavior(&deleted.name) {
            Behavior::Removed => Ok(Answer::Gone),
            Behavior::Pending => Ok(Answer::Pending {
                what: format!("machine of {} shuts down", deleted.object["spec"]["network"]),
                again_after: Some(Duration::ZERO),
            }),
            Behavior::Fails => Err("the cloud is closed".into()),
            Behavior::Panics => panic!("no such cloud"),
            Behavior::Hangs => std::future::pending().await,
        }
    }

    fn deadline(&self) -> Duration {
        self.deadline
    }
}

impl Stage {
    pub(crate) async fn is_reported(&self, name: &str, reason: &str, message: &str) -> bool {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let events = events.list(&ListParams::default()).await.expect("events").items;
        events.into_iter().any(|event| {
            let is_of = event.involved_object.name.as_deref() == Some(name);
            let says = event.message.unwrap_or_default().contains(message);
            is_of && says && event.reason.as_deref() == Some(reason)
        })
    }
}

#[tokio::test]
async fn an_object_goes_once_its_cleanup_has_confirmed_whatever_came_of_it_before() {
    let (stage, cloud) = (Stage::start().await, Cloud::new(Duration::from_millis(100)));
    let (stop, running) = stage.run_with(&cloud.cleanups());
    stage.project().await;
    let before = stage.version().await;
    let finalizers = stage.get("Cluster", "c").await.expect("it is there");
    let mut finalizers = finalizers.finalizers().to_vec();
    finalizers.push("example.com/cleanup".to_owned());
    let held = json!({"metadata": {"finalizers": finalizers}});
    stage.patch("Cluster", "c", held).await;
    let reference = stage.reference("Cluster", "c").await;
    cloud.goes("c", Behavior::Pending);

    stage.delete("Project", "a").await;
    let waits = "waits for the cleanup by the controllers";
    stage.until(|| stage.is_reported("c", "DeletionDraining", waits)).await;
    finalizers.pop();
    let free = json!({"metadata": {"finalizers": finalizers}});
    stage.patch("Cluster", "c", free).await;
    let pending = "outside of the cluster: machine of \"n\" shuts down";
    stage
        .until(|| stage.is_reported("c", "DeletionDraining", pending))
        .await;
    for (behavior, said) in [
        (Behavior::Fails, "the cloud is closed"),
        (Behavior::Panics, "it panicked: no such cloud"),
        (Behavior::Hangs, "no answer in 100ms"),
    ] {
        cloud.goes("c", behavior);
        stage.until(|| stage.is_reported("c", "CleanupFailed", said)).await;
    }
    assert!(stage.has(("Network", "n"), &reference).await, "it is not confirmed");
    stop.cancel();
    running.await.expect("it ends");

    // The next process knows nothing of all that.
    cloud.goes("c", Behavior::Pending);
    let (stop, running) = stage.run_with(&cloud.cleanups());
    assert!(stage.has(("Network", "n"), &reference).await);
    cloud.goes("c", Behavior::Removed);
    stage.until(|| stage.is_empty()).await;
    assert_order(&stage.order(&before).await);
    assert_eq!(*cloud.wrong.lock().expect("no panic"), [""; 0]);
    stop.cancel();
    running.await.expect("it ends");
}

#[tokio::test]
async fn a_cleanup_that_hangs_keeps_no_other_object_and_ends_with_the_service() {
    let (stage, cloud) = (Stage::start().await, Cloud::new(Duration::MAX));
    let (stop, running) = stage.run_with(&cloud.cleanups());
    stage.project().await;
    for number in 0..70 {
        let name = format!("c{number}");
        stage.create("Cluster", &name, json!({})).await;
        let has_deletion_finalizer = || stage.has(("Cluster", &name), "platform.example.com/deletion");
        stage.until(has_deletion_finalizer).await;
        cloud.goes(&name, Behavior::Hangs);
        stage.delete("Cluster", &name).await;
    }
    stage.create("Project", "other", json!({})).await;
    let has_deletion_finalizer = || stage.has(("Project", "other"), "platform.example.com/deletion");
    stage.until(has_deletion_finalizer).await;
    stage.delete("Project", "other").await;
    stage
        .until(|| async { stage.get("Project", "other").await.is_none() })
        .await;
    assert!(stage.get("Cluster", "c0").await.is_some(), "it is not confirmed");
    stop.cancel();
    running.await.expect("it ends");
}

static LONELY: Kind = kind("Lonely", "lonelies", "lonely", &[]);
static KEPT: Kind = Kind {
    cluster: false,
    ..kind("Kept", "kepts", "kept", CLUSTERS.references)
};
static MORE: [&Kind; 3] = [&CLUSTERS, &LONELY, &KEPT];
static ABROAD: Kind = kind("Abroad", "abroads", "abroad", &[]);

#[test]
fn a_cleanup_that_would_never_be_called_is_refused() {
    let registry = Registry {
        kinds: &MORE,
        ..registry()
    };
    let of = |kinds: &[&'static Kind]| {
        let all = kinds
            .iter()
            .fold(Cleanups::none(), |all, kind| all.with(kind, Cloud::new(Duration::MAX)));
        all.check(&registry)
    };
    assert_eq!(of(&[]), Ok(()));
    assert_eq!(of(&[&CLUSTERS]), Ok(()));
    assert_eq!(of(&[&ABROAD]), Err(InvalidCleanup::Unknown("Abroad")));
    assert_eq!(of(&[&CLUSTERS, &CLUSTERS]), Err(InvalidCleanup::Twice("Cluster")));
    assert_eq!(of(&[&CLUSTERS, &LONELY]), Err(InvalidCleanup::OutOfGraph("Lonely")));
    assert_eq!(of(&[&KEPT]), Ok(()), "the graph has SQL-only kinds too");
}
