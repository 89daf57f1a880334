//! Final owners of objects in the cluster: these leave first. An owner that left before would look deleted to a garbage
//! collector.

use jiff::Timestamp;
use kindex_deletion::cleanup::Cleanups;
use kindex_generated::kinds::pipeline;
use kindex_harness::wait::eventually;
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_kube_client::{SelectApi as _, Selection};
use kindex_model::kind::Kind;
use kindex_query::{Life, Stored};
use kindex_store::RowWrite;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::final_objects::{KINDS, RUN};
use super::sql_only_graph::{Graph, finalizer, path};
use super::stage::{FINAL, Stage, send};

/// How many other runs the garbage collector deletes in the meantime.
const COLLECTED: usize = 3;

async fn patch(graph: &Graph, kind: &Kind, name: &str, metadata: Value) {
    let patch = json!({ "metadata": metadata });
    let (code, answer) = send(graph.api(), "PATCH", &path(kind, name), &patch).await;
    assert_eq!(code, 200, "{answer}");
}

async fn make_final(graph: &Graph, kind: &Kind, name: &str) {
    patch(graph, kind, name, json!({"annotations": {FINAL: "true"}})).await;
}

/// From now on, a garbage collector knows a pipeline of this name and uid as the owner of a run.
async fn own(graph: &Graph, owner: &str, uid: &str, run: &str) {
    let owner = json!({
        "apiVersion": pipeline::KIND.api_version(),
        "kind": pipeline::KIND.name,
        "name": owner,
        "uid": uid,
        "blockOwnerDeletion": true,
    });
    patch(graph, &RUN, run, json!({"ownerReferences": [owner]})).await;
}

async fn in_cluster(graph: &Graph, kind: &Kind, name: &str) -> (u16, Value) {
    send(&graph.stage.cluster, "GET", &path(kind, name), &Value::Null).await
}

async fn stored(graph: &Graph, kind: &Kind, name: &str) -> Option<Stored> {
    let rows = graph.stage.store.rows_of_name(kind, "default", name).await.unwrap();
    rows.into_iter().next()
}

async fn until_archived(graph: &Graph, kind: &Kind, name: &str) {
    eventually(&format!("{} {name} is archived", kind.name), async || {
        let (code, _) = in_cluster(graph, kind, name).await;
        let life = stored(graph, kind, name).await.map(|row| row.life);
        code == 404 && life == Some(Life::Archived)
    })
    .await;
}

/// A garbage collector deletes runs whose owners have gone: it has looked at the others by then.
async fn until_collected(graph: &Graph) {
    for number in 0..COLLECTED {
        let (owner, run) = (format!("owner-{number}"), format!("run-{number}"));
        let uid = graph.create(&pipeline::KIND, &owner, json!({})).await;
        graph.create(&RUN, &run, json!({})).await;
        own(graph, &owner, &uid, &run).await;
        graph.delete(&pipeline::KIND, &owner).await;
        graph.until_gone(&RUN, &run).await;
    }
}

/// Creates the run of the pipeline. Returns the reference that it will place.
async fn create_owned(graph: &Graph, owner: &str) -> String {
    let named = json!({"pipeline": {"namespace": "default", "name": "owner"}});
    let owned = graph.create(&RUN, "owned", named).await;
    for (kind, name) in [(&pipeline::KIND, "owner"), (&RUN, "owned")] {
        eventually(&format!("{} {name} is stored", kind.name), async || {
            stored(graph, kind, name).await.is_some()
        })
        .await;
    }
    own(graph, "owner", owner, "owned").await;
    finalizer(&RUN, &owned)
}

async fn until_placed(graph: &Graph, reference: &str) {
    eventually("the owner has the reference", async || {
        graph.has_finalizer(&pipeline::KIND, "owner", reference).await
    })
    .await;
}

/// Makes the pipeline final, and waits until the ingester has met it.
async fn make_owner_final(graph: &Graph) {
    // One that is made final after the owner, and owns nothing: once it is archived, the ingester is likely to have met
    // the owner too. Nothing enforces that order.
    graph.create(&pipeline::KIND, "alone", json!({})).await;
    make_final(graph, &pipeline::KIND, "owner").await;
    make_final(graph, &pipeline::KIND, "alone").await;
    until_archived(graph, &pipeline::KIND, "alone").await;
}

