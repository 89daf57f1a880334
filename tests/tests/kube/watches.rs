//! Watches: through kube-rs, as controllers use them, and line by line.

use futures::{StreamExt, TryStreamExt, pin_mut};
use kindex_harness::wait::eventually;
use kube::api::{Patch, PatchParams, WatchEvent, WatchParams};
use kube::runtime::watcher::{self, Event};
use serde_json::json;

use super::cluster::TestCluster;

fn label(value: Option<&str>) -> Patch<serde_json::Value> {
    Patch::Merge(json!({"metadata": {"labels": {"watched": value}}}))
}

/// The type, name and size of an event.
fn summary(event: &WatchEvent<kube::api::DynamicObject>) -> String {
    let object = |kind: &str, object: &kube::api::DynamicObject| {
        format!(
            "{kind} {} {}",
            object.metadata.name.as_deref().unwrap_or_default(),
            object.data["spec"]["size"]
        )
    };
    match event {
        WatchEvent::Added(added) => object("ADDED", added),
        WatchEvent::Modified(modified) => object("MODIFIED", modified),
        WatchEvent::Deleted(deleted) => object("DELETED", deleted),
        WatchEvent::Bookmark(bookmark) => {
            format!("BOOKMARK {}", bookmark.metadata.annotations.len())
        }
        WatchEvent::Error(status) => format!("ERROR {} {}", status.code, status.reason),
    }
}

#[tokio::test]
async fn a_watch_from_a_version_shows_everything_after_it() {
    let cluster = TestCluster::with_widgets().await;
    let from = cluster.create("a", 1).await.metadata.resource_version.unwrap();
    cluster.resize("a", 2).await;
    let stream = cluster.widgets().watch(&WatchParams::default(), &from).await.unwrap();
    pin_mut!(stream);
    assert_eq!(summary(&stream.try_next().await.unwrap().unwrap()), "MODIFIED a 2");
    cluster.create("b", 3).await;
    cluster.widgets().delete("a", &Default::default()).await.unwrap();
    assert_eq!(summary(&stream.try_next().await.unwrap().unwrap()), "ADDED b 3");
    assert_eq!(summary(&stream.try_next().await.unwrap().unwrap()), "DELETED a 2");
}

#[tokio::test]
async fn entering_and_leaving_a_selection_looks_like_creation_and_deletion() {
    let cluster = TestCluster::with_widgets().await;
    let from = cluster.create("a", 1).await.metadata.resource_version.unwrap();
    let live = cluster
        .widgets()
        .watch(&WatchParams::default().labels("watched=yes"), &from)
        .await
        .unwrap();
    pin_mut!(live);
    let widgets = cluster.widgets();
    widgets
        .patch("a", &PatchParams::default(), &label(Some("yes")))
        .await
        .unwrap();
    cluster.resize("a", 2).await;
    widgets.patch("a", &PatchParams::default(), &label(None)).await.unwrap();
    cluster.resize("a", 3).await;
    widgets
        .patch("a", &PatchParams::default(), &label(Some("yes")))
        .await
        .unwrap();
    let expected = ["ADDED a 1", "MODIFIED a 2", "DELETED a 2", "ADDED a 3"];
    // What was heard as it happened, and what is read from the log afterwards, must be the same.
    let replayed = widgets
        .watch(&WatchParams::default().labels("watched=yes"), &from)
        .await
        .unwrap();
    pin_mut!(replayed);
    for expected in expected {
        assert_eq!(summary(&live.try_next().await.unwrap().unwrap()), expected);
        assert_eq!(summary(&replayed.try_next().await.unwrap().unwrap()), expected);
    }
}

#[tokio::test]
async fn a_version_that_is_too_old_is_gone() {
    let cluster = TestCluster::with_history(20).await;
    cluster.install_widgets().await;
    let from = cluster.create("a", 1).await.metadata.resource_version.unwrap();
    for size in 2..40 {
        cluster.resize("a", size).await;
    }
    let stream = cluster.widgets().watch(&WatchParams::default(), &from).await.unwrap();
    pin_mut!(stream);
    assert_eq!(summary(&stream.try_next().await.unwrap().unwrap()), "ERROR 410 Expired");
    assert!(
        stream.try_next().await.unwrap().is_none(),
        "the watch ends after its error"
    );
}

