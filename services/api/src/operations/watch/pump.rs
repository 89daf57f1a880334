//! One watch from its beginning to its end: the events of the cluster and those of SQL in one stream.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use kindex_runtime::kind::Kind;
use kindex_runtime::object::{ResourceVersion, Uid};
use kindex_runtime::store::{Life, MetadataStorage};
use serde_json::json;
use serde_json::value::RawValue;

use super::super::cluster::{self, Call};
use super::super::objects::{Head, HeadMetadata};
use super::super::{Caller, ListOptions, Listed, Operations, Refusal, collection, list};
use super::feed::Follower;
use super::moved::Filter;
use super::outlet::{End, Outlet};
use super::{Event, WatchOptions};

/// What says that the state is complete.
/// <https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists>
const COMPLETE: &str = "k8s.io/initial-events-end";

/// What is asked for, and by whom.
pub(super) struct Stream {
    pub(super) operations: Arc<Operations>,
    pub(super) caller: Caller,
    pub(super) kind: &'static Kind,
    pub(super) which: ListOptions,
    pub(super) options: WatchOptions,
}

/// The cluster's part.
type Upstream = BoxStream<'static, io::Result<Event>>;

impl Stream {
    /// The events of the cluster after a version.
    pub(super) async fn open(&self, version: &str) -> Result<Upstream, Refusal> {
        let mut query = list::selectors(&self.which);
        query.push(("watch", "true".to_owned()));
        query.push(("resourceVersion", version.to_owned()));
        if self.options.bookmarks {
            query.push(("allowWatchBookmarks", "true".to_owned()));
        }
        if let Some(seconds) = self.options.timeout_seconds {
            query.push(("timeoutSeconds", seconds.to_string()));
        }
        let path = collection(self.kind, self.which.namespace.as_deref());
        let response = self
            .operations
            .upstream
            .open(&self.caller, Call::get(path, query))
            .await?;
        let events = cluster::lines(response.into_body())
            .try_filter(|line| std::future::ready(!line.trim_ascii().is_empty()))
            .map(|line| serde_json::from_slice(&line?).map_err(io::Error::other));
        Ok(events.boxed())
    }

    /// A page of the state.
    pub(super) async fn page(&self, continue_token: &str) -> Result<Listed, Refusal> {
        let options = ListOptions {
            continue_token: continue_token.to_owned(),
            resource_version: String::new(),
            resource_version_match: String::new(),
            ..self.which.clone()
        };
        self.operations.list(&self.caller, self.kind, &options).await
    }

    fn bookmark(&self, version: &str, is_complete: bool) -> io::Result<Event> {
        let mut metadata = json!({"resourceVersion": version, "creationTimestamp": null});
        if is_complete {
            metadata["annotations"] = json!({COMPLETE: "true"});
        }
        let object = json!({"kind": self.kind.name, "apiVersion": self.kind.api_version(), "metadata": metadata});
        event("BOOKMARK", object.to_string())
    }
}

fn event(r#type: &str, object: String) -> io::Result<Event> {
    Ok(Event {
        r#type: r#type.to_owned(),
        object: RawValue::from_string(object)?,
    })
}

/// One watch.
pub(super) struct Pump {
    stream: Stream,
    filter: Filter,
    follower: Follower,
    /// The last of the cluster that its client has seen.
    version: String,
    /// What SQL told of. What the cluster told of these objects is older, whenever it comes.
    told: HashSet<Uid>,
    /// The cluster's version after which it tells nothing of them.
    told_until: ResourceVersion,
}

impl Pump {
    pub(super) fn new(stream: Stream, filter: Filter, follower: Follower, version: String) -> Self {
        Self {
            stream,
            filter,
            follower,
            version,
            told: HashSet::new(),
            told_until: ResourceVersion::default(),
        }
    }

