//! Final owners of objects in the cluster: these leave first. An owner that left before would look deleted to a garbage
//! collector.

use kindex_deletion::cleanup::Cleanups;
use kindex_generated::kinds::pipeline;
use kindex_harness::wait::eventually;
use kindex_model::kind::Kind;
use kindex_query::{Life, Stored};
use serde_json::{Value, json};

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

/// A pipeline that is final stays while its run is in the cluster. The run is made final later, and leaves first.
async fn an_owner_leaves_last(stage: Stage) {
    let graph = Graph::on(stage, &Cleanups::none()).await;
    let owner = graph.create(&pipeline::KIND, "owner", json!({})).await;
    let named = json!({"pipeline": {"namespace": "default", "name": "owner"}});
    let owned = graph.create(&RUN, "owned", named).await;
    for (kind, name) in [(&pipeline::KIND, "owner"), (&RUN, "owned")] {
        eventually(&format!("{} {name} is stored", kind.name), async || {
            stored(&graph, kind, name).await.is_some()
        })
        .await;
    }
    own(&graph, "owner", &owner, "owned").await;
    let reference = finalizer(&RUN, &owned);
    eventually("the owner has the reference", async || {
        graph.bears(&pipeline::KIND, "owner", &reference).await
    })
    .await;
    // One that is made final after the owner, and owns nothing: once it is archived, the ingester is likely to have met
    // the owner too. Nothing enforces that order.
    graph.create(&pipeline::KIND, "alone", json!({})).await;
    make_final(&graph, &pipeline::KIND, "owner").await;
    make_final(&graph, &pipeline::KIND, "alone").await;
    until_archived(&graph, &pipeline::KIND, "alone").await;
    if graph.stage.ground.plane.is_some() {
        until_collected(&graph).await;
    }
    for (kind, name) in [(&pipeline::KIND, "owner"), (&RUN, "owned")] {
        let (code, found) = in_cluster(&graph, kind, name).await;
        let deleted = &found["metadata"]["deletionTimestamp"];
        assert_eq!((code, deleted), (200, &Value::Null), "{found}");
        let life = stored(&graph, kind, name).await.map(|row| row.life);
        assert_eq!(life, Some(Life::Live), "{name}");
    }
    make_final(&graph, &RUN, "owned").await;
    until_archived(&graph, &RUN, "owned").await;
    until_archived(&graph, &pipeline::KIND, "owner").await;
    let owned = stored(&graph, &RUN, "owned").await.and_then(|row| row.evicted_time);
    let owner = stored(&graph, &pipeline::KIND, "owner").await;
    let owner = owner.and_then(|row| row.evicted_time);
    assert!(owned.is_some() && owned < owner, "{owned:?} {owner:?}");
    graph.end().await;
}

/// As if what is final were archived as soon as it can be, whatever it owns.
#[tokio::test(flavor = "multi_thread")]
async fn of_an_owner_and_what_it_owns_which_are_both_final_the_owner_is_archived_last() {
    an_owner_leaves_last(Stage::of_kinds(KINDS).await).await;
}

/// The same beside a garbage collector, which knows the owner by an owner reference too.
#[tokio::test(flavor = "multi_thread")]
async fn a_garbage_collector_deletes_nothing_that_a_final_object_owns() {
    if let Some(stage) = Stage::of_kinds_on_control_plane(KINDS).await {
        an_owner_leaves_last(stage).await;
    }
}
