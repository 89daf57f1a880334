//! Objects that no cluster has, in the graph: they have a finalizer from the start, their fields change, and what is
//! being deleted is named by no new one.

use kindex_api::operations::{Caller, Moved, NamedObject, ObjectKey, Operations, Refusal, RightsOf};
use kindex_deletion::cleanup::Cleanups;
use kindex_generated::kinds::{model, model_family, pipeline_run};
use kindex_harness::wait::eventually;
use kindex_model::kind::{Kind, Registry};
use kube::Client;
use serde_json::{Value, json};

use super::alone::SQL_ONLY_PROJECT;
use super::request::install;
use super::sql_only_graph::{Graph, HOLDERS, MODEL, PIPELINE, TARGETS, create, finalizer, path};
use super::stage::{FINAL, Ground, Stage, client_of, send, send_with, serve};

const APPLY: &str = "application/apply-patch+yaml";

/// Nothing waits for projects.
static BESIDE: &[&Kind] = &[&PIPELINE, &pipeline_run::KIND, &SQL_ONLY_PROJECT];
/// Families are in the cluster, pipelines only in SQL.
static BOTH: &[&Kind] = &[&model_family::KIND, &model::KIND, &PIPELINE, &pipeline_run::KIND];

/// The verbs over all kinds of a stage.
async fn operations(stage: &Stage) -> Operations {
    let registry = stage.ground.registry();
    let operations = kindex::sql_only::beside(stage.operations(), &registry, &stage.store).await;
    operations.unwrap()
}

fn key(kind: &'static Kind, name: &'static str) -> ObjectKey<'static> {
    ObjectKey {
        resource: kind.into(),
        namespace: "default",
        name,
    }
}

async fn move_to(stage: &Stage, holder: &ObjectKey<'_>, to: &ObjectKey<'_>) -> Result<Moved, Refusal> {
    let (operations, to) = (operations(stage).await, NamedObject::of(to));
    let (caller, reference, dry_run) = (Caller::default(), None, false);
    operations.move_holder(&caller, holder, reference, &to, dry_run).await
}

fn manifest(kind: &Kind, metadata: Value, spec: Value) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.name, "metadata": metadata, "spec": spec})
}

/// A spec that names an object.
fn naming(field: &str, name: &str) -> Value {
    json!({field: {"namespace": "default", "name": name}})
}

/// Until the reference has followed the field from one family to another.
async fn until_moved(graph: &Graph, holder: &str, from: &str, to: &str) {
    eventually(&format!("{to} is held, and {from} is not"), async || {
        let is_held = graph.has_finalizer(&model_family::KIND, to, holder).await;
        is_held && !graph.has_finalizer(&model_family::KIND, from, holder).await
    })
    .await;
}

/// As if the cluster were asked for a holder that it does not have: every change of the field would be refused.
#[tokio::test(flavor = "multi_thread")]
async fn the_field_of_an_sql_only_holder_changes_and_its_reference_follows() {
    let graph = Graph::of(HOLDERS, &Cleanups::none()).await;
    for name in ["a", "b", "c", "d", "e", "f"] {
        graph.create(&model_family::KIND, name, json!({})).await;
    }
    let uid = graph.create(&MODEL, "m", naming("modelFamily", "a")).await;
    let (holder, at) = (finalizer(&MODEL, &uid), path(&MODEL, "m"));
    eventually("the first family is held", async || {
        graph.has_finalizer(&model_family::KIND, "a", &holder).await
    })
    .await;
    eventually("the replacement is taken", async || {
        let (_, mut model) = send(graph.api(), "GET", &at, &Value::Null).await;
        model["spec"]["modelFamily"]["name"] = "b".into();
        let (code, answer) = send(graph.api(), "PUT", &at, &model).await;
        // The graph may have written to it in between.
        assert!(code == 200 || code == 409, "{answer}");
        code == 200
    })
    .await;
    until_moved(&graph, &holder, "a", "b").await;

    let merge = json!({"spec": {"modelFamily": {"name": "c"}}});
    let replace = json!([{"op": "replace", "path": "/spec/modelFamily/name", "value": "d"}]);
    let configuration = manifest(&MODEL, json!({"name": "m"}), naming("modelFamily", "e"));
    for (media, query, patch, from, to) in [
        ("application/merge-patch+json", "", merge, "b", "c"),
        ("application/json-patch+json", "", replace, "c", "d"),
        (APPLY, "?fieldManager=tests&force=true", configuration, "d", "e"),
    ] {
        let (at, headers) = (format!("{at}{query}"), [("content-type", media)]);
        let (code, answer) = send_with(graph.api(), "PATCH", &at, &headers, patch.to_string()).await;
        assert_eq!(code, 200, "{media}: {answer}");
        until_moved(&graph, &holder, from, to).await;
    }

    let moved = move_to(&graph.stage, &key(&MODEL, "m"), &key(&model_family::KIND, "f")).await;
    assert!(!moved.expect("moved").unchanged);
    until_moved(&graph, &holder, "e", "f").await;
    graph.end().await;
}

