//! How kube-storage-version-migrator rewrites the objects of a resource, as a baseline: pages of 500 whole objects,
//! each sent back as it was listed, one after the other. Written from a reading of its migrator; it saves no progress,
//! and so sends a little less. <https://github.com/kubernetes-sigs/kube-storage-version-migrator>

use std::time::{Duration, Instant};

use http::Request;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::clients::timed;

/// Requests a second that its manifest allows: `--kube-api-qps`.
pub const SHIPPED_RATE: u32 = 40;
/// Requests that its manifest allows beyond that rate after a pause: `--kube-api-burst`.
pub const SHIPPED_BURST: usize = 1_000;

const PAGE_OBJECTS: usize = 500;

#[derive(Deserialize)]
struct List {
    metadata: ListMetadata,
    items: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(default, rename = "continue")]
    token: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: ItemMetadata,
}

#[derive(Deserialize)]
struct ItemMetadata {
    name: String,
}

/// Rewrites all objects at a path, with at most so many requests a second, of which none were saved up. Returns how
/// many there are and how long it took.
///
/// # Panics
/// When the server refuses.
pub async fn migrate(client: &Client, path: &str, rate: Option<u32>) -> (usize, Duration) {
    let begun = Instant::now();
    let mut limit = rate.map(|rate| {
        let mut limit = interval(Duration::from_secs(1) / rate);
        limit.set_missed_tick_behavior(MissedTickBehavior::Burst);
        limit
    });
    let (mut token, mut rewritten) = (String::new(), 0);
    loop {
        wait(&mut limit).await;
        let list = list(client, path, &token).await;
        for item in &list.items {
            let Item { metadata } = serde_json::from_str(item.get()).expect("an object");
            wait(&mut limit).await;
            let request = Request::put(format!("{path}/{}", metadata.name)).header("content-type", "application/json");
            let object = item.get().as_bytes().to_vec();
            timed(client, request.body(Body::from(object)).expect("a path")).await;
        }
        rewritten += list.items.len();
        token = list.metadata.token;
        if token.is_empty() {
            return (rewritten, begun.elapsed());
        }
    }
}

async fn wait(limit: &mut Option<Interval>) {
    if let Some(limit) = limit {
        limit.tick().await;
    }
}

async fn list(client: &Client, path: &str, token: &str) -> List {
    let path = format!("{path}?limit={PAGE_OBJECTS}&continue={token}");
    let request = Request::get(path).body(Vec::new()).expect("a path");
    let text = client.request_text(request).await.expect("a page");
    serde_json::from_str(&text).expect("a list")
}
