//! A server that reads two objects at once does with a request what one does that reads all of them.

use std::collections::{BTreeMap, BTreeSet};

use kindex_api::operations::{Caller, ListOptions, Search, Sizes};
use kindex_generated::kinds::model;
use serde_json::{Value, json};

use super::following::{Watch, label, list_version};
use super::stage::{MODELS, Stage, names, send, send_with};

const TWO: Sizes = Sizes {
    page: 2,
    page_max: 2,
    passed: 2,
    snapshot: 2,
    deleted: 2,
    changes: 2,
};

/// Five live objects and five archived ones, all of a team.
async fn populate(stage: &Stage) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for number in 0..5 {
        let (live, gone) = (format!("live-{number}"), format!("gone-{number}"));
        stage.create(&live, json!({"team": "x"}), json!({})).await;
        stage.create_archived(&gone, json!({"team": "x"}), json!({})).await;
        all.extend([live, gone]);
    }
    all
}

fn set(list: &Value) -> BTreeSet<String> {
    let names = names(list);
    let set: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(set.len(), names.len(), "each once: {names:?}");
    set
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_without_a_limit_has_all_objects() {
    let stage = Stage::on_sqlite().await;
    let all = populate(&stage).await;
    let api = stage.served_by(TWO).await;
    for query in ["", "?labelSelector=team", "?at=2100-01-01T00:00:00Z"] {
        let (code, list) = send(&api, "GET", &format!("{MODELS}{query}"), &Value::Null).await;
        assert_eq!((code, set(&list)), (200, all.clone()), "{query}");
        assert!(list["metadata"]["continue"].is_null(), "{query}");
    }
    let table = [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
    let (_, list) = send_with(&api, "GET", MODELS, &table, String::new()).await;
    assert_eq!(list["rows"].as_array().map(Vec::len), Some(10));
    // A page is as long as the limit of the server allows.
    let (_, page) = send(&api, "GET", &format!("{MODELS}?limit=9"), &Value::Null).await;
    assert_eq!(names(&page).len(), 2);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_by_conditions_begins_anywhere() {
    let stage = Stage::on_sqlite().await;
    let all: Vec<String> = populate(&stage).await.into_iter().collect();
    let operations = stage.operations().with_sizes(TWO);
    let which = ListOptions {
        namespace: Some("default".to_owned()),
        ..ListOptions::default()
    };
    for offset in 0..12 {
        let search = Search {
            offset: offset as u32,
            ..Search::default()
        };
        let listed = operations
            .search(&Caller::default(), &model::KIND, &which, &search)
            .await;
        let items = listed.expect("a page").items;
        let found: Vec<Value> = items
            .iter()
            .map(|item| serde_json::from_str(item).expect("JSON"))
            .collect();
        let found: Vec<&str> = found
            .iter()
            .filter_map(|item| item["metadata"]["name"].as_str())
            .collect();
        let expected: Vec<&str> = all.iter().skip(offset).take(2).map(String::as_str).collect();
        assert_eq!(found, expected, "from {offset} on");
    }
    stage.end().await;
}

/// What is deleted leaves the pages that are walked over, in the cluster and in SQL.
#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_deleted_whole_and_nothing_else() {
    let stage = Stage::on_sqlite().await;
    let all = populate(&stage).await;
    stage.create("live-stays", json!({"team": "y"}), json!({})).await;
    stage
        .create_archived("gone-stays", json!({"team": "y"}), json!({}))
        .await;
    let api = stage.served_by(TWO).await;
    let path = format!("{MODELS}?labelSelector=team%3Dx");
    let (code, answer) = send(&api, "DELETE", &path, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    for name in &all {
        stage.wait_until_deleted(name).await;
    }
    let (_, list) = send(&stage.api, "GET", MODELS, &Value::Null).await;
    assert_eq!(set(&list), ["gone-stays", "live-stays"].map(str::to_owned).into());
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_tells_the_whole_state_and_all_changes_since_the_last_look() {
    let stage = Stage::on_sqlite().await;
    let all = populate(&stage).await;
    let api = stage.served_by(TWO).await;
    let mut watch = Watch::begin(&api, "").await;
    let mut received = BTreeSet::new();
    for _ in 0..all.len() {
        received.insert(watch.received().await);
    }
    assert_eq!(received, all.iter().map(|name| format!("ADDED {name}")).collect());

    // By another server: this one learns of them when it looks next.
    let from = list_version(&api).await;
    let mut watch = Watch::begin(&api, &format!("resourceVersion={from}")).await;
    for round in ["1", "2"] {
        for number in 0..5 {
            label(&stage.api, &format!("gone-{number}"), json!({"n": round})).await;
        }
    }
    let mut last = BTreeMap::new();
    let is_last = |label: &Value| *label == json!("2");
    while last.len() < 5 || !last.values().all(is_last) {
        let (kind, mut object) = watch.next().await;
        if kind != "BOOKMARK" {
            let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
            last.insert(name, object["metadata"]["labels"]["n"].take());
        }
    }
    stage.end().await;
}
