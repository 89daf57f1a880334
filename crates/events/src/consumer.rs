//! A subscription that goes on: resumed where it was cut, with the diff of what is held after each replay. For services
//! that act on the objects of another one.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, OptionFuture};
use futures::{FutureExt as _, StreamExt as _};
use kindex_model::object::Uid;
use tokio::time::{sleep, timeout};

use crate::event::{Event, Message};
use crate::held::{Absent, Confirmed, Existence, Held, Limits, LookUp, Stop};
use crate::position::Position;
use crate::resume::{Next, Resume};
use crate::source::{Share, Source, SourceError, Subscribe, Subscription};

/// Before a look-up that comes after one without an answer.
const LOOK_UP_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The longest wait for the answer of one: events wait for the first one after a replay.
const LOOK_UP_MAX: Duration = Duration::from_secs(10);
/// The longest beginning of a subscription. A source has limits of its own for the requests that it makes for one.
const BEGINNING_MAX: Duration = Duration::from_secs(300);

/// What a consumer is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Something happened to an object.
    Event(Event),
    /// All that exists was seen, or more is known of what was absent then.
    Replayed {
        /// These are held and gone; their tombstones were missed. Each was looked up.
        gone: Vec<Uid>,
        /// These are held and absent, and the API does not say whether they exist. They are looked up again while
        /// events go on, and once more is known, it comes as another item of this kind.
        unknown: Vec<Uid>,
    },
    /// All that exists was seen, and what is absent is not to be trusted: nothing is to be deleted, and somebody is to
    /// be told.
    Stopped(Stop),
    /// These are held no more: they are in partitions that the source does not have, or has no more. They may exist.
    Left(Vec<Uid>),
    /// The subscription was cut and is about to be resumed.
    Cut(SourceError),
}

/// How a subscription began.
type Begun = Result<(Option<Share>, Subscription), SourceError>;

/// A consumer of one topic.
///
/// # Guarantees
/// An event that was returned counts as dealt with when the next one is asked for: who stops in between gets it
/// again. After a cut nothing is missing. Who stops waiting for an item before it is there gets it from the next call,
/// which goes on with the pause, the beginning of a subscription or the look-up that was under way.
///
/// Where the source has other partitions than before, objects that are in none of them are given as [`Item::Left`] and
/// never as gone. Those of partitions that came anew are replayed, and the replay ends as the first one did.
pub struct Consumer {
    source: Arc<dyn Source>,
    look_up: Arc<dyn LookUp>,
    limits: Limits,
    resume: Resume,
    held: Held,
    subscription: Option<Subscription>,
    /// One that begins, after the pause before it. Where a call is dropped, the next one goes on with it.
    begun: Option<BoxFuture<'static, Begun>>,
    /// Returned, and not known to be dealt with.
    pending: Option<Message>,
    /// The end of a replay, until it is returned what is known of all that is absent.
    ended: Option<Message>,
    /// What is absent after a replay, until the API has said of each whether it exists. Later events do not wait for
    /// that: an API that is away would keep all that happens from who follows it.
    absent: Option<Absent>,
    /// The look-up of one of these, which goes on like that too.
    asked: Option<BoxFuture<'static, (Uid, Existence)>>,
    /// Whether the last one had no answer.
    is_unanswered: bool,
    /// Whether the caller may have changed what is held since absences were compared with it.
    is_changed: bool,
    next: Option<Next>,
}

impl Consumer {
    /// Follows all events of a topic for a service that holds something of these objects.
    pub fn new(
        source: Arc<dyn Source>,
        look_up: Arc<dyn LookUp>,
        topic: &str,
        held: impl IntoIterator<Item = Uid>,
        limits: Limits,
    ) -> Self {
        Self {
            source,
            look_up,
            limits,
            resume: Resume::new(&Subscribe::to(topic)),
            held: Held::new(held),
            subscription: None,
            begun: None,
            pending: None,
            ended: None,
            absent: None,
            asked: None,
            is_unanswered: false,
            is_changed: false,
            next: None,
        }
    }

    /// The objects that the service holds something of: kept by the caller as they change.
    pub fn held(&mut self) -> &mut Held {
        self.is_changed = true;
        &mut self.held
    }

    /// The position up to which all is dealt with.
    pub fn position(&self) -> Option<&Position> {
        self.resume.position()
    }

    /// The next item; waits until there is one.
    ///
    /// # Errors
    /// What every attempt meets: no such topic, or no right to it.
    pub async fn next(&mut self) -> Result<Item, SourceError> {
        if let Some(message) = self.pending.take() {
            self.resume.took(&message);
        }
        loop {
            match self.step().await {
                Ok(Some(item)) => return Ok(item),
                Ok(None) => {}
                Err(error) => {
                    self.subscription = None;
                    match self.resume.ended(Some(&error)) {
                        Next::Never => return Err(error),
                        next => {
                            if next == Next::FromNothing {
                                self.held.lost();
                            }
                            self.next = Some(next);
                        }
                    }
                    return Ok(Item::Cut(error));
                }
            }
        }
    }

