//! A consumer whose set of partitions changes while it runs: what left the set is no deletion, what came with it is
//! replayed, and of the rest nothing is repeated and nothing lost. Each look-up says that an object is gone, so one
//! absence too many would be a deletion.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kindex_events::consumer::{Consumer, Item};
use kindex_events::held::{Existence, Limits, LookUp, Stop};
use kindex_model::object::Uid;
use tokio::time::timeout;

use super::board::{Board, TOPIC, absent, partition_of};
use super::without;

struct AllGone;

#[async_trait]
impl LookUp for AllGone {
    async fn look_up(&self, _: &Uid) -> Existence {
        Existence::Gone
    }
}

/// Twelve objects, three in each partition.
fn board() -> (Arc<Board>, BTreeSet<Uid>) {
    let board = Arc::new(Board::new(None));
    let uids = ('a'..='l')
        .map(|letter| board.put(&letter.to_string(), false))
        .collect();
    (board, uids)
}

/// A consumer that holds all of these.
fn consumer<'u>(board: &Arc<Board>, held: impl IntoIterator<Item = &'u Uid>) -> Consumer {
    let held = held.into_iter().cloned();
    Consumer::new(board.clone(), Arc::new(AllGone), TOPIC, held, Limits::default())
}

/// Those of these partitions.
fn of<const N: usize>(uids: &BTreeSet<Uid>, partitions: [u32; N]) -> BTreeSet<Uid> {
    let wanted = uids.iter().filter(|uid| partitions.contains(&partition_of(uid)));
    wanted.cloned().collect()
}

/// What a consumer was given.
#[derive(Debug, Default)]
struct Received {
    events: Vec<Uid>,
    left: BTreeSet<Uid>,
    cuts: usize,
}

impl Received {
    async fn item(&mut self, consumer: &mut Consumer) -> Option<Item> {
        match consumer.next().await.expect("it goes on") {
            Item::Event(event) => self.events.push(event.resource_id),
            Item::Left(uids) => self.left.extend(uids),
            Item::Cut(_) => self.cuts += 1,
            end => return Some(end),
        }
        None
    }

    /// Until a replay has ended.
    async fn replayed(consumer: &mut Consumer) -> (Self, Item) {
        let mut received = Self::default();
        loop {
            if let Some(end) = received.item(consumer).await {
                return (received, end);
            }
        }
    }

    /// Until this event.
    async fn until(consumer: &mut Consumer, last: &Uid) -> Self {
        let mut received = Self::default();
        while received.events.last() != Some(last) {
            let end = received.item(consumer).await;
            assert_eq!(end, None, "{received:?}");
        }
        received
    }

    /// The objects whose events came, each once.
    fn once(&self) -> BTreeSet<Uid> {
        let uids: BTreeSet<Uid> = self.events.iter().cloned().collect();
        assert_eq!(uids.len(), self.events.len(), "repeated: {self:?}");
        uids
    }
}

fn nothing_gone() -> Item {
    without([])
}