async fn expect_both_live(graph: &Graph) {
    for (kind, name) in [(&pipeline::KIND, "owner"), (&RUN, "owned")] {
        let (code, found) = in_cluster(graph, kind, name).await;
        let deleted = &found["metadata"]["deletionTimestamp"];
        assert_eq!((code, deleted), (200, &Value::Null), "{found}");
        let life = stored(graph, kind, name).await.map(|row| row.life);
        assert_eq!(life, Some(Life::Live), "{name}");
    }
}

/// Makes the run final, and waits until both are archived: the run first.
async fn expect_the_owner_last(graph: &Graph) {
    make_final(graph, &RUN, "owned").await;
    until_archived(graph, &RUN, "owned").await;
    until_archived(graph, &pipeline::KIND, "owner").await;
    let owned = stored(graph, &RUN, "owned").await.and_then(|row| row.evicted_time);
    let owner = stored(graph, &pipeline::KIND, "owner").await;
    let owner = owner.and_then(|row| row.evicted_time);
    assert!(owned.is_some() && owned < owner, "{owned:?} {owner:?}");
}

/// A pipeline that is final stays while its run is in the cluster. The run is made final later, and leaves first.
async fn an_owner_leaves_last(stage: Stage) {
    let graph = Graph::on(stage, &Cleanups::none()).await;
    let owner = graph.create(&pipeline::KIND, "owner", json!({})).await;
    let reference = create_owned(&graph, &owner).await;
    until_placed(&graph, &reference).await;
    make_owner_final(&graph).await;
    if graph.stage.ground.plane.is_some() {
        until_collected(&graph).await;
    }
    expect_both_live(&graph).await;
    expect_the_owner_last(&graph).await;
    graph.end().await;
}

/// A pipeline with a run, and the request that sets the reference, halted on its way to the pipeline.
struct Halted {
    graph: Graph,
    reference: String,
    go_on: oneshot::Sender<()>,
}

impl Halted {
    async fn on(stage: Stage) -> Self {
        let graph = Graph::behind_the_proxy(stage).await;
        let owner = graph.create(&pipeline::KIND, "owner", json!({})).await;
        let ours = format!("{}/deletion", pipeline::KIND.group);
        eventually("the owner is of the graph", async || {
            graph.has_finalizer(&pipeline::KIND, "owner", &ours).await
        })
        .await;
        let (go_on, halted) = oneshot::channel::<()>();
        // Where the test fails, nobody lets the request go on.
        let wait = async move {
            let _let_go = halted.await;
        };
        let proxy = graph.stage.ground.proxy.clone();
        proxy.overtake("PATCH", &path(&pipeline::KIND, "owner"), wait);
        let reference = create_owned(&graph, &owner).await;
        eventually("the reference is about to be placed", async || proxy.has_overtaken()).await;
        Self {
            graph,
            reference,
            go_on,
        }
    }

    async fn is_placed(&self) -> bool {
        self.graph
            .has_finalizer(&pipeline::KIND, "owner", &self.reference)
            .await
    }
}

/// The same while the request is on its way that sets the reference. Until it is there, SQL alone shows who owns the
/// run. Where `is_late`, it comes only after both have left, if that takes less than 30 s. After that, its sender gives
/// up and sends another.
async fn an_owner_leaves_last_without_a_reference(stage: Stage, is_late: bool) {
    let halted = Halted::on(stage).await;
    make_owner_final(&halted.graph).await;
    expect_both_live(&halted.graph).await;
    assert!(!halted.is_placed().await, "it is halted");
    let Halted {
        graph,
        reference,
        go_on,
    } = halted;
    if is_late {
        expect_the_owner_last(&graph).await;
        let _is_over = go_on.send(());
    } else {
        go_on.send(()).unwrap();
        until_placed(&graph, &reference).await;
        expect_both_live(&graph).await;
        expect_the_owner_last(&graph).await;
    }
    graph.end().await;
}