    /// Begins a subscription, or takes a message of the one that there is.
    async fn step(&mut self) -> Result<Option<Item>, SourceError> {
        if let Some(item) = self.confirm() {
            return Ok(Some(item));
        }
        let Some(subscription) = &mut self.subscription else {
            let left = self.begin().await?;
            return Ok((!left.is_empty()).then_some(Item::Left(left)));
        };
        let message = tokio::select! {
            biased;
            Some((uid, existence)) = OptionFuture::from(self.asked.as_mut()) => {
                self.asked = None;
                self.is_unanswered = existence == Existence::Unknown;
                if let Some(absent) = &mut self.absent {
                    absent.answered(&uid, existence);
                }
                return Ok(None);
            }
            message = subscription.next(), if self.ended.is_none() => message,
        };
        let message = message.unwrap_or_else(|| Err(SourceError::interrupted("the server ended the subscription")))?;
        if let Some(absent) = self.held.take(&message) {
            self.end(message, absent);
            return Ok(None);
        }
        let Some(event) = message.event().cloned() else {
            self.resume.took(&message);
            return Ok(None);
        };
        if let Some(absent) = &mut self.absent {
            absent.saw(&event.resource_id);
        }
        self.pending = Some(message);
        Ok(Some(Item::Event(event)))
    }

    /// A replay has ended.
    fn end(&mut self, message: Message, mut absent: Absent) {
        if let Some(earlier) = self.absent.take() {
            absent.absorb(earlier);
        }
        self.absent = Some(absent);
        self.ended = Some(message);
        // The end of this replay does not wait for the pause of an earlier one.
        self.asked = None;
        self.is_unanswered = false;
    }

    /// What is known of all that is absent, or the next look-up of it begins. Only beside a subscription: one that
    /// finds the database restored makes what the API says about absences worthless.
    fn confirm(&mut self) -> Option<Item> {
        let is_due = self.subscription.is_some() && self.asked.is_none();
        let absent = self.absent.as_mut().filter(|_| is_due)?;
        if std::mem::take(&mut self.is_changed) {
            absent.retain(&self.held);
        }
        let item = match absent.confirmed(self.resume.topic(), &self.limits) {
            Ok(None) => {
                let (look_up, uid) = (self.look_up.clone(), absent.to_look_up()?.clone());
                let pause = self.is_unanswered.then_some(LOOK_UP_AGAIN_AFTER);
                let asked = async move {
                    if let Some(pause) = pause {
                        sleep(pause).await;
                    }
                    let answer = timeout(LOOK_UP_MAX, look_up.look_up(&uid)).await;
                    (uid, answer.unwrap_or(Existence::Unknown))
                };
                self.asked = Some(asked.boxed());
                return None;
            }
            Ok(Some(Confirmed { gone, unknown })) => {
                if unknown.is_empty() {
                    self.held.confirmed(absent);
                    self.absent = None;
                }
                Item::Replayed { gone, unknown }
            }
            Err(stop) => {
                self.held.stopped();
                self.absent = None;
                Item::Stopped(stop)
            }
        };
        self.pending = self.ended.take();
        Some(item)
    }

