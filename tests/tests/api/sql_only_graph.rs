//! The deletion graph over kinds that no cluster has and kinds of the cluster: deletions go in the same order whichever
//! side an object is on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::cleanup::{Answer, Cleanup, CleanupError, Cleanups, Deleted, async_trait};
use kindex_deletion::cluster::Cluster;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::metrics::Metrics;
use kindex_deletion::service::{Deletion, Options};
use kindex_generated::kinds::{model, model_family, pipeline, pipeline_run, trigger_run};
use kindex_harness::wait::eventually;
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_maintenance::release::{self, ReleaseSides, StoppedServices};
use kindex_model::kind::Kind;
use kindex_query::Life;
use kindex_store::progress::NoProgress;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::stage::{FINAL, Stage, send};

pub(super) static PIPELINE: Kind = Kind {
    cluster: false,
    ..pipeline::KIND
};
static TRIGGER: Kind = Kind {
    cluster: false,
    ..trigger_run::KIND
};
static FAMILY: Kind = Kind {
    cluster: false,
    ..model_family::KIND
};
pub(super) static MODEL: Kind = Kind {
    cluster: false,
    ..model::KIND
};
/// What runs refer to is only in SQL, and so is what refers to that in turn.
pub(super) static TARGETS: &[&Kind] = &[&PIPELINE, &pipeline_run::KIND, &TRIGGER, &FAMILY, &model::KIND];
/// What holds is only in SQL.
pub(super) static HOLDERS: &[&Kind] = &[&model_family::KIND, &MODEL, &pipeline::KIND, &TRIGGER];

/// A deletion service beside a stage, as a process of `kindex deletion` is.
pub(super) struct Graph {
    pub(super) stage: Stage,
    stop: CancellationToken,
    work: JoinHandle<()>,
}

impl Graph {
    pub(super) async fn of(kinds: &'static [&'static Kind], cleanups: &Cleanups) -> Self {
        Self::on(Stage::of_kinds(kinds).await, cleanups).await
    }

    pub(super) async fn on(stage: Stage, cleanups: &Cleanups) -> Self {
        let cluster = stage.cluster.clone();
        Self::through(cluster, stage, cleanups).await
    }

    /// The requests of the service go through the proxy of the stage.
    pub(super) async fn behind_the_proxy(stage: Stage) -> Self {
        let (ground, stop) = (&stage.ground, stage.ground.stop());
        let config = ground.proxy.serve_before(ground.config(), stop).await;
        let cluster = Client::try_from(config).unwrap();
        Self::through(cluster, stage, &Cleanups::none()).await
    }

    async fn through(cluster: Client, stage: Stage, cleanups: &Cleanups) -> Self {
        let (registry, store) = (stage.ground.registry(), stage.store.clone());
        let client = kindex::sql_only::with_cluster(cluster, &registry, store.clone()).await;
        let kinds = Kinds::of(&registry);
        let archive = SqlArchive::new(store, registry, kinds.clone()).with_cleanups(cleanups);
        let cluster = Cluster::new(client.unwrap(), kinds).with_cleanups(cleanups);
        let options = Options {
            blocked_after: Duration::ZERO,
        };
        let deletion = Deletion::new(cluster.with_archive(Arc::new(archive)), options, Metrics::default());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let work = tokio::spawn(async move { deletion.run(&stopped).await });
        Self { stage, stop, work }
    }

    pub(super) fn api(&self) -> &Client {
        &self.stage.api
    }

    pub(super) async fn create(&self, kind: &Kind, name: &str, spec: Value) -> String {
        create(self.api(), kind, name, spec).await
    }

    async fn metadata(&self, kind: &Kind, name: &str) -> Option<Value> {
        let (code, found) = send(self.api(), "GET", &path(kind, name), &Value::Null).await;
        (code == 200).then(|| found["metadata"].clone())
    }

    pub(super) async fn has_finalizer(&self, kind: &Kind, name: &str, finalizer: &str) -> bool {
        let metadata = self.metadata(kind, name).await;
        metadata.is_some_and(|metadata| metadata["finalizers"].to_string().contains(finalizer))
    }

    pub(super) async fn delete(&self, kind: &Kind, name: &str) {
        let (code, answer) = send(self.api(), "DELETE", &path(kind, name), &Value::Null).await;
        assert!(code == 200 || code == 202, "{answer}");
    }

    /// Until its deletion is recorded to wait in a phase.
    async fn until_in(&self, kind: &Kind, name: &str, phase: &str) {
        eventually(&format!("{} {name} is {phase}", kind.name), async || {
            let metadata = self.metadata(kind, name).await.unwrap_or_default();
            metadata["annotations"].to_string().contains(phase)
        })
        .await;
    }

    pub(super) async fn until_gone(&self, kind: &Kind, name: &str) {
        eventually(&format!("{} {name} is gone", kind.name), async || {
            self.metadata(kind, name).await.is_none()
        })
        .await;
    }

    /// The stage, without the service.
    async fn stopped(self) -> Stage {
        self.stop.cancel();
        self.work.await.unwrap();
        self.stage
    }

    pub(super) async fn end(self) {
        self.stopped().await.end().await;
    }
}