/// The same where SQL does not show it either: the ingester of what is owned is down, or the database refuses it.
async fn an_owner_leaves_last_without_a_row(stage: Stage) {
    let halted = Halted::on(stage).await;
    let graph = &halted.graph;
    let owned = stored(graph, &RUN, "owned").await.expect("it is stored").object;
    let uid = owned.metadata.uid.clone();
    let closed = [RowWrite::SoftDelete { uid }];
    graph.stage.store.write(&RUN, &closed, Timestamp::now()).await.unwrap();
    make_owner_final(graph).await;
    let (code, found) = in_cluster(graph, &pipeline::KIND, "owner").await;
    assert_eq!(
        (code, &found["metadata"]["deletionTimestamp"]),
        (200, &Value::Null),
        "{found}"
    );
    let life = stored(graph, &pipeline::KIND, "owner").await.map(|row| row.life);
    assert_eq!(life, Some(Life::Live));
    assert!(!halted.is_placed().await, "it is halted");
    expect_the_owner_last(graph).await;
    let _is_over = halted.go_on.send(());
    halted.graph.end().await;
}

fn first_page<'a>(namespace: Option<&'a str>, fields: &'a str) -> Selection<'a> {
    Selection {
        namespace,
        fields,
        limit: 10,
        continue_token: None,
    }
}

/// The fields of keys are selectable, as the emitted CRD declares them.
async fn a_cluster_selects_by_the_fields_of_keys(stage: Stage) {
    let cluster = KubeCluster::from(stage.cluster.clone());
    let namespaces = [None, Some("default"), Some("elsewhere")];
    let run = json!({"apiVersion": RUN.api_version(), "kind": RUN.name, "metadata": {"name": "run"},
        "spec": {"pipeline": {"namespace": "default", "name": "train"}}});
    let runs = path(&RUN, "");
    let (code, answer) = send(&stage.cluster, "POST", &runs, &run).await;
    assert_eq!(code, 201, "{answer}");
    for (fields, expected) in [
        ("spec.pipeline.name=train", [1, 1, 0]),
        ("spec.pipeline.name=test", [0, 0, 0]),
    ] {
        for (namespace, expected) in namespaces.into_iter().zip(expected) {
            let page = cluster.select(&RUN, first_page(namespace, fields)).await;
            let page = page.expect("an answer").expect("a field of a key");
            let found = page.objects.len();
            assert_eq!(found, expected, "{fields} in {namespace:?}");
        }
    }
    let others = cluster.select(&RUN, first_page(None, "spec.actor.name=a")).await;
    assert!(others.expect("an answer").is_none(), "no key has that field");
    stage.end().await;
}

/// As if what is final were archived as soon as it can be, whatever it owns.
#[tokio::test(flavor = "multi_thread")]
async fn of_an_owner_and_what_it_owns_which_are_both_final_the_owner_is_archived_last() {
    an_owner_leaves_last(Stage::of_kinds(KINDS).await).await;
}

/// As if only a reference that is placed already kept an owner in the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_archived_last_though_the_reference_on_it_is_not_placed_yet() {
    for is_late in [false, true] {
        an_owner_leaves_last_without_a_reference(Stage::of_kinds(KINDS).await, is_late).await;
    }
}

/// As if an object were owned only once SQL has it.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_archived_last_though_sql_has_no_row_of_what_it_owns() {
    an_owner_leaves_last_without_a_row(Stage::of_kinds(KINDS).await).await;
}

/// The same on a kube-apiserver.
#[tokio::test(flavor = "multi_thread")]
async fn a_garbage_collector_deletes_nothing_that_sql_has_no_row_of() {
    if let Some(stage) = Stage::of_kinds_on_control_plane(KINDS).await {
        an_owner_leaves_last_without_a_row(stage).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_cluster_selects_by_the_fields_of_keys_and_no_others() {
    a_cluster_selects_by_the_fields_of_keys(Stage::of_kinds(KINDS).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_selects_by_the_fields_of_keys_and_no_others() {
    if let Some(stage) = Stage::of_kinds_on_control_plane(KINDS).await {
        a_cluster_selects_by_the_fields_of_keys(stage).await;
    }
}

/// The same on a kube-apiserver.
#[tokio::test(flavor = "multi_thread")]
async fn a_garbage_collector_deletes_nothing_whose_reference_is_not_placed_yet() {
    if let Some(stage) = Stage::of_kinds_on_control_plane(KINDS).await {
        an_owner_leaves_last_without_a_reference(stage, false).await;
    }
}

/// The same beside a garbage collector, which knows the owner by an owner reference too.
#[tokio::test(flavor = "multi_thread")]
async fn a_garbage_collector_deletes_nothing_that_a_final_object_owns() {
    if let Some(stage) = Stage::of_kinds_on_control_plane(KINDS).await {
        an_owner_leaves_last(stage).await;
    }
}
