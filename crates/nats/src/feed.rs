//! Feeds the stream of a topic from the outbox: what changed is published by pages, then how far the outbox is read.
//! Both are in the same stream, so that a stream that lost its disk has lost both.
//!
//! Each publication depends on the claim of its process: the server refuses those of a process that another one has
//! followed, so an older event never replaces a newer one.

use std::convert::Infallible;
use std::future::IntoFuture as _;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::context::{CreateStreamError, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use futures::future::try_join_all;
use jiff::Timestamp;
use kindex_events::Event;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_store::{Mark, Outbox, OutboxEntry, Position, StoreError};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::connection::Connection;
use crate::names::Names;
use crate::progress::Progress;
use crate::stream;
use crate::stream_position::{CLOCK_SKEW_MAX, TOMBSTONES_KEPT};

/// Entries of the outbox that are published together.
const PAGE: u32 = 500;
/// How often the stream is looked for while nothing changes: somebody may have removed it.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The header that says of which subject the last sequence is expected.
const EXPECTED_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

/// Why a stream is not fed any more. Another attempt begins where this one ended.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The outbox cannot be read.
    #[error("the outbox cannot be read: {0}")]
    Outbox(#[from] StoreError),
    /// The stream cannot be read or removed.
    #[error("the stream {stream} cannot be read: {source}")]
    Stream {
        /// Its name.
        stream: String,
        /// Why.
        source: async_nats::Error,
    },
    /// The stream cannot be made.
    #[error("the stream {stream} cannot be made: {source}")]
    Make {
        /// Its name.
        stream: String,
        /// Why.
        source: CreateStreamError,
    },
    /// Another process feeds the stream now.
    #[error("another process feeds the stream {stream} now")]
    Followed {
        /// Its name.
        stream: String,
    },
    /// The connection was lost, even if it was re-established.
    #[error("lost the connection to the NATS server")]
    Away,
    /// Somebody removed the stream.
    #[error("the stream {stream} is gone")]
    Gone {
        /// Its name.
        stream: String,
    },
    /// The server took no event.
    #[error("the stream {stream} takes no event: {source}")]
    Publish {
        /// Its name.
        stream: String,
        /// Why.
        source: PublishError,
    },
}

/// How far the outbox is read, in the stream.
#[derive(Deserialize, Serialize)]
struct StreamMark {
    position: u64,
    stamp: u64,
}

/// What feeds the stream of one kind.
pub struct Feeder {
    connection: Connection,
    outbox: Arc<dyn Outbox>,
    kind: &'static Kind,
    topic: String,
    names: Names,
    partitions: u32,
    progress: Progress,
}

/// A stream that this process feeds.
struct Claimed {
    /// The sequence of our claim: the last one on its subject while we feed the stream.
    claim: u64,
    mark: Mark,
    /// The life of the connection in which it was claimed.
    life: Option<u64>,
}

impl Feeder {
    /// Feeds the topic of a kind. A stream that is not there yet gets so many partitions.
    pub fn new(
        connection: Connection,
        outbox: Arc<dyn Outbox>,
        kind: &'static Kind,
        partitions: u32,
        progress: Progress,
    ) -> Self {
        let topic = format!("{}.{}", kind.plural, kind.group);
        Self {
            connection,
            outbox,
            kind,
            names: Names::of(&topic),
            topic,
            partitions: partitions.max(1),
            progress,
        }
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Feeds the stream until something fails, and looks for changes this often while there are none.
    ///
    /// # Errors
    /// Every [`FeedError`]; the caller begins again after a pause, while it is the one to feed.
    pub async fn run(&self, every: Duration) -> Result<Infallible, FeedError> {
        let mut claimed = self.begin().await?;
        let mut looked = Instant::now();
        loop {
            if self.step(&mut claimed).await? {
                continue;
            }
            self.check(&claimed, &mut looked).await?;
            self.progress.up_to_date(Instant::now());
            sleep(every).await;
        }
    }

    /// Whether the stream is there while nothing is published, which would find out.
    async fn check(&self, claimed: &Claimed, looked: &mut Instant) -> Result<(), FeedError> {
        let life = self.connection.life();
        if life.is_none() || life != claimed.life {
            return Err(FeedError::Away);
        }
        if looked.elapsed() < LOOK_EVERY {
            return Ok(());
        }
        *looked = Instant::now();
        let found = stream::found(&self.connection.context, &self.names).await;
        match found.map_err(self.unreadable())? {
            Some(_) => Ok(()),
            None => Err(FeedError::Gone {
                stream: self.names.stream(),
            }),
        }
    }

    /// Takes the stream over where it is fed from this database, and makes it anew otherwise.
    async fn begin(&self) -> Result<Claimed, FeedError> {
        let context = &self.connection.context;
        let life = self.connection.life();
        if let Some(stream) = stream::found(context, &self.names).await.map_err(self.unreadable())? {
            let claim = self.claim().await?;
            let fed = stream::last::<StreamMark>(&stream, &self.names.mark()).await;
            if let Some(mark) = fed.map_err(self.unreadable())?.map(Mark::from)
                && self.outbox.since(self.kind, mark, 1).await?.is_some()
            {
                return Ok(Claimed { claim, mark, life });
            }
            let removed = context.delete_stream(self.names.stream()).await;
            removed.map_err(|error| self.unreadable()(error.into()))?;
        }
        let made = stream::made(context, &self.names, self.partitions, Timestamp::now()).await;
        made.map_err(|source| FeedError::Make {
            stream: self.names.stream(),
            source,
        })?;
        let claim = self.claim().await?;
        let mark = self.outbox.head(self.kind).await?;
        self.fill(Claimed { claim, mark, life }).await
    }

    /// All objects, then the mark from which changes follow: only then is the stream complete.
    async fn fill(&self, mut claimed: Claimed) -> Result<Claimed, FeedError> {
        let mut after: Option<Uid> = None;
        loop {
            let page = self.outbox.replay(self.kind, after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.uid.clone());
            self.publish_all(&claimed, &page).await?;
        }
        let filled = claimed.mark;
        self.note(&mut claimed, filled).await?;
        Ok(claimed)
    }

    /// Publishes the next changes; whether there were any.
    async fn step(&self, claimed: &mut Claimed) -> Result<bool, FeedError> {
        let Some((entries, mark)) = self.outbox.since(self.kind, claimed.mark, PAGE).await? else {
            *claimed = self.begin().await?;
            return Ok(true);
        };
        if mark == claimed.mark {
            return Ok(false);
        }
        self.publish_all(claimed, &entries).await?;
        self.note(claimed, mark).await?;
        Ok(true)
    }

    async fn publish_all(&self, claimed: &Claimed, entries: &[OutboxEntry]) -> Result<(), FeedError> {
        let mut answers = Vec::with_capacity(entries.len());
        for entry in entries {
            let event = serde_json::to_vec(&self.event(entry)).expect("an event is plain data");
            let mut message = self.claimed_message(claimed.claim).payload(event.into());
            if entry.erased {
                message = message.ttl((TOMBSTONES_KEPT + CLOCK_SKEW_MAX).unsigned_abs());
            }
            let sent = self
                .connection
                .context
                .send_publish(self.names.sent(&entry.uid), message);
            answers.push(sent.await.map_err(|error| self.not_taken(error))?.into_future());
        }
        let taken = try_join_all(answers).await;
        taken.map_err(|error| self.not_taken(error))?;
        self.progress.published(entries.len());
        Ok(())
    }

    async fn note(&self, claimed: &mut Claimed, mark: Mark) -> Result<(), FeedError> {
        let fed = serde_json::to_vec(&StreamMark::from(mark)).expect("plain data");
        let message = self.claimed_message(claimed.claim).payload(fed.into());
        self.publish(self.names.mark(), message).await?;
        claimed.mark = mark;
        Ok(())
    }

    async fn claim(&self) -> Result<u64, FeedError> {
        self.publish(self.names.feeder(), PublishMessage::build()).await
    }

    async fn publish(&self, subject: String, message: PublishMessage) -> Result<u64, FeedError> {
        let sent = self.connection.context.send_publish(subject, message).await;
        let taken = sent.map_err(|error| self.not_taken(error))?.await;
        taken
            .map(|answer| answer.sequence)
            .map_err(|error| self.not_taken(error))
    }

    fn claimed_message(&self, claim: u64) -> PublishMessage {
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED_SUBJECT, self.names.feeder());
        PublishMessage::build()
            .headers(headers)
            .expected_last_subject_sequence(claim)
    }

    fn event(&self, entry: &OutboxEntry) -> Event {
        Event {
            resource_id: entry.uid.clone(),
            deletion_timestamp: entry.deletion_timestamp,
            topic: self.topic.clone(),
            namespace: entry.namespace.clone(),
            name: entry.name.clone(),
            erased: entry.erased,
        }
    }

    fn unreadable(&self) -> impl Fn(async_nats::Error) -> FeedError {
        let stream = self.names.stream();
        move |source| FeedError::Stream {
            stream: stream.clone(),
            source,
        }
    }

    fn not_taken(&self, source: PublishError) -> FeedError {
        let stream = self.names.stream();
        match source.kind() {
            PublishErrorKind::WrongLastSequence => FeedError::Followed { stream },
            _ => FeedError::Publish { stream, source },
        }
    }
}

impl From<StreamMark> for Mark {
    fn from(fed: StreamMark) -> Self {
        Self {
            position: Position(fed.position),
            stamp: fed.stamp,
        }
    }
}

impl From<Mark> for StreamMark {
    fn from(mark: Mark) -> Self {
        Self {
            position: mark.position.0,
            stamp: mark.stamp,
        }
    }
}
