//! A subscription that goes on: resumed where it was cut, with the diff of what is held after each replay. For services
//! that act on the objects of another one.

use std::sync::Arc;

use futures::StreamExt as _;
use kindex_model::object::Uid;

use crate::event::{Event, Message};
use crate::held::{Absent, Held, Limits, LookUp, Stop};
use crate::position::Position;
use crate::resume::{Next, Resume};
use crate::source::{Source, SourceError, Subscribe, Subscription};

/// What a consumer is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Something happened to an object.
    Event(Event),
    /// All that exists was seen. These are held and gone; their tombstones were missed.
    Replayed {
        /// Each was looked up.
        gone: Vec<Uid>,
    },
    /// All that exists was seen, and what is absent is not to be trusted: nothing is to be deleted, and somebody is to
    /// be told.
    Stopped(Stop),
    /// The subscription was cut and is about to be resumed.
    Cut(SourceError),
}

/// A consumer of one topic.
///
/// # Guarantees
/// An event that was returned counts as dealt with when the next one is asked for: who stops in between gets it
/// again. After a cut nothing is missing.
pub struct Consumer {
    source: Arc<dyn Source>,
    look_up: Arc<dyn LookUp>,
    limits: Limits,
    resume: Resume,
    held: Held,
    subscription: Option<Subscription>,
    /// Returned, and not known to be dealt with.
    pending: Option<Message>,
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
            pending: None,
            next: None,
        }
    }

    /// The objects that the service holds something of: kept by the caller as they change.
    pub fn held(&mut self) -> &mut Held {
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
            match self.message().await {
                Ok(message) => {
                    let absent = self.held.take(&message);
                    if let Some(item) = self.item(&message, absent).await {
                        self.pending = Some(message);
                        return Ok(item);
                    }
                    self.resume.took(&message);
                }
                Err(error) => {
                    self.subscription = None;
                    match self.resume.ended(Some(&error)) {
                        Next::Never => return Err(error),
                        next => self.next = Some(next),
                    }
                    return Ok(Item::Cut(error));
                }
            }
        }
    }

    async fn item(&mut self, message: &Message, absent: Option<Absent>) -> Option<Item> {
        let topic = self.resume.subscribe().topic;
        match message {
            Message::Event(event, _) => Some(Item::Event(event.clone())),
            Message::Replayed(_) => {
                let confirmed = absent?.confirm(&topic, &self.limits, &*self.look_up).await;
                Some(confirmed.map_or_else(Item::Stopped, |gone| Item::Replayed { gone }))
            }
            Message::Alive(_) => None,
        }
    }

    async fn message(&mut self) -> Result<Message, SourceError> {
        let subscription = match &mut self.subscription {
            Some(subscription) => subscription,
            none => {
                if let Some(Next::After(pause)) = self.next.take() {
                    tokio::time::sleep(pause).await;
                }
                let begun = self.source.subscribe(&self.resume.subscribe()).await?;
                if let Some(beginning) = self.resume.beginning() {
                    self.held.begin(beginning);
                }
                none.insert(begun)
            }
        };
        let message = subscription.next().await;
        message.unwrap_or_else(|| Err(SourceError::interrupted("the server ended the subscription")))
    }
}
