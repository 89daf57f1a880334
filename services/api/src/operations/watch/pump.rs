//! One watch: merges the events of the cluster and of SQL into one stream.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use kindex_kube_api::request::parameter;
use kindex_kube_api::watch::{self, EventType};
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::row_version::RowVersion;
use kindex_query::Life;
use kindex_serve::pages::PageSize;
use serde_json::Value;

use super::event_sender::{EventSender, StreamEnd};
use super::feed::Follower;
use super::moved::Filter;
use super::{Event, WatchOptions};
use crate::operations::cluster::{self, Call};
use crate::operations::objects::{Head, HeadMetadata};
use crate::operations::selection::selectors;
use crate::operations::{Caller, ListOptions, Operations, Refusal, Resource};

/// What is asked for, and by whom.
pub(super) struct Stream {
    pub(super) operations: Arc<Operations>,
    pub(super) caller: Caller,
    pub(super) resource: Resource,
    pub(super) which: ListOptions,
    pub(super) options: WatchOptions,
}

/// A part of the state with which a watch begins.
pub(super) struct State {
    items: Vec<Bytes>,
    /// The version of the cluster that it is of.
    pub(super) version: String,
    /// Fetches the next part; empty after the last.
    continue_token: String,
}

/// The cluster's part.
type Upstream = BoxStream<'static, io::Result<Event>>;

impl Stream {
    /// The events of the cluster after a version.
    pub(super) async fn open(&self, version: &str) -> Result<Upstream, Refusal> {
        let mut query = selectors(&self.which);
        query.push((parameter::WATCH, "true".to_owned()));
        query.push((parameter::RESOURCE_VERSION, version.to_owned()));
        // Ours to know what has come, also where the client asks for none.
        query.push((parameter::ALLOW_WATCH_BOOKMARKS, "true".to_owned()));
        self.connect(query).await
    }

    /// The watch of the cluster, with the client's options.
    pub(super) async fn plain(&self) -> Result<Upstream, Refusal> {
        let Self { which, options, .. } = self;
        let mut query = selectors(which);
        query.push((parameter::WATCH, "true".to_owned()));
        query.push((parameter::RESOURCE_VERSION, which.resource_version.clone()));
        query.push((parameter::RESOURCE_VERSION_MATCH, which.resource_version_match.clone()));
        query.push((parameter::ALLOW_WATCH_BOOKMARKS, options.bookmarks.to_string()));
        let initial = options.initial_events.map(|initial| initial.to_string());
        query.push((parameter::SEND_INITIAL_EVENTS, initial.unwrap_or_default()));
        query.retain(|(_, value)| !value.is_empty());
        self.connect(query).await
    }

    async fn connect(&self, mut query: Vec<(&'static str, String)>) -> Result<Upstream, Refusal> {
        if let Some(seconds) = self.options.timeout_seconds {
            query.push((parameter::TIMEOUT_SECONDS, seconds.to_string()));
        }
        let path = self.resource.collection(self.which.namespace.as_deref());
        let response = self
            .operations
            .backends
            .upstream_of(self.resource.kind)?
            .open(&self.caller, Call::get(path, query))
            .await?;
        let watches = self.operations.streams.watches.clone();
        let events = cluster::lines(response.into_body())
            .try_filter(|line| std::future::ready(!line.trim_ascii().is_empty()))
            .map(move |line| Event::read(line?, &watches));
        Ok(events.boxed())
    }

    /// A page of the state, once it is the turn of this watch and there is room for what was read.
    pub(super) async fn page(&self, continue_token: &str, size: &mut PageSize) -> Result<State, Refusal> {
        let watches = &self.operations.streams.watches;
        let _turn = watches.turn().await;
        let options = ListOptions {
            limit: size.objects(),
            continue_token: continue_token.to_owned(),
            resource_version: String::new(),
            resource_version_match: String::new(),
            ..self.which.clone()
        };
        let listed = self.operations.list(&self.caller, self.resource, &options).await?;
        size.read(listed.items.len(), listed.items.iter().map(String::len).sum());
        let items = listed.items.into_iter().map(|item| watches.shared(Bytes::from(item)));
        let state = State {
            items: items.collect(),
            version: listed.resource_version,
            continue_token: listed.continue_token,
        };
        watches.settle().await;
        Ok(state)
    }

    fn bookmark(&self, version: &str, is_complete: bool) -> io::Result<Event> {
        let Resource { kind, .. } = self.resource;
        let mut object = watch::bookmark(&self.resource.api_version(), kind.name, version, is_complete);
        object["metadata"]["creationTimestamp"] = Value::Null;
        Ok(event(EventType::Bookmark, object.to_string()))
    }
}

/// Hands the cluster's events on, until either side ends.
pub(super) async fn hand_on(sender: EventSender, mut events: Upstream) -> Result<(), StreamEnd> {
    loop {
        let event = tokio::select! {
            () = sender.closed() => return Err(StreamEnd::Left),
            event = events.next() => event,
        };
        match event {
            Some(event) => sender.send(event?).await?,
            None => return Ok(()),
        }
    }
}

fn event(r#type: EventType, object: impl Into<Bytes>) -> Event {
    Event {
        r#type,
        object: object.into(),
    }
}

/// One watch.
pub(super) struct Pump {
    stream: Stream,
    filter: Filter,
    follower: Follower,
    /// The last of the cluster that its client has seen.
    version: String,
    watermarks: Watermarks,
}

/// Up to where SQL's changes were sent. Events of the cluster for these objects below that are older, and are dropped.
#[derive(Default)]
struct Watermarks {
    /// Up to which version of the cluster, for each.
    until: HashMap<Uid, ResourceVersion>,
    /// The last of these.
    last: ResourceVersion,
}

impl Watermarks {
    fn add(&mut self, uid: &Uid, until: ResourceVersion) {
        let known = self.until.entry(uid.clone()).or_default();
        *known = until.max(*known);
        self.last = until.max(self.last);
    }