/// The uid of the new object.
pub(super) async fn create(api: &Client, kind: &Kind, name: &str, spec: Value) -> String {
    let object = json!({"apiVersion": kind.api_version(), "kind": kind.name, "metadata": {"name": name}, "spec": spec});
    let (code, created) = send(api, "POST", &path(kind, ""), &object).await;
    assert_eq!(code, 201, "{created}");
    created["metadata"]["uid"].as_str().unwrap().to_owned()
}

pub(super) fn path(kind: &Kind, name: &str) -> String {
    let collection = format!(
        "/apis/{}/{}/namespaces/default/{}",
        kind.group, kind.version, kind.plural
    );
    if name.is_empty() {
        collection
    } else {
        format!("{collection}/{name}")
    }
}

pub(super) fn finalizer(kind: &Kind, uid: &str) -> String {
    format!("{}.{}/{uid}", kind.singular, kind.group)
}

/// As if the graph left SQL-only kinds out, or asked the cluster for them.
#[tokio::test(flavor = "multi_thread")]
async fn an_sql_only_object_goes_after_its_holders_in_the_cluster_and_takes_along_what_cascades() {
    let graph = Graph::of(TARGETS, &Cleanups::none()).await;
    graph.create(&PIPELINE, "p", json!({})).await;
    let run = graph
        .create(
            &pipeline_run::KIND,
            "live",
            json!({"pipeline": {"namespace": "default", "name": "p"}}),
        )
        .await;
    let pipeline = json!({"pipeline": {"namespace": "default", "name": "p"}});
    let trigger = graph.create(&TRIGGER, "t", pipeline).await;
    for holder in [finalizer(&pipeline_run::KIND, &run), finalizer(&TRIGGER, &trigger)] {
        eventually("the pipeline has the reference", async || {
            graph.has_finalizer(&PIPELINE, "p", &holder).await
        })
        .await;
    }
    graph.delete(&PIPELINE, "p").await;
    graph.until_gone(&PIPELINE, "p").await;
    graph.until_gone(&pipeline_run::KIND, "live").await;
    graph.until_gone(&TRIGGER, "t").await;
    let rows = graph.stage.store.rows_of_name(&PIPELINE, "default", "p").await.unwrap();
    assert_eq!(rows.first().map(|row| row.life), Some(Life::Deleted));
    graph.end().await;
}

