//! Watches with selectors of objects that move to SQL, change there and make room for others: whoever ceases to see an
//! object is told so, whatever became of it.

use jiff::Timestamp;
use kindex_api::operations::RightsOf;
use kindex_generated::kinds::model;
use kindex_harness::wait::eventually;
use kindex_model::object::Object;
use serde_json::{Value, json};

use super::following::{Watch, delete, label, list_version, scenarios};
use super::stage::{FINAL, MODELS, Stage, manifest, model, names, send};

scenarios!(
    a_watch_that_saw_it_in_between_receives_its_deletion,
    whose_name_went_to_an_object_that_nobody_there_sees_is_gone,
    whose_name_was_taken_past_the_server_is_gone,
    what_left_the_selector_before_it_left_the_cluster_is_gone,
    an_object_that_stays_in_the_cluster_is_sent_as_sql_has_it,
    a_field_of_a_key_selects_in_both_places,
);

async fn watch(stage: &Stage, from: &str, selector: &str) -> Watch {
    Watch::begin(&stage.api, &format!("resourceVersion={from}&labelSelector={selector}")).await
}

/// What is told up to the creation of an object in the cluster.
async fn received_until_created(stage: &Stage, watch: &mut Watch, name: &str, labels: Value) -> Vec<String> {
    stage.create(name, labels, json!({})).await;
    watch.received_until(&format!("ADDED {name}")).await
}

/// A watch that begins anew is told what it saw before; what it saw between two of these changes counts as well.
async fn a_watch_that_saw_it_in_between_receives_its_deletion(stage: Stage) {
    stage.create_archived("a", json!({"team": "x"}), json!({})).await;
    let from = list_version(&stage.api).await;
    label(&stage.api, "a", json!({"team": "y"})).await;
    let mut first = watch(&stage, &from, "team%3Dy").await;
    assert_eq!(first.received().await, "ADDED a");
    drop(first);
    label(&stage.api, "a", json!({"team": "z"})).await;
    let mut again = watch(&stage, &from, "team%3Dy").await;
    assert_eq!(again.received_until("DELETED a").await.last().unwrap(), "DELETED a");
    stage.end().await;
}

/// The cluster tells nobody of the new object who does not see it.
async fn whose_name_went_to_an_object_that_nobody_there_sees_is_gone(stage: Stage) {
    stage.create_archived("a", json!({"team": "x"}), json!({})).await;
    let from = list_version(&stage.api).await;
    delete(&stage.api, "a").await;
    stage.create("a", json!({"team": "y"}), json!({})).await;
    let mut of_old = watch(&stage, &from, "team%3Dx").await;
    assert_eq!(of_old.received().await, "DELETED a");
    for selector in ["team%3Dy", "team"] {
        let mut of_new = watch(&stage, &from, selector).await;
        let last = format!("last-{}", selector.len());
        let received = received_until_created(&stage, &mut of_new, &last, json!({"team": "y"})).await;
        let of_a: Vec<&String> = received.iter().filter(|event| event.ends_with(" a")).collect();
        assert_eq!(of_a.last().map(|event| event.as_str()), Some("ADDED a"), "{received:?}");
    }
    stage.end().await;
}

/// Nobody deleted it: it made room when the ingester saw the other one.
async fn whose_name_was_taken_past_the_server_is_gone(stage: Stage) {
    stage.create_archived("a", json!({"team": "x"}), json!({})).await;
    let from = list_version(&stage.api).await;
    let mut of_old = watch(&stage, &from, "team%3Dx").await;
    let other = manifest(json!({"name": "a", "labels": {"team": "y"}}), json!({}));
    let (code, answer) = send(&stage.cluster, "POST", MODELS, &other).await;
    assert_eq!(code, 201, "{answer}");
    assert_eq!(of_old.received().await, "DELETED a");
    stage.end().await;
}

