//! A refusal as a status of gRPC, with its details as `google.rpc` has them.

use std::collections::HashMap;

use kindex_serve::deadline::DeadlineError;
use tonic::Status;
use tonic_types::{ErrorDetails, StatusExt};

use crate::refusal::{Code, Refusal};

/// Whose reasons they are.
const DOMAIN: &str = "mlrun.v1";
/// Status and details travel in headers, which clients bound.
const MESSAGE_MAX_BYTES: usize = 2048;

/// A refusal as a status: `ErrorInfo` with the reason, `BadRequest` with the field, `RetryInfo` with the time to wait.
#[must_use]
pub fn of(refusal: &Refusal) -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info(refusal.reason, DOMAIN, HashMap::new());
    let message = shortened(&refusal.message);
    if !refusal.field.is_empty() {
        details.add_bad_request_violation(shortened(&refusal.field), message);
    }
    if let Some(wait) = refusal.retry_after {
        details.set_retry_info(Some(wait));
    }
    Status::with_error_details(code(refusal.code), message, details)
}

/// A call that is not answered in time, as the client gave it.
#[must_use]
pub fn late(error: &DeadlineError) -> Status {
    match error {
        DeadlineError::Invalid(_) => Status::invalid_argument(error.to_string()),
        DeadlineError::Passed => Status::deadline_exceeded(error.to_string()),
    }
}

fn code(code: Code) -> tonic::Code {
    match code {
        Code::InvalidArgument => tonic::Code::InvalidArgument,
        Code::NotFound => tonic::Code::NotFound,
        Code::AlreadyExists => tonic::Code::AlreadyExists,
        Code::FailedPrecondition => tonic::Code::FailedPrecondition,
        Code::ResourceExhausted => tonic::Code::ResourceExhausted,
        Code::Unauthenticated => tonic::Code::Unauthenticated,
        Code::PermissionDenied => tonic::Code::PermissionDenied,
        Code::Unavailable => tonic::Code::Unavailable,
        Code::Internal => tonic::Code::Internal,
    }
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MESSAGE_MAX_BYTES)]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_status_says_reason_field_and_when_to_try_again() {
        let refusal = Refusal::new(Code::ResourceExhausted, "QUEUE_FULL", "the queue is full")
            .at("metrics")
            .again_after(Duration::from_secs(5));
        let status = of(&refusal);
        assert_eq!(
            (status.code(), status.message()),
            (tonic::Code::ResourceExhausted, "the queue is full")
        );
        let details = status.get_error_details();
        assert_eq!(
            details.error_info().map(|info| info.reason.as_str()),
            Some("QUEUE_FULL")
        );
        assert_eq!(
            details.retry_info().and_then(|info| info.retry_delay),
            Some(Duration::from_secs(5))
        );
        let field = details.bad_request().map(|bad| bad.field_violations[0].field.clone());
        assert_eq!(field.as_deref(), Some("metrics"));
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let refusal = Refusal::new(Code::InvalidArgument, "TOO_LONG", "\u{20ac}".repeat(10_000));
        assert!(of(&refusal).message().len() <= MESSAGE_MAX_BYTES);
    }
}
