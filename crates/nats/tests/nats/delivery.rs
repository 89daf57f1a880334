//! What the server delivers again, and what is lost on its way: a subscription tells each event once, and who resumes
//! lacks none.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_nats::jetstream::consumer::{FromConsumer as _, PullConsumer, pull};
use async_nats::jetstream::{self, stream::Stream};
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::{SignedDuration, Timestamp};
use kindex_events::{Message, Source as _, SourceError, Subscribe, Subscription};
use kindex_harness::proxy::{Mode, Proxy};
use kindex_harness::wait::{WAIT_MAX, eventually};
use kindex_nats::names::Names;
use kindex_nats::{Connection, NatsSource, Partitions, Server};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::outbox::Board;
use super::{EVERY, Harness, TOPIC, next, subscribed, until};

/// The stream as any client of the server has it.
pub(crate) async fn stream(harness: &Harness<Arc<Board>>) -> Stream {
    let client = async_nats::connect(harness.server.address()).await.expect("it answers");
    let stream = jetstream::new(client).get_stream(Names::of(TOPIC).stream()).await;
    stream.expect("it was made")
}

async fn consumers(stream: &Stream) -> BTreeSet<String> {
    let names = stream.consumer_names().try_collect().await;
    names.expect("they can be listed")
}

/// The one that is not among these.
async fn new_consumer(stream: &Stream, others: &BTreeSet<String>) -> String {
    let names = consumers(stream).await;
    let name = names.difference(others).next();
    name.expect("a subscription has one").clone()
}

/// The names of the events until this one.
async fn received_until(subscription: &mut Subscription, last: &str) -> Vec<String> {
    let mut received: Vec<String> = Vec::new();
    while received.last().is_none_or(|name| name != last) {
        if let Message::Event(event, _) = next(subscription).await.expect("it goes on") {
            received.push(event.name);
        }
    }
    received
}

