//! The deadline of a call, and the status of one that is not done by then.

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
}

fn status(error: DeadlineError) -> Status {
    match error {
        DeadlineError::Invalid(_) => Status::invalid_argument(error.to_string()),
        DeadlineError::Passed => Status::deadline_exceeded(error.to_string()),
    }
}
