//! A transport in memory, one row an object, in partitions whose set may change, with bugs that can be planted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream;
use kindex_events::contract::Stage;
use kindex_events::{Event, Message, PartitionAssignment, Position, Source, SourceError, Subscribe, Subscription};
use kindex_model::object::Uid;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

pub(crate) const TOPIC: &str = "runs.example.com";
const VIA: &str = "board";
const PARTITIONS: u32 = 4;

/// Names that differ by one in their last letter are in partitions that follow each other.
pub(crate) fn partition_of(uid: &Uid) -> u32 {
    uid.0.bytes().map(u32::from).sum::<u32>() % PARTITIONS
}

/// One that exists nowhere, in this partition.
pub(crate) fn absent(partition: u32, number: usize) -> Uid {
    let mut uids = ('a'..='d').map(|letter| Uid::from(format!("absent-{number}{letter}").as_str()));
    uids.find(|uid| partition_of(uid) == partition)
        .expect("four follow each other")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    NoEnd,
    TwoEnds,
    WithoutArchived,
    WithoutTimestamp,
    WithoutTombstones,
    WithoutDeletions,
    OneTooFar,
    ForgetsTheReplay,
    AllAgain,
    WithoutFilter,
    TakesAnyPosition,
    ComparesTheNumberAlone,
    TakesAnyTopic,
}

#[derive(Clone)]
struct Row {
    number: u64,
    event: Event,
    is_archived: bool,
}

/// Where a subscription stands.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct BoardPosition {
    epoch: u64,
    number: u64,
    /// The last of the replay that was sent, while there is one.
    replayed: Option<String>,
    partitions: BTreeSet<u32>,
    /// Until those that came anew have come to where the others are.
    added: Option<Added>,
}

/// A replay of some partitions.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Added {
    partitions: BTreeSet<u32>,
    /// The last that was sent.
    sent: String,
}

#[derive(Clone)]
pub(crate) struct Board(Arc<Inner>);

struct Inner {
    bug: Option<Bug>,
    rows: Mutex<BTreeMap<Uid, Row>>,
    last: watch::Sender<u64>,
    partitions: watch::Sender<BTreeSet<u32>>,
    epoch: AtomicUsize,
    /// After so many messages the next subscription is cut.
    cut: AtomicUsize,
}

impl Board {
    pub(crate) fn new(bug: Option<Bug>) -> Self {
        Self(Arc::new(Inner {
            bug,
            rows: Mutex::default(),
            last: watch::Sender::new(0),
            partitions: watch::Sender::new((0..PARTITIONS).collect()),
            epoch: AtomicUsize::new(1),
            cut: AtomicUsize::new(usize::MAX),
        }))
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<Uid, Row>> {
        self.0.rows.lock().expect("no panic")
    }

    fn has(&self, bug: Bug) -> bool {
        self.0.bug == Some(bug)
    }

    pub(crate) fn exists(&self, uid: &Uid) -> bool {
        self.rows().get(uid).is_some_and(|row| !row.event.erased)
    }

    pub(crate) fn cut_after(&self, messages: usize) {
        self.0.cut.store(messages, Ordering::SeqCst);
    }

    /// From now on only these partitions are sent.
    pub(crate) fn want(&self, partitions: impl IntoIterator<Item = u32>) {
        self.0.partitions.send_replace(partitions.into_iter().collect());
    }

    /// As a database that was restored from a backup that has not this object.
    pub(crate) fn restore_without(&self, uid: &Uid) {
        self.rows().remove(uid);
        self.0.epoch.fetch_add(1, Ordering::SeqCst);
        self.0.last.send_modify(|_| {});
    }

    pub(crate) fn put(&self, name: &str, is_archived: bool) -> Uid {
        let uid = Uid::from(format!("uid-{name}").as_str());
        let event = Event {
            resource_id: uid.clone(),
            deletion_timestamp: None,
            topic: TOPIC.to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            erased: false,
        };
        self.write(event, is_archived);
        uid
    }

    fn write(&self, event: Event, is_archived: bool) {
        let number = *self.0.last.borrow() + 1;
        let row = Row {
            number,
            event: event.clone(),
            is_archived,
        };
        self.rows().insert(event.resource_id, row);
        self.0.last.send_replace(number);
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Row)) {
        let mut row = self.rows()[&Uid::from(format!("uid-{name}").as_str())].clone();
        change(&mut row);
        self.write(row.event, row.is_archived);
    }

    fn shown(&self, row: &Row) -> Event {
        let mut event = row.event.clone();
        if self.has(Bug::WithoutTimestamp) {
            event.deletion_timestamp = None;
        }
        event
    }