/// Cuts the connections that are open. The proxy deals with one that begins later after those: once it is cut, so are
/// they.
async fn cut(proxy: &Proxy) {
    proxy.set(Mode::Reset);
    let later = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port)).await;
    // A server would greet. Whether the connection is cut before it is there, or after that, is the same.
    if let Ok(mut later) = later {
        assert!(later.read_u8().await.is_err(), "it is passed on");
    }
    proxy.set(Mode::Pass);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_delivered_again_is_told_once_and_who_resumes_lacks_nothing() {
    let Some(harness) = Harness::open().await else { return };
    harness.board.create("a");
    harness.shows(&["a"]).await;
    let stream = stream(&harness).await;
    let others = consumers(&stream).await;
    let mut subscription = harness.subscribe(None).await;
    let position = until(&mut subscription, "a", |_| true).await;

    // Nobody asks for the next one, so this one is not acknowledged.
    let name = new_consumer(&stream, &others).await;
    let consumer = stream.consumer_info(&name).await.expect("it is there");
    let config = pull::Config::try_from_consumer_config(consumer.config).expect("it is pulled");
    let impatient = pull::Config {
        name: Some(name.clone()),
        ack_wait: EVERY * 10,
        ..config
    };
    stream.update_consumer(impatient).await.expect("the wait may change");
    eventually("another delivery", async || {
        let consumer = stream.consumer_info(&name).await;
        consumer.is_ok_and(|consumer| consumer.num_redelivered > 0)
    })
    .await;
    harness.board.create("b");
    harness.board.create("c");
    assert_eq!(received_until(&mut subscription, "c").await, ["b", "c"]);

    // The last one is not acknowledged either.
    drop(subscription);
    harness.board.create("d");
    let mut resumed = harness.subscribe(Some(&position)).await;
    assert_eq!(received_until(&mut resumed, "d").await, ["b", "c", "d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cut_connection_loses_on_the_way_is_told_to_who_resumes() {
    let Some(harness) = Harness::open().await else { return };
    let address = harness.server.address();
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let proxy = Proxy::start(port.expect("an address ends with a port"));
    let server = Server::at(&format!("nats://127.0.0.1:{}", proxy.port));
    let connection = Connection::reach(&server).await.expect("it answers");
    let (_, partitions) = watch::channel(Partitions::All);
    let source = NatsSource::new(connection, partitions, Timestamp::now);
    harness.board.create("a");
    harness.shows(&["a"]).await;
    let stream = stream(&harness).await;
    let others = consumers(&stream).await;
    let mut subscription = subscribed(&source, None).await;
    let mut position = until(&mut subscription, "a", |_| true).await;

    let name = new_consumer(&stream, &others).await;
    proxy.set(Mode::Stall);
    harness.board.create("lost");
    eventually("its delivery", async || {
        let consumer = stream.consumer_info(&name).await;
        consumer.is_ok_and(|consumer| consumer.delivered.consumer_sequence > 1)
    })
    .await;
    cut(&proxy).await;
    harness.board.create("after");

    let mut received: Vec<String> = Vec::new();
    let mut interruptions = 0;
    while received.last().is_none_or(|name| name != "after") {
        match next(&mut subscription).await {
            Ok(message) => {
                received.extend(message.event().map(|event| event.name.clone()));
                position = message.position().cloned().unwrap_or(position);
            }
            Err(SourceError::Interrupted { .. }) => {
                interruptions += 1;
                subscription = subscribed(&source, Some(&position)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(received, ["lost", "after"]);
    assert!(interruptions > 0, "nothing was lost");
}

/// As if what is behind the last message of before were no part of the replay.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_has_what_changes_while_it_goes_on() {
    let Some(harness) = Harness::open().await else { return };
    // More than the server sends before some are read.
    let names: Vec<String> = (0..300).map(|number| format!("object-{number:03}")).collect();
    names.iter().for_each(|name| drop(harness.board.create(name)));
    let mut shown: Vec<&str> = names.iter().map(String::as_str).collect();
    harness.shows(&shown).await;
    let mut subscription = harness.subscribe(None).await;
    let mut seen = BTreeSet::new();
    while seen.is_empty() {
        let message = next(&mut subscription).await.expect("it goes on");
        seen.extend(message.event().map(|event| event.name.clone()));
    }
    harness.board.delete("object-298");
    harness.board.delete("object-299");
    harness.board.create("later");
    shown.push("later");
    harness.shows(&shown).await;
    loop {
        match next(&mut subscription).await.expect("it goes on") {
            Message::Event(event, _) => seen.extend([event.name]),
            Message::Replayed(_) => break,
            Message::Alive(_) => {}
        }
    }
    let lacking = names.iter().find(|name| !seen.contains(*name));
    assert_eq!(lacking, None);
}

/// Another client of the consumer stands for the cut: it takes a message and does not acknowledge it. As if the silence
/// until the server delivers that one again said that there is nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_told_to_be_up_to_date_while_a_message_is_lacking() {
    let Some(harness) = Harness::open().await else { return };
    harness.board.create("a");
    harness.shows(&["a"]).await;
    let stream = stream(&harness).await;
    let others = consumers(&stream).await;
    let mut subscription = harness.subscribe(None).await;
    let mut position = until(&mut subscription, "a", |_| true).await;
    let name = new_consumer(&stream, &others).await;
    let consumer: PullConsumer = stream.get_consumer(&name).await.expect("it is there");
    let taken = consumer.batch().max_messages(1).expires(WAIT_MAX).messages().await;
    let mut taken = taken.expect("a message can be asked for");

    // The server serves whoever asks in turn.
    let mut created = 0;
    let lacking = loop {
        created += 1;
        let name = format!("event-{created}");
        harness.board.create(&name);
        let is_taken = tokio::select! {
            message = taken.next() => message.expect("it is not over").is_ok(),
            seen = until(&mut subscription, &name, |_| true) => {
                position = seen;
                false
            }
        };
        if is_taken {
            break name;
        }
    };
    let received = loop {
        match next(&mut subscription).await {
            Ok(Message::Event(event, _)) => break event.name,
            Ok(Message::Replayed(_)) => {}
            Ok(Message::Alive(_)) => panic!("{lacking} is lacking"),
            Err(SourceError::Interrupted { .. }) => subscription = harness.subscribe(Some(&position)).await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(received, lacking);
}

/// An hour longer than a position can be resumed: clocks differ.
#[tokio::test(flavor = "multi_thread")]
async fn a_tombstone_outlasts_every_position_before_it() {
    let Some(harness) = Harness::open().await else { return };
    let uid = harness.board.create("a");
    harness.board.erase("a");
    let mut subscription = harness.subscribe(None).await;
    until(&mut subscription, "a", |event| event.erased).await;
    let partition = Names::of(TOPIC).partition(Names::partition_of(&uid, 4));
    let stream = stream(&harness).await;
    let tombstone = stream
        .get_last_raw_message_by_subject(&partition.replace('*', &uid.0))
        .await;
    let tombstone = tombstone.expect("it is there");
    let kept = tombstone.headers.get("Nats-TTL").map(|kept| kept.as_str().to_owned());
    assert_eq!(kept, Some(((7 * 24 + 1) * 60 * 60).to_string()));
}

/// Seconds by which a clock is ahead, as if so much time had passed.
const LONGER_THAN_SILENT: i64 = 20;
const EIGHT_DAYS: i64 = 8 * 24 * 60 * 60;

/// What time it is by a clock that is ahead.
fn ahead_by(seconds: &AtomicI64) -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(seconds.load(Ordering::SeqCst))
}

/// As if the position of who reads all that happens, and is given nothing of it, became older and older.
#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_keeps_back_all_that_happens_lets_the_position_go_on() {
    static AHEAD: AtomicI64 = AtomicI64::new(0);
    let Some(harness) = Harness::open().await else { return };
    let (connection, partitions) = (harness.connection.clone(), harness.partitions.subscribe());
    let source = NatsSource::new(connection, partitions, || ahead_by(&AHEAD));
    let mut subscription = harness.subscribe(None).await;
    let Ok(Message::Replayed(Some(from))) = next(&mut subscription).await else {
        panic!("nothing exists");
    };
    harness.board.create("a");
    harness.board.create("b");
    harness.shows(&["a", "b"]).await;
    let deleting = Subscribe {
        from: Some(from),
        deleting: true,
        ..Subscribe::to(TOPIC)
    };
    let mut filtered = source.subscribe(&deleting).await.expect("the position is known");
    AHEAD.store(LONGER_THAN_SILENT, Ordering::SeqCst);
    let mut later = Vec::new();
    let deadline = Instant::now() + WAIT_MAX;
    let alive = loop {
        if let Ok(alive) = timeout(Duration::from_secs(1), next(&mut filtered)).await {
            break alive;
        }
        assert!(Instant::now() < deadline, "nothing is said of {later:?}");
        // The server is never silent for fifteen seconds, which would be a reason of its own.
        later.push(format!("later-{}", later.len()));
        harness.board.create(&later[later.len() - 1]);
    };
    let Ok(Message::Alive(Some(position))) = alive else {
        panic!("{alive:?}");
    };
    harness.board.create("c");
    let mut resumed = harness.subscribe(Some(&position)).await;
    let received = received_until(&mut resumed, "c").await;
    assert!(
        received.iter().all(|name| name == "c" || later.contains(name)),
        "{received:?}"
    );
}

/// As if the age of a position were asked for only where it is resumed.
#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_that_is_read_for_longer_than_tombstones_are_kept_is_a_lost_position() {
    static AHEAD: AtomicI64 = AtomicI64::new(0);
    let Some(harness) = Harness::open().await else { return };
    harness.board.create("a");
    harness.board.create("b");
    harness.shows(&["a", "b"]).await;
    let (connection, partitions) = (harness.connection.clone(), harness.partitions.subscribe());
    let source = NatsSource::new(connection, partitions, || ahead_by(&AHEAD));
    let mut subscription = subscribed(&source, None).await;
    let first = next(&mut subscription).await;
    assert!(matches!(first, Ok(Message::Event(..))), "{first:?}");
    AHEAD.store(EIGHT_DAYS, Ordering::SeqCst);
    let late = next(&mut subscription).await;
    assert!(matches!(late, Err(SourceError::Gone(_))), "{late:?}");
}
