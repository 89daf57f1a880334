//! Watches: the current state if requested, then every change, one JSON line each. The client's connection pulls the
//! stream; a slow reader falls back to the log and does not affect others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use kindex_kube_api::request::{ListQuery, Query, Rendering};
use kindex_kube_api::status::Status;
use kindex_kube_api::watch::{EventType, bookmark};
use kindex_kube_api::{partial, table};
use kindex_serve::pages::PageSize;
use kindex_serve::watches::WatchSlot;
use tokio::time::Instant;

use super::lines::{LARGE_BYTES, Lines};
use super::list::selected;
use super::{Call, Reply, render};
use crate::api::Api;
use crate::mutate::{not_shown, store_failed};
use crate::resource::{Resource, Shown, shown};
use crate::store::{Change, Feed, FeedError, Page, PageRequest, Revision};

/// Events that are ready at once travel together up to this size.
const PIECE_MAX_BYTES: usize = 64 * 1024;
/// A watch without a timeout of its own ends after this.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(45 * 60);
/// How often an idle watch receives a bookmark.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The last bookmark comes so long before the end.
const LAST_BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// Where a watch is.
enum Phase {
    /// It shows the state as of a version, from a page on.
    Initial(PageRequest),
    /// It reads the log.
    CatchingUp,
    /// It waits for what comes.
    Live,
    /// It is over.
    Ended,
}

struct Watch {
    api: Api,
    resource: Arc<Resource>,
    namespace: Option<String>,
    query: ListQuery,
    parameters: Query,
    rendering: Rendering,
    feed: Feed,
    /// Everything up to this version has been shown.
    position: u64,
    phase: Phase,
    /// How much is read from the log, or from the initial state, at once.
    size: PageSize,
    ends_at: Instant,
    bookmark_at: Instant,
    headed: bool,
}

/// Opens a watch. Errors that are known at once are answered at once.
pub(super) async fn watch(call: &Call<'_>, query: ListQuery) -> Result<Reply, Status> {
    let slot: WatchSlot = call
        .api
        .watches
        .begin()
        .ok_or_else(|| Status::too_many_requests("too many watches; try again later"))?;
    let timeout = query.timeout_seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
    let now = Instant::now();
    let ends_at = now + timeout.min(Duration::from_secs(u64::from(u32::MAX)));
    // Subscribing before reading leaves no gap between the state and the events.
    let feed = call.api.store.subscribe(Some(&call.resource.storage));
    let position = query.rv.unwrap_or_default();
    // A new resource version was given out for the sake of bookmarks only if there was a mutation: 0 precedes
    // everything.
    let phase = if position == 0 || query.initial_events {
        Phase::Initial(PageRequest {
            resource: call.resource.storage.to_string(),
            namespace: call.request.path.namespace.clone(),
            ..PageRequest::default()
        })
    } else {
        Phase::CatchingUp
    };
    let watch = Watch {
        api: call.api.clone(),
        resource: Arc::clone(call.resource),
        namespace: call.request.path.namespace.clone(),
        query,
        parameters: call.request.query.clone(),
        rendering: call.request.rendering,
        feed,
        position,
        phase,
        size: PageSize::default(),
        ends_at,
        bookmark_at: next_bookmark(now, ends_at),
        headed: false,
    };
    let pieces = stream::unfold(watch, |mut watch| async move {
        let pieces = watch.next_pieces().await?;
        Some((stream::iter(pieces), watch))
    });
    Ok(Reply::lines(slot, pieces.flatten()))
}

impl Watch {
    /// The next lines, or nothing when the watch is over. Waits where there is no room for them.
    async fn next_pieces(&mut self) -> Option<Vec<Bytes>> {
        let watches = self.api.watches.clone();
        loop {
            let mut lines = Lines::default();
            let phase = std::mem::replace(&mut self.phase, Phase::Ended);
            // Who reads much waits for the turn, and has it until there is room for what was read.
            let _turn = match phase {
                Phase::Initial(_) | Phase::CatchingUp => watches.turn().await,
                Phase::Live | Phase::Ended => None,
            };
            let next = match phase {
                Phase::Ended => return None,
                Phase::Initial(request) => self.show_state(request, &mut lines).await,
                Phase::CatchingUp => self.catch_up(&mut lines).await,
                Phase::Live => self.listen(&mut lines).await,
            };
            match next {
                Ok(phase) => self.phase = phase,
                Err(status) => push_status(&mut lines, &status),
            }
            let pieces = lines.finish(&watches);
            if !pieces.is_empty() {
                watches.settle().await;
                return Some(pieces);
            }
        }
    }