/// As if the cluster were asked to renew a reference on a target that it does not have.
#[tokio::test(flavor = "multi_thread")]
async fn an_sql_only_object_that_bears_the_reference_already_is_moved_to() {
    let stage = Stage::of_kinds(TARGETS).await;
    for name in ["p", "q"] {
        create(&stage.api, &PIPELINE, name, json!({})).await;
    }
    let run = create(&stage.api, &pipeline_run::KIND, "r", naming("pipeline", "p")).await;
    let held = json!({"metadata": {"finalizers": [finalizer(&pipeline_run::KIND, &run)]}});
    let (code, answer) = send(&stage.api, "PATCH", &path(&PIPELINE, "q"), &held).await;
    assert_eq!(code, 200, "{answer}");
    let moved = move_to(&stage, &key(&pipeline_run::KIND, "r"), &key(&PIPELINE, "q")).await;
    assert!(!moved.expect("moved").unchanged);
    let (_, run) = send(&stage.api, "GET", &path(&pipeline_run::KIND, "r"), &Value::Null).await;
    assert_eq!(run["spec"]["pipeline"]["name"], "q", "{run}");
    let (_, target) = send(&stage.api, "GET", &path(&PIPELINE, "q"), &Value::Null).await;
    let renewed = format!("{}/reference-renewed", stage.ground.registry().platform.group);
    assert!(target["metadata"]["annotations"][&renewed].is_string(), "{target}");
    stage.end().await;
}

/// As if new objects were looked at only where they are created in a cluster.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_deleted_is_named_by_no_new_sql_only_object() {
    let graph = Graph::of(HOLDERS, &Cleanups::none()).await;
    graph.create(&model_family::KIND, "f", json!({})).await;
    let uid = graph.create(&MODEL, "m", naming("modelFamily", "f")).await;
    let holder = finalizer(&MODEL, &uid);
    eventually("the family is held", async || {
        graph.has_finalizer(&model_family::KIND, "f", &holder).await
    })
    .await;
    graph.delete(&model_family::KIND, "f").await;
    let late = manifest(&MODEL, json!({"name": "n"}), naming("modelFamily", "f"));
    let (code, refused) = send(graph.api(), "POST", &path(&MODEL, ""), &late).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    assert!(refused["message"].to_string().contains("being deleted"), "{refused}");
    graph.delete(&MODEL, "m").await;
    graph.until_gone(&model_family::KIND, "f").await;
    graph.end().await;
}

/// As if a server without a database refused what names an SQL-only object, or let new objects name what is being
/// deleted in the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_database_only_targets_in_the_cluster_are_looked_up() {
    let ground = Ground::embedded().await;
    let registry = Registry {
        kinds: BOTH,
        ..ground.registry()
    };
    let cluster = Client::try_from(ground.config()).unwrap();
    let kinds: Vec<&'static Kind> = registry.cluster_kinds().collect();
    install(&cluster, &kinds, &Value::Null).await;
    let operations = Operations::without_storage(registry, ground.config(), "it is off", RightsOf::Server);
    let api = client_of(serve(operations.unwrap(), None, ground.stop()).await);
    create(&api, &pipeline_run::KIND, "r", naming("pipeline", "p")).await;
    let other = json!({"spec": naming("pipeline", "q")});
    let (code, answer) = send(&api, "PATCH", &path(&pipeline_run::KIND, "r"), &other).await;
    assert_eq!(code, 200, "{answer}");

    create(&api, &model_family::KIND, "f", json!({})).await;
    let (family, hold) = (
        path(&model_family::KIND, "f"),
        json!({"metadata": {"finalizers": ["example.com/hold"]}}),
    );
    for (method, body) in [("PATCH", &hold), ("DELETE", &Value::Null)] {
        let (code, answer) = send(&api, method, &family, body).await;
        assert_eq!(code, 200, "{method}: {answer}");
    }
    let late = manifest(&model::KIND, json!({"name": "n"}), naming("modelFamily", "f"));
    let (code, refused) = send(&api, "POST", &path(&model::KIND, ""), &late).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    ground.stop().cancel();
}

