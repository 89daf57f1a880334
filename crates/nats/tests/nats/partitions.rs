//! A set of partitions that changes while it is read: what a consumer is given then. Each look-up says that an object
//! is gone, so one absence too many would be a deletion.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_events::SourceError;
use kindex_events::consumer::{Consumer, Item};
use kindex_events::held::{Existence, Limits, LookUp, Stop};
use kindex_harness::wait::{WAIT_MAX, eventually};
use kindex_model::object::Uid;
use kindex_nats::names::Names;
use kindex_nats::{NatsSource, Partitions};
use tokio::time::{Instant, timeout, timeout_at};

use super::delivery::stream;
use super::outbox::Board;
use super::{Harness, TOPIC};

struct AllGone;

#[async_trait]
impl LookUp for AllGone {
    async fn look_up(&self, _: &Uid) -> Existence {
        Existence::Gone
    }
}

fn partition_of(uid: &Uid) -> u32 {
    Names::partition_of(uid, 4)
}

fn set<const N: usize>(numbers: [u32; N]) -> Partitions {
    Partitions::Only(numbers.into())
}

/// Those of these partitions.
fn of<const N: usize>(uids: &BTreeSet<Uid>, partitions: [u32; N]) -> BTreeSet<Uid> {
    let wanted = uids.iter().filter(|uid| partitions.contains(&partition_of(uid)));
    wanted.cloned().collect()
}

/// So many names of a kind in this partition.
fn names(begin: &str, partition: u32, count: usize) -> Vec<String> {
    let names = (0..).map(|number| format!("{begin}-{number}"));
    let wanted = names.filter(|name| partition_of(&Uid::from(format!("uid-{name}").as_str())) == partition);
    wanted.take(count).collect()
}

/// An object that exists nowhere.
fn absent(partition: u32) -> BTreeSet<Uid> {
    let names = names("absent", partition, 1);
    names
        .iter()
        .map(|name| Uid::from(format!("uid-{name}").as_str()))
        .collect()
}

/// A stream with objects, and what reads it.
struct Reading {
    harness: Harness<Arc<Board>>,
    uids: BTreeSet<Uid>,
    consumer: Consumer,
}

impl Reading {
    /// Begins with these partitions of forty objects, and holds all objects in these.
    async fn begin<const N: usize>(partitions: [u32; N]) -> Option<Self> {
        let names: Vec<String> = (0..40).map(|number| format!("object-{number}")).collect();
        Self::of(partitions, &names).await
    }

    /// The same with these objects.
    async fn of<const N: usize>(partitions: [u32; N], names: &[String]) -> Option<Self> {
        let harness = Harness::open().await?;
        let uids: BTreeSet<Uid> = names.iter().map(|name| harness.board.create(name)).collect();
        harness
            .shows(&names.iter().map(String::as_str).collect::<Vec<_>>())
            .await;
        harness.partitions.send_replace(set(partitions));
        let source = NatsSource::new(
            harness.connection.clone(),
            harness.partitions.subscribe(),
            Timestamp::now,
        );
        let held = of(&uids, partitions);
        let consumer = Consumer::new(Arc::new(source), Arc::new(AllGone), TOPIC, held, Limits::default());
        Some(Self {
            harness,
            uids,
            consumer,
        })
    }

    fn want<const N: usize>(&self, partitions: [u32; N]) {
        self.harness.partitions.send_replace(set(partitions));
    }

    fn hold(&mut self, uids: impl IntoIterator<Item = Uid>) {
        uids.into_iter().for_each(|uid| self.consumer.held().add(uid));
    }

    /// Until a replay has ended.
    async fn replayed(&mut self) -> (Received, Item) {
        let mut received = Received::default();
        loop {
            if let Some(end) = received.item(&mut self.consumer).await {
                return (received, end);
            }
        }
    }

    /// Until the event of this object.
    async fn until(&mut self, last: &Uid) -> Received {
        let mut received = Received::default();
        while received.events.last() != Some(last) {
            let end = received.item(&mut self.consumer).await;
            assert_eq!(end, None, "{received:?}");
        }
        received
    }
}

/// What a consumer was given.
#[derive(Debug, Default)]
struct Received {
    events: Vec<Uid>,
    left: BTreeSet<Uid>,
}

impl Received {
    async fn item(&mut self, consumer: &mut Consumer) -> Option<Item> {
        let item = timeout(WAIT_MAX, consumer.next()).await.expect("an item");
        match item.expect("it goes on") {
            Item::Event(event) => self.events.push(event.resource_id),
            Item::Left(uids) => self.left.extend(uids),
            Item::Cut(SourceError::Interrupted { .. }) => {}
            end => return Some(end),
        }
        None
    }