#[tokio::test]
async fn a_streaming_list_ends_with_its_bookmark() {
    let cluster = TestCluster::with_widgets().await;
    cluster.create("a", 1).await;
    let config = watcher::Config::default().streaming_lists();
    let stream = watcher::watcher(cluster.widgets(), config);
    pin_mut!(stream);
    assert!(matches!(stream.try_next().await.unwrap(), Some(Event::Init)));
    assert!(matches!(stream.try_next().await.unwrap(), Some(Event::InitApply(_))));
    assert!(matches!(stream.try_next().await.unwrap(), Some(Event::InitDone)));
    cluster.create("b", 1).await;
    assert!(matches!(stream.try_next().await.unwrap(), Some(Event::Apply(_))));
}

#[tokio::test]
async fn a_watch_ends_in_time_with_a_bookmark_of_how_far_it_came() {
    let cluster = TestCluster::with_widgets().await;
    let from = cluster.create("a", 1).await.metadata.resource_version.unwrap();
    let stream = cluster
        .widgets()
        .watch(&WatchParams::default().timeout(3), &from)
        .await
        .unwrap();
    let seen: Vec<String> = stream.map_ok(|event| summary(&event)).try_collect().await.unwrap();
    assert_eq!(seen, ["BOOKMARK 0"]);
}

#[tokio::test]
async fn a_controllers_watcher_sees_every_change_across_a_restart_of_the_server() {
    let cluster = TestCluster::with_widgets().await;
    let created = cluster.create("a", 1).await;
    let cluster = cluster.restart().await;
    assert_eq!(cluster.widgets().get("a").await.unwrap(), created);
    let from = created.metadata.resource_version.unwrap();
    cluster.resize("a", 2).await;
    let stream = cluster.widgets().watch(&WatchParams::default(), &from).await.unwrap();
    pin_mut!(stream);
    assert_eq!(summary(&stream.try_next().await.unwrap().unwrap()), "MODIFIED a 2");
}

#[tokio::test]
async fn a_watcher_that_reads_late_gets_everything_all_the_same() {
    let cluster = TestCluster::with_widgets().await;
    let from = cluster.create("a", 1).await.metadata.resource_version.unwrap();
    let stream = cluster.widgets().watch(&WatchParams::default(), &from).await.unwrap();
    pin_mut!(stream);
    // More than any ring or socket holds while nobody reads.
    for batch in 0..6 {
        let creations = (0..60).map(|n| {
            let widgets = cluster.widgets();
            async move {
                let mut widget = super::cluster::new_widget(&format!("w{batch}-{n}"), 1);
                widget.data["spec"]["tags"] = json!(vec!["x".repeat(100); 100]);
                widgets.create(&Default::default(), &widget).await.unwrap();
            }
        });
        futures::future::join_all(creations).await;
    }
    for _ in 0..360 {
        assert!(summary(&stream.next().await.unwrap().unwrap()).starts_with("ADDED w"));
    }
}

#[tokio::test]
async fn a_watch_ends_when_its_definition_is_deleted() {
    let cluster = TestCluster::with_widgets().await;
    let from = cluster.create("a", 1).await.metadata.resource_version.unwrap();
    let stream = cluster.widgets().watch(&WatchParams::default(), &from).await.unwrap();
    let definitions =
        kube::Api::<kube::api::DynamicObject>::all_with(cluster.client.clone(), &super::cluster::definitions());
    definitions
        .delete("widgets.example.com", &Default::default())
        .await
        .unwrap();
    let seen: Vec<String> = stream.map_ok(|event| summary(&event)).try_collect().await.unwrap();
    assert_eq!(seen, ["DELETED a 1"]);
    eventually("the definition is gone", async || {
        definitions.get_opt("widgets.example.com").await.unwrap().is_none()
    })
    .await;
}
