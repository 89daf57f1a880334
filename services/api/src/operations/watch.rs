//! Watching: the cluster's events, without those that tell of an object's move to SQL. It is not gone, and a watcher
//! that was told so would believe it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use kindex_runtime::kind::Kind;
use kindex_runtime::object::Uid;
use kindex_runtime::store::{Life, MetadataStorage};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::cluster::{self, Call};
use super::objects::Head;
use super::rights::Wanted;
use super::{Caller, ListOptions, Operations, Reason, Refusal, collection, list};
use crate::figures::{Figures, OneMore};

/// A watcher that takes no event for so long, while there is one, is left alone.
const STALLED: Duration = Duration::from_secs(30);

/// How a watch goes.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// Whether it is told from time to time how far it has come.
    pub bookmarks: bool,
    /// Whether the state comes first, as events.
    pub initial_events: bool,
    /// When it ends.
    pub timeout_seconds: Option<u64>,
}

/// One event.
#[derive(Debug, Deserialize)]
pub struct Event {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`, `ERROR`.
    pub r#type: String,
    /// JSON text.
    pub object: Box<RawValue>,
}

/// Events as they come.
pub type Events = BoxStream<'static, io::Result<Event>>;

impl Operations {
    /// The events of a kind after the version that the options name.
    ///
    /// # Errors
    /// 422 for a client that wants the state as events: it lists instead, and gets what SQL alone has as well.
    pub async fn watch(
        &self,
        caller: &Caller,
        kind: &'static Kind,
        which: &ListOptions,
        options: &WatchOptions,
    ) -> Result<Events, Refusal> {
        self.allow(caller, Wanted::of("watch", kind, which.namespace.as_deref()))
            .await?;
        if options.initial_events {
            let rule = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            return Err(Refusal::new(
                Reason::Invalid,
                format!("ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: {rule}"),
            ));
        }
        if which.at.is_some() || which.include_deleted {
            return Err(Refusal::bad_request(
                "the past does not change: leave out at and includeDeleted",
            ));
        }
        let mut query = list::selectors(which);
        query.push(("watch", "true".to_owned()));
        if !which.resource_version.is_empty() {
            query.push(("resourceVersion", which.resource_version.clone()));
        }
        if options.bookmarks {
            query.push(("allowWatchBookmarks", "true".to_owned()));
        }
        if let Some(seconds) = options.timeout_seconds {
            query.push(("timeoutSeconds", seconds.to_string()));
        }
        let path = collection(kind, which.namespace.as_deref());
        let response = self.upstream.open(caller, Call::get(path, query)).await?;
        let store = self.store.clone();
        let events = cluster::lines(response.into_body())
            .try_filter(|line| std::future::ready(!line.trim_ascii().is_empty()))
            .map(|line| serde_json::from_slice::<Event>(&line?).map_err(io::Error::other))
            .try_filter_map(move |event| {
                let store = store.clone();
                async move { Ok((!tells_of_a_move(&store, kind, &event).await?).then_some(event)) }
            });
        Ok(kept_moving(events.boxed(), &self.figures, STALLED))
    }
}

/// Hands events on at the watcher's pace, so that memory holds two of them. A watcher that stands still loses its
/// watch, and with it nothing: who asks again from the last version that it saw misses no event.
fn kept_moving(mut events: Events, figures: &Figures, stalled: Duration) -> Events {
    let (to, from) = mpsc::channel(1);
    let one = OneMore::of(&figures.watches);
    tokio::spawn(async move {
        let _until_the_end = one;
        loop {
            let event = tokio::select! {
                () = to.closed() => return,
                event = events.next() => event,
            };
            let Some(event) = event else { return };
            if to.send_timeout(event, stalled).await.is_err() {
                tracing::debug!("A watcher takes no events; its watch has ended");
                return;
            }
        }
    });
    ReceiverStream::new(from).boxed()
}

/// Whether an event shows an object on its way out of the cluster that SQL keeps.
async fn tells_of_a_move(store: &Arc<dyn MetadataStorage>, kind: &Kind, event: &Event) -> io::Result<bool> {
    let head = match event.r#type.as_str() {
        "DELETED" | "MODIFIED" => Head::read(event.object.get().as_bytes()).metadata,
        _ => return Ok(false),
    };
    if event.r#type == "MODIFIED" && head.deletion_timestamp.is_none() {
        return Ok(false);
    }
    let row = store.row_states(kind, &[Uid::from(head.uid.as_str())]).await;
    // Unknown is not the same as kept: the watch breaks off, and the client asks again.
    let row = row.map_err(io::Error::other)?;
    Ok(row.iter().any(|row| row.life == Life::Evicted))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use futures::stream;

    use super::*;

    fn event() -> io::Result<Event> {
        Ok(Event {
            r#type: "ADDED".to_owned(),
            object: RawValue::from_string("{}".to_owned()).map_err(io::Error::other)?,
        })
    }

    async fn ends(figures: &Figures) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while figures.watches.get() > 0.0 {
            assert!(Instant::now() < deadline, "the watch goes on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_watch_ends_when_nobody_takes_its_events_and_when_nobody_is_there() {
        let figures = Figures::default();
        let patience = Duration::from_millis(50);
        let mut stalled = kept_moving(stream::repeat_with(event).boxed(), &figures, patience);
        assert_eq!(figures.watches.get(), 1.0);
        ends(&figures).await;
        let last = [stalled.next().await.is_some(), stalled.next().await.is_some()];
        assert_eq!(last, [true, false], "what was under way, and a clean end");

        let mut quiet = kept_moving(stream::pending().boxed(), &figures, patience);
        assert!(tokio::time::timeout(2 * patience, quiet.next()).await.is_err());
        assert_eq!(
            figures.watches.get(),
            1.0,
            "that nothing happens is no fault of the watcher"
        );
        drop(quiet);
        ends(&figures).await;
    }
}