    /// The objects whose events came, each once.
    fn once(&self) -> BTreeSet<Uid> {
        let uids: BTreeSet<Uid> = self.events.iter().cloned().collect();
        assert_eq!(uids.len(), self.events.len(), "repeated: {self:?}");
        uids
    }
}

/// What is returned at the end of a replay where these are gone.
fn without(gone: impl IntoIterator<Item = Uid>) -> Item {
    Item::Replayed {
        gone: gone.into_iter().collect(),
        unknown: Vec::new(),
    }
}

fn nothing_gone() -> Item {
    without([])
}

#[tokio::test(flavor = "multi_thread")]
async fn each_object_is_in_the_partition_that_its_uid_says() {
    let Some(mut reading) = Reading::begin([0]).await else {
        return;
    };
    let (received, end) = reading.replayed().await;
    assert_eq!((received.once(), end), (of(&reading.uids, [0]), nothing_gone()));
    for number in 1..4 {
        reading.want([number]);
        let (received, end) = reading.replayed().await;
        assert_eq!((received.once(), end), (of(&reading.uids, [number]), nothing_gone()));
        assert!(!received.events.is_empty(), "{number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_shrinks_deletes_nothing_and_repeats_nothing() {
    let Some(mut reading) = Reading::begin([0, 1, 2]).await else {
        return;
    };
    reading.replayed().await;
    reading.want([2]);
    for name in names("later", 0, 2) {
        reading.harness.board.create(&name);
    }
    let later = reading.harness.board.create(&names("later", 2, 1)[0]);
    let received = reading.until(&later).await;
    assert_eq!(received.events, [later]);
    assert_eq!(received.left, of(&reading.uids, [0, 1]));
    assert_eq!(reading.consumer.held().len(), of(&reading.uids, [2]).len());

    // Of nothing at all nothing comes, and what came meanwhile is there again with the next set.
    reading.want([]);
    let uids = of(&reading.uids, [2]);
    let cut = timeout(WAIT_MAX, reading.consumer.next()).await.expect("an item");
    assert!(matches!(cut, Ok(Item::Cut(_))), "{cut:?}");
    let left = timeout(WAIT_MAX, reading.consumer.next()).await.expect("an item");
    let left = left.expect("it goes on");
    assert_eq!(left, Item::Left(uids.into_iter().collect()));
    reading.harness.board.create(&names("unread", 3, 1)[0]);
    let nothing = timeout(Duration::from_millis(500), reading.consumer.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    reading.want([1]);
    let (received, end) = reading.replayed().await;
    assert_eq!((received.once(), end), (of(&reading.uids, [1]), nothing_gone()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_grows_replays_what_came_with_it_and_finds_what_is_gone_of_that() {
    let Some(mut reading) = Reading::begin([0, 1]).await else {
        return;
    };
    reading.replayed().await;
    let gone = absent(2);
    let added: BTreeSet<Uid> = of(&reading.uids, [2]).union(&gone).cloned().collect();
    reading.hold(added);
    reading.want([0, 1, 2]);
    let (received, end) = reading.replayed().await;
    assert_eq!(
        (received.once(), received.left),
        (of(&reading.uids, [2]), BTreeSet::new())
    );
    assert_eq!(end, without(gone));
    for partition in [3, 0, 2] {
        reading.harness.board.create(&names("later", partition, 1)[0]);
    }
    let last = reading.harness.board.create(&names("last", 1, 1)[0]);
    let received = reading.until(&last).await;
    let partitions: Vec<u32> = received.events.iter().map(partition_of).collect();
    assert_eq!(partitions, [0, 2, 1]);
}

/// As if the set that was read stayed that of the last message: what is gone of what left would never be found.
#[tokio::test(flavor = "multi_thread")]
async fn what_leaves_the_set_and_comes_back_before_any_message_is_replayed() {
    let Some(mut reading) = Reading::begin([0, 1, 2]).await else {
        return;
    };
    reading.replayed().await;
    let gone = absent(2);
    reading.hold(gone.clone());
    reading.want([0, 1]);
    let mut received = Received::default();
    while received.left.is_empty() {
        assert_eq!(received.item(&mut reading.consumer).await, None);
    }
    reading.hold(received.left);
    reading.want([0, 1, 2]);
    let (received, end) = reading.replayed().await;
    assert_eq!(received.once(), of(&reading.uids, [2]));
    assert_eq!(end, without(gone));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_is_swapped_forgets_one_part_and_replays_the_other() {
    let Some(mut reading) = Reading::begin([0, 1]).await else {
        return;
    };
    reading.replayed().await;
    for (wanted, left, replayed) in [([1, 2], 0, 2), ([2, 3], 1, 3)] {
        reading.want(wanted);
        let (received, end) = reading.replayed().await;
        assert_eq!((received.once(), end), (of(&reading.uids, [replayed]), nothing_gone()));
        assert_eq!(received.left, of(&reading.uids, [left]));
        let uids = of(&reading.uids, [replayed]);
        reading.hold(uids);
    }
    reading.want([0, 1]);
    let (received, end) = reading.replayed().await;
    assert_eq!((received.once(), end), (of(&reading.uids, [0, 1]), nothing_gone()));
    assert_eq!(received.left, of(&reading.uids, [2, 3]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_changes_during_a_replay_deletes_nothing_and_the_replay_has_all_of_the_new_one() {
    let Some(mut reading) = Reading::begin([0, 1, 2]).await else {
        return;
    };
    let absent_at_first = absent(1);
    reading.hold(absent_at_first.clone());
    let absent_later = absent(3);
    let mut received = Received::default();
    for events in [5, 10] {
        while received.events.len() < events {
            assert_eq!(received.item(&mut reading.consumer).await, None);
        }
        // The second time while the first replay of partition 3 may still go on.
        let uids = of(&reading.uids, [3]);
        reading.hold(uids.union(&absent_later).cloned());
        match events {
            5 => reading.want([0, 1, 3]),
            _ => reading.want([1, 3]),
        }
    }
    let (rest, end) = reading.replayed().await;
    assert_eq!(end, without(absent_at_first.union(&absent_later).cloned()));
    received.events.extend(rest.events);
    received.left.extend(rest.left);
    let of_the_set = of(&received.once(), [1, 3]);
    assert_eq!(of_the_set, of(&reading.uids, [1, 3]));
    assert_eq!(received.left, of(&reading.uids, [0, 2]));
}

/// As if each partition without objects were waited for, or were a replay without objects.
#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_has_no_object_is_replayed_at_once() {
    let objects = [0, 1].map(|partition| names("object", partition, 3)).concat();
    let Some(mut reading) = Reading::of([0, 1], &objects).await else {
        return;
    };
    reading.replayed().await;
    let gone = absent(2);
    reading.hold(gone.clone());
    let begun = Instant::now();
    reading.want([0, 1, 2]);
    // Before a subscription says that it works although nothing happens, after fifteen seconds.
    let replayed = timeout_at(begun + Duration::from_secs(14), reading.replayed()).await;
    let (received, end) = replayed.expect("nothing is waited for");
    assert_eq!((received.events, end), (Vec::new(), without(gone)));
}

/// As if the end of a replay that is ready at once had been given, where the set changes before that.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_changes_before_the_end_of_a_replay_is_given_has_that_end_too() {
    let objects = [0, 1].map(|partition| names("object", partition, 3)).concat();
    let Some(mut reading) = Reading::of([0, 1], &objects).await else {
        return;
    };
    reading.replayed().await;
    let gone = absent(2);
    reading.hold(gone.clone());
    reading.want([1, 2]);
    let mut received = Received::default();
    while received.left.is_empty() {
        assert_eq!(received.item(&mut reading.consumer).await, None);
    }
    let begun = Instant::now();
    reading.want([2]);
    // Before a subscription says that it works although nothing happens, after fifteen seconds.
    let replayed = timeout_at(begun + Duration::from_secs(14), reading.replayed()).await;
    let (_, end) = replayed.expect("the replay of what came anew has not ended");
    assert_eq!(end, without(gone));
}

/// As if those that came anew could join the others in the next life of the stream, whose numbers are all larger.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_made_anew_while_partitions_come_anew_is_a_lost_position() {
    let Some(mut reading) = Reading::begin([0, 1]).await else {
        return;
    };
    reading.replayed().await;
    let board = reading.harness.board.clone();
    let backup = board.backup();
    let lost = board.create(&names("lost", 0, 1)[0]);
    reading.until(&lost).await;
    reading.hold([lost]);
    reading.want([0, 1, 2]);
    // The others of these partitions are on their way then: what they join is asked for after they were read.
    let mut received = Received::default();
    while received.events.is_empty() {
        assert_eq!(received.item(&mut reading.consumer).await, None);
    }
    let before = stream(&reading.harness).await;
    board.restore(&backup);
    let mark = Names::of(TOPIC).mark();
    eventually("another life of the stream", async || {
        let now = before.get_info().await;
        let is_other = now.is_ok_and(|now| now.created != before.cached_info().created);
        is_other && before.get_last_raw_message_by_subject(&mark).await.is_ok()
    })
    .await;
    let (_, end) = reading.replayed().await;
    assert!(matches!(end, Item::Cut(SourceError::Gone(_))), "{end:?}");
    let (_, end) = reading.replayed().await;
    assert!(
        matches!(end, Item::Stopped(Stop::Restored { absent: 1, .. })),
        "{end:?}"
    );
}