    /// First the state, page by page, then what happens.
    pub(super) async fn state_first(self, outlet: Outlet, first: Listed) -> Result<(), End> {
        let mut page = first;
        loop {
            for item in page.items {
                outlet.send(event("ADDED", item)?).await?;
            }
            if page.continue_token.is_empty() {
                break;
            }
            // On the heap while it lasts, as all that a watch at rest has no room for.
            page = match Box::pin(self.stream.page(&page.continue_token)).await {
                Ok(page) => page,
                Err(refusal) => return refused(&outlet, &refusal).await,
            };
        }
        let Stream { options, .. } = &self.stream;
        if options.bookmarks && options.initial_events == Some(true) {
            outlet.send(self.stream.bookmark(&self.version, true)?).await?;
        }
        match Box::pin(self.stream.open(&self.version)).await {
            Ok(events) => self.live(outlet, events).await,
            Err(refusal) => refused(&outlet, &refusal).await,
        }
    }

    /// What happens, in the cluster and in SQL.
    pub(super) async fn live(mut self, outlet: Outlet, mut events: Upstream) -> Result<(), End> {
        loop {
            tokio::select! {
                biased;
                () = outlet.closed() => return Err(End::Left),
                moved = self.follower.moved() => {
                    moved?;
                    self.tell_moves(&outlet).await?;
                }
                event = events.next() => {
                    let Some(event) = event else { return Ok(()) };
                    let event = event?;
                    // What happened in SQL before is told before.
                    while self.follower.is_behind().await? {
                        self.tell_moves(&outlet).await?;
                    }
                    self.pass_on(&outlet, event).await?;
                }
            }
        }
    }

    /// Tells some changes of SQL, and how far the client has come in the cluster's time: the versions of what lives in
    /// SQL alone are none of the cluster's, and nobody can go on from them.
    async fn tell_moves(&mut self, outlet: &Outlet) -> Result<(), End> {
        let chunk = self.follower.next().await?;
        let mut were_told = false;
        for moved in &chunk.moves {
            if let Some(event) = self.filter.event(moved)? {
                outlet.send(event).await?;
                self.told.insert(moved.row.object.metadata.uid.clone());
                self.told_until = chunk.version;
                were_told = true;
            }
        }
        if were_told && self.stream.options.bookmarks {
            outlet.send(self.stream.bookmark(&self.version, false)?).await?;
        }
        Ok(())
    }

    async fn pass_on(&mut self, outlet: &Outlet, event: Event) -> Result<(), End> {
        let head = Head::read(event.object.get().as_bytes()).metadata;
        let version = head.resource_version.parse().map(ResourceVersion);
        if version.is_ok_and(|version| version > self.told_until) {
            self.told.clear();
        }
        let is_late = self.told.contains(&Uid::from(head.uid.as_str()));
        let store = &self.stream.operations.store;
        if !is_late && !tells_of_a_move(store, self.stream.kind, &event.r#type, &head).await? {
            outlet.send(event).await?;
        }
        if !head.resource_version.is_empty() {
            self.version = head.resource_version;
        }
        Ok(())
    }
}

/// Tells why the watch ends, as Kubernetes does once events were told.
async fn refused(outlet: &Outlet, refusal: &Refusal) -> Result<(), End> {
    outlet.send(event("ERROR", refusal.status().to_string())?).await
}

/// Whether an event shows an object on its way out of the cluster that SQL keeps.
async fn tells_of_a_move(
    store: &Arc<dyn MetadataStorage>,
    kind: &Kind,
    event: &str,
    head: &HeadMetadata,
) -> io::Result<bool> {
    match event {
        "DELETED" => {}
        "MODIFIED" if head.deletion_timestamp.is_some() => {}
        _ => return Ok(false),
    }
    let row = store.row_states(kind, &[Uid::from(head.uid.as_str())]).await;
    // Unknown is not the same as kept: the watch breaks off, and the client asks again.
    let row = row.map_err(io::Error::other)?;
    Ok(row.iter().any(|row| row.life == Life::Evicted))
}
