//! The messages of a subscription, each of which is dealt with before the next one comes.

use futures::StreamExt as _;

use crate::event::Message;
use crate::source::{SourceError, Subscription};

/// A subscription, and how far its messages are dealt with.
pub(super) struct Delivery {
    messages: Subscription,
    /// Returned, and not known to be dealt with.
    pending: Option<Message>,
}

impl Delivery {
    /// Nothing was returned of this subscription yet.
    pub(super) fn new(messages: Subscription) -> Self {
        Self {
            messages,
            pending: None,
        }
    }

    /// The next message. Who stops waiting for it gets it from the next call.
    ///
    /// # Errors
    /// Why there is none any more.
    pub(super) async fn message(&mut self) -> Result<Message, SourceError> {
        let ended = || Err(SourceError::interrupted("the server ended the subscription"));
        self.messages.next().await.unwrap_or_else(ended)
    }

    /// A message is returned to the caller; none where what is returned is no message of the subscription.
    pub(super) fn returns(&mut self, message: Option<Message>) {
        self.pending = message;
    }

    /// The caller asks for what comes next: what was returned is dealt with.
    pub(super) fn take_dealt_with(&mut self) -> Option<Message> {
        self.pending.take()
    }
}
