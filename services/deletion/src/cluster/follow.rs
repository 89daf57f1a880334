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
/// The same at most while the cluster does not serve the kind, for which it doubles each time.
const UNSERVED_AGAIN_AFTER_MAX: Duration = Duration::from_secs(30);

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
    let mut pause = AGAIN_AFTER;
    while !reports.is_closed() {
        let ended = follow_once(cluster, kind, reports, &mut pause).await;
        let Err(error) = ended else {
            continue;
        };
        if !matches!(error, ClusterError::Expired(_)) {
            pause = pause_after(&error, pause);
            tracing::debug!(kind = kind.name, %error, "The objects of a kind are listed anew");
            // Nobody listens any more where it cannot be sent.
            let _ = reports.send(Report::Lost(name_of(kind), error.to_string())).await;
            sleep(pause).await;
        }
    }
}

/// How long to wait after this error, the last time having been this long.
fn pause_after(error: &ClusterError, last: Duration) -> Duration {
    match error {
        ClusterError::Unserved { .. } => (last * 2).min(UNSERVED_AGAIN_AFTER_MAX),
        ClusterError::NotFound(_)
        | ClusterError::Conflict(_)
        | ClusterError::Expired(_)
        | ClusterError::Retryable { .. }
        | ClusterError::Refused(_) => AGAIN_AFTER,
    }
}

async fn follow_once(
    cluster: &Cluster,
    kind: &'static Kind,
    reports: &Sender<Report>,
    pause: &mut Duration,
) -> Result<(), ClusterError> {
    let mut from = list(cluster, kind, reports).await?;
    // It is served: if it is not, once more, it is asked for again soon.
    *pause = AGAIN_AFTER;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As if a kind that nobody installs were asked for each second, or any other failure lasted half a minute.
    #[test]
    fn a_kind_is_asked_for_less_and_less_while_it_is_not_served() {
        let unserved = ClusterError::Unserved {
            in_other_version: false,
            message: "the cluster serves no widgets.g.example".to_owned(),
        };
        let mut pause = AGAIN_AFTER;
        for seconds in [2, 4, 8, 16, 30, 30] {
            pause = pause_after(&unserved, pause);
            assert_eq!(pause, Duration::from_secs(seconds));
        }
        let forbidden = ClusterError::Refused("forbidden".to_owned());
        assert_eq!(pause_after(&forbidden, pause), AGAIN_AFTER);
    }
}