/// As if an SQL-only object could go before the graph has seen it, without its cleanup and its phases; and as if one
/// that nobody frees had the finalizer as well.
#[tokio::test(flavor = "multi_thread")]
async fn an_sql_only_object_of_the_graph_has_the_finalizer_from_its_creation_on() {
    let stage = Stage::of_kinds(BESIDE).await;
    let at_work = operations(&stage).await.with_graph(true);
    let api = client_of(serve(at_work, None, stage.ground.stop()).await);
    let of_graph = json!([format!("{}/deletion", stage.ground.registry().platform.group)]);
    let generated = json!({"generateName": "p-"});
    for (api, kind, finalizers) in [
        (&api, &PIPELINE, &of_graph),
        (&api, &SQL_ONLY_PROJECT, &Value::Null),
        (&stage.api, &PIPELINE, &Value::Null),
    ] {
        let (code, created) = send(
            api,
            "POST",
            &path(kind, ""),
            &manifest(kind, generated.clone(), json!({})),
        )
        .await;
        assert_eq!(
            (code, &created["metadata"]["finalizers"]),
            (201, finalizers),
            "{created}"
        );
    }

    let at = path(&PIPELINE, "p");
    let configuration = manifest(&PIPELINE, json!({"name": "p"}), json!({})).to_string();
    let (query, headers) = (format!("{at}?fieldManager=tests"), [("content-type", APPLY)]);
    let (code, applied) = send_with(&api, "PATCH", &query, &headers, configuration).await;
    assert_eq!(
        (code, &applied["metadata"]["finalizers"]),
        (201, &of_graph),
        "{applied}"
    );
    // A manifest that was never served knows nothing of it.
    let version = &applied["metadata"]["resourceVersion"];
    let replacement = manifest(&PIPELINE, json!({"name": "p", "resourceVersion": version}), json!({}));
    let (code, replaced) = send(&api, "PUT", &at, &replacement).await;
    assert_eq!(
        (code, &replaced["metadata"]["finalizers"]),
        (200, &of_graph),
        "{replaced}"
    );
    let (code, left) = send(&api, "DELETE", &at, &Value::Null).await;
    assert_eq!(code, 200, "{left}");
    assert!(left["metadata"]["deletionTimestamp"].is_string(), "{left}");
    stage.end().await;
}

/// As if the annotation of final objects made an eviction of a deletion in SQL: its holders would be waited for, and
/// none of them deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_final_sql_only_object_is_deleted_with_what_cascades() {
    let graph = Graph::of(TARGETS, &Cleanups::none()).await;
    graph.create(&PIPELINE, "p", json!({})).await;
    let run = graph.create(&pipeline_run::KIND, "r", naming("pipeline", "p")).await;
    let holder = finalizer(&pipeline_run::KIND, &run);
    eventually("the pipeline is held", async || {
        graph.has_finalizer(&PIPELINE, "p", &holder).await
    })
    .await;
    let last = json!({"metadata": {"annotations": {FINAL: "true"}}});
    let (code, answer) = send(graph.api(), "PATCH", &path(&PIPELINE, "p"), &last).await;
    assert_eq!(code, 200, "{answer}");
    graph.delete(&PIPELINE, "p").await;
    graph.until_gone(&PIPELINE, "p").await;
    graph.until_gone(&pipeline_run::KIND, "r").await;
    graph.end().await;
}
