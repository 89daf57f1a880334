//! Subscriptions over an outbox in memory: the contract of all transports, and what a subscriber costs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kindex_events::contract::{self, Stage};
use kindex_events::{Message, Position as Token, Source, SourceError, Subscribe, Subscription};
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_serve::watches::{WatchLimits, Watches};
use kindex_store::{Mark, Outbox, OutboxEntry, Position, StoreError};
use tokio_util::sync::CancellationToken;

use super::follow::{Follow, Messages};
use super::hub::Hubs;
use super::outbox_position::OutboxPosition;
use super::page::topic;
use crate::operations::Refusal;
use crate::operations::token::tests::KIND;
use tokio::time::sleep;

static KINDS: &[&Kind] = &[&KIND];
const EVERY: Duration = Duration::from_millis(5);

/// The rows of the outbox, and the mark of each transaction.
#[derive(Default)]
struct Rows {
    entries: BTreeMap<Uid, OutboxEntry>,
    marks: Vec<Mark>,
    stamps: u64,
}

/// An outbox that counts what it is asked.
#[derive(Default)]
struct Memory {
    rows: Mutex<Rows>,
    statements: AtomicUsize,
}

impl Memory {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().expect("no panic")
    }

    /// One transaction that changes one object.
    fn write(&self, name: &str, change: impl FnOnce(&mut OutboxEntry)) -> Uid {
        let mut rows = self.rows();
        let uid = Uid::from(format!("uid-{name}").as_str());
        let last = rows.marks.last().copied().unwrap_or_default();
        rows.stamps += 17;
        let mark = Mark {
            position: Position(last.position.0 + 1),
            stamp: rows.stamps,
        };
        let mut entry = rows.entries.get(&uid).cloned().unwrap_or_else(|| OutboxEntry {
            uid: uid.clone(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            position: Position(0),
            deletion_timestamp: None,
            erased: false,
        });
        change(&mut entry);
        entry.position = mark.position;
        rows.entries.insert(uid.clone(), entry);
        rows.marks.push(mark);
        uid
    }

    /// As from a backup that has so many transactions.
    fn restore(&self, transactions: usize) {
        let mut rows = self.rows();
        rows.marks.truncate(transactions);
        let last = rows.marks.last().copied().unwrap_or_default();
        rows.entries.retain(|_, entry| entry.position <= last.position);
    }

    fn counted(&self) -> MutexGuard<'_, Rows> {
        self.statements.fetch_add(1, Ordering::SeqCst);
        self.rows()
    }
}

#[tonic::async_trait]
impl Outbox for Memory {
    async fn head(&self, _kind: &Kind) -> Result<Mark, StoreError> {
        Ok(self.counted().marks.last().copied().unwrap_or_default())
    }

    async fn replay(&self, _kind: &Kind, after: Option<&Uid>, limit: u32) -> Result<Vec<OutboxEntry>, StoreError> {
        let rows = self.counted();
        let later = rows
            .entries
            .values()
            .filter(|entry| after.is_none_or(|after| entry.uid > *after));
        Ok(later.take(limit as usize).cloned().collect())
    }

    async fn since(
        &self,
        _kind: &Kind,
        after: Mark,
        limit: u32,
    ) -> Result<Option<(Vec<OutboxEntry>, Mark)>, StoreError> {
        let rows = self.counted();
        if after != Mark::default() && !rows.marks.contains(&after) {
            return Ok(None);
        }
        let mut later = rows.marks.iter().filter(|mark| mark.position > after.position);
        let until = later
            .nth(limit as usize - 1)
            .or(rows.marks.last())
            .copied()
            .unwrap_or_default();
        let within = |entry: &&OutboxEntry| entry.position > after.position && entry.position <= until.position;
        let mut entries: Vec<OutboxEntry> = rows.entries.values().filter(within).cloned().collect();
        entries.sort_by_key(|entry| entry.position);
        Ok(Some((entries, until)))
    }
}

/// A server's part of subscriptions.
struct Server {
    memory: Arc<Memory>,
    hubs: Arc<Hubs>,
    watches: Watches,
    ending: CancellationToken,
    keep_alive: Duration,
}

impl Server {
    fn new() -> Self {
        Self {
            memory: Arc::default(),
            hubs: Arc::new(Hubs::new(KINDS, EVERY)),
            watches: Watches::new(WatchLimits::default()),
            ending: CancellationToken::new(),
            keep_alive: Follow::KEEP_ALIVE,
        }
    }