/// As if a holder in the archive did not count for an SQL-only target, or its reference stayed there.
#[tokio::test(flavor = "multi_thread")]
async fn archived_holders_of_an_sql_only_object_are_deleted_with_it() {
    let graph = Graph::of(TARGETS, &Cleanups::none()).await;
    graph.create(&PIPELINE, "p", json!({})).await;
    let run = graph
        .create(
            &pipeline_run::KIND,
            "done",
            json!({"pipeline": {"namespace": "default", "name": "p"}}),
        )
        .await;
    let holder = finalizer(&pipeline_run::KIND, &run);
    eventually("the pipeline has the reference", async || {
        graph.has_finalizer(&PIPELINE, "p", &holder).await
    })
    .await;
    let done = json!({"metadata": {"annotations": {FINAL: "true"}}});
    let (code, answer) = send(graph.api(), "PATCH", &path(&pipeline_run::KIND, "done"), &done).await;
    assert_eq!(code, 200, "{answer}");
    eventually("the reference is a row", async || {
        !graph.has_finalizer(&PIPELINE, "p", &holder).await
    })
    .await;
    graph.delete(&PIPELINE, "p").await;
    graph.until_gone(&PIPELINE, "p").await;
    let rows = graph
        .stage
        .store
        .rows_of_name(&pipeline_run::KIND, "default", "done")
        .await
        .unwrap();
    assert_eq!(rows.first().map(|row| row.life), Some(Life::Deleted));
    graph.end().await;
}

/// As if a block did not hold an SQL-only object, or its conditions were looked for in the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn an_sql_only_object_waits_for_what_blocks_it() {
    let graph = Graph::of(TARGETS, &Cleanups::none()).await;
    graph.create(&FAMILY, "f", json!({})).await;
    let model = graph
        .create(
            &model::KIND,
            "m",
            json!({"modelFamily": {"namespace": "default", "name": "f"}}),
        )
        .await;
    let holder = finalizer(&model::KIND, &model);
    eventually("the family has the reference", async || {
        graph.has_finalizer(&FAMILY, "f", &holder).await
    })
    .await;
    graph.delete(&FAMILY, "f").await;
    graph.until_in(&FAMILY, "f", "DELETING").await;
    assert!(
        graph.has_finalizer(&FAMILY, "f", &holder).await,
        "nobody takes the reference"
    );
    graph.delete(&model::KIND, "m").await;
    graph.until_gone(&FAMILY, "f").await;
    graph.end().await;
}

/// As if an SQL-only holder placed no reference in the cluster, or released none.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_the_cluster_waits_for_an_sql_only_holder_and_takes_along_what_cascades() {
    let graph = Graph::of(HOLDERS, &Cleanups::none()).await;
    graph.create(&model_family::KIND, "f", json!({})).await;
    let model = graph
        .create(
            &MODEL,
            "m",
            json!({"modelFamily": {"namespace": "default", "name": "f"}}),
        )
        .await;
    let holder = finalizer(&MODEL, &model);
    eventually("the family has the reference", async || {
        graph.has_finalizer(&model_family::KIND, "f", &holder).await
    })
    .await;
    graph.delete(&model_family::KIND, "f").await;
    graph.until_in(&model_family::KIND, "f", "DELETING").await;
    graph.delete(&MODEL, "m").await;
    graph.until_gone(&model_family::KIND, "f").await;

    graph.create(&pipeline::KIND, "p", json!({})).await;
    let pipeline = json!({"pipeline": {"namespace": "default", "name": "p"}});
    let trigger = graph.create(&TRIGGER, "t", pipeline).await;
    let holder = finalizer(&TRIGGER, &trigger);
    eventually("the pipeline has the reference", async || {
        graph.has_finalizer(&pipeline::KIND, "p", &holder).await
    })
    .await;
    graph.delete(&pipeline::KIND, "p").await;
    graph.until_gone(&pipeline::KIND, "p").await;
    graph.until_gone(&TRIGGER, "t").await;
    graph.end().await;
}

