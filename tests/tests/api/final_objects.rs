//! Deletions of final objects, which leave the cluster anyway: they end deleted, and not archived.

use kindex_api::operations::{Operations, RightsOf};
use kindex_generated::kinds::{model, pipeline, pipeline_run};
use kindex_harness::wait::eventually;
use kindex_model::kind::Kind;
use kindex_model::reference::Reference;
use kindex_query::Life;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::stage::{FINAL, MODELS, Stage, client_of, manifest, model, send, serve};

/// Runs that are owned by their pipelines: these stay in the cluster as long as they have runs, also if they are final.
pub(super) static RUN: Kind = Kind {
    references: &OWNED,
    ..pipeline_run::KIND
};
static OWNED: [Reference; 1] = [Reference {
    owned: true,
    ..pipeline_run::REFERENCES[0]
}];
pub(super) static KINDS: &[&Kind] = &[&pipeline::KIND, &RUN];

/// Models that wait for nobody, and for which nobody waits.
static LONE: Kind = Kind {
    references: &[],
    ..model::KIND
};
static ALONE: &[&Kind] = &[&LONE];

const OURS: &str = "michelangelo/Ingester";
const OTHER: &str = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const HELD_BY: &str = "pipelinerun.michelangelo.api/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

fn pipelines() -> String {
    MODELS.replace("models", "pipelines")
}

/// A pipeline that is final, and in the cluster as long as a run holds it.
async fn create(stage: &Stage, name: &str, finalizers: Value) -> String {
    let metadata = json!({"name": name, "annotations": {FINAL: "true"}, "finalizers": finalizers});
    let object = json!({"apiVersion": "michelangelo.api/v2", "kind": "Pipeline", "metadata": metadata, "spec": {}});
    let (code, created) = send(&stage.cluster, "POST", &pipelines(), &object).await;
    assert_eq!(code, 201, "{created}");
    eventually("stored", async || life(stage, name).await == Some(Life::Live)).await;
    format!("{}/{name}", pipelines())
}

async fn life(stage: &Stage, name: &str) -> Option<Life> {
    let rows = stage
        .store
        .rows_of_name(&pipeline::KIND, "default", name)
        .await
        .unwrap();
    rows.first().map(|row| row.life)
}

/// It has its deletionTimestamp, and whoever looks knows that it is no eviction.
fn is_deleted(object: &Value) {
    let metadata = &object["metadata"];
    assert!(metadata["deletionTimestamp"].is_string(), "{object}");
    assert_eq!(metadata["annotations"]["michelangelo/Deleting"], "true", "{object}");
}

/// Lets the run go, and waits until the pipeline has gone.
async fn release(stage: &Stage, path: &str, name: &str) {
    let released = json!({"metadata": {"finalizers": [OURS]}});
    let (code, answer) = send(&stage.cluster, "PATCH", path, &released).await;
    assert_eq!(code, 200, "{answer}");
    eventually("it is gone, and deleted", async || {
        let (code, _) = send(&stage.cluster, "GET", path, &Value::Null).await;
        code == 404 && life(stage, name).await == Some(Life::Deleted)
    })
    .await;
}

/// One more API server, whose requests go through the proxy.
async fn behind_the_proxy(stage: &Stage) -> Client {
    let (proxy, stop) = (&stage.ground.proxy, stage.ground.stop());
    let config = proxy.serve_before(stage.ground.config(), stop).await;
    let (registry, store) = (stage.ground.registry(), stage.store.clone());
    let operations = Operations::new(registry, config, store, RightsOf::Server).unwrap();
    client_of(serve(operations, None, stop).await)
}

/// Halts the next request of this method for a model, until the test lets it go on.
fn halt(stage: &Stage, method: &'static str, name: &str) -> oneshot::Sender<()> {
    let (go_on, halted) = oneshot::channel();
    let wait = async move { halted.await.unwrap() };
    stage.ground.proxy.overtake(method, &model(name), wait);
    go_on
}

async fn is_halted(stage: &Stage) {
    eventually("the request comes", async || stage.ground.proxy.has_overtaken()).await;
}

/// The deletion of a model that is not final yet, once it is halted before its request of this method.
async fn begin_deletion(
    stage: &Stage,
    api: &Client,
    method: &'static str,
    name: &str,
) -> (oneshot::Sender<()>, JoinHandle<(u16, Value)>) {
    let go_on = halt(stage, method, name);
    let (api, path) = (api.clone(), model(name));
    let answer = tokio::spawn(async move { send(&api, "DELETE", &path, &Value::Null).await });
    is_halted(stage).await;
    (go_on, answer)
}