    /// Whether an event of the cluster is older than what was sent of its object from SQL.
    fn is_late(&mut self, event: &EventType, head: &HeadMetadata) -> bool {
        let Ok(version) = head.resource_version.parse().map(ResourceVersion) else {
            return false;
        };
        // After a bookmark nothing comes of its own version.
        if version > self.last || (*event == EventType::Bookmark && version == self.last) {
            self.until = HashMap::new();
        }
        let until = self.until.get(&Uid::from(head.uid.as_str()));
        until.is_some_and(|until| version <= *until)
    }
}

impl Pump {
    pub(super) fn new(stream: Stream, filter: Filter, follower: Follower, version: String) -> Self {
        Self {
            stream,
            filter,
            follower,
            version,
            watermarks: Watermarks::default(),
        }
    }

    /// First the state, page by page, then what happens.
    pub(super) async fn state_first(
        self,
        sender: EventSender,
        first: State,
        mut size: PageSize,
    ) -> Result<(), StreamEnd> {
        let mut page = first;
        loop {
            for item in page.items {
                sender.send(event(EventType::Added, item)).await?;
            }
            if page.continue_token.is_empty() {
                break;
            }
            // On the heap while it lasts, as all that a watch at rest has no room for.
            page = match Box::pin(self.stream.page(&page.continue_token, &mut size)).await {
                Ok(page) => page,
                Err(refusal) => return refused(&sender, &refusal).await,
            };
        }
        let Stream { options, .. } = &self.stream;
        if options.bookmarks && options.initial_events == Some(true) {
            sender.send(self.stream.bookmark(&self.version, true)?).await?;
        }
        match Box::pin(self.stream.open(&self.version)).await {
            Ok(events) => self.live(sender, events).await,
            Err(refusal) => refused(&sender, &refusal).await,
        }
    }

    /// What happens, in the cluster and in SQL.
    pub(super) async fn live(mut self, sender: EventSender, mut events: Upstream) -> Result<(), StreamEnd> {
        loop {
            tokio::select! {
                biased;
                () = sender.closed() => return Err(StreamEnd::Left),
                moved = self.follower.moved() => {
                    moved?;
                    self.send_moves(&sender).await?;
                }
                event = events.next() => {
                    let Some(event) = event else { return Ok(()) };
                    let event = event?;
                    // What happened in SQL before is told before.
                    while self.follower.is_behind().await? {
                        self.send_moves(&sender).await?;
                    }
                    self.pass_on(&sender, event).await?;
                }
            }
        }
    }

    /// Sends the next changes of archived objects, followed by a bookmark with a version of the cluster: a watch cannot
    /// be resumed from the version of an archived object.
    async fn send_moves(&mut self, sender: &EventSender) -> Result<(), StreamEnd> {
        let chunk = self.follower.next().await?;
        let mut were_sent = false;
        let reached = self.version.parse().map(ResourceVersion).unwrap_or_default();
        for moved in &chunk.moves {
            let version = RowVersion::unpack(moved.row.object.metadata.resource_version);
            if matches!(version, RowVersion::Cluster(version) if version > reached) {
                // The cluster is about to tell of it. Who saw this version would not ask for what comes before.
                continue;
            }
            if let Some(event) = self.filter.event(moved)? {
                sender.send_own(event).await?;
                let until = moved.until.unwrap_or(chunk.version);
                self.watermarks.add(&moved.row.object.metadata.uid, until);
                were_sent = true;
            }
        }
        if were_sent && self.stream.options.bookmarks {
            sender.send(self.stream.bookmark(&self.version, false)?).await?;
        }
        Ok(())
    }