/// The cluster says of both that they are gone, and means the selector, and an eviction.
async fn what_left_the_selector_before_it_left_the_cluster_is_gone(stage: Stage) {
    for name in ["left", "evicted"] {
        stage.create(name, json!({"team": "x"}), json!({})).await;
    }
    let from = list_version(&stage.api).await;
    label(&stage.api, "left", json!({"team": "y"})).await;
    for name in ["left", "evicted"] {
        let evict = json!({"metadata": {"annotations": {FINAL: "true"}}});
        let (code, answer) = send(&stage.api, "PATCH", &model(name), &evict).await;
        assert_eq!(code, 200, "{answer}");
        stage.wait_until_archived(name).await;
    }
    let mut watch = watch(&stage, &from, "team%3Dx").await;
    let received = received_until_created(&stage, &mut watch, "last", json!({"team": "x"})).await;
    assert!(received.contains(&"DELETED left".to_owned()), "{received:?}");
    assert!(!received.contains(&"DELETED evicted".to_owned()), "{received:?}");
    stage.end().await;
}

/// Another program changes the row, while somebody's finalizer keeps the object from going.
async fn an_object_that_stays_in_the_cluster_is_sent_as_sql_has_it(stage: Stage) {
    stage.create_held("a", json!({"team": "x"})).await;
    let from = list_version(&stage.api).await;
    // The ingester may still be about to store how the object stands there: then the change is one of what was.
    eventually("the row is changed", async || {
        let row = stage.store.get_by_name(&model::KIND, "default", "a").await.unwrap();
        let mut object: Value = serde_json::from_str(row.unwrap().object.text()).unwrap();
        object["metadata"]["labels"]["team"] = json!("y");
        let object = Object::parse_str(&object.to_string()).unwrap();
        let updated = stage.store.update_direct(&model::KIND, &object, Timestamp::now()).await;
        updated.is_ok()
    })
    .await;

    let mut of_old = watch(&stage, &from, "team%3Dx").await;
    assert_eq!(of_old.received().await, "DELETED a");
    let mut of_new = watch(&stage, &from, "team%3Dy").await;
    assert_eq!(of_new.received().await, "ADDED a");
    stage.release("a").await;
    let received = received_until_created(&stage, &mut of_new, "last", json!({"team": "y"})).await;
    assert!(!received.contains(&"DELETED a".to_owned()), "{received:?}");
    stage.end().await;
}

/// Lists and watches by a field that an archived object loses by a change in SQL.
async fn a_field_of_a_key_selects_in_both_places(stage: Stage) {
    let of = |algorithm: &str| json!({ "algorithm": algorithm });
    stage.create_archived("archived", json!({}), of("xgb")).await;
    stage.create("live", json!({}), of("xgb")).await;
    stage.create("other", json!({}), of("svm")).await;
    let selected = format!("{MODELS}?fieldSelector=spec.algorithm%3Dxgb");
    let (code, list) = send(&stage.api, "GET", &selected, &Value::Null).await;
    assert_eq!((code, names(&list)), (200, vec!["live", "archived"]), "{list}");

    let from = list_version(&stage.api).await;
    let mut by_xgb = Watch::begin(
        &stage.api,
        &format!("resourceVersion={from}&fieldSelector=spec.algorithm%3Dxgb"),
    )
    .await;
    let mut by_svm = Watch::begin(
        &stage.api,
        &format!("resourceVersion={from}&fieldSelector=spec.algorithm%3Dsvm"),
    )
    .await;
    let (code, answer) = send(&stage.api, "PATCH", &model("archived"), &json!({"spec": of("svm")})).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(by_xgb.received().await, "DELETED archived");
    assert_eq!(by_svm.received().await, "MODIFIED archived");
    let (code, answer) = send(&stage.api, "PATCH", &model("live"), &json!({"spec": of("svm")})).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(by_xgb.received().await, "DELETED live");
    assert_eq!(by_svm.received().await, "ADDED live");
    stage.end().await;
}