    async fn begin(&self, from: Option<OutboxPosition>, deleting: bool) -> Result<Messages, Refusal> {
        let follow = Follow {
            store: self.memory.clone(),
            hubs: self.hubs.clone(),
            watches: self.watches.clone(),
            kind: &KIND,
            deleting,
            keep_alive: self.keep_alive,
            ending: self.ending.clone(),
        };
        let place = match from {
            Some(place) => {
                follow.check(&place).await?;
                place
            }
            None => follow.beginning().await?,
        };
        Ok(follow.messages(place, ()))
    }

    fn statements(&self) -> usize {
        self.memory.statements.load(Ordering::SeqCst)
    }
}

fn error_of(refusal: &Refusal) -> SourceError {
    match refusal.code {
        410 => SourceError::Gone(refusal.message.clone()),
        _ => SourceError::interrupted(&refusal.message),
    }
}

#[tonic::async_trait]
impl Source for Server {
    async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError> {
        if to.topic != topic(&KIND) {
            return Err(SourceError::UnknownTopic(to.topic.clone()));
        }
        let from = to
            .from
            .as_ref()
            .map(|from| OutboxPosition::read(from, &to.topic))
            .transpose()?;
        let messages = self
            .begin(from, to.deleting)
            .await
            .map_err(|refusal| error_of(&refusal))?;
        let messages = messages.map(|sent| match sent {
            Ok(sent) => Ok(sent.message.clone()),
            Err(refusal) => Err(error_of(&refusal)),
        });
        Ok(messages.boxed())
    }
}

#[tonic::async_trait]
impl Stage for Server {
    fn source(&self) -> &dyn Source {
        self
    }

    fn topic(&self) -> &str {
        static TOPIC: std::sync::OnceLock<String> = std::sync::OnceLock::new();
        TOPIC.get_or_init(|| topic(&KIND))
    }

    fn forgotten(&self) -> Token {
        let mark = Mark {
            position: Position(1),
            stamp: 1,
        };
        OutboxPosition::at(mark).write(&topic(&KIND))
    }

    fn of_another_life(&self, position: &Token) -> Token {
        let place = OutboxPosition::read(position, &topic(&KIND)).expect("one of ours");
        let after = Mark {
            stamp: place.after.stamp + 1,
            ..place.after
        };
        OutboxPosition { after, ..place }.write(&topic(&KIND))
    }

    async fn create(&self, name: &str) -> Uid {
        self.memory.write(name, |_| {})
    }

    async fn archive(&self, name: &str) {
        self.memory.write(name, |_| {});
    }

    async fn delete(&self, name: &str) {
        let time = "2026-11-24T12:00:00Z".parse().ok();
        self.memory.write(name, |entry| entry.deletion_timestamp = time);
    }

    async fn erase(&self, name: &str) {
        self.memory.write(name, |entry| entry.erased = true);
    }
}

async fn next(messages: &mut Messages) -> Option<Result<Message, u16>> {
    let sent = messages.next().await?;
    Some(sent.map(|sent| sent.message.clone()).map_err(|refusal| refusal.code))
}

/// Passes over messages until one has no event.
async fn until_quiet(messages: &mut Messages) -> usize {
    let mut events = 0;
    while let Some(Ok(message)) = next(messages).await {
        match message {
            Message::Event(..) => events += 1,
            Message::Replayed(_) => {}
            Message::Alive(_) => break,
        }
    }
    events
}

#[tokio::test]
async fn subscriptions_fulfill_the_contract() {
    assert_eq!(contract::check(&Server::new()).await, Ok(()));
}

/// What is asked of the database while so many follow a hundred changes: no more than one poller asks.
async fn statements_while_following(subscribers: usize) {
    let server = Server::new();
    server.memory.write("first", |_| {});
    let mut following = Vec::new();
    for _ in 0..subscribers {
        let mut messages = server.begin(None, false).await.expect("known");
        until_quiet(&mut messages).await;
        following.push(messages);
    }
    let (before, began) = (server.statements(), Instant::now());
    for number in 0..100 {
        server.memory.write(&format!("run-{number}"), |_| {});
        for messages in &mut following {
            let message = next(messages).await.expect("there is more").expect("no error");
            let name = message.event().map(|event| event.name.clone());
            assert_eq!(name, Some(format!("run-{number}")));
        }
    }
    let statements = server.statements() - before;
    // After each change the poller looks whether there are more.
    let polls = 100 + began.elapsed().as_millis() / EVERY.as_millis() + 2;
    assert!(statements as u128 <= polls, "{statements} statements in {polls} polls");
}

