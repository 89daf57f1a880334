//! What a watch is asked for: where it ends, of which namespace it is, whether it is sent bookmarks; and how
//! soon it is sent what its own server does in SQL.

use std::time::Duration;

use futures::{AsyncBufReadExt, StreamExt};
use kindex_api::operations::Pace;
use kindex_harness::wait::WAIT_MAX;
use serde_json::{Value, json};

use super::following::{Watch, delete, label, list_version};
use super::stage::{MODELS, Stage, client_of, manifest, send, serve};
use super::storage_off::Through;

/// All events of a watch with a timeout.
async fn received(client: &kube::Client, query: &str, accept: &str) -> Vec<Value> {
    let path = format!("{MODELS}?watch=true&{query}");
    let request = http::Request::get(path).header("accept", accept);
    let text = client.request_text(request.body(Vec::new()).unwrap());
    let text = tokio::time::timeout(Duration::from_secs(120), text).await;
    let text = text.expect("its end").unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The cluster tells how far a watch has come shortly before it ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_ends_when_it_was_asked_to_and_tells_how_far_it_came_where_it_was_asked() {
    let stage = Stage::on_sqlite().await;
    let through = Through::begin().await;
    let version = list_version(&stage.api).await;
    let from = format!("timeoutSeconds=3&resourceVersion={version}");
    let with = format!("{from}&allowWatchBookmarks=true");
    let plain = "timeoutSeconds=3&resourceVersion=1";
    let plain_with = format!("{plain}&allowWatchBookmarks=true");
    let (json, table) = ("application/json", "application/json;as=Table;g=meta.k8s.io;v=v1");
    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let (none, some, rows, head, off_none, off_some) = futures::join!(
        received(&stage.api, &from, json),
        received(&stage.api, &with, json),
        received(&stage.api, &with, table),
        received(&stage.api, &with, metadata),
        received(&through.api, plain, json),
        received(&through.api, &plain_with, json),
    );
    assert!(none.is_empty() && off_none.is_empty(), "{none:?} {off_none:?}");
    for (events, kind) in [
        (&some, "Model"),
        (&rows, "Table"),
        (&head, "PartialObjectMetadata"),
        (&off_some, "Model"),
    ] {
        let [event] = events.as_slice() else {
            panic!("one event: {events:?}")
        };
        let object = &event["object"];
        assert_eq!((&event["type"], &object["kind"]), (&json!("BOOKMARK"), &json!(kind)));
        assert!(object["metadata"]["resourceVersion"].is_string(), "{object}");
    }
    assert_eq!(rows[0]["object"]["rows"], json!([]));
    through.end();
    stage.end().await;
}

/// It asks the database once an hour.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_changes_in_sql_its_watches_are_told_at_once() {
    let stage = Stage::on_sqlite().await;
    for name in ["a", "b", "c"] {
        stage.create_archived(name, json!({}), json!({})).await;
    }
    let from = list_version(&stage.api).await;
    let hour = Duration::from_secs(3600);
    let pace = Pace {
        every: hour,
        fresh: 2 * hour,
        settled: 3 * hour,
        events: hour,
    };
    let operations = stage.operations().with_pace(pace);
    let slow = client_of(serve(operations, None, stage.ground.stop()).await);
    let mut watch = Watch::begin(&slow, &format!("resourceVersion={from}")).await;
    label(&slow, "a", json!({"n": "1"})).await;
    assert_eq!(watch.received_until("MODIFIED a").await.last().unwrap(), "MODIFIED a");
    delete(&slow, "b").await;
    assert_eq!(watch.received().await, "DELETED b");
    let collection = format!("{MODELS}?fieldSelector=metadata.name%3Dc");
    let (code, answer) = send(&slow, "DELETE", &collection, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(watch.received().await, "DELETED c");
    stage.end().await;
}

/// Without storage the cluster is asked as the client asks.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_of_the_cluster_alone_begins_and_selects_as_it_is_asked() {
    let through = Through::begin().await;
    let create = async |name: &str, team: &str| {
        let metadata = json!({"name": name, "labels": {"team": team}});
        let (code, answer) = send(&through.api, "POST", MODELS, &manifest(metadata, json!({}))).await;
        assert_eq!(code, 201, "{answer}");
    };
    for (name, team) in [("a", "x"), ("b", "y")] {
        create(name, team).await;
    }
    let list = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut state = Watch::begin(&through.api, list).await;
    let mut of_team = Watch::begin(&through.api, "labelSelector=team%3Dy").await;
    let mut of_name = Watch::begin(&through.api, "fieldSelector=metadata.name%3Db").await;
    for name in ["a", "b"] {
        assert_eq!(state.received().await, format!("ADDED {name}"));
    }
    let (kind, bookmark) = state.next().await;
    let end = &bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"];
    assert_eq!((kind.as_str(), end), ("BOOKMARK", &json!("true")));
    create("c", "y").await;
    assert_eq!(state.received().await, "ADDED c");
    assert_eq!(
        [of_team.received().await, of_team.received().await],
        ["ADDED b", "ADDED c"]
    );
    assert_eq!(of_name.received().await, "ADDED b");
    through.end();
}

