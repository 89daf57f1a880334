//! Reads the stream of a topic: a consumer made anew for each subscription, over all partitions or some. Where some
//! came anew, they have a consumer of their own until they have come to where the others are.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use async_nats::jetstream::consumer::pull::{self, Config, MessagesErrorKind};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer};
use async_nats::jetstream::stream::{Info, Stream};
use async_nats::jetstream::{self};
use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use kindex_events::{Event, Message, PartitionAssignment, Source, SourceError, Subscribe, Subscription};
use serde::de::IgnoredAny;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::connection::Connection;
use crate::names::Names;
use crate::partitions::{PARTITIONS_MAX, Partitions};
use crate::stream::{found, last, life, partitions};
use crate::stream_position::{StreamPosition, StreamState};

/// How long the server keeps a consumer that nobody reads.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);
/// How often the server says that a consumer is there; one that is silent for twice as long is given up.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How often a subscription says that it works where nothing happens, or nothing that the filter lets pass.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Subscriptions to streams that a [`Feeder`](crate::Feeder) feeds.
pub struct NatsSource {
    connection: Connection,
    partitions: watch::Receiver<Partitions>,
    now: fn() -> Timestamp,
}

impl NatsSource {
    /// Reads all partitions, or those in `partitions`. When these change, every subscription is interrupted. Whoever
    /// resumes it goes on with the new set: partitions that came anew are replayed.
    pub fn new(connection: Connection, partitions: watch::Receiver<Partitions>, now: fn() -> Timestamp) -> Self {
        Self {
            connection,
            partitions,
            now,
        }
    }
}

#[async_trait]
impl Source for NatsSource {
    async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError> {
        self.follow(to).await.map(|(_, subscription)| subscription)
    }

    async fn follow(&self, to: &Subscribe) -> Result<(Option<PartitionAssignment>, Subscription), SourceError> {
        let names = Names::of(&to.topic);
        let found = found(&self.connection.context, &names).await;
        let stream = match (found.map_err(SourceError::interrupted)?, &to.from) {
            (Some(stream), _) => stream,
            (None, None) => return Err(SourceError::UnknownTopic(to.topic.clone())),
            (None, Some(_)) => return Err(SourceError::interrupted("the stream is not there at present")),
        };
        let Some(count) = partitions(&stream) else {
            let message = format!(
                "the stream {} has no partitions: Kindex did not make it",
                names.stream()
            );
            return Err(SourceError::Refused(message));
        };
        let mut wanted = self.partitions.clone();
        let state = StreamState {
            stream: life(&stream),
            partitions: wanted.borrow_and_update().numbers(count),
            last: stream.cached_info().state.last_sequence,
            time: (self.now)(),
        };
        let resumed = to
            .from
            .as_ref()
            .map(|from| StreamPosition::resumed(from, &to.topic, &state));
        let resumed = resumed.transpose()?;
        let (place, added) = resumed.unwrap_or_else(|| (StreamPosition::at_first(&state), state.partitions.clone()));
        let fed = last::<IgnoredAny>(&stream, &names.mark()).await;
        if fed.map_err(SourceError::interrupted)?.is_none() {
            return Err(SourceError::interrupted("the stream is being filled"));
        }
        let mut reader = MessageReader {
            topic: to.topic.clone(),
            deleting: to.deleting,
            ready: VecDeque::new(),
            place,
            deliveries: 0,
        };
        // Before anything of it is read: the end of a replay may be ready at once.
        let from = to.from.as_ref().map(|_| reader.place.position(&to.topic));
        let opened = OpenedStream { names, stream, count };
        let (consumer, messages) = opened.consume(&mut reader).await?;
        let subscribed = Subscribed {
            opened,
            reader,
            consumer,
            messages,
            partitions: wanted,
            now: self.now,
            said: state.time.as_second(),
            handled: None,
            is_ended: false,
        };
        let assignment = PartitionAssignment {
            partition_of: Box::new(move |uid| Names::partition_of(uid, count)),
            partitions: state.partitions,
            added,
            from,
        };
        Ok((Some(assignment), stream::unfold(subscribed, Subscribed::next).boxed()))
    }
}

/// The stream of a topic, as it was when a subscription began.
struct OpenedStream {
    names: Names,
    stream: Stream<Info>,
    /// How many partitions it has.
    count: u32,
}