#[tokio::test]
async fn a_hundred_subscribers_cost_no_statement_more_than_one() {
    statements_while_following(1).await;
    statements_while_following(100).await;
}

#[tokio::test]
async fn nobody_who_follows_costs_nothing() {
    let server = Server::new();
    let mut messages = server.begin(None, false).await.expect("known");
    until_quiet(&mut messages).await;
    let before = server.statements();
    drop(messages);
    // The poll that was under way, and the one that finds nobody.
    sleep(100 * EVERY).await;
    let more = server.statements() - before;
    assert!(more <= 2, "{more} statements");
}

#[tokio::test]
async fn a_database_that_is_restored_ends_every_subscription_with_410() {
    let server = Server::new();
    for number in 0..4 {
        server.memory.write(&format!("run-{number}"), |_| {});
    }
    let mut messages = server.begin(None, false).await.expect("known");
    until_quiet(&mut messages).await;
    let known = OutboxPosition::at(*server.memory.rows().marks.last().expect("four"));
    let earlier = OutboxPosition::at(server.memory.rows().marks[1]);
    // It knows the start of the replay, and not what the replay has shown.
    let seen = OutboxPosition {
        seen: known.after,
        ..earlier.clone()
    };
    server.memory.restore(3);
    server.memory.write("another", |_| {});
    assert_eq!(next(&mut messages).await, Some(Err(410)));
    assert_eq!(next(&mut messages).await, None);
    for (place, code) in [(known, Some(410)), (seen, Some(410)), (earlier, None)] {
        let begun = server.begin(Some(place), false).await;
        assert_eq!(begun.err().map(|refusal| refusal.code), code);
    }
}

#[tokio::test]
async fn a_position_of_the_replay_names_the_newest_that_was_read() {
    let server = Server::new();
    for number in 0..4 {
        server.memory.write(&format!("run-{number}"), |_| {});
    }
    let marks = server.memory.rows().marks.clone();
    let mut messages = server
        .begin(Some(OutboxPosition::beginning(marks[1])), false)
        .await
        .expect("known");
    let message = next(&mut messages).await.expect("there is more").expect("no error");
    let place = OutboxPosition::read(message.position().expect("a position"), &topic(&KIND)).expect("ours");
    assert_eq!((place.after, place.seen), (marks[1], marks[3]));
}

#[tokio::test]
async fn a_replay_is_read_by_pages_and_resumed_within_one() {
    let server = Server::new();
    for number in 0..2500 {
        server.memory.write(&format!("run-{number:04}"), |_| {});
    }
    let before = server.statements();
    let mut messages = server.begin(None, false).await.expect("known");
    let mut position = None;
    for _ in 0..1500 {
        let message = next(&mut messages).await.expect("there is more").expect("no error");
        position = message.position().cloned();
    }
    drop(messages);
    let place = OutboxPosition::read(&position.expect("each has one"), &topic(&KIND)).expect("ours");
    let mut messages = server.begin(Some(place), false).await.expect("known");
    assert_eq!(until_quiet(&mut messages).await, 1000);
    assert!(server.statements() - before < 16, "{}", server.statements() - before);
}

#[tokio::test]
async fn subscriptions_end_without_an_error_when_the_server_stops() {
    let server = Server::new();
    let mut messages = server.begin(None, false).await.expect("known");
    until_quiet(&mut messages).await;
    server.ending.cancel();
    assert_eq!(next(&mut messages).await, None);
}

#[tokio::test]
async fn who_hears_nothing_is_kept_alive_with_a_position() {
    let server = Server {
        keep_alive: 20 * EVERY,
        ..Server::new()
    };
    let mut messages = server.begin(None, true).await.expect("known");
    until_quiet(&mut messages).await;
    server.memory.write("live", |_| {});
    let message = next(&mut messages).await.expect("there is more").expect("no error");
    let place = OutboxPosition::read(message.position().expect("a position"), &topic(&KIND)).expect("ours");
    assert!(matches!(message, Message::Alive(_)));
    assert_eq!(
        place.after.position,
        Position(1),
        "the filter keeps the object and not the position"
    );
}