/// Kubernetes marks the end of the state for those alone who asked for it.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_state_is_marked_for_who_asks_for_the_state_and_for_bookmarks() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({}), json!({})).await;
    let state = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let both = format!("{state}&allowWatchBookmarks=true");
    for (query, is_marked) in [
        ("allowWatchBookmarks=true", false),
        (state, false),
        (both.as_str(), true),
    ] {
        let mut watch = Watch::begin(&stage.api, query).await;
        assert_eq!(watch.next().await.0, "ADDED", "{query}");
        let name = format!("next-{}", query.len());
        stage.create(&name, json!({}), json!({})).await;
        let expected = if is_marked { "BOOKMARK" } else { "ADDED" };
        assert_eq!(watch.next().await.0, expected, "{query}");
        delete(&stage.api, &name).await;
        stage.wait_until_deleted(&name).await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_of_several_pages_is_told_whole() {
    let stage = Stage::on_sqlite().await;
    let all: Vec<String> = (0..10).map(|number| format!("m-{number}")).collect();
    for name in &all {
        stage.create(name, json!({}), json!({})).await;
    }
    let mut watch = Watch::begin(&stage.api, "").await;
    stage.create("last", json!({}), json!({})).await;
    for name in all.iter().map(String::as_str).chain(["last"]) {
        assert_eq!(watch.received().await, format!("ADDED {name}"));
    }
    stage.end().await;
}

/// Clients learn the columns from the first table that has rows.
#[tokio::test(flavor = "multi_thread")]
async fn the_columns_come_with_the_first_row_and_not_with_a_bookmark() {
    let stage = Stage::on_sqlite().await;
    let state = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let path = format!("{MODELS}?watch=true&timeoutSeconds=240&{state}");
    let request = http::Request::get(path).header("accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
    let request = request.body(Vec::new()).unwrap();
    let mut lines = stage.api.request_stream(request).await.unwrap().lines();
    let mut next = async || -> Value {
        let line = tokio::time::timeout(WAIT_MAX, lines.next()).await;
        serde_json::from_str(&line.expect("an event").expect("the watch goes on").unwrap()).unwrap()
    };
    let bookmark = next().await;
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["columnDefinitions"], Value::Null, "{bookmark}");
    stage.create("a", json!({}), json!({})).await;
    let added = next().await;
    assert_eq!(added["type"], "ADDED");
    assert!(added["object"]["columnDefinitions"].is_array(), "{added}");
    stage.end().await;
}

/// So that a client whose connection breaks is not received of the change again.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_in_sql_is_followed_by_a_version_to_go_on_from_before_anything_else_is_told() {
    let stage = Stage::on_sqlite().await;
    stage.create_archived("a", json!({}), json!({})).await;
    let from = list_version(&stage.api).await;
    let mut watch = Watch::begin(&stage.api, &format!("resourceVersion={from}&allowWatchBookmarks=true")).await;
    label(&stage.api, "a", json!({"n": "1"})).await;
    assert_eq!(watch.next().await.0, "MODIFIED");
    stage.create("b", json!({}), json!({})).await;
    assert_eq!(watch.next().await.0, "BOOKMARK");
    assert_eq!(watch.received().await, "ADDED b");
    stage.end().await;
}
