//! What an object owns goes with it, and not before others have released it.

use std::pin::pin;

use futures::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use serde_json::json;

use super::kubernetes::start;
use super::{Stage, WATCH_SECONDS};

impl Stage {
    /// A zone that owns another one, and is used by a third one. It is deleted, and the third one releases it later.
    async fn owned_zones_wait_for_the_release_of_their_owner(&self) {
        let (stop, running) = self.run();
        let owner = ("Zone", "owner");
        self.create("Zone", "owner", json!({})).await;
        self.create("Zone", "owned", json!({"parent": "owner"})).await;
        self.create("Zone", "user", json!({"uses": "owner"})).await;
        let user = self.reference("Zone", "user").await;
        let owned = self.reference("Zone", "owned").await;
        for finalizer in [&*user, &*owned, "platform.example.com/deletion"] {
            self.until(|| self.has(owner, finalizer)).await;
        }
        let before = self.version().await;
        self.delete("Zone", "owner").await;
        self.until(|| self.is_reported("owner", "DeletionBlocked", "default/user"))
            .await;
        let found = self.get("Zone", "owner").await.expect("it waits");
        assert_eq!(found.annotations()["platform.example.com/deletion-phase"], "DELETING");
        let found = self.get("Zone", "owned").await.expect("it stays");
        assert!(found.metadata.deletion_timestamp.is_none(), "its owner is held");

        self.patch("Zone", "user", json!({"spec": {"uses": null}})).await;
        let order = self.order_of_zones(&before, &user).await;
        let expected = [
            "the owner is released",
            "the owner drains",
            "the owned one is deleted",
            "owned is gone",
            "owner is gone",
        ];
        assert_eq!(order, expected);
        let found = self.get("Zone", "user").await.expect("it stays");
        assert!(found.metadata.deletion_timestamp.is_none(), "it only used the owner");
        stop.cancel();
        running.await.expect("it ends");
    }

    /// What happened to the zones since a version until the owner was gone, each when it happened first.
    async fn order_of_zones(&self, since: &str, user: &str) -> Vec<String> {
        let zones = self.api("Zone");
        let parameters = WatchParams::default().disable_bookmarks().timeout(WATCH_SECONDS);
        let mut events = pin!(zones.watch(&parameters, since).await.expect("a watch"));
        let mut order: Vec<String> = Vec::new();
        while order.last().is_none_or(|last| last != "owner is gone") {
            let event = events.next().await;
            let event = event.unwrap_or_else(|| panic!("the watch ended before the owner was gone: {order:?}"));
            let what = match event.expect("an event") {
                WatchEvent::Modified(zone) => change_of(&zone, user).map(ToOwned::to_owned),
                WatchEvent::Deleted(zone) => Some(format!("{} is gone", zone.name_any())),
                other => panic!("{other:?}"),
            };
            order.extend(what.filter(|what| !order.contains(what)));
        }
        order
    }
}

/// What this version of a zone shows, if it matters here.
fn change_of(zone: &DynamicObject, user: &str) -> Option<&'static str> {
    let phase = zone.annotations().get("platform.example.com/deletion-phase");
    let is_held = zone.finalizers().iter().any(|finalizer| finalizer == user);
    match zone.name_any().as_str() {
        "owned" if zone.metadata.deletion_timestamp.is_some() => Some("the owned one is deleted"),
        "owner" if phase.is_some_and(|phase| phase == "DRAINING") => Some("the owner drains"),
        "owner" if !is_held => Some("the owner is released"),
        _ => None,
    }
}

/// As if what is owned went at once, as what cascades does.
#[tokio::test]
async fn what_is_owned_goes_once_nothing_else_holds_its_owner() {
    let stage = Stage::start().await;
    stage.owned_zones_wait_for_the_release_of_their_owner().await;
}

#[tokio::test]
async fn what_is_owned_on_kube_apiserver_goes_no_sooner() {
    if let Some((_plane, stage)) = start().await {
        stage.owned_zones_wait_for_the_release_of_their_owner().await;
    }
}