impl OpenedStream {
    /// Makes the consumer of what follows on the place.
    async fn consume(&self, reader: &mut MessageReader) -> Result<(PullConsumer, pull::Stream), SourceError> {
        let consumer = loop {
            let consumer = self.stream.create_consumer(self.config(&reader.place)).await;
            let consumer = consumer.map_err(SourceError::interrupted)?;
            if consumer.cached_info().num_pending > 0 {
                break consumer;
            }
            if reader.place.behind().is_none() {
                reader.end_replay();
                break consumer;
            }
            reader.join();
        };
        self.check_life().await?;
        let messages = consumer.stream().heartbeat(HEARTBEAT).messages().await;
        Ok((consumer, messages.map_err(SourceError::interrupted)?))
    }

    /// A consumer is made by the name of the stream, and that may have been made anew since it was found.
    async fn check_life(&self) -> Result<(), SourceError> {
        let found = self.stream.get_info().await.map_err(SourceError::interrupted)?;
        match found.created == self.stream.cached_info().created {
            true => Ok(()),
            false => Err(SourceError::interrupted("the stream was made anew")),
        }
    }

    fn config(&self, place: &StreamPosition) -> Config {
        let first = self.stream.cached_info().state.first_sequence;
        Config {
            deliver_policy: match place.sequence {
                0 => DeliverPolicy::LastPerSubject,
                sequence => DeliverPolicy::ByStartSequence {
                    start_sequence: sequence.saturating_add(1).max(first),
                },
            },
            ack_policy: AckPolicy::Explicit,
            max_deliver: -1,
            inactive_threshold: ABANDONED_AFTER,
            memory_storage: true,
            filter_subjects: self.subjects(&place.partitions),
            ..Config::default()
        }
    }

    /// Of the events in these partitions.
    fn subjects(&self, partitions: &BTreeSet<u32>) -> Vec<String> {
        if partitions.is_empty() {
            // A consumer without subjects would have all of the stream.
            return vec![self.names.partition(PARTITIONS_MAX)];
        }
        match (0..self.count).all(|number| partitions.contains(&number)) {
            true => vec![self.names.all_partitions()],
            false => partitions.iter().map(|number| self.names.partition(*number)).collect(),
        }
    }
}

/// What is made of the messages of a consumer. Pure.
struct MessageReader {
    topic: String,
    deleting: bool,
    place: StreamPosition,
    ready: VecDeque<Message>,
    /// How many the consumer was sent, repeated ones included.
    deliveries: u64,
}

/// What a subscription needs of a message.
struct Received<'a> {
    /// Its number among all that the consumer is sent, from 1.
    delivery: u64,
    sequence: u64,
    /// How many follow.
    pending: u64,
    seconds: i64,
    payload: &'a [u8],
}

impl MessageReader {
    /// Reads a message at this time. Whether the partitions that are read have come to where others are.
    ///
    /// # Errors
    /// One before it is missing: the connection was cut while it was on its way. The server delivers it again, but
    /// only after later ones, so all that follow the place are read by another subscription. Or a tombstone before it
    /// may have expired.
    fn take(&mut self, received: &Received<'_>, now: i64) -> Result<bool, SourceError> {
        self.place.check_age(now)?;
        if received.delivery != self.deliveries + 1 {
            return Err(SourceError::interrupted("messages were lost on the way"));
        }
        self.deliveries = received.delivery;
        // None is missing before the place, so one that is delivered again was handled.
        if received.sequence <= self.place.sequence {
            return Ok(false);
        }
        let behind = self.place.behind();
        if behind.is_some_and(|others| received.sequence > others) {
            // It is delivered once more to the consumer of all.
            return Ok(true);
        }
        self.place.sequence = received.sequence;
        // What a replay has may be old, and is read as it is now.
        self.place.seconds = self.place.seconds.max(received.seconds);
        // What another program sends is no event.
        if let Ok(event) = serde_json::from_slice::<Event>(received.payload)
            && (!self.deleting || event.is_deleted())
        {
            let position = self.place.position(&self.topic);
            self.ready.push_back(Message::Event(event, Some(position)));
        }
        // Not where the replay's last message was: what changes meanwhile is moved behind that, and was not sent yet.
        if received.pending == 0 && behind.is_none() {
            self.end_replay();
        }
        Ok(received.pending == 0 && behind.is_some())
    }

    /// From here on, the messages are those of another consumer.
    fn join(&mut self) {
        self.place.join();
        self.deliveries = 0;
    }

    fn end_replay(&mut self) {
        if self.place.replay_end.take().is_some() {
            // Nothing of the replay is sent again to who comes back with a place before the first change.
            let end = self.place.position(&self.topic);
            self.ready.push_back(Message::Replayed(Some(end)));
        }
    }

