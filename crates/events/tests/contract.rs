//! The tests of the contract, tested: a transport in memory passes them, and none with a planted bug does. What a
//! consumer is given over such a transport.

mod board;
mod look_ups;
mod partitions;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kindex_events::consumer::{Consumer, Item};
use kindex_events::contract;
use kindex_events::held::{Existence, Limits, LookUp};
use kindex_events::{Message, Source, SourceError, Subscribe, Subscription};
use kindex_model::object::Uid;
use tokio::time::{Instant, sleep, timeout};

use board::{Board, Bug, TOPIC};

#[tokio::test(start_paused = true)]
async fn a_transport_in_memory_fulfills_the_contract() {
    assert_eq!(contract::check(&Board::new(None)).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn every_planted_bug_is_found() {
    for (bug, rule) in [
        (Bug::NoEnd, "a replay has all that exists"),
        (Bug::TwoEnds, "a replay has all that exists"),
        (Bug::WithoutArchived, "a replay has all that exists"),
        (Bug::WithoutTimestamp, "a replay has all that exists"),
        (Bug::WithoutTombstones, "an object is seen"),
        (Bug::WithoutDeletions, "an object is seen"),
        (Bug::OneTooFar, "a subscription that is resumed lacks"),
        (Bug::ForgetsTheReplay, "a subscription that is resumed lacks"),
        (Bug::AllAgain, "a subscription that is resumed"),
        (Bug::WithoutFilter, "with the filter"),
        (Bug::TakesAnyPosition, "a position that is not known"),
        (Bug::ComparesTheNumberAlone, "a position of another life"),
        (Bug::TakesAnyTopic, "a topic that nobody has"),
    ] {
        let found = contract::check(&Board::new(Some(bug))).await;
        let found = found.expect_err(&format!("{bug:?} is not found"));
        assert!(found.rule.starts_with(rule), "{bug:?}: {found}");
    }
}

/// What is returned at the end of a replay where these are gone.
fn without<const N: usize>(gone: [&Uid; N]) -> Item {
    Item::Replayed {
        gone: gone.map(Uid::clone).into(),
        unknown: Vec::new(),
    }
}

/// The API of a board.
struct Api(Arc<Board>);

#[async_trait]
impl LookUp for Api {
    async fn look_up(&self, uid: &Uid) -> Existence {
        match self.0.exists(uid) {
            true => Existence::Exists,
            false => Existence::Gone,
        }
    }
}

fn consumer(board: &Arc<Board>, held: &[Uid]) -> Consumer {
    let api = Arc::new(Api(board.clone()));
    Consumer::new(board.clone(), api, TOPIC, held.iter().cloned(), Limits::default())
}

/// The items until the replay has ended.
async fn replayed(consumer: &mut Consumer) -> Vec<Item> {
    let mut items = Vec::new();
    loop {
        items.push(consumer.next().await.expect("it can be subscribed to"));
        if matches!(items.last(), Some(Item::Replayed { .. } | Item::Stopped(_))) {
            return items;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_consumer_learns_of_what_went_while_it_was_away() {
    let board = Arc::new(Board::new(None));
    let there = board.put("there", false);
    let gone = Uid::from("gone");
    let mut consumer = consumer(&board, &[there, gone.clone()]);
    let items = replayed(&mut consumer).await;
    assert_eq!(items.last(), Some(&without([&gone])));
}

/// How long an API takes that says of each object that it is gone.
const LOOK_UP: Duration = Duration::from_secs(2);

struct SlowApi;

#[async_trait]
impl LookUp for SlowApi {
    async fn look_up(&self, _: &Uid) -> Existence {
        sleep(LOOK_UP).await;
        Existence::Gone
    }
}

/// As if what is gone were forgotten with the call that looked it up, or each call began the look-up anew.
#[tokio::test(start_paused = true)]
async fn who_stops_waiting_for_look_ups_learns_of_what_is_gone_from_a_later_call() {
    let board = Arc::new(Board::new(None));
    let there = board.put("there", false);
    let gone = ["gone-0", "gone-1", "gone-2", "gone-3"].map(Uid::from);
    let held = gone.iter().cloned().chain([there]);
    let mut consumer = Consumer::new(board.clone(), Arc::new(SlowApi), TOPIC, held, Limits::default());
    assert!(matches!(consumer.next().await, Ok(Item::Event(_))));
    // In all of them, two are looked up, and a part of the third one.
    for _ in 0..3 {
        let next = timeout(LOOK_UP * 3 / 4, consumer.next()).await;
        assert!(next.is_err(), "{next:?}");
    }
    // One that was looked up, and one that was not.
    for number in [1, 3] {
        consumer.held().remove(&gone[number]);
    }
    let next = timeout(LOOK_UP, consumer.next()).await;
    let gone = without([&gone[0], &gone[2]]);
    assert_eq!(next.expect("one was left, and begun"), Ok(gone));
}

/// How long a server wants nobody to come back, and how long it takes to begin a subscription.
const PAUSE: Duration = Duration::from_secs(10);
const BEGIN: Duration = Duration::from_secs(2);

/// A server that refuses the first subscription.
struct SlowSource {
    board: Arc<Board>,
    subscriptions: AtomicUsize,
}

#[async_trait]
impl Source for SlowSource {
    async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError> {
        if self.subscriptions.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(SourceError::Interrupted {
                message: "later".to_owned(),
                retry_after: Some(PAUSE),
            });
        }
        sleep(BEGIN).await;
        self.board.subscribe(to).await
    }
}

/// As if the pause ended with the call, or each call began a subscription anew, and none ever were there.
#[tokio::test(start_paused = true)]
async fn who_stops_waiting_for_a_subscription_gets_it_from_a_later_call() {
    let board = Arc::new(Board::new(None));
    board.put("there", false);
    let source = Arc::new(SlowSource {
        board: board.clone(),
        subscriptions: AtomicUsize::new(0),
    });
    let api = Arc::new(Api(board));
    let mut consumer = Consumer::new(source.clone(), api, TOPIC, [], Limits::default());
    assert!(matches!(consumer.next().await, Ok(Item::Cut(_))));
    let begin = Instant::now();
    let item = loop {
        if let Ok(item) = timeout(BEGIN / 3, consumer.next()).await {
            break item;
        }
        assert!(begin.elapsed() < (PAUSE + BEGIN) * 2, "it never begins");
    };
    assert!(matches!(item, Ok(Item::Event(_))), "{item:?}");
    assert!(begin.elapsed() >= PAUSE + BEGIN, "{:?}", begin.elapsed());
    assert_eq!(source.subscriptions.load(Ordering::SeqCst), 2);
}

/// The subscription is cut after each number of messages, and resumed.
#[tokio::test(start_paused = true)]
async fn a_replay_that_is_cut_deletes_nothing_and_the_resumed_one_all_that_went() {
    for cut in 0..8 {
        let board = Arc::new(Board::new(None));
        let held: Vec<Uid> = (0..5)
            .map(|number| board.put(&format!("run-{number}"), false))
            .collect();
        let gone = Uid::from("gone");
        board.cut_after(cut);
        let mut consumer = consumer(&board, &[&held[..], std::slice::from_ref(&gone)].concat());
        let items = replayed(&mut consumer).await;
        let (last, before) = items.split_last().expect("it ended");
        assert_eq!(*last, without([&gone]), "cut after {cut}");
        let quiet = before.iter().all(|item| matches!(item, Item::Event(_) | Item::Cut(_)));
        assert!(quiet, "cut after {cut}: {before:?}");
        let cuts = before.iter().filter(|item| matches!(item, Item::Cut(_))).count();
        assert_eq!(cuts, usize::from(cut < 6), "cut after {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_position_that_is_gone_is_replayed_and_deletes_nothing() {
    let board = Arc::new(Board::new(None));
    let (there, later) = (board.put("there", false), board.put("later", false));
    let mut consumer = consumer(&board, &[there, later.clone()]);
    replayed(&mut consumer).await;
    let next = timeout(Duration::from_secs(1), consumer.next());
    assert!(next.await.is_err(), "nothing happens");
    board.restore_without(&later);
    assert!(matches!(consumer.next().await, Ok(Item::Cut(_))));
    let items = replayed(&mut consumer).await;
    assert!(matches!(items.last(), Some(Item::Stopped(_))), "{items:?}");
}

#[tokio::test(start_paused = true)]
async fn an_event_counts_as_dealt_with_when_the_next_is_asked_for() {
    let board = Arc::new(Board::new(None));
    board.put("a", false);
    board.put("b", false);
    let mut consumer = consumer(&board, &[]);
    consumer.next().await.expect("an event");
    assert_eq!(consumer.position(), None, "the first is not dealt with");
    consumer.next().await.expect("an event");
    let from = consumer.position().cloned();
    assert!(from.is_some());
    let to = Subscribe {
        from,
        ..Subscribe::to(TOPIC)
    };
    let mut again = board.subscribe(&to).await.expect("known");
    let first = futures::StreamExt::next(&mut again)
        .await
        .expect("one")
        .expect("a message");
    assert_eq!(first.event().map(|event| event.name.as_str()), Some("b"), "{first:?}");
    assert!(!matches!(first, Message::Replayed(_)));
}
