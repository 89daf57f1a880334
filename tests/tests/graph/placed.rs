//! References that others place in the name of an object.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;

use super::Stage;
use super::between::{self, Change};
use super::kinds::GROUP;

/// The ingester's, which goes last of all.
const INGESTER: &str = "platform.example.com/kindex";

impl Stage {
    async fn place(&self, (kind, name): (&str, &str), reference: &str) {
        let found = self.get(kind, name).await.expect("it is there");
        let finalizers = [found.finalizers(), &[reference.to_owned()]].concat();
        self.patch(kind, name, json!({"metadata": {"finalizers": finalizers}}))
            .await;
    }
}

#[tokio::test]
async fn a_reference_on_what_no_field_can_name_stays_until_its_holder_goes() {
    let stage = Stage::start().await;
    let (stop, running) = stage.run();
    stage.project().await;
    stage.create("Network", "m", json!({})).await;
    let reference = stage.reference("Cluster", "c").await;
    let (identity, network) = (("CloudIdentity", "i"), ("Network", "m"));
    // Of two that it would release, the identity comes first.
    stage.place(identity, &reference).await;
    stage.place(network, &reference).await;
    stage.until(|| async { !stage.has(network, &reference).await }).await;
    assert!(stage.has(identity, &reference).await, "no field can name an identity");
    stage.delete("Cluster", "c").await;
    stage.until(|| async { !stage.has(identity, &reference).await }).await;
    stop.cancel();
    running.await.expect("it ends");
}

/// The cluster without what the service does, and how far the story is.
#[derive(Clone)]
struct Meanwhile {
    clusters: Api<DynamicObject>,
    is_freed: Arc<AtomicBool>,
    is_taken_back: Arc<AtomicBool>,
}

impl Meanwhile {
    fn of(stage: &Stage) -> Self {
        Self {
            clusters: stage.api("Cluster"),
            is_freed: Arc::default(),
            is_taken_back: Arc::default(),
        }
    }

    /// Just before its reference is placed, another process frees the cluster, which knows of no reference. The cluster
    /// is gone before the service can write to it again, as it is once the ingester has stored its end.
    async fn sees(self, change: Change) {
        let is_freed = self.is_freed.load(Ordering::SeqCst);
        let has_reference = change.body.contains("cluster.platform.example.com/");
        if change.path.ends_with("/networks/n") && has_reference && !is_freed {
            let deleted = self.clusters.delete("c", &DeleteParams::default()).await;
            deleted.expect("it is there");
            self.leave(&[INGESTER]).await;
            self.is_freed.store(true, Ordering::SeqCst);
        } else if change.path.ends_with("/networks/n") && is_freed {
            self.is_taken_back.store(!has_reference, Ordering::SeqCst);
        } else if change.path.ends_with("/clusters/c") && is_freed {
            self.leave(&[]).await;
        }
    }

    /// Takes all other finalizers off the cluster.
    async fn leave(&self, finalizers: &[&str]) {
        let left = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        let patched = self.clusters.patch("c", &PatchParams::default(), &left).await;
        patched.expect("it is there");
    }
}

#[tokio::test]
async fn a_reference_that_is_placed_once_its_holder_was_freed_is_taken_back() {
    let mut stage = Stage::start().await;
    let meanwhile = Meanwhile::of(&stage);
    let sees = meanwhile.clone();
    stage.client = between::client(stage.client.clone(), move |change| {
        let seen = sees.clone().sees(change);
        async move {
            seen.await;
            None
        }
    });
    let (stop, running) = stage.run();
    stage.create("Network", "n", json!({})).await;
    let network = ("Network", "n");
    stage
        .until(|| stage.has(network, "platform.example.com/deletion"))
        .await;
    let cluster = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Cluster",
        "metadata": {"name": "c", "finalizers": [INGESTER]},
        "spec": {"network": "n"},
    });
    let cluster = serde_json::from_value(cluster).expect("an object");
    let created = meanwhile.clusters.create(&PostParams::default(), &cluster).await;
    let uid = created.expect("an object is taken").uid().expect("a uid");
    stage
        .until(|| async { meanwhile.is_taken_back.load(Ordering::SeqCst) })
        .await;
    let reference = format!("cluster.{GROUP}/{uid}");
    stage.until(|| async { !stage.has(network, &reference).await }).await;
    stop.cancel();
    running.await.expect("it ends");
}
