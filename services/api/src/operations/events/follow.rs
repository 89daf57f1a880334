//! One subscription: the replay by pages, then what changes. Holds no more than a page.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use kindex_events::Message;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_serve::watches::Watches;
use kindex_store::{Mark, Outbox};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::hub::{CHANGES_AT_ONCE, Found, Hubs};
use super::outbox_position::{OutboxPosition, later};
use super::page::{Page, Sent, event, topic};
use crate::operations::{Reason, Refusal, refusal};

/// Objects of the replay that are read together.
const OBJECTS_AT_ONCE: u32 = 1000;
/// Messages on their way to one client.
const MESSAGES_AT_ONCE: usize = 64;
/// A client that takes nothing for so long, while there is something, is left alone: it resumes where it was.
const STALLED: Duration = Duration::from_secs(30);
/// After so long without a message there is one without an event.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The messages of a subscription. The last item may be why it ends.
pub type Messages = BoxStream<'static, Result<Arc<Sent>, Refusal>>;

/// What a subscription needs.
pub(super) struct Follow {
    pub(super) store: Arc<dyn Outbox>,
    pub(super) hubs: Arc<Hubs>,
    pub(super) watches: Watches,
    pub(super) kind: &'static Kind,
    pub(super) deleting: bool,
    pub(super) keep_alive: Duration,
    /// The server stops.
    pub(super) ending: CancellationToken,
}

/// Why a subscription ends.
enum SubscriptionEnd {
    /// Its client is gone, or the server stops.
    Left,
    /// Its client has to know.
    Refused(Refusal),
}

impl From<Refusal> for SubscriptionEnd {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Follow {
    /// Keep-alives as usual.
    pub(super) const KEEP_ALIVE: Duration = KEEP_ALIVE;

    /// Where a subscription from nothing begins.
    pub(super) async fn beginning(&self) -> Result<OutboxPosition, Refusal> {
        Ok(OutboxPosition::beginning(self.head().await?))
    }

    /// Refuses a place that the database does not know any more.
    pub(super) async fn check(&self, place: &OutboxPosition) -> Result<(), Refusal> {
        self.since(place.after, 1).await?;
        if place.seen != place.after {
            self.since(place.seen, 1).await?;
        }
        Ok(())
    }

    /// The messages from a place that the database knows; `until_the_end` is kept as long as they go on.
    pub(super) fn messages(self, place: OutboxPosition, until_the_end: impl Send + 'static) -> Messages {
        let (to, from) = mpsc::channel(MESSAGES_AT_ONCE);
        tokio::spawn(async move {
            let _until_the_end = until_the_end;
            let ending = self.ending.clone();
            let ended = ending.run_until_cancelled(self.run(place, &to)).await;
            if let Some(Err(SubscriptionEnd::Refused(refusal))) = ended {
                // Who does not take it is gone.
                let _gone = to.send_timeout(Err(refusal), STALLED).await;
            }
        });
        ReceiverStream::new(from).boxed()
    }

    async fn run(
        &self,
        place: OutboxPosition,
        to: &mpsc::Sender<Result<Arc<Sent>, Refusal>>,
    ) -> Result<(), SubscriptionEnd> {
        let mut following = Following {
            follow: self,
            topic: topic(self.kind),
            place,
            last_sent: Instant::now(),
            to,
        };
        following.replay().await?;
        following.live().await
    }

    async fn head(&self) -> Result<Mark, Refusal> {
        let head = self.store.head(self.kind).await;
        head.map_err(|error| refusal::of_query(&error))
    }

    /// The changes after a mark, and the mark that they lead to.
    async fn since(&self, mark: Mark, limit: u32) -> Result<(Vec<kindex_store::OutboxEntry>, Mark), Refusal> {
        let changes = self.store.since(self.kind, mark, limit).await;
        let changes = changes.map_err(|error| refusal::of_query(&error))?;
        changes.ok_or_else(gone)
    }
}

/// 410.
fn gone() -> Refusal {
    let message = "the position is not known any more: it is older than seven days, or from before the database was \
                   restored";
    Refusal::new(Reason::Expired, message)
}

/// A subscription under way.
struct Following<'a> {
    follow: &'a Follow,
    topic: String,
    place: OutboxPosition,
    last_sent: Instant,
    to: &'a mpsc::Sender<Result<Arc<Sent>, Refusal>>,
}