    /// What is held and is not in the part that the subscription has.
    async fn begin(&mut self) -> Result<Vec<Uid>, SourceError> {
        let begun = self.begun.get_or_insert_with(|| {
            let (source, to, next) = (self.source.clone(), self.resume.subscribe(), self.next.take());
            let begun = async move {
                if let Some(Next::After(pause)) = next {
                    sleep(pause).await;
                }
                let begun = timeout(BEGINNING_MAX, source.follow(&to)).await;
                begun.unwrap_or_else(|_| Err(SourceError::interrupted("no subscription begins")))
            };
            begun.boxed()
        });
        let begun = begun.await;
        self.begun = None;
        let (share, subscription) = begun?;
        let mut left = Vec::new();
        // What was added while it began counts as well: its partitions may have come with this subscription.
        if let Some(share) = share {
            left = self.held.keep(&share);
            if let Some(absent) = &mut self.absent {
                absent.leave(left.len());
                absent.retain(&self.held);
            }
            if let Some(from) = share.from {
                self.resume.turned(from);
            }
        }
        if let Some(beginning) = self.resume.beginning() {
            self.held.begin(beginning);
            // All that is held is looked for in this replay.
            self.absent = None;
        }
        self.subscription = Some(subscription);
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use async_trait::async_trait;
    use futures::stream;

    use super::*;
    use crate::sse;

    const TOPIC: &str = "runs.example.com";

    /// Where a subscription is cut.
    #[derive(Clone, Copy, Debug)]
    struct Cut {
        after_bytes: usize,
        /// As if the server had ended it.
        is_clean: bool,
    }

    /// A server that answers with these messages, and ends.
    struct Recorded {
        messages: Vec<Message>,
        /// Of the subscriptions, as they come.
        cuts: Mutex<VecDeque<Cut>>,
    }

    #[async_trait]
    impl Source for Recorded {
        async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError> {
            let index_of = |from: &Position| {
                self.messages
                    .iter()
                    .position(|message| message.position() == Some(from))
            };
            let begin = match &to.from {
                Some(from) => index_of(from).expect("one of ours") + 1,
                None => 0,
            };
            let text: String = self.messages[begin..].iter().map(sse::write).collect();
            let cut = self.cuts.lock().expect("nobody panics with it").pop_front();
            let bytes = cut.map_or(text.len(), |cut| cut.after_bytes.min(text.len()));
            let mut read = sse::Reader::default().read(&text.as_bytes()[..bytes]);
            if cut.is_some_and(|cut| !cut.is_clean) {
                read.push(Err(SourceError::interrupted("reset")));
            }
            let subscription: Subscription = Box::pin(stream::iter(read));
            Ok(subscription)
        }
    }

    struct NothingHeld;

    #[async_trait]
    impl LookUp for NothingHeld {
        async fn look_up(&self, _: &Uid) -> Existence {
            Existence::Unknown
        }
    }

    fn messages() -> Vec<Message> {
        let position = |number: u64| Some(Position::encode("test", TOPIC, &number));
        let event = |uid: &str, erased| Event {
            resource_id: Uid::from(uid),
            deletion_timestamp: None,
            topic: TOPIC.to_owned(),
            namespace: "é".to_owned(),
            name: "a".to_owned(),
            erased,
        };
        vec![
            Message::Event(event("stays", false), None),
            Message::Event(event("goes", false), position(1)),
            Message::Event(event("went before", true), position(2)),
            Message::Replayed(position(3)),
            Message::Alive(None),
            Message::Event(event("comes", false), position(4)),
            Message::Event(event("goes", true), position(5)),
            Message::Alive(position(6)),
            Message::Event(event("comes", true), position(7)),
        ]
    }

    /// What a consumer is given until the last event.
    async fn received(cuts: &[Cut]) -> Vec<Event> {
        let messages = messages();
        let last = messages.last().and_then(Message::event).cloned();
        let source = Recorded {
            messages,
            cuts: Mutex::new(cuts.iter().copied().collect()),
        };
        let mut consumer = Consumer::new(Arc::new(source), Arc::new(NothingHeld), TOPIC, [], Limits::default());
        let mut received = Vec::new();
        // A last event that is lost never comes.
        for _ in 0..50 {
            match consumer.next().await.expect("there are events") {
                Item::Event(event) => received.push(event),
                Item::Replayed { .. } | Item::Left(_) | Item::Cut(_) => {}
                Item::Stopped(why) => panic!("{why}"),
            }
            if received.last() == last.as_ref() {
                break;
            }
        }
        received
    }

    /// Whether these are all events up to a cut, and those after it, with so many of before the cut once more.
    fn is_resumed(received: &[Event], all: &[Event], repeated: usize) -> bool {
        (repeated..=all.len()).any(|cut| received[..cut] == all[..cut] && received[cut..] == all[cut - repeated..])
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_cut_at_any_byte_lacks_no_event_and_no_tombstone() {
        let all: Vec<Event> = messages().iter().filter_map(Message::event).cloned().collect();
        assert_eq!(received(&[]).await, all);
        let bytes: usize = messages().iter().map(|message| sse::write(message).len()).sum();
        let cuts = (0..=bytes).flat_map(|after_bytes| [true, false].map(|is_clean| Cut { after_bytes, is_clean }));
        for cut in cuts {
            let received = received(&[cut]).await;
            // One event has no position. Until the next one it comes again.
            let repeated = received.len().checked_sub(all.len()).filter(|repeated| *repeated <= 1);
            let is_resumed = repeated.is_some_and(|repeated| is_resumed(&received, &all, repeated));
            assert!(is_resumed, "{cut:?}: {received:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_cut_again_and_again_lacks_no_event() {
        let all: Vec<Event> = messages().iter().filter_map(Message::event).cloned().collect();
        // Longer than the first two messages, so that each subscription comes further than the one before.
        let first: usize = messages()[..2].iter().map(|message| sse::write(message).len()).sum();
        for after_bytes in first..first * 2 {
            let cuts = [true, false, true, false].map(|is_clean| Cut { after_bytes, is_clean });
            assert_eq!(received(&cuts).await, all, "cut after {after_bytes} bytes");
        }
    }
}