    fn position(&self, place: &BoardPosition) -> Option<Position> {
        Some(Position::encode(VIA, TOPIC, place))
    }

    /// The next message after a place.
    fn next(&self, place: &mut BoardPosition, deleting: bool) -> Option<Message> {
        let rows = self.rows();
        if let Some(message) = self.next_added(&rows, place, deleting) {
            return Some(message);
        }
        let partitions = place.partitions.clone();
        let is_wanted = |uid: &Uid| partitions.contains(&partition_of(uid));
        if let Some(after) = place.replayed.clone() {
            let rest = rows.iter().filter(|(uid, _)| *uid.0 > *after && is_wanted(uid));
            let mut rest = rest.filter(|(_, row)| !row.event.erased && self.passes(row, deleting));
            let mut rest = rest
                .by_ref()
                .filter(|(_, row)| !(row.is_archived && self.has(Bug::WithoutArchived)));
            let Some((uid, row)) = rest.next() else {
                place.replayed = None;
                return match self.has(Bug::NoEnd) {
                    true => Some(Message::Alive(None)),
                    false => Some(Message::Replayed(self.position(place))),
                };
            };
            place.replayed = Some(uid.to_string());
            return Some(Message::Event(self.shown(row), self.position(place)));
        }
        let later = rows
            .values()
            .filter(|row| row.number > place.number && is_wanted(&row.event.resource_id));
        let row = later.min_by_key(|row| row.number)?;
        place.number = row.number;
        let is_lost = row.event.erased && self.has(Bug::WithoutTombstones)
            || is_deleting(&row.event) && self.has(Bug::WithoutDeletions);
        match self.passes(row, deleting) && !is_lost {
            true => Some(Message::Event(self.shown(row), self.position(place))),
            false => Some(Message::Alive(self.position(place))),
        }
    }

    /// The next message of the partitions that came anew: their objects, up to where the replay of the others is, or
    /// all of them and then the end of a replay.
    fn next_added(&self, rows: &BTreeMap<Uid, Row>, place: &mut BoardPosition, deleting: bool) -> Option<Message> {
        let added = place.added.as_mut()?;
        let replayed = place.replayed.as_deref();
        let found = rows.iter().find(|(uid, row)| {
            let is_next = *uid.0 > *added.sent && replayed.is_none_or(|replayed| *uid.0 <= *replayed);
            let is_added = added.partitions.contains(&partition_of(uid));
            is_next && is_added && !row.event.erased && self.passes(row, deleting)
        });
        if let Some((uid, row)) = found {
            added.sent = uid.to_string();
            return Some(Message::Event(self.shown(row), self.position(place)));
        }
        place.added = None;
        // Otherwise the replay that is under way is theirs too.
        let is_over = place.replayed.is_none();
        is_over.then(|| Message::Replayed(self.position(place)))
    }

    fn passes(&self, row: &Row, deleting: bool) -> bool {
        !deleting || row.event.is_deleted() || self.has(Bug::WithoutFilter)
    }

    /// Where a subscription begins, and the partitions that its position has not.
    fn begin(&self, to: &Subscribe, wanted: &BTreeSet<u32>) -> Result<(BoardPosition, BTreeSet<u32>), SourceError> {
        let epoch = self.0.epoch.load(Ordering::SeqCst) as u64;
        let from_nothing = BoardPosition {
            epoch,
            number: *self.0.last.borrow(),
            replayed: Some(String::new()),
            partitions: wanted.clone(),
            added: None,
        };
        let Some(position) = &to.from else {
            return Ok((from_nothing, wanted.clone()));
        };
        let mut place: BoardPosition = position.decode(VIA, &to.topic)?;
        let is_near = self.has(Bug::ComparesTheNumberAlone) && place.number <= from_nothing.number;
        if place.epoch != epoch && !is_near && !self.has(Bug::TakesAnyPosition) {
            return Err(SourceError::Gone("another epoch".to_owned()));
        }
        place.epoch = epoch;
        match self.0.bug {
            Some(Bug::OneTooFar) => place.number += 1,
            Some(Bug::ForgetsTheReplay) => place.replayed = None,
            Some(Bug::AllAgain) if place.replayed.is_none() => {
                place = BoardPosition {
                    replayed: None,
                    number: 0,
                    ..place
                }
            }
            _ => {}
        }
        let added = wanted - &place.partitions;
        place.turn_to(wanted, &added);
        Ok((place, added))
    }
}