    /// The server was asked at this time, and has nothing behind the place: no earlier deletion is missing.
    ///
    /// # Errors
    /// One may be missing: its tombstone may have expired.
    fn nothing_follows(&mut self, asked: i64) -> Result<Message, SourceError> {
        self.place.check_age(asked)?;
        self.place.seconds = self.place.seconds.max(asked);
        self.end_replay();
        let ready = self.ready.pop_front();
        Ok(ready.unwrap_or_else(|| self.alive()))
    }

    /// Whether the message before so many pending ones was the last, and nothing is to be returned. Amid a backlog or a
    /// replay, nobody is up to date.
    fn is_up_to_date(&self, pending: u64) -> bool {
        let is_last = pending == 0 && self.place.behind().is_none() && self.place.replay_end.is_none();
        is_last && self.ready.is_empty()
    }

    fn alive(&self) -> Message {
        Message::Alive(Some(self.place.position(&self.topic)))
    }
}

struct Subscribed {
    opened: OpenedStream,
    reader: MessageReader,
    consumer: PullConsumer,
    messages: pull::Stream,
    partitions: watch::Receiver<Partitions>,
    now: fn() -> Timestamp,
    /// When a message was returned last, in seconds since 1970.
    said: i64,
    /// Acknowledged once the next message is asked for.
    handled: Option<jetstream::Message>,
    is_ended: bool,
}

impl Subscribed {
    async fn next(mut self) -> Option<(Result<Message, SourceError>, Self)> {
        if self.is_ended {
            return None;
        }
        let next = self.message().await;
        self.said = (self.now)().as_second();
        self.is_ended = next.is_err();
        Some((next, self))
    }

    async fn message(&mut self) -> Result<Message, SourceError> {
        loop {
            if self.partitions.has_changed().unwrap_or(false) {
                return Err(others_wanted());
            }
            if let Some(message) = self.reader.ready.pop_front() {
                return Ok(message);
            }
            if let Some(handled) = self.handled.take() {
                handled.ack().await.map_err(SourceError::interrupted)?;
            }
            let received = tokio::select! {
                Ok(()) = self.partitions.changed() => return Err(others_wanted()),
                received = timeout(ALIVE_EVERY, self.messages.next()) => received,
            };
            let Ok(received) = received else {
                let asked = (self.now)().as_second();
                if lacks_messages(&self.consumer).await? {
                    continue;
                }
                // What was pending has expired if nothing came of it.
                if self.reader.place.behind().is_some() {
                    self.join().await?;
                    continue;
                }
                return self.reader.nothing_follows(asked);
            };
            let received = received.ok_or_else(|| SourceError::interrupted("the server ended the consumer"))?;
            let received = received.map_err(|error| match error.kind() {
                MessagesErrorKind::ConsumerDeleted => SourceError::interrupted("the server removed the consumer"),
                _ => SourceError::interrupted(error),
            })?;
            let info = received.info().map_err(SourceError::interrupted)?;
            let message = Received {
                delivery: info.consumer_sequence,
                sequence: info.stream_sequence,
                pending: info.pending,
                seconds: info.published.unix_timestamp(),
                payload: &received.payload,
            };
            let (pending, now) = (message.pending, (self.now)().as_second());
            let is_joined = self.reader.take(&message, now)?;
            self.handled = Some(received);
            if is_joined {
                self.join().await?;
            } else if self.reader.is_up_to_date(pending) && now.abs_diff(self.said) >= ALIVE_EVERY.as_secs() {
                // The server is not silent, so nothing else returns how far this subscription has come.
                return Ok(self.reader.alive());
            }
        }
    }

    async fn join(&mut self) -> Result<(), SourceError> {
        self.reader.join();
        (self.consumer, self.messages) = self.opened.consume(&mut self.reader).await?;
        Ok(())
    }
}

fn others_wanted() -> SourceError {
    SourceError::interrupted("other partitions are wanted")
}

/// Whether there are messages that have not arrived. One that was lost in a cut is delivered again only after a while,
/// in which the server is as silent as if nothing had happened.
async fn lacks_messages(consumer: &PullConsumer) -> Result<bool, SourceError> {
    let info = consumer.get_info().await.map_err(SourceError::interrupted)?;
    Ok(info.num_ack_pending > 0 || info.num_pending > 0)
}

#[cfg(test)]
mod tests;