    async fn pass_on(&mut self, sender: &EventSender, event: Event) -> Result<(), StreamEnd> {
        let head = Head::read(&event.object).metadata;
        let is_wanted = event.r#type != EventType::Bookmark || self.stream.options.bookmarks;
        let is_late = self.watermarks.is_late(&event.r#type, &head);
        if is_wanted
            && !is_late
            && let Some(event) = self.beside_sql(event, &head).await?
        {
            sender.send(event).await?;
        }
        if !head.resource_version.is_empty() {
            self.version = head.resource_version;
        }
        Ok(())
    }

    /// What is told of an event of the cluster. Nothing where it shows an object that is leaving the cluster, that SQL
    /// keeps and the watch sees still, unless SQL has it in just this state: then it changed on the way, and is as SQL
    /// has it.
    async fn beside_sql(&self, received: Event, head: &HeadMetadata) -> Result<Option<Event>, StreamEnd> {
        let is_deletion = received.r#type == EventType::Deleted;
        if !is_deletion && (received.r#type != EventType::Modified || head.deletion_timestamp.is_none()) {
            return Ok(Some(received));
        }
        let Stream {
            operations,
            resource,
            which,
            ..
        } = &self.stream;
        let kind = resource.kind;
        let uid = Uid::from(head.uid.as_str());
        let is_this = |version: ResourceVersion| head.resource_version == version.to_string();
        // Unknown is not the same as kept: the watch breaks off, and the client asks again.
        let store = operations.backends.store().map_err(io::Error::other)?;
        let rows = store.row_states(kind, std::slice::from_ref(&uid)).await;
        let rows = rows.map_err(io::Error::other)?;
        match rows.iter().find(|row| row.life == Life::Archived) {
            None => return Ok(Some(received)),
            Some(_) if is_deletion && which.labels.is_empty() => return Ok(None),
            Some(row) if !is_deletion && !is_this(row.res_version.pack()) => return Ok(None),
            Some(_) => {}
        }
        let row = store.get_by_id(kind, &uid).await.map_err(io::Error::other)?;
        let Some(row) = row.filter(|row| row.life == Life::Archived) else {
            return Ok(Some(received));
        };
        if is_deletion {
            // It may have left the selector, and not the cluster.
            let is_seen = self.filter.sees(&self.filter.view.value(&row.object)?);
            return Ok((!is_seen).then_some(received));
        }
        let is_this = is_this(row.object.metadata.resource_version);
        if !is_this {
            return Ok(None);
        }
        Ok(Some(event(EventType::Modified, self.filter.view.shown(&row)?)))
    }
}

/// Tells why the watch ends, as Kubernetes does once events were told.
async fn refused(sender: &EventSender, refusal: &Refusal) -> Result<(), StreamEnd> {
    sender.send(event(EventType::Error, refusal.to_json())).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watermarks_are_dropped_once_the_cluster_sends_nothing_older() {
        let head = |version: u64| HeadMetadata {
            uid: "u".to_owned(),
            resource_version: version.to_string(),
            ..HeadMetadata::default()
        };
        for (first, is_late) in [
            ((EventType::Modified, 6), true),
            ((EventType::Modified, 7), true),
            ((EventType::Bookmark, 6), true),
            ((EventType::Bookmark, 7), false),
            ((EventType::Modified, 8), false),
        ] {
            let mut watermarks = Watermarks::default();
            watermarks.add(&Uid::from("u"), ResourceVersion(7));
            watermarks.is_late(&first.0, &head(first.1));
            assert_eq!(watermarks.is_late(&EventType::Modified, &head(7)), is_late, "{first:?}");
            assert_eq!(watermarks.until.is_empty(), !is_late, "{first:?}");
        }
    }
    /// One has left the cluster by now, the other will be told of again.
    #[test]
    fn each_object_has_a_watermark_of_its_own() {
        let head = |uid: &str, version: u64| HeadMetadata {
            uid: uid.to_owned(),
            resource_version: version.to_string(),
            ..HeadMetadata::default()
        };
        let mut watermarks = Watermarks::default();
        watermarks.add(&Uid::from("gone"), ResourceVersion(9));
        watermarks.add(&Uid::from("there"), ResourceVersion(6));
        for (uid, version, is_late) in [
            ("there", 6, true),
            ("there", 7, false),
            ("gone", 7, true),
            ("other", 1, false),
        ] {
            assert_eq!(
                watermarks.is_late(&EventType::Deleted, &head(uid, version)),
                is_late,
                "{uid} {version}"
            );
        }
    }
}
