//! Why a request was not done: one shape for both transports, which only spell it.

use std::time::Duration;

use crate::wire::v1::{ErrorDetail, ErrorSeverity};

/// The sort of a refusal, as gRPC numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The request can never be done as it is.
    InvalidArgument,
    /// No such run, upload or artifact.
    NotFound,
    /// The batch id is known with other content.
    AlreadyExists,
    /// The state of the run forbids it.
    FailedPrecondition,
    /// A bound of memory, disk or number is reached for now: always with a time to try again.
    ResourceExhausted,
    /// No key, or one that is unknown or expired.
    Unauthenticated,
    /// The key or the token does not allow it.
    PermissionDenied,
    /// The store does not answer; nothing was stored.
    Unavailable,
    /// A defect of the server.
    Internal,
}

/// A request that was not done, and that changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The sort.
    pub code: Code,
    /// The reason as a word, such as `RUN_TERMINAL`.
    pub reason: &'static str,
    /// The path in the request that it is about, such as `metrics.points[3].name`; empty for none.
    pub field: String,
    /// Where, why and what to do.
    pub message: String,
    /// When to try again.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// One about no field, not to be tried again.
    pub fn new(code: Code, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            field: String::new(),
            message: message.into(),
            retry_after: None,
        }
    }

    /// The same, about a field of the request.
    #[must_use]
    pub fn at(self, field: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            ..self
        }
    }

    /// The same, worth another attempt later.
    #[must_use]
    pub fn again_after(self, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..self
        }
    }

    /// As a detail of an answer.
    #[must_use]
    pub fn detail(&self) -> ErrorDetail {
        ErrorDetail {
            code: self.reason.to_owned(),
            message: self.message.clone(),
            field: self.field.clone(),
            severity: ErrorSeverity::Error.into(),
        }
    }
}
