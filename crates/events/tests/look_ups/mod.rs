//! Objects that are absent after a replay while their API is away, answers late or says something else than the events:
//! what a consumer is given of them, and that events go on meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kindex_events::SourceError;
use kindex_events::consumer::{Consumer, Item};
use kindex_events::held::{Existence, Limits, LookUp, Stop};
use kindex_model::object::Uid;
use tokio::time::{sleep, timeout};

use super::board::{Board, TOPIC, absent, partition_of};

/// Longer than between two look-ups.
const LONG: Duration = Duration::from_secs(60);
/// Before a look-up that comes after one without an answer.
const PAUSE: Duration = Duration::from_secs(5);
/// More than any of these tests needs. Without pauses between them, there is no end of look-ups, nor of a test that
/// waits for something else.
const LOOK_UPS_MAX: usize = 100;

/// What the API says; unknown where nothing is written.
#[derive(Default)]
struct Api {
    known: Mutex<BTreeMap<Uid, Existence>>,
    look_ups: AtomicUsize,
}

impl Api {
    fn says(&self, uid: &Uid, existence: Existence) {
        self.known.lock().expect("no panic").insert(uid.clone(), existence);
    }

    /// How many there were.
    fn look_ups(&self) -> usize {
        self.look_ups.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl LookUp for Api {
    async fn look_up(&self, uid: &Uid) -> Existence {
        let before = self.look_ups.fetch_add(1, Ordering::SeqCst);
        assert!(before < LOOK_UPS_MAX, "{uid} is looked up again and again");
        let known = self.known.lock().expect("no panic");
        known.get(uid).copied().unwrap_or(Existence::Unknown)
    }
}

/// One that is on the board, and one that is not, with others if need be.
struct Absence {
    board: Arc<Board>,
    api: Arc<Api>,
    absent: Uid,
    consumer: Consumer,
}

impl Absence {
    /// After the replay, in which the API did not answer.
    async fn begin() -> Self {
        Self::begin_with(&BTreeSet::new()).await
    }

    /// The same where these are absent too.
    async fn begin_with(others: &BTreeSet<Uid>) -> Self {
        let (board, api, absent) = (Arc::new(Board::new(None)), Arc::new(Api::default()), Uid::from("uid-c"));
        let there = board.put("a", false);
        board.want([partition_of(&there), partition_of(&absent)]);
        let mut unknown = others.clone();
        unknown.insert(absent.clone());
        let held = unknown.iter().cloned().chain([there]);
        let mut this = Self {
            consumer: Consumer::new(board.clone(), api.clone(), TOPIC, held, Limits::default()),
            board,
            api,
            absent,
        };
        assert!(matches!(this.next().await, Item::Event(_)));
        let replayed = Item::Replayed {
            gone: Vec::new(),
            unknown: unknown.into_iter().collect(),
        };
        assert_eq!(this.next().await, replayed);
        this
    }

    async fn next(&mut self) -> Item {
        next(&mut self.consumer).await
    }

    async fn nothing_more(&mut self) {
        let next = timeout(LONG, self.consumer.next()).await;
        assert!(next.is_err(), "{next:?}");
    }
}

async fn next(consumer: &mut Consumer) -> Item {
    let next = timeout(LONG, consumer.next()).await;
    next.expect("an item").expect("it goes on")
}

fn replayed<const G: usize, const U: usize>(gone: [&Uid; G], unknown: [&Uid; U]) -> Item {
    Item::Replayed {
        gone: gone.map(Uid::clone).into(),
        unknown: unknown.map(Uid::clone).into(),
    }
}

/// As if a look-up without an answer said that the object exists, or as if all that happens waited for the answer.
#[tokio::test(start_paused = true)]
async fn what_the_api_does_not_know_is_looked_up_again_while_events_go_on() {
    let mut absence = Absence::begin().await;
    let later = absence.board.put("e", false);
    let next = absence.next().await;
    assert!(
        matches!(&next, Item::Event(event) if event.resource_id == later),
        "{next:?}"
    );
    absence.nothing_more().await;
    absence.api.says(&absence.absent, Existence::Gone);
    let absent = absence.absent.clone();
    assert_eq!(absence.next().await, replayed([&absent], []));
    absence.nothing_more().await;
}

/// As if an API that is away were asked without a pause, or a pause began anew with each call and ended for nobody who
/// asks more often.
#[tokio::test(start_paused = true)]
async fn an_api_that_is_away_is_asked_every_few_seconds_however_often_a_call_is_dropped() {
    for calls in [1, 25] {
        let mut absence = Absence::begin().await;
        let before = absence.api.look_ups();
        for _ in 0..calls {
            let next = timeout(PAUSE * 7 / 2 / calls, absence.consumer.next()).await;
            assert!(next.is_err(), "{next:?}");
        }
        assert_eq!(absence.api.look_ups() - before, 3, "{calls} calls");
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_event_names_meanwhile_is_not_gone_whatever_the_api_says() {
    let mut absence = Absence::begin().await;
    absence.board.put("c", false);
    absence.api.says(&absence.absent, Existence::Gone);
    assert!(matches!(absence.next().await, Item::Event(_)));
    assert_eq!(absence.next().await, replayed([], []));
    absence.nothing_more().await;
}

/// As if the API of a restored database could still say what is gone since an earlier replay.
#[tokio::test(start_paused = true)]
async fn what_is_not_known_before_a_position_is_lost_is_not_gone_after_it() {
    let mut absence = Absence::begin().await;
    let other = absence.board.put("e", false);
    absence.board.restore_without(&other);
    absence.api.says(&absence.absent, Existence::Gone);
    let mut items = Vec::new();
    while !matches!(items.last(), Some(Item::Replayed { .. } | Item::Stopped(_))) {
        items.push(absence.next().await);
        // The look-up that was begun before has its answer meanwhile.
        sleep(LONG).await;
    }
    assert!(matches!(items[0], Item::Cut(SourceError::Gone(_))), "{items:?}");
    let end = items.last();
    assert!(
        matches!(end, Some(Item::Stopped(Stop::Restored { absent: 1, .. }))),
        "{items:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_not_known_when_the_set_grows_is_looked_up_with_what_came() {
    let mut absence = Absence::begin().await;
    absence.board.want(0..4);
    let absent = absence.absent.clone();
    assert!(matches!(absence.next().await, Item::Cut(_)));
    assert_eq!(
        absence.next().await,
        replayed([], [&absent]),
        "the end of another replay"
    );
    absence.api.says(&absent, Existence::Gone);
    assert_eq!(absence.next().await, replayed([&absent], []));
}

/// Takes requests and answers none.
struct Hanging;

#[async_trait]
impl LookUp for Hanging {
    async fn look_up(&self, _: &Uid) -> Existence {
        pending().await
    }
}

/// As if an API that hangs had said that an object is gone, or kept what happens from who follows it.
#[tokio::test(start_paused = true)]
async fn a_look_up_that_hangs_says_nothing_and_keeps_no_event_back() {
    let (board, absent) = (Arc::new(Board::new(None)), Uid::from("uid-c"));
    let held = [board.put("a", false), absent.clone()];
    let mut consumer = Consumer::new(board.clone(), Arc::new(Hanging), TOPIC, held, Limits::default());
    assert!(matches!(next(&mut consumer).await, Item::Event(_)));
    assert_eq!(next(&mut consumer).await, replayed([], [&absent]));
    let later = board.put("e", false);
    let event = next(&mut consumer).await;
    assert!(
        matches!(&event, Item::Event(event) if event.resource_id == later),
        "{event:?}"
    );
}

/// As if the position were one after the end of a replay before it is known what is gone.
#[tokio::test(start_paused = true)]
async fn what_happens_before_the_first_answer_comes_after_the_end_of_the_replay() {
    let (board, absent) = (Arc::new(Board::new(None)), Uid::from("uid-c"));
    let held = [board.put("a", false), absent.clone()];
    let mut consumer = Consumer::new(board.clone(), Arc::new(Hanging), TOPIC, held, Limits::default());
    assert!(matches!(next(&mut consumer).await, Item::Event(_)));
    // The replay has ended, and its end is not returned.
    let waited = timeout(Duration::from_secs(1), consumer.next()).await;
    assert!(waited.is_err(), "{waited:?}");
    let later = board.put("e", false);
    assert_eq!(next(&mut consumer).await, replayed([], [&absent]));
    let event = next(&mut consumer).await;
    assert!(
        matches!(&event, Item::Event(event) if event.resource_id == later),
        "{event:?}"
    );
}

/// As if the limits were about objects that have left: one of 21 is a twentieth, and one of 11 is more.
#[tokio::test(start_paused = true)]
async fn what_is_not_known_when_the_set_shrinks_is_compared_with_what_is_left() {
    let (board, api, lost) = (Arc::new(Board::new(None)), Arc::new(Api::default()), absent(0, 0));
    let there: Vec<Uid> = ('a'..='t')
        .map(|letter| board.put(&letter.to_string(), false))
        .collect();
    let limits = Limits {
        percent: 5,
        few: 0,
        ..Limits::default()
    };
    let held = there.iter().cloned().chain([lost.clone()]);
    let mut consumer = Consumer::new(board.clone(), api.clone(), TOPIC, held, limits);
    let mut items = Vec::new();
    while !matches!(items.last(), Some(Item::Replayed { .. })) {
        items.push(consumer.next().await.expect("it goes on"));
    }
    assert_eq!(items.last(), Some(&replayed([], [&lost])));
    board.want([0, 1]);
    while !matches!(items.last(), Some(Item::Left(_))) {
        items.push(consumer.next().await.expect("it goes on"));
    }
    api.says(&lost, Existence::Gone);
    let next = timeout(LONG, consumer.next()).await.expect("an item");
    let is_too_many = matches!(next, Ok(Item::Stopped(Stop::TooMany { gone: 1, held: 11, .. })));
    assert!(is_too_many, "{next:?}");
}

/// As if what is replayed while others are stopped were trusted, because that replay began before.
#[tokio::test(start_paused = true)]
async fn what_is_absent_in_a_replay_under_way_is_not_gone_once_others_are_stopped() {
    let others: BTreeSet<Uid> = (0..Limits::DEFAULT.few).map(|number| absent(2, number)).collect();
    let mut absence = Absence::begin_with(&others).await;
    let came = ["d", "h"].map(|name| absence.board.put(name, false));
    let lost = absent(partition_of(&came[0]), 0);
    absence.consumer.held().add(lost.clone());
    absence.board.want([0, 2, partition_of(&lost)]);
    assert!(matches!(absence.next().await, Item::Cut(_)));
    let next = absence.next().await;
    assert!(
        matches!(&next, Item::Event(event) if event.resource_id == came[0]),
        "{next:?}"
    );
    for uid in others.iter().chain([&absence.absent, &lost]) {
        absence.api.says(uid, Existence::Gone);
    }
    // Until the next look-up.
    sleep(LONG).await;
    let next = absence.next().await;
    let is_too_many = matches!(next, Item::Stopped(Stop::TooMany { gone: 11, held: 12, .. }));
    assert!(is_too_many, "{next:?}");
    let next = absence.next().await;
    assert!(
        matches!(&next, Item::Event(event) if event.resource_id == came[1]),
        "{next:?}"
    );
    let next = absence.next().await;
    let is_stopped = matches!(next, Item::Stopped(Stop::Restored { absent: 1, .. }));
    assert!(is_stopped, "{next:?}");
}