impl Following<'_> {
    async fn send(&mut self, sent: Arc<Sent>) -> Result<(), SubscriptionEnd> {
        self.last_sent = Instant::now();
        let sent = self.to.send_timeout(Ok(sent), STALLED).await;
        sent.map_err(|_| SubscriptionEnd::Left)
    }

    /// What is read by this subscription alone, once it is its turn and there is room.
    async fn in_turn<T>(&self, read: impl Future<Output = Result<T, Refusal>>) -> Result<T, SubscriptionEnd> {
        self.follow.watches.settle().await;
        let _turn = self.follow.watches.turn().await;
        Ok(read.await?)
    }

    /// All objects, from where the place is, and the message that says that these were all.
    async fn replay(&mut self) -> Result<(), SubscriptionEnd> {
        let (follow, kind) = (self.follow, self.follow.kind);
        while let Some(last) = self.place.replayed.clone() {
            let (entries, seen) = self
                .in_turn(async {
                    let entries = follow.store.replay(kind, Some(&last), OBJECTS_AT_ONCE).await;
                    let entries = entries.map_err(|error| refusal::of_query(&error))?;
                    // Not older than anything that was read.
                    Ok((entries, follow.head().await?))
                })
                .await?;
            self.place.seen = later(self.place.seen, seen);
            let is_last = entries.len() < OBJECTS_AT_ONCE as usize;
            for entry in entries {
                self.place.replayed = Some(Uid::clone(&entry.uid));
                let event = event(&self.topic, &entry);
                if !follow.deleting || event.is_deleted() {
                    let position = Some(self.place.write(&self.topic));
                    self.send(Sent::new(Message::Event(event, position))).await?;
                }
            }
            if is_last {
                self.place.replayed = None;
                let position = Some(self.place.write(&self.topic));
                self.send(Sent::new(Message::Replayed(position))).await?;
            }
        }
        Ok(())
    }

    /// What happened until now, read by this subscription alone.
    async fn catch_up(&mut self) -> Result<(), SubscriptionEnd> {
        let follow = self.follow;
        loop {
            let after = self.place.after;
            let (entries, until) = self.in_turn(follow.since(after, CHANGES_AT_ONCE)).await?;
            if until == after {
                return Ok(());
            }
            self.pass_on(&Page::new(follow.kind, after, entries, until)).await?;
        }
    }

    /// Says how far the subscription has come.
    async fn keep_alive(&mut self) -> Result<(), SubscriptionEnd> {
        let position = Some(self.place.write(&self.topic));
        self.send(Sent::new(Message::Alive(position))).await
    }

    async fn pass_on(&mut self, page: &Page) -> Result<(), SubscriptionEnd> {
        for sent in page.sent(&self.topic, &self.place, self.follow.deleting) {
            self.send(sent).await?;
        }
        self.place = OutboxPosition {
            seen: later(self.place.seen, page.until),
            ..OutboxPosition::at(page.until)
        };
        Ok(())
    }

    /// What changes, for ever.
    async fn live(&mut self) -> Result<(), SubscriptionEnd> {
        let follow = self.follow;
        // Who joins is up to date: the poller of all is not to read what one of them has missed.
        self.catch_up().await?;
        self.keep_alive().await?;
        let hub = follow.hubs.join(&follow.store, follow.kind, self.place.after);
        let mut news = hub.news();
        loop {
            news.borrow_and_update();
            match hub.after(self.place.after) {
                Found::Page(page) => self.pass_on(&page).await?,
                Found::Behind => self.catch_up().await?,
                Found::Lost => return Err(gone().into()),
                Found::UpToDate => {
                    tokio::select! {
                        () = self.to.closed() => return Err(SubscriptionEnd::Left),
                        // The hub is ours: its sender is there.
                        _ = news.changed() => {}
                        () = tokio::time::sleep_until(self.last_sent + follow.keep_alive) => {
                            self.keep_alive().await?;
                        }
                    }
                }
            }
        }
    }
}
