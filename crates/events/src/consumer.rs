//! A subscription that goes on: resumed where it was cut, with the diff of what is held after each replay. For services
//! that act on the objects of another one.

use std::sync::Arc;

use futures::future::OptionFuture;
use kindex_model::object::Uid;

use crate::event::Event;
use crate::held::{Confirmed, HeldUids, Limits, LookUp, Stop};
use crate::position::Position;
use crate::resume::{Next, Resume};
use crate::source::{PartitionAssignment, Source, SourceError, Subscribe, Subscription};
use delivery::Delivery;
use look_ups::LookUps;
use phase::Phase;

mod absences;
mod look_ups;

mod delivery;
mod phase;

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
    held: HeldUids,
    phase: Phase,
    /// After a replay, until it is known of all that is absent whether it exists.
    look_ups: Option<LookUps>,
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
        let resume = Resume::new(&Subscribe::to(topic));
        Self {
            phase: Phase::beginning(source.clone(), resume.subscribe(), None),
            source,
            look_up,
            limits,
            resume,
            held: HeldUids::new(held),
            look_ups: None,
        }
    }

    /// The objects that the service holds something of: kept by the caller as they change.
    pub fn held(&mut self) -> &mut HeldUids {
        if let Some(look_ups) = &mut self.look_ups {
            look_ups.absences.mark_changed();
        }
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
        if let Phase::Subscribed(delivery) = &mut self.phase
            && let Some(message) = delivery.take_dealt_with()
        {
            self.resume.advance(&message);
        }
        loop {
            match self.step().await {
                Ok(Some(item)) => return Ok(item),
                Ok(None) => {}
                Err(error) => return self.cut(error),
            }
        }
    }

    /// Begins a subscription, or takes a message of the one that there is.
    async fn step(&mut self) -> Result<Option<Item>, SourceError> {
        let delivery = match &mut self.phase {
            Phase::Beginning(begun) => {
                let (assignment, messages) = begun.await?;
                let left = self.begin(assignment, messages);
                return Ok((!left.is_empty()).then_some(Item::Left(left)));
            }
            Phase::Subscribed(delivery) => delivery,
        };
        // Only beside a subscription: one that finds the database restored makes what the API says about absences
        // worthless.
        if let Some(look_ups) = &mut self.look_ups
            && let Some(known) = look_ups.known(&self.look_up, &self.held, self.resume.topic(), &self.limits)
        {
            delivery.returns(look_ups.absences.take_end());
            return Ok(Some(self.conclude(known)));
        }
        // What comes after the end of a replay waits until that is returned.
        let is_end_kept = self.look_ups.as_ref().is_some_and(|it| it.absences.has_end());
        let message = tokio::select! {
            biased;
            Some(()) = OptionFuture::from(self.look_ups.as_mut().map(LookUps::answer)) => return Ok(None),
            message = delivery.message(), if !is_end_kept => message?,
        };
        if let Some(absent) = self.held.take(&message) {
            self.look_ups = Some(LookUps::new(absent, message, self.look_ups.take()));
            return Ok(None);
        }
        let Some(event) = message.event().cloned() else {
            self.resume.advance(&message);
            return Ok(None);
        };
        if let Some(look_ups) = &mut self.look_ups {
            look_ups.absences.record_event(&event.resource_id);
        }
        delivery.returns(Some(message));
        Ok(Some(Item::Event(event)))
    }

    /// A subscription has begun. What is held and is not in the part that it has.
    fn begin(&mut self, assignment: Option<PartitionAssignment>, messages: Subscription) -> Vec<Uid> {
        let mut left = Vec::new();
        // What was added while it began counts as well: its partitions may have come with this subscription.
        if let Some(assignment) = assignment {
            left = self.held.keep(&assignment);
            if let Some(look_ups) = &mut self.look_ups {
                look_ups.absences.leave(left.len(), &self.held);
            }
            if let Some(from) = assignment.from {
                self.resume.restart_from(from);
            }
        }
        if let Some(beginning) = self.resume.beginning() {
            self.held.begin(beginning);
            // All that is held is looked for in this replay.
            self.look_ups = None;
        }
        self.phase = Phase::Subscribed(Delivery::new(messages));
        left
    }

    /// There is no subscription any more, or none has begun: the next call makes another attempt.
    fn cut(&mut self, error: SourceError) -> Result<Item, SourceError> {
        let next = self.resume.ended(Some(&error));
        let pause = match next {
            Next::After(pause) => Some(pause),
            Next::FromNothing | Next::Never => None,
        };
        self.phase = Phase::beginning(self.source.clone(), self.resume.subscribe(), pause);
        match next {
            Next::Never => return Err(error),
            Next::FromNothing => self.held.lost(),
            Next::After(_) => {}
        }
        Ok(Item::Cut(error))
    }

    /// What is returned of what is absent. Nothing more is looked up once all is known.
    fn conclude(&mut self, known: Result<Confirmed, Stop>) -> Item {
        match known {
            Ok(Confirmed { gone, unknown }) => {
                if unknown.is_empty()
                    && let Some(look_ups) = self.look_ups.take()
                {
                    look_ups.absences.conclude(&mut self.held);
                }
                Item::Replayed { gone, unknown }
            }
            Err(stop) => {
                self.look_ups = None;
                self.held.stopped();
                Item::Stopped(stop)
            }
        }
    }
}

#[cfg(test)]
mod tests;
