//! The contract of a transport. Says what a subscription gives, not how.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use kindex_model::object::Uid;

use crate::event::Message;
use crate::position::{Position, PositionError};

/// What is subscribed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribe {
    /// Plural and group of a kind.
    pub topic: String,
    /// What came after this position; `None`: all that exists, and what happens from then on.
    pub from: Option<Position>,
    /// Only objects that are being deleted or erased: those that wait for what holds them, and those that are gone.
    pub deleting: bool,
}

impl Subscribe {
    /// To all of a topic, from nothing.
    pub fn to(topic: &str) -> Self {
        Self {
            topic: topic.to_owned(),
            from: None,
            deleting: false,
        }
    }
}

/// The messages of a subscription, in the order of each object's changes. The last item is an error, or there is none
/// after a while because the server ends: either way it is resumed from the last position.
pub type Subscription = BoxStream<'static, Result<Message, SourceError>>;

/// The part of a topic that a subscription has: the objects in some of the topic's partitions.
pub struct PartitionAssignment {
    /// The partition of an object.
    pub partition_of: Box<dyn Fn(&Uid) -> u32 + Send + Sync>,
    /// Those that the subscription has.
    pub partitions: BTreeSet<u32>,
    /// Those of them that were not read before the position: what exists of them is replayed.
    pub added: BTreeSet<u32>,
    /// The position that is resumed, with these partitions and no others; `None` where it begins from nothing.
    pub from: Option<Position>,
}

impl PartitionAssignment {
    /// Whether the subscription has the events of an object.
    pub fn has(&self, uid: &Uid) -> bool {
        self.partitions.contains(&(self.partition_of)(uid))
    }

    /// Whether it begins with the object, if that exists.
    pub fn replays(&self, uid: &Uid) -> bool {
        self.added.contains(&(self.partition_of)(uid))
    }
}

/// Why there is no subscription, or no more of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// What came after the position is not known: it is too old, or the database was restored. Only a subscription
    /// from nothing goes on. Says so in a sentence, as [`SourceError::gone`] writes it.
    #[error("{0}")]
    Gone(String),
    /// There is no such kind.
    #[error("there is no topic {0}")]
    UnknownTopic(String),
    /// The text is no position of this topic.
    #[error(transparent)]
    Position(#[from] PositionError),
    /// The caller may not, or the kind has no events: another attempt is refused as well.
    #[error("refused: {0}")]
    Refused(String),
    /// The same may succeed later.
    #[error("interrupted: {message}")]
    Interrupted {
        /// Why.
        message: String,
        /// How long the server wants the client to wait.
        retry_after: Option<Duration>,
    },
}

impl SourceError {
    /// One of a position that is not known any more, with the reason.
    pub fn gone(why: impl std::fmt::Display) -> Self {
        Self::Gone(format!("the position is not known any more: {why}"))
    }

    /// One that another attempt may not meet.
    pub fn interrupted(message: impl std::fmt::Display) -> Self {
        Self::Interrupted {
            message: message.to_string(),
            retry_after: None,
        }
    }
}

/// A transport of events.
///
/// # Guarantees
/// Those of the crate: [`crate::contract`] checks them.
///
/// # Errors
/// Those that are known when it begins come from `subscribe`, all others from the subscription.
#[async_trait]
pub trait Source: Send + Sync {
    /// Begins a subscription.
    async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError>;

    /// Begins a subscription, and says which part of the topic it has; `None`: all of it. A position of another part
    /// is resumed: what exists of the partitions that came anew is sent too, with the end of a replay once all of that
    /// was sent.
    async fn follow(&self, to: &Subscribe) -> Result<(Option<PartitionAssignment>, Subscription), SourceError> {
        Ok((None, self.subscribe(to).await?))
    }
}