/// As if the event of an object was lost with a namespace that the cluster does not have.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_sql_only_object_waits_for_is_reported_without_its_namespace_in_the_cluster() {
    let graph = Graph::of(TARGETS, &Cleanups::none()).await;
    let elsewhere = path(&FAMILY, "").replace("/default/", "/nowhere/");
    let family =
        json!({"apiVersion": FAMILY.api_version(), "kind": FAMILY.name, "metadata": {"name": "f"}, "spec": {}});
    assert_eq!(send(graph.api(), "POST", &elsewhere, &family).await.0, 201);
    let named = json!({"modelFamily": {"namespace": "nowhere", "name": "f"}});
    let model = graph.create(&model::KIND, "m", named).await;
    let family = format!("{elsewhere}/f");
    let holder = finalizer(&model::KIND, &model);
    eventually("the family has the reference", async || {
        let (_, found) = send(graph.api(), "GET", &family, &Value::Null).await;
        found["metadata"]["finalizers"].to_string().contains(&holder)
    })
    .await;
    assert_eq!(send(graph.api(), "DELETE", &family, &Value::Null).await.0, 200);
    eventually("an event says what it waits for", async || {
        let events = "/api/v1/namespaces/default/events";
        let (_, events) = send(&graph.stage.cluster, "GET", events, &Value::Null).await;
        let mut events = events["items"].as_array().unwrap().iter();
        events.any(|event| event["reason"] == "DeletionBlocked" && event["involvedObject"]["kind"] == FAMILY.name)
    })
    .await;
    graph.delete(&model::KIND, "m").await;
    graph.end().await;
}

/// As if the finalizer of the graph stayed on SQL-only objects for ever, or their rows were written as the ingester
/// writes its own.
#[tokio::test(flavor = "multi_thread")]
async fn release_takes_the_finalizer_of_the_graph_off_sql_only_objects() {
    let graph = Graph::of(TARGETS, &Cleanups::none()).await;
    graph.create(&PIPELINE, "p", json!({})).await;
    eventually("the pipeline has the finalizer", async || {
        graph.has_finalizer(&PIPELINE, "p", "/deletion").await
    })
    .await;
    let stage = graph.stopped().await;
    let (registry, store) = (stage.ground.registry(), stage.store.clone());
    let client = kindex::sql_only::with_cluster(stage.cluster.clone(), &registry, store.clone()).await;
    let sides = ReleaseSides {
        platform: registry.platform,
        cluster: Arc::new(KubeCluster::from(client.unwrap())),
        storage: Some(store),
    };
    let options = release::Options {
        settle: Duration::from_millis(100),
        ..release::Options::default()
    };
    let released = release::release(
        &sides,
        &PIPELINE,
        &mut StoppedServices::default(),
        &options,
        &NoProgress,
    )
    .await;
    let released = released.unwrap();
    assert_eq!((released.with_finalizer, released.released, released.stored), (1, 1, 0));
    let (_, left) = send(&stage.api, "GET", &path(&PIPELINE, "p"), &Value::Null).await;
    assert_eq!(left["metadata"]["finalizers"], Value::Null, "{left}");
    let (code, answer) = send(&stage.api, "DELETE", &path(&PIPELINE, "p"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let rows = stage.store.rows_of_name(&PIPELINE, "default", "p").await.unwrap();
    assert_eq!(rows.first().map(|row| row.life), Some(Life::Deleted));
    stage.end().await;
}

/// A cleanup that ends when it is told to.
struct Gate(Arc<AtomicBool>);

#[async_trait]
impl Cleanup for Gate {
    async fn clean_up(&self, deleted: &Deleted) -> Result<Answer, CleanupError> {
        assert_eq!(
            deleted.object["spec"]["description"],
            json!("TRAIN"),
            "{}",
            deleted.object
        );
        Ok(match self.0.load(Ordering::SeqCst) {
            true => Answer::Gone,
            false => Answer::Pending {
                what: "a machine".to_owned(),
                again_after: None,
            },
        })
    }
}

/// As if a cleanup of an SQL-only kind was never called, or its object went without it.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_sql_only_object_has_outside_is_cleaned_up_before_it_goes() {
    let is_gone = Arc::new(AtomicBool::new(false));
    let cleanups = Cleanups::none().with(&PIPELINE, Gate(is_gone.clone()));
    let graph = Graph::of(TARGETS, &cleanups).await;
    graph.create(&PIPELINE, "p", json!({"description": "TRAIN"})).await;
    eventually("the pipeline has the finalizer", async || {
        graph.has_finalizer(&PIPELINE, "p", "/deletion").await
    })
    .await;
    graph.delete(&PIPELINE, "p").await;
    graph.until_in(&PIPELINE, "p", "DRAINING").await;
    is_gone.store(true, Ordering::SeqCst);
    graph.until_gone(&PIPELINE, "p").await;
    graph.end().await;
}