    async fn show_state(&mut self, mut request: PageRequest, lines: &mut Lines) -> Result<Phase, Status> {
        let limit = self.size.objects();
        request.limit = Some(limit);
        let page = self
            .api
            .store
            .list(&request)
            .await
            .map_err(|error| store_failed(&error))?;
        request.at = Some(page.rv);
        request.after = page
            .objects
            .last()
            .map(|last| (last.key.namespace.clone(), last.key.name.clone()));
        for revision in &page.objects {
            if selected(&self.resource, &self.query, revision).await? {
                self.push_revision(lines, &EventType::Added, revision).await?;
            }
        }
        self.learn(&page);
        if page.objects.len() >= limit as usize {
            return Ok(Phase::Initial(request));
        }
        self.position = page.rv;
        if self.query.initial_events && self.query.bookmarks {
            self.push_bookmark(lines, true);
        }
        Ok(Phase::CatchingUp)
    }

    async fn catch_up(&mut self, lines: &mut Lines) -> Result<Phase, Status> {
        let limit = self.size.objects();
        let missed = self
            .api
            .store
            .log_after(Some(&self.resource.storage), self.position, limit)
            .await;
        let missed = missed.map_err(|error| store_failed(&error))?;
        for revision in &missed.objects {
            self.push_change(lines, revision).await?;
        }
        self.learn(&missed);
        if missed.objects.len() >= limit as usize {
            return Ok(Phase::CatchingUp);
        }
        self.position = self.position.max(missed.rv);
        Ok(Phase::Live)
    }

    /// The next page holds about as many bytes as all do.
    fn learn(&mut self, page: &Page) {
        let bytes = page.objects.iter().map(|revision| revision.text.len()).sum();
        self.size.read(page.objects.len(), bytes);
    }

    async fn listen(&mut self, lines: &mut Lines) -> Result<Phase, Status> {
        let mut waiting = VecDeque::new();
        tokio::select! {
            // Where a machine was so busy that both are due, the last bookmark comes before the end.
            biased;
            () = self.api.shutdown.cancelled() => return Ok(Phase::Ended),
            () = tokio::time::sleep_until(self.bookmark_at), if self.query.bookmarks => {
                return self.bookmark(lines).await;
            }
            () = tokio::time::sleep_until(self.ends_at) => return Ok(Phase::Ended),
            received = self.feed.next() => match received {
                Ok(revision) => waiting.push_back(revision),
                Err(FeedError::Lagged) => return Ok(Phase::CatchingUp),
                Err(FeedError::Closed) => return Ok(Phase::Ended),
            },
        }
        while let Some(revision) = waiting.pop_front() {
            self.push_change(lines, &revision).await?;
            if lines.len() < PIECE_MAX_BYTES {
                match self.feed.ready() {
                    Ok(next) => waiting.extend(next),
                    Err(FeedError::Lagged) => return Ok(Phase::CatchingUp),
                    Err(FeedError::Closed) => return Ok(Phase::Ended),
                }
            }
        }
        Ok(Phase::Live)
    }

    /// Says how far the watch has come: to the last committed version, once all before it has been shown.
    async fn bookmark(&mut self, lines: &mut Lines) -> Result<Phase, Status> {
        let committed = self
            .api
            .store
            .committed(Some(&self.resource.storage))
            .unwrap_or_default();
        loop {
            match self.feed.ready() {
                Ok(Some(revision)) => self.push_change(lines, &revision).await?,
                Ok(None) => break,
                Err(FeedError::Lagged) => return Ok(Phase::CatchingUp),
                Err(FeedError::Closed) => return Ok(Phase::Ended),
            }
        }
        self.position = self.position.max(committed);
        self.push_bookmark(lines, false);
        self.bookmark_at = next_bookmark(Instant::now(), self.ends_at);
        Ok(Phase::Live)
    }

