//! The deadline of a call, and the status of one that is not done by then.

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use http::HeaderMap;
use kindex_serve::deadline::{self, DeadlineError};
use tonic::Status;

/// The deadline of a client, which may have none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(deadline::Deadline);

impl Deadline {
    /// Of a client that waits as long as it takes.
    pub(super) const NONE: Self = Self(deadline::Deadline::NONE);

    /// As the headers say, from now on.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: a header that is no time.
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, Status> {
        deadline::Deadline::read(headers).map(Self).map_err(status)
    }

    /// Waits for something, and drops it unfinished at the deadline.
    ///
    /// # Errors
    /// `DEADLINE_EXCEEDED`.
    pub(crate) async fn bound<T>(self, work: impl Future<Output = T>) -> Result<T, Status> {
        self.0.bound(work).await.map_err(status)
    }

    /// Messages that end with the first error, and at the deadline.
    pub(super) fn ending<T: Send + 'static>(
        self,
        messages: BoxStream<'static, Result<T, Status>>,
    ) -> BoxStream<'static, Result<T, Status>> {
        let next = move |messages: Option<BoxStream<'static, Result<T, Status>>>| async move {
            let mut messages = messages?;
            match self.bound(messages.next()).await {
                Ok(Some(Ok(message))) => Some((Ok(message), Some(messages))),
                Ok(Some(Err(status))) | Err(status) => Some((Err(status), None)),
                Ok(None) => None,
            }
        };
        stream::unfold(Some(messages), next).boxed()
    }
}

fn status(error: DeadlineError) -> Status {
    match error {
        DeadlineError::Invalid(_) => Status::invalid_argument(error.to_string()),
        DeadlineError::Passed => Status::deadline_exceeded(error.to_string()),
    }
}