/// From now on the ingester archives it.
async fn make_final(stage: &Stage, name: &str) {
    let patch = json!({"metadata": {"annotations": {FINAL: "true"}}});
    let (code, answer) = send(&stage.cluster, "PATCH", &model(name), &patch).await;
    assert_eq!(code, 200, "{answer}");
}

/// Waits until a model is archived, and only others hold it in the cluster.
async fn wait_until_leaving(stage: &Stage, name: &str) {
    eventually("it is on its way to the archive", async || {
        let row = stage.store.get_by_name(&model::KIND, "default", name).await.unwrap();
        row.is_some_and(|row| row.life == Life::Archived && row.object.metadata.deletion_timestamp.is_some())
    })
    .await;
}

/// Nobody holds it in the cluster any more.
async fn let_go(stage: &Stage, name: &str) {
    let released = json!({"metadata": {"finalizers": null}});
    let (code, answer) = send(&stage.cluster, "PATCH", &model(name), &released).await;
    assert_eq!(code, 200, "{answer}");
}

/// Of models that the ingester archives between the decision on their deletion and the request of this method: one
/// that is on its way, one without our finalizer, and one that is gone by then.
async fn evictions_before(stage: &Stage, api: &Client, method: &'static str) {
    for (name, client, finalizers) in [
        ("adopted", &stage.api, json!(["example.com/hold"])),
        ("bare", &stage.cluster, json!(["example.com/hold"])),
        ("gone", &stage.api, json!([])),
    ] {
        let metadata = json!({"name": name, "finalizers": finalizers});
        let (code, created) = send(client, "POST", MODELS, &manifest(metadata, json!({}))).await;
        assert_eq!(code, 201, "{created}");
        let (go_on, answer) = begin_deletion(stage, api, method, name).await;
        make_final(stage, name).await;
        match name {
            "gone" => stage.wait_until_archived(name).await,
            _ => wait_until_leaving(stage, name).await,
        }
        go_on.send(()).unwrap();
        let (code, answer) = answer.await.unwrap();
        assert_eq!((code, stage.life(name).await), (200, Some(Life::Deleted)), "{answer}");
        if name != "gone" {
            let_go(stage, name).await;
        }
        stage.wait_until_deleted(name).await;
    }
}

/// As if final objects were deleted by the annotation alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_final_object_that_others_wait_for_becomes_a_tombstone_at_once() {
    let stage = Stage::of_kinds(KINDS).await;
    for (name, finalizers) in [("adopted", json!([OURS, HELD_BY])), ("bare", json!([HELD_BY]))] {
        let path = create(&stage, name, finalizers).await;
        let (code, answer) = send(&stage.api, "DELETE", &path, &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
        is_deleted(&answer);
        let finalizers = answer["metadata"]["finalizers"].to_string();
        assert!(
            finalizers.contains(OURS) && finalizers.contains(HELD_BY),
            "{finalizers}"
        );
        assert_eq!(life(&stage, name).await, Some(Life::Live), "others use it");
        release(&stage, &path, name).await;
    }
    stage.end().await;
}

/// As if a precondition had to hold after the mark, which gives the object another version, too.
#[tokio::test(flavor = "multi_thread")]
async fn preconditions_of_the_deletion_of_a_final_object_are_kept() {
    let stage = Stage::of_kinds(KINDS).await;
    let path = create(&stage, "a", json!([OURS, HELD_BY])).await;
    let (_, found) = send(&stage.api, "GET", &path, &Value::Null).await;
    for (field, value) in [("uid", "other"), ("resourceVersion", "1")] {
        let options = json!({"preconditions": {field: value}});
        let (code, refused) = send(&stage.api, "DELETE", &path, &options).await;
        assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    }
    let (_, left) = send(&stage.api, "GET", &path, &Value::Null).await;
    assert_eq!(left, found, "nothing was marked");
    let options = json!({"preconditions": {"resourceVersion": found["metadata"]["resourceVersion"]}});
    let (code, answer) = send(&stage.api, "DELETE", &path, &options).await;
    assert_eq!(code, 200, "{answer}");
    is_deleted(&answer);
    release(&stage, &path, "a").await;
    stage.end().await;
}

