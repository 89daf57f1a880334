//! Events over a real NATS server: the contract of all transports, and what happens when the server, its disk, the
//! feeding process or the database is lost.

mod outbox;

mod delivery;

mod partitions;
mod projects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use jiff::Timestamp;
use kindex_events::contract::{self, Stage};
use kindex_events::{Event, Message, Position, Source as _, SourceError, Subscribe, Subscription};
use kindex_harness::nats::Nats;
use kindex_harness::require::require;
use kindex_harness::wait::WAIT_MAX;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_nats::{Connection, ConnectionError, FeedError, Feeder, Metrics, NatsSource, Partitions, Progress, Server};
use kindex_store::Outbox;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use outbox::Board;
use projects::Projects;

const TOPIC: &str = "projects.michelangelo.api";
const EVERY: Duration = Duration::from_millis(10);

fn kind() -> &'static Kind {
    let mut kinds = kindex_generated::registry().kinds.iter();
    kinds.find(|kind| kind.plural == "projects").expect("it is declared")
}

fn fed() -> Progress {
    Metrics::default().of("Project")
}

/// A server, a database and the process that feeds the one from the other, begun again when it ends.
struct Harness<B> {
    server: Nats,
    connection: Connection,
    board: B,
    feeding: JoinHandle<()>,
    partitions: watch::Sender<Partitions>,
    source: NatsSource,
}

impl Harness<Arc<Board>> {
    async fn open() -> Option<Self> {
        let board = Arc::new(Board::default());
        Self::over(board.clone(), board).await
    }
}

impl<B> Harness<B> {
    /// Over a database, and the outbox that is kept in it.
    async fn over(outbox: Arc<dyn Outbox>, board: B) -> Option<Self> {
        if !require("nats", Nats::installed()) {
            return None;
        }
        let server = Nats::start();
        let connection = Connection::open(&Server::at(&server.address()))
            .await
            .expect("an address");
        let feeder = Feeder::new(connection.clone(), outbox, kind(), 4, fed());
        let feeding = tokio::spawn(async move {
            loop {
                let Err(_again) = feeder.run(EVERY).await;
                sleep(EVERY).await;
            }
        });
        let (partitions, wanted) = watch::channel(Partitions::All);
        let source = NatsSource::new(connection.clone(), wanted, Timestamp::now);
        let harness = Self {
            server,
            connection,
            board,
            feeding,
            partitions,
            source,
        };
        drop(harness.subscribe(None).await);
        Some(harness)
    }

    /// Subscribes as soon as the stream is there.
    async fn subscribe(&self, from: Option<&Position>) -> Subscription {
        subscribed(&self.source, from).await
    }

    /// All that a replay shows, by name; begun again where the stream is made anew meanwhile.
    async fn replay(&self) -> BTreeMap<String, Event> {
        let mut subscription = self.subscribe(None).await;
        let mut seen = BTreeMap::new();
        loop {
            match next(&mut subscription).await {
                Ok(Message::Event(event, _)) => drop(seen.insert(event.name.clone(), event)),
                Ok(Message::Replayed(_)) => return seen,
                Ok(Message::Alive(_)) => {}
                Err(_) => {
                    subscription = self.subscribe(None).await;
                    seen.clear();
                }
            }
        }
    }

    /// Until a replay shows these and no others.
    async fn shows(&self, names: &[&str]) {
        let wanted: BTreeSet<&str> = names.iter().copied().collect();
        let shown = async {
            loop {
                let seen = self.replay().await;
                let seen: BTreeSet<&str> = seen
                    .values()
                    .filter(|event| !event.erased)
                    .map(|it| &*it.name)
                    .collect();
                if seen == wanted {
                    return;
                }
            }
        };
        timeout(WAIT_MAX, shown).await.expect("a replay shows what exists");
    }
}

impl<B> Drop for Harness<B> {
    fn drop(&mut self) {
        self.feeding.abort();
    }
}

#[async_trait]
impl Stage for Harness<Projects> {
    fn source(&self) -> &dyn kindex_events::Source {
        &self.source
    }

    fn topic(&self) -> &str {
        TOPIC
    }

    fn forgotten(&self) -> Position {
        let place = serde_json::json!({
            "stream": "1", "partitions": "all", "sequence": 1, "replay_end": null,
            "seconds": Timestamp::now().as_second(),
        });
        Position::encode("nats", TOPIC, &place)
    }

    fn of_another_life(&self, position: &Position) -> Position {
        let mut place: serde_json::Value = position.decode("nats", TOPIC).expect("one of ours");
        place["stream"] = "1".into();
        Position::encode("nats", TOPIC, &place)
    }

    async fn create(&self, name: &str) -> Uid {
        self.board.create(name).await
    }

    async fn archive(&self, name: &str) {
        self.board.archive(name).await;
    }

    async fn delete(&self, name: &str) {
        self.board.delete(name).await;
    }

    async fn erase(&self, name: &str) {
        self.board.erase(name).await;
    }
}