impl BoardPosition {
    fn turn_to(&mut self, wanted: &BTreeSet<u32>, added: &BTreeSet<u32>) {
        let unfinished = self.added.take();
        let before = unfinished.as_ref().map(|unfinished| &unfinished.partitions & wanted);
        let replayed = &before.unwrap_or_default() | added;
        if !replayed.is_empty() {
            // What was sent of those before is sent again if others join them.
            let sent = unfinished.filter(|_| added.is_empty());
            self.added = Some(Added {
                partitions: replayed,
                sent: sent.map_or_else(String::new, |unfinished| unfinished.sent),
            });
        }
        self.partitions = wanted.clone();
    }
}

fn others_wanted() -> SourceError {
    SourceError::interrupted("other partitions are wanted")
}

fn is_deleting(event: &Event) -> bool {
    event.deletion_timestamp.is_some() && !event.erased
}

/// One subscription.
struct Following {
    board: Board,
    place: BoardPosition,
    deleting: bool,
    /// Messages until it is cut.
    left: usize,
    last: watch::Receiver<u64>,
    partitions: watch::Receiver<BTreeSet<u32>>,
    /// Sent next: a second end of the replay.
    again: Option<Message>,
}

impl Following {
    async fn next(&mut self) -> Option<Result<Message, SourceError>> {
        self.left = match self.left.checked_sub(1) {
            Some(left) => left,
            None => return Some(Err(SourceError::interrupted("cut"))),
        };
        if let Some(message) = self.again.take() {
            return Some(Ok(message));
        }
        loop {
            if self.partitions.has_changed().unwrap_or(false) {
                return Some(Err(others_wanted()));
            }
            self.last.borrow_and_update();
            if self.place.epoch != self.board.0.epoch.load(Ordering::SeqCst) as u64 {
                return Some(Err(SourceError::Gone("restored".to_owned())));
            }
            if let Some(message) = self.board.next(&mut self.place, self.deleting) {
                let is_end = matches!(message, Message::Replayed(_));
                self.again = Some(message.clone()).filter(|_| is_end && self.board.has(Bug::TwoEnds));
                return Some(Ok(message));
            }
            tokio::select! {
                changed = self.last.changed() => changed.ok()?,
                Ok(()) = self.partitions.changed() => return Some(Err(others_wanted())),
            }
        }
    }
}

#[async_trait]
impl Source for Board {
    async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError> {
        self.follow(to).await.map(|(_, subscription)| subscription)
    }

    async fn follow(&self, to: &Subscribe) -> Result<(Option<PartitionAssignment>, Subscription), SourceError> {
        if to.topic != TOPIC && !self.has(Bug::TakesAnyTopic) {
            return Err(SourceError::UnknownTopic(to.topic.clone()));
        }
        let mut partitions = self.0.partitions.subscribe();
        let wanted = partitions.borrow_and_update().clone();
        let (place, added) = self.begin(to, &wanted)?;
        let from = to.from.as_ref().and_then(|_| self.position(&place));
        let following = Following {
            place,
            partitions,
            deleting: to.deleting,
            left: self.0.cut.swap(usize::MAX, Ordering::SeqCst),
            last: self.0.last.subscribe(),
            again: None,
            board: self.clone(),
        };
        let messages = stream::unfold(Some(following), |following| async {
            let mut following = following?;
            let message = following.next().await?;
            let following = message.is_ok().then_some(following);
            Some((message, following))
        });
        let assignment = PartitionAssignment {
            partition_of: Box::new(partition_of),
            partitions: wanted,
            added,
            from,
        };
        Ok((Some(assignment), messages.boxed()))
    }
}

#[async_trait]
impl Stage for Board {
    fn source(&self) -> &dyn Source {
        self
    }

    fn topic(&self) -> &str {
        TOPIC
    }

    fn forgotten(&self) -> Position {
        let place = BoardPosition {
            epoch: 0,
            number: 1 << 40,
            ..BoardPosition::default()
        };
        Position::encode(VIA, TOPIC, &place)
    }

    fn of_another_life(&self, position: &Position) -> Position {
        let place: BoardPosition = position.decode(VIA, TOPIC).expect("one of ours");
        Position::encode(VIA, TOPIC, &BoardPosition { epoch: 0, ..place })
    }

    async fn create(&self, name: &str) -> Uid {
        self.put(name, false)
    }

    async fn archive(&self, name: &str) {
        self.change(name, |row| row.is_archived = true);
    }

    async fn delete(&self, name: &str) {
        self.change(name, |row| {
            row.event.deletion_timestamp = "2026-11-24T12:00:00Z".parse().ok()
        });
    }

    async fn erase(&self, name: &str) {
        self.change(name, |row| row.event.erased = true);
    }
}