/// As if a collection were deleted in another way than each of its objects.
#[tokio::test(flavor = "multi_thread")]
async fn final_objects_of_a_collection_become_tombstones_too() {
    let stage = Stage::of_kinds(KINDS).await;
    let path = create(&stage, "a", json!([OURS, HELD_BY])).await;
    let (code, answer) = send(&stage.api, "DELETE", &pipelines(), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let (_, found) = send(&stage.cluster, "GET", &path, &Value::Null).await;
    is_deleted(&found);
    release(&stage, &path, "a").await;
    stage.end().await;
}

/// As if the deletion of what somebody deleted in the cluster itself were left to look like an eviction.
#[tokio::test(flavor = "multi_thread")]
async fn a_final_object_that_was_deleted_in_the_cluster_is_marked() {
    let stage = Stage::of_kinds(KINDS).await;
    let path = create(&stage, "a", json!([OURS, HELD_BY])).await;
    let (code, answer) = send(&stage.cluster, "DELETE", &path, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let (code, answer) = send(&stage.api, "DELETE", &path, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    is_deleted(&answer);
    release(&stage, &path, "a").await;
    stage.end().await;
}

/// As if an eviction were taken for a deletion that was asked for already: then the object would end archived.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_on_its_way_to_the_archive_is_deleted_there() {
    let stage = Stage::on_sqlite().await;
    for name in ["free", "held"] {
        stage.create_held(name, json!({})).await;
    }
    let reference = format!("/api/v1/models/default/held/references/{OTHER}");
    let (code, answer) = send(&stage.api, "PUT", &reference, &Value::Null).await;
    assert_eq!(
        (code, &answer["target"]["state"]),
        (200, &json!("Archived")),
        "{answer}"
    );
    for (name, expected) in [("free", (200, Life::Deleted)), ("held", (202, Life::Archived))] {
        let (code, answer) = send(&stage.api, "DELETE", &model(name), &Value::Null).await;
        assert_eq!(
            (code, stage.life(name).await),
            (expected.0, Some(expected.1)),
            "{answer}"
        );
    }
    for name in ["free", "held"] {
        let released = json!({"metadata": {"finalizers": null}});
        let (code, answer) = send(&stage.cluster, "PATCH", &model(name), &released).await;
        assert_eq!(code, 200, "{answer}");
    }
    stage.wait_until_deleted("free").await;
    stage.wait_until_archived("held").await;
    let (code, answer) = send(&stage.api, "DELETE", &reference, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    stage.wait_until_deleted("held").await;
    stage.end().await;
}

/// A final model with a reference and a finalizer of others, once it is archived and only they hold it in the cluster.
async fn evict_in_use(stage: &Stage, name: &str) {
    let finalizers = json!([OURS, OTHER, "example.com/hold"]);
    let metadata = json!({"name": name, "annotations": {FINAL: "true"}, "finalizers": finalizers});
    let object = json!({"apiVersion": "michelangelo.api/v2", "kind": "Model", "metadata": metadata, "spec": {}});
    let (code, created) = send(&stage.cluster, "POST", MODELS, &object).await;
    assert_eq!(code, 201, "{created}");
    wait_until_leaving(stage, name).await;
}

/// As if a released reference held the object for ever because it is still a finalizer, or as if a second request took
/// the deletion for one that the cluster carries out.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_on_its_way_to_the_archive_goes_although_it_bears_a_released_reference() {
    let stage = Stage::on_sqlite().await;
    evict_in_use(&stage, "a").await;
    let reference = format!("/api/v1/models/default/a/references/{OTHER}");
    let (code, answer) = send(&stage.api, "DELETE", &reference, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    for _ in 0..2 {
        let (code, answer) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
        assert_eq!((code, stage.life("a").await), (200, Some(Life::Deleted)), "{answer}");
    }
    let (_, found) = send(&stage.cluster, "GET", &model("a"), &Value::Null).await;
    let metadata = &found["metadata"];
    assert!(metadata["finalizers"].to_string().contains(OTHER), "{found}");
    assert_eq!(metadata["annotations"]["michelangelo/Deleting"], Value::Null, "{found}");
    let freed = json!({"metadata": {"finalizers": [OURS, OTHER]}});
    let (code, answer) = send(&stage.cluster, "PATCH", &model("a"), &freed).await;
    assert_eq!(code, 200, "{answer}");
    stage.wait_until_deleted("a").await;
    stage.end().await;
}

/// As if the annotations of an object that is archived already said how its deletion ends.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_on_its_way_to_the_archive_is_deleted_there_whatever_its_annotations_say_by_then() {
    let stage = Stage::on_sqlite().await;
    for (name, annotations) in [
        ("marked", json!({"michelangelo/Deleting": "true"})),
        ("no-longer-final", json!({FINAL: null})),
    ] {
        stage.create_held(name, json!({})).await;
        let patch = json!({"metadata": {"annotations": annotations}});
        let (code, answer) = send(&stage.cluster, "PATCH", &model(name), &patch).await;
        assert_eq!(code, 200, "{answer}");
        let (code, answer) = send(&stage.api, "DELETE", &model(name), &Value::Null).await;
        assert_eq!((code, stage.life(name).await), (200, Some(Life::Deleted)), "{answer}");
        let released = json!({"metadata": {"finalizers": null}});
        let (code, answer) = send(&stage.cluster, "PATCH", &model(name), &released).await;
        assert_eq!(code, 200, "{answer}");
        stage.wait_until_deleted(name).await;
    }
    stage.end().await;
}

/// As if the deletion of an object failed because it is done, and another object has its name.
#[tokio::test(flavor = "multi_thread")]
async fn a_final_object_that_went_before_it_was_deleted_is_told_from_its_successor() {
    let stage = Stage::of_kinds(KINDS).await;
    let path = create(&stage, "a", json!([OURS, HELD_BY])).await;
    let (_, found) = send(&stage.cluster, "GET", &path, &Value::Null).await;
    let (proxy, api) = (&stage.ground.proxy, behind_the_proxy(&stage).await);
    let (cluster, at) = (stage.cluster.clone(), path.clone());
    proxy.overtake("DELETE", &path, async move {
        let (code, answer) = send(&cluster, "DELETE", &at, &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
        let released = json!({"metadata": {"finalizers": null}});
        let (code, answer) = send(&cluster, "PATCH", &at, &released).await;
        assert_eq!(code, 200, "{answer}");
        let object = json!({"apiVersion": "michelangelo.api/v2", "kind": "Pipeline",
            "metadata": {"name": "a"}, "spec": {}});
        let (code, answer) = send(&cluster, "POST", &pipelines(), &object).await;
        assert_eq!(code, 201, "{answer}");
    });
    let (code, answer) = send(&api, "DELETE", &path, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    assert!(proxy.has_overtaken());
    assert_eq!(answer["metadata"]["uid"], found["metadata"]["uid"], "{answer}");
    assert_eq!(
        answer["metadata"]["annotations"]["michelangelo/Deleting"], "true",
        "{answer}"
    );
    let (code, left) = send(&stage.cluster, "GET", &path, &Value::Null).await;
    assert_eq!(
        (code, &left["metadata"]["deletionTimestamp"]),
        (200, &Value::Null),
        "{left}"
    );
    stage.end().await;
}

/// As if the annotation counted on an object that is on its way to the archive already, or as if an object were unknown
/// that has arrived there.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_evicted_before_it_gets_the_annotation_is_deleted_in_the_archive() {
    let stage = Stage::of_kinds(ALONE).await;
    let api = behind_the_proxy(&stage).await;
    evictions_before(&stage, &api, "PATCH").await;
    // It has gone before anybody looks where the annotation found it.
    let metadata = json!({"name": "late", "finalizers": ["example.com/hold"]});
    let (code, created) = send(&stage.api, "POST", MODELS, &manifest(metadata, json!({}))).await;
    assert_eq!(code, 201, "{created}");
    let (go_on, answer) = begin_deletion(&stage, &api, "PATCH", "late").await;
    make_final(&stage, "late").await;
    wait_until_leaving(&stage, "late").await;
    let look = halt(&stage, "GET", "late");
    go_on.send(()).unwrap();
    is_halted(&stage).await;
    let_go(&stage, "late").await;
    look.send(()).unwrap();
    let (code, answer) = answer.await.unwrap();
    assert_eq!(code, 200, "{answer}");
    stage.wait_until_deleted("late").await;
    stage.end().await;
}

/// As if the deletion of an object that became final in between were one: without the mark it is an eviction.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_evicted_before_its_tombstone_is_deleted_in_the_archive() {
    let stage = Stage::on_sqlite().await;
    let api = behind_the_proxy(&stage).await;
    evictions_before(&stage, &api, "DELETE").await;
    stage.end().await;
}

/// As if what the cluster deletes were of no concern to the archive.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_by_the_cluster_is_no_eviction_either() {
    let stage = Stage::on_sqlite().await;
    for policy in ["Foreground", "Orphan"] {
        let (name, options) = (policy.to_lowercase(), json!({"propagationPolicy": policy}));
        stage.create_held(&name, json!({})).await;
        let (code, answer) = send(&stage.api, "DELETE", &model(&name), &options).await;
        assert_eq!((code, stage.life(&name).await), (200, Some(Life::Deleted)), "{answer}");
        let_go(&stage, &name).await;
        stage.wait_until_deleted(&name).await;
    }
    stage.end().await;
}

/// As if an object that the cluster deletes needed no mark.
#[tokio::test(flavor = "multi_thread")]
async fn a_final_object_that_the_cluster_deletes_is_marked() {
    let stage = Stage::of_kinds(KINDS).await;
    for policy in ["Foreground", "Orphan"] {
        let (name, options) = (policy.to_lowercase(), json!({"propagationPolicy": policy}));
        let path = create(&stage, &name, json!([OURS, HELD_BY])).await;
        let (code, answer) = send(&stage.api, "DELETE", &path, &options).await;
        assert_eq!(code, 200, "{answer}");
        is_deleted(&answer);
        release(&stage, &path, &name).await;
    }
    stage.end().await;
}