/// Subscribes as soon as the stream is there and the server answers.
async fn subscribed(source: &NatsSource, from: Option<&Position>) -> Subscription {
    let to = Subscribe {
        from: from.cloned(),
        ..Subscribe::to(TOPIC)
    };
    let attempts = async {
        loop {
            match source.subscribe(&to).await {
                Ok(subscription) => return subscription,
                Err(SourceError::UnknownTopic(_) | SourceError::Interrupted { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            sleep(EVERY).await;
        }
    };
    timeout(WAIT_MAX, attempts).await.expect("the stream comes")
}

async fn next(subscription: &mut Subscription) -> Result<Message, SourceError> {
    let next = timeout(WAIT_MAX, subscription.next()).await.expect("a message");
    next.expect("the subscription goes on")
}

/// Until this object was seen so; the position after it.
async fn until(subscription: &mut Subscription, name: &str, wanted: impl Fn(&Event) -> bool) -> Position {
    loop {
        if let Message::Event(event, position) = next(subscription).await.expect("a message")
            && event.name == name
            && wanted(&event)
        {
            return position.expect("each event has one");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_fulfills_the_contract() {
    let projects = Projects::begin(kind()).await;
    if let Some(harness) = Harness::over(projects.store.clone(), projects).await {
        assert_eq!(contract::check(&harness).await, Ok(()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_and_comes_back_loses_nothing() {
    let Some(mut harness) = Harness::open().await else {
        return;
    };
    harness.board.create("before");
    let mut subscription = harness.subscribe(None).await;
    let position = until(&mut subscription, "before", |event| !event.is_deleted()).await;
    harness.server.kill();
    harness.board.create("meanwhile");
    harness.board.delete("before");
    harness.board.erase("before");
    harness.server.resume();
    let mut resumed = harness.subscribe(Some(&position)).await;
    until(&mut resumed, "before", |event| event.erased).await;
    harness.shows(&["meanwhile"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_lost_its_disk_is_filled_anew_and_old_positions_are_gone() {
    let Some(mut harness) = Harness::open().await else {
        return;
    };
    harness.board.create("a");
    harness.board.create("b");
    let mut subscription = harness.subscribe(None).await;
    let position = until(&mut subscription, "b", |_| true).await;
    harness.server.kill();
    harness.server.lose_disk();
    harness.board.delete("a");
    harness.board.erase("a");
    harness.server.resume();
    harness.shows(&["b"]).await;
    let to = Subscribe {
        from: Some(position),
        ..Subscribe::to(TOPIC)
    };
    let refused = harness.source.subscribe(&to).await;
    assert!(matches!(refused.map(drop), Err(SourceError::Gone(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_restored_makes_the_stream_anew() {
    let Some(harness) = Harness::open().await else { return };
    harness.board.create("kept");
    let backup = harness.board.backup();
    harness.board.create("lost");
    harness.shows(&["kept", "lost"]).await;
    let mut subscription = harness.subscribe(None).await;
    let position = until(&mut subscription, "lost", |_| true).await;
    harness.board.restore(&backup);
    harness.board.create("later");
    harness.shows(&["kept", "later"]).await;
    let to = Subscribe {
        from: Some(position),
        ..Subscribe::to(TOPIC)
    };
    let refused = harness.source.subscribe(&to).await;
    assert!(matches!(refused.map(drop), Err(SourceError::Gone(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_another_one_followed_publishes_nothing_more() {
    let Some(harness) = Harness::open().await else { return };
    harness.shows(&[]).await;
    // It has a database of its own, so what it published would be seen.
    let stale = Arc::new(Board::drawing_after(1_000_000));
    let first = Feeder::new(harness.connection.clone(), stale.clone(), kind(), 4, fed());
    let paused = tokio::spawn(async move { first.run(Duration::from_secs(1)).await });
    let removed = async {
        loop {
            // Each of the two makes the stream anew, until one of them has had enough.
            if paused.is_finished() {
                return;
            }
            harness.board.create("of the follower");
            stale.create("of the one before");
            sleep(EVERY).await;
        }
    };
    timeout(WAIT_MAX, removed).await.expect("one is refused");
    let Err(refused) = paused.await.expect("it ends");
    assert!(
        matches!(
            refused,
            FeedError::Followed { .. } | FeedError::Publish { .. } | FeedError::Gone { .. }
        ),
        "{refused}"
    );
    harness.shows(&["of the follower"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_not_filled_yet_is_not_read() {
    if !require("nats", Nats::installed()) {
        return;
    }
    let server = Nats::start();
    let connection = Connection::open(&Server::at(&server.address()))
        .await
        .expect("an address");
    let board = Board::failing_at(1);
    // The first page is published; the database fails before the second one.
    for number in 0..501 {
        board.create(&format!("object-{number:03}"));
    }
    let feeder = Feeder::new(connection.clone(), Arc::new(board), kind(), 4, fed());
    let Err(failed) = feeder.run(EVERY).await;
    assert!(matches!(failed, FeedError::Outbox(_)), "{failed}");
    let (_partitions, wanted) = watch::channel(Partitions::All);
    let source = NatsSource::new(connection, wanted, Timestamp::now);
    let refused = source.subscribe(&Subscribe::to(TOPIC)).await.map(drop);
    let filling = SourceError::interrupted("the stream is being filled");
    assert_eq!(refused, Err(filling));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_the_address_is_let_in_and_nobody_else() {
    if !require("nats", Nats::installed()) {
        return;
    }
    let server = Nats::start_with(&["--user", "ada", "--pass", "a b@c"], true);
    let with = |user: &str| Server::at(&server.address().replace("nats://", &format!("nats://{user}")));
    assert!(Connection::reach(&with("ada:a%20b%40c@")).await.is_ok());
    for wrong in ["", "ada:wrong@", "ada@"] {
        let refused = Connection::open(&with(wrong)).await;
        assert!(matches!(refused, Err(ConnectionError::Refused { .. })), "{wrong}");
    }
    let server = Nats::start_with(&["--auth", "t0ken"], false);
    let with = Server::at(&server.address().replace("nats://", "nats://t0ken@"));
    let refused = Connection::open(&with).await;
    assert!(
        matches!(refused, Err(ConnectionError::NoJetStream { .. })),
        "{refused:?}"
    );
}