#[tokio::test(start_paused = true)]
async fn what_is_held_of_other_partitions_is_forgotten_at_the_beginning() {
    let (board, uids) = board();
    board.want([0, 1]);
    let mut consumer = consumer(&board, &uids);
    let (received, end) = Received::replayed(&mut consumer).await;
    assert_eq!((received.once(), end), (of(&uids, [0, 1]), nothing_gone()));
    assert_eq!(received.left, of(&uids, [2, 3]));
    assert_eq!(consumer.held().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_shrinks_deletes_nothing_and_repeats_nothing() {
    let (board, uids) = board();
    let mut consumer = consumer(&board, &uids);
    Received::replayed(&mut consumer).await;
    board.want([1]);
    for name in ["a", "c"] {
        board.put(name, false);
    }
    let later = board.put("b", false);
    let received = Received::until(&mut consumer, &later).await;
    assert_eq!(received.left, of(&uids, [0, 2, 3]));
    assert_eq!(received.events, [later]);
    assert_eq!(received.cuts, 1, "a change of the set is not a lost position");
    assert_eq!(consumer.held().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_grows_replays_what_came_with_it_and_finds_what_is_gone_of_that() {
    let (board, uids) = board();
    board.want([0]);
    let mut consumer = consumer(&board, &of(&uids, [0]));
    Received::replayed(&mut consumer).await;
    let gone = absent(2, 0);
    for uid in of(&uids, [2]).into_iter().chain([gone.clone()]) {
        consumer.held().add(uid);
    }
    board.want([0, 2]);
    let (received, end) = Received::replayed(&mut consumer).await;
    assert_eq!(received.once(), of(&uids, [2]));
    assert_eq!(end, without([&gone]));
    assert_eq!(received.left, BTreeSet::new());
    for name in ["a", "b", "c"] {
        board.put(name, false);
    }
    let received = Received::until(&mut consumer, &Uid::from("uid-c")).await;
    assert_eq!(
        received.once(),
        BTreeSet::from([Uid::from("uid-a"), Uid::from("uid-c")])
    );
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_swapped_forgets_one_part_and_replays_the_other() {
    let (board, uids) = board();
    board.want([0, 1]);
    let mut consumer = consumer(&board, &of(&uids, [0, 1]));
    Received::replayed(&mut consumer).await;
    for (wanted, left, replayed) in [([1, 2], 0, 2), ([2, 3], 1, 3), ([0, 1], 2, 0)] {
        board.want(wanted);
        let (received, end) = Received::replayed(&mut consumer).await;
        assert_eq!(end, nothing_gone());
        assert!(of(&uids, [left]).is_subset(&received.left), "{received:?}");
        assert!(of(&uids, [replayed]).is_subset(&received.once()), "{received:?}");
        for uid in of(&uids, wanted) {
            consumer.held().add(uid);
        }
    }
}

/// As if the set that was read stayed that of the last message: what is gone of what left would never be found.
#[tokio::test(start_paused = true)]
async fn what_leaves_the_set_and_comes_back_before_any_message_is_replayed() {
    for is_over in [false, true] {
        let (board, uids) = board();
        board.want([0, 1, 2]);
        let gone = absent(2, 0);
        let held = of(&uids, [0, 1, 2]);
        let mut consumer = consumer(&board, held.iter().chain([&gone]));
        let mut received = Received::default();
        while received.events.len() < 5 {
            assert_eq!(received.item(&mut consumer).await, None);
        }
        if is_over {
            Received::replayed(&mut consumer).await;
        }
        board.want([0, 1]);
        while received.left.is_empty() {
            assert_eq!(received.item(&mut consumer).await, None);
        }
        assert!(received.left.contains(&gone), "{received:?}");
        received.left.into_iter().for_each(|uid| consumer.held().add(uid));
        board.want([0, 1, 2]);
        let replayed = timeout(Duration::from_secs(60), Received::replayed(&mut consumer)).await;
        let (rest, end) = replayed.expect("what came back is replayed");
        assert_eq!(end, without([&gone]), "{is_over}");
        assert!(of(&uids, [2]).is_subset(&rest.once()), "{rest:?}");
    }
}

/// The set changes after each number of events of the replay.
#[tokio::test(start_paused = true)]
async fn a_set_that_changes_during_a_replay_deletes_nothing_and_the_replay_has_all_of_the_new_one() {
    for events in 0..=9 {
        let (board, uids) = board();
        board.want([0, 1, 2]);
        let gone = BTreeSet::from([absent(1, 0), absent(3, 0)]);
        let mut consumer = consumer(&board, uids.union(&gone));
        let mut received = Received::default();
        while received.events.len() < events {
            assert_eq!(received.item(&mut consumer).await, None);
        }
        board.want([1, 3]);
        let added = of(&uids, [3]).into_iter().chain(of(&gone, [3]));
        added.for_each(|uid| consumer.held().add(uid));
        let (rest, end) = Received::replayed(&mut consumer).await;
        let all_gone = Item::Replayed {
            gone: gone.into_iter().collect(),
            unknown: Vec::new(),
        };
        assert_eq!(end, all_gone, "after {events}");
        received.events.extend(rest.events);
        received.left.extend(rest.left);
        let of_the_set = of(&received.once(), [1, 3]);
        assert_eq!(of_the_set, of(&uids, [1, 3]), "after {events}");
        assert!(of(&uids, [0, 2]).is_subset(&received.left), "after {events}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_has_no_object_is_replayed_and_is_no_empty_replay() {
    let board = Arc::new(Board::new(None));
    let names = ('a'..='d').map(|letter| letter.to_string());
    let names = names.filter(|name| partition_of(&Uid::from(format!("uid-{name}").as_str())) != 2);
    let uids: BTreeSet<Uid> = names.map(|name| board.put(&name, false)).collect();
    board.want([0, 1, 3]);
    let mut consumer = consumer(&board, &uids);
    Received::replayed(&mut consumer).await;
    let gone = absent(2, 0);
    consumer.held().add(gone.clone());
    board.want([0, 1, 2, 3]);
    let (received, end) = Received::replayed(&mut consumer).await;
    assert_eq!((received.events, end), (Vec::new(), without([&gone])));
}

#[tokio::test(start_paused = true)]
async fn more_absences_than_the_limits_allow_stop_also_where_the_set_grows() {
    let (board, uids) = board();
    board.want([0, 1, 2]);
    let mut consumer = consumer(&board, &of(&uids, [0, 1, 2]));
    Received::replayed(&mut consumer).await;
    for number in 0..=Limits::DEFAULT.few {
        consumer.held().add(absent(3, number));
    }
    board.want([0, 3]);
    let (received, end) = Received::replayed(&mut consumer).await;
    let Item::Stopped(Stop::TooMany { gone, held, .. }) = end else {
        panic!("{end:?}");
    };
    assert_eq!((gone, held), (11, 3 + 11));
    assert_eq!(received.left, of(&uids, [1, 2]));
}

#[tokio::test(start_paused = true)]
async fn a_lost_position_stops_for_what_is_absent_of_the_set_and_for_nothing_else() {
    let (board, uids) = board();
    let mut consumer = consumer(&board, &uids);
    Received::replayed(&mut consumer).await;
    board.want([0, 1]);
    // Lost in the part that left the set.
    board.restore_without(&Uid::from("uid-c"));
    let (received, end) = Received::replayed(&mut consumer).await;
    assert_eq!(end, nothing_gone());
    assert_eq!(received.left, of(&uids, [2, 3]));
    board.restore_without(&Uid::from("uid-a"));
    let (_, end) = Received::replayed(&mut consumer).await;
    assert!(
        matches!(end, Item::Stopped(Stop::Restored { absent: 1, held: 6, .. })),
        "{end:?}"
    );
}

/// As if the part that what was stopped is in could be replayed on its own, or a part that has all of its objects spoke
/// for the others.
#[tokio::test(start_paused = true)]
async fn what_was_stopped_is_not_gone_because_its_partition_comes_again() {
    let (board, uids) = board();
    board.want([0, 1, 2]);
    let mut consumer = consumer(&board, &of(&uids, [0, 1, 2]));
    Received::replayed(&mut consumer).await;
    let lost = of(&uids, [2]).pop_first().expect("three are there");
    board.restore_without(&lost);
    let is_stopped = |end: &Item| matches!(end, Item::Stopped(Stop::Restored { absent: 1, .. }));
    let (_, end) = Received::replayed(&mut consumer).await;
    assert!(is_stopped(&end), "{end:?}");
    board.want([0, 1]);
    let mut received = Received::default();
    while received.left.is_empty() {
        assert_eq!(received.item(&mut consumer).await, None);
    }
    let of_two = received.left;
    assert_eq!(of_two, of(&uids, [2]));
    of_two.iter().for_each(|uid| consumer.held().add(uid.clone()));
    board.want([0, 1, 2]);
    let (_, end) = Received::replayed(&mut consumer).await;
    assert!(is_stopped(&end), "{end:?}");
    board.want([0, 1, 3]);
    let (_, end) = Received::replayed(&mut consumer).await;
    assert_eq!(end, nothing_gone());
    of_two.into_iter().for_each(|uid| consumer.held().add(uid));
    board.want([0, 1, 2, 3]);
    let (_, end) = Received::replayed(&mut consumer).await;
    assert!(is_stopped(&end), "{end:?}");
}

/// As if a replay spoke also for partitions that have left since one was stopped, or since the position was lost.
#[tokio::test(start_paused = true)]
async fn what_may_be_restored_is_not_gone_because_others_were_replayed_meanwhile() {
    for (is_stopped_before, is_begun) in [(true, false), (true, true), (false, false), (false, true)] {
        let (board, uids) = board();
        board.want([0, 2]);
        let mut consumer = consumer(&board, &of(&uids, [0, 2]));
        Received::replayed(&mut consumer).await;
        let lost = of(&uids, [2]).pop_first().expect("three are there");
        let is_stopped = |end: &Item| matches!(end, Item::Stopped(Stop::Restored { absent: 1, .. }));
        if is_stopped_before {
            board.restore_without(&lost);
            let (_, end) = Received::replayed(&mut consumer).await;
            assert!(is_stopped(&end), "{end:?}");
        }
        board.restore_without(&lost);
        let mut received = Received::default();
        while is_begun && received.events.is_empty() {
            assert_eq!(received.item(&mut consumer).await, None);
        }
        board.want([0]);
        let (rest, end) = Received::replayed(&mut consumer).await;
        assert_eq!(end, nothing_gone());
        assert_eq!(rest.left, of(&uids, [2]));
        rest.left.into_iter().for_each(|uid| consumer.held().add(uid));
        board.want([0, 2]);
        let (_, end) = Received::replayed(&mut consumer).await;
        assert!(is_stopped(&end), "{is_stopped_before}, {is_begun}: {end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_over_once_all_that_was_stopped_is_replayed_and_nothing_is_absent() {
    let (board, uids) = board();
    board.want([0, 2]);
    let mut consumer = consumer(&board, &of(&uids, [0, 2]));
    Received::replayed(&mut consumer).await;
    let lost = Uid::from("uid-a");
    board.restore_without(&lost);
    let (_, end) = Received::replayed(&mut consumer).await;
    assert!(matches!(end, Item::Stopped(Stop::Restored { .. })), "{end:?}");
    assert_eq!(board.put("a", false), lost);
    board.restore_without(&absent(1, 0));
    let (_, end) = Received::replayed(&mut consumer).await;
    assert_eq!(end, nothing_gone());
    let gone = absent(3, 0);
    consumer.held().add(gone.clone());
    board.want([0, 2, 3]);
    let (_, end) = Received::replayed(&mut consumer).await;
    assert_eq!(end, without([&gone]));
}

/// As if the database were trusted again once others come anew.
#[tokio::test(start_paused = true)]
async fn a_replay_after_a_lost_position_is_one_also_where_the_set_grows_meanwhile() {
    let (board, uids) = board();
    board.want([0, 1]);
    let mut consumer = consumer(&board, &of(&uids, [0, 1]));
    Received::replayed(&mut consumer).await;
    let lost = of(&uids, [1]).pop_last().expect("three are there");
    board.restore_without(&lost);
    let mut received = Received::default();
    while received.events.is_empty() {
        assert_eq!(received.item(&mut consumer).await, None);
    }
    board.want([0, 1, 3]);
    let (_, end) = Received::replayed(&mut consumer).await;
    assert!(
        matches!(end, Item::Stopped(Stop::Restored { absent: 1, .. })),
        "{end:?}"
    );
}

/// As if the objects of a wrong service could be gone once a set had no part of the one before.
#[tokio::test(start_paused = true)]
async fn a_set_that_comes_anew_as_a_whole_and_is_empty_deletes_nothing() {
    let board = Arc::new(Board::new(None));
    board.want([]);
    let mut consumer = consumer(&board, []);
    let (_, end) = Received::replayed(&mut consumer).await;
    assert_eq!(end, nothing_gone());
    for number in 0..8 {
        consumer.held().add(absent(number % 2, number as usize));
    }
    board.want([0, 1]);
    let (_, end) = Received::replayed(&mut consumer).await;
    assert!(matches!(end, Item::Stopped(Stop::Empty { held: 8, .. })), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_swapped_during_a_replay_is_empty_whatever_the_other_had() {
    let (board, names) = (Arc::new(Board::new(None)), ["a", "b", "e", "f"]);
    let uids: BTreeSet<Uid> = names.into_iter().map(|name| board.put(name, false)).collect();
    board.want([0, 1]);
    let mut consumer = consumer(&board, &of(&uids, [0, 1]));
    let mut received = Received::default();
    while received.events.is_empty() {
        assert_eq!(received.item(&mut consumer).await, None);
    }
    consumer.held().add(absent(2, 0));
    board.want([2, 3]);
    let (_, end) = Received::replayed(&mut consumer).await;
    assert!(matches!(end, Item::Stopped(Stop::Empty { held: 1, .. })), "{end:?}");
}