    /// Shows a change as it looks through the selectors: what enters is added, what leaves is deleted.
    async fn push_change(&mut self, lines: &mut Lines, revision: &Revision) -> Result<(), Status> {
        if revision.rv <= self.position {
            return Ok(());
        }
        self.position = revision.rv;
        if self
            .namespace
            .as_ref()
            .is_some_and(|namespace| *namespace != revision.key.namespace)
        {
            return Ok(());
        }
        let now = selected(&self.resource, &self.query, revision).await?;
        let before = match (&revision.before, revision.change) {
            (_, Change::Added) => false,
            (Some(before), _) => selected(&self.resource, &self.query, before).await?,
            (None, _) => now,
        };
        match (revision.change, before, now) {
            (Change::Added, _, true) | (Change::Modified, false, true) => {
                self.push_revision(lines, &EventType::Added, revision).await
            }
            (Change::Modified, true, true) => self.push_revision(lines, &EventType::Modified, revision).await,
            (Change::Deleted, true, _) => self.push_revision(lines, &EventType::Deleted, revision).await,
            (Change::Modified, true, false) => self.push_departed(lines, revision).await,
            (Change::Added, _, false) | (Change::Modified, false, false) | (Change::Deleted, false, _) => Ok(()),
        }
    }

    /// An object that the selectors no longer select is shown as it was, at the version of the change.
    async fn push_departed(&mut self, lines: &mut Lines, revision: &Revision) -> Result<(), Status> {
        let before = revision.before.as_deref().unwrap_or(revision);
        let shown = shown(&self.resource, before).await.map_err(|error| not_shown(&error))?;
        let mut object = shown.value().map_err(|error| store_failed(&error))?.clone();
        object["metadata"]["resourceVersion"] = revision.rv.to_string().into();
        self.push(lines, &EventType::Deleted, &Shown::Object(object))
    }

    async fn push_revision(&mut self, lines: &mut Lines, event: &EventType, revision: &Revision) -> Result<(), Status> {
        let resource = Arc::clone(&self.resource);
        let shown = shown(&resource, revision).await.map_err(|error| not_shown(&error))?;
        self.push(lines, event, &shown)
    }

    fn push(&mut self, lines: &mut Lines, event: &EventType, object: &Shown<'_>) -> Result<(), Status> {
        let value = || object.value().map_err(|error| store_failed(&error));
        let text = match (self.rendering, object) {
            (Rendering::Json | Rendering::Yaml, Shown::Text(revision)) if revision.text.len() >= LARGE_BYTES => {
                let watches = &self.api.watches;
                let text = revision.watch_text(|text| watches.counted(text));
                lines.push_shared(event, text, watches);
                return Ok(());
            }
            (Rendering::Json | Rendering::Yaml, _) => object.text(),
            (Rendering::Metadata, _) => Bytes::from(partial::of(value()?).to_string()),
            (Rendering::Table, _) => {
                let mut table = render::table(&self.api, &self.resource, &self.parameters, value()?);
                if self.headed {
                    table::remove_columns(&mut table);
                }
                self.headed = true;
                Bytes::from(table.to_string())
            }
        };
        lines.push(event, &text);
        Ok(())
    }

    fn push_bookmark(&mut self, lines: &mut Lines, ends_initial_events: bool) {
        let resource = &self.resource;
        let (kind, position) = (&resource.names.kind, self.position.to_string());
        let whole = bookmark(&resource.api_version, kind, &position, ends_initial_events);
        let object = match self.rendering {
            Rendering::Json | Rendering::Yaml => whole,
            Rendering::Table => table::of_bookmark(&whole),
            Rendering::Metadata => partial::of(&whole),
        };
        lines.push(&EventType::Bookmark, object.to_string().as_bytes());
    }
}

/// When the next bookmark is due: regularly, and once shortly before the end.
fn next_bookmark(now: Instant, ends_at: Instant) -> Instant {
    let regular = now + BOOKMARK_EVERY;
    match ends_at.checked_sub(LAST_BOOKMARK_BEFORE_END) {
        Some(last) if last > now => regular.min(last),
        _ => regular,
    }
}

fn push_status(lines: &mut Lines, status: &Status) {
    lines.push(&EventType::Error, status.to_json().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookmarks_come_every_minute_and_once_before_the_end() {
        let start = Instant::now();
        let ends_at = start + Duration::from_secs(100);
        let first = next_bookmark(start, ends_at);
        let second = next_bookmark(first, ends_at);
        assert_eq!(
            (first - start, second - start),
            (Duration::from_secs(60), Duration::from_secs(98))
        );
        assert!(next_bookmark(second, ends_at) > ends_at);
        assert!(next_bookmark(start, start + Duration::from_secs(1)) > start + Duration::from_secs(1));
    }
}
