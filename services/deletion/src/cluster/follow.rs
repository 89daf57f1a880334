//! The objects of a kind, from a list of all of them on. A watch that breaks goes on where it was; where that is not
//! possible, all objects are listed anew.

use std::time::Duration;

use futures::StreamExt as _;
use kindex_kube_client::{ClusterError, ReadApi as _, WatchApi as _, WatchEvent};
use kindex_model::kind::Kind;
use kindex_model::object::{Object as Text, ResourceVersion};
use tokio::sync::mpsc::Sender;
use tokio::time::sleep;

use super::Cluster;
use crate::kinds::{key_of, name_of};
use crate::object::{Key, KindName, Object};

/// Objects of a page.
const PAGE_OBJECTS: u32 = 500;
/// Before a list that failed is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What became known.
#[derive(Debug)]
pub enum Report {
    /// All objects of a kind, as of a version.
    Listed(KindName, ResourceVersion, Vec<Object>),
    /// An object of a kind is there. It is read only if it is not known.
    Applied(&'static Kind, Text),
    /// An object is gone.
    Deleted(Key, String),
    /// The objects of a kind are not followed for now, and why.
    Lost(KindName, String),
}

/// Follows a kind until nobody listens.
pub async fn follow(cluster: &Cluster, kind: &'static Kind, reports: &Sender<Report>) {
    while !reports.is_closed() {
        let ended = follow_once(cluster, kind, reports).await;
        let Err(error) = ended else {
            continue;
        };
        if !matches!(error, ClusterError::Expired(_)) {
            tracing::debug!(kind = kind.name, %error, "The objects of a kind are listed anew");
            // Nobody listens any more where it cannot be sent.
            let _ = reports.send(Report::Lost(name_of(kind), error.to_string())).await;
            sleep(AGAIN_AFTER).await;
        }
    }
}

async fn follow_once(cluster: &Cluster, kind: &'static Kind, reports: &Sender<Report>) -> Result<(), ClusterError> {
    let mut from = list(cluster, kind, reports).await?;
    while !reports.is_closed() {
        let mut events = cluster.api.watch(kind, from).await?;
        while let Some(event) = events.next().await {
            let report = match event? {
                WatchEvent::Applied(object) => {
                    from = object.metadata.resource_version;
                    Report::Applied(kind, object)
                }
                WatchEvent::Deleted(object) => {
                    from = object.metadata.resource_version;
                    Report::Deleted(key_of(kind, &object), object.metadata.uid.to_string())
                }
                WatchEvent::Bookmark(version) => {
                    from = version;
                    continue;
                }
                WatchEvent::Unreadable(object) => {
                    tracing::warn!(kind = kind.name, object = %object.name, reason = object.reason, "Not an object");
                    continue;
                }
            };
            if reports.send(report).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A list counts only as a whole.
async fn list(
    cluster: &Cluster,
    kind: &'static Kind,
    reports: &Sender<Report>,
) -> Result<ResourceVersion, ClusterError> {
    let mut objects = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let page = cluster.api.list(kind, PAGE_OBJECTS, token.as_deref()).await?;
        objects.extend(page.objects.iter().map(|object| cluster.kinds.read(kind, object)));
        token = page.continue_token;
        if token.is_none() {
            let version = page.resource_version;
            // Nobody listens any more where it cannot be sent.
            let _ = reports.send(Report::Listed(name_of(kind), version, objects)).await;
            return Ok(version);
        }
    }
}
