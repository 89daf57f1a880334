//! Errors in gRPC: a code for what a refusal means, and the rest as `google.rpc` details.

use std::collections::HashMap;
use std::time::Duration;

use kindex_kube_api::status::{Cause, Details, Outcome};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::operations::{Reason, Refusal};

/// Status and details travel in headers, which clients bound: to 8 KiB, some of them.
const MESSAGE_MAX_BYTES: usize = 2048;
const VIOLATIONS_MAX: usize = 16;
const VIOLATION_MAX_BYTES: usize = 256;

/// A refusal as a status. `domain` is the group of the kinds.
pub(super) fn of(refusal: &Refusal, domain: &str) -> Status {
    let mut details = ErrorDetails::new();
    let mut about: HashMap<String, String> = HashMap::from([("code".to_owned(), refusal.code.to_string())]);
    let of_status = refusal.details.as_deref().cloned().unwrap_or_default();
    for (field, text) in [
        ("name", of_status.name),
        ("group", of_status.group),
        ("kind", of_status.kind),
    ] {
        if !text.is_empty() {
            about.insert(field.to_owned(), text);
        }
    }
    details.set_error_info(refusal.reason.as_str(), domain, about);
    for cause in of_status.causes.iter().take(VIOLATIONS_MAX) {
        let text = |text: &str| shortened(text, VIOLATION_MAX_BYTES);
        details.add_bad_request_violation(text(&cause.field), text(&cause.message));
    }
    if let Some(seconds) = of_status.retry_after_seconds {
        details.set_retry_info(Some(Duration::from_secs(seconds.into())));
    }
    let message = shortened(&refusal.message, MESSAGE_MAX_BYTES);
    Status::with_error_details(code(refusal), message, details)
}

/// The code of a refusal, by what it means. A conflict is `FAILED_PRECONDITION`, as Michelangelo's API server has it.
/// What a webhook denies is not about the object, whatever its code and reason.
fn code(refusal: &Refusal) -> Code {
    match refusal.outcome() {
        Outcome::Absent | Outcome::Unserved => Code::NotFound,
        Outcome::AlreadyExists => Code::AlreadyExists,
        Outcome::Conflict => Code::FailedPrecondition,
        Outcome::Expired => Code::OutOfRange,
        Outcome::Unauthorized => Code::Unauthenticated,
        Outcome::Forbidden | Outcome::NamespaceTerminating | Outcome::Denied { again: false } => Code::PermissionDenied,
        Outcome::TooManyRequests => Code::ResourceExhausted,
        // The other timeouts are those of the cluster, which may answer the next request in time.
        Outcome::Timeout if refusal.reason == Reason::Timeout => Code::DeadlineExceeded,
        Outcome::Timeout | Outcome::Unavailable | Outcome::Denied { again: true } => Code::Unavailable,
        Outcome::InternalError => Code::Internal,
        Outcome::Invalid | Outcome::BadRequest => Code::InvalidArgument,
        Outcome::Refused => of_refused(refusal.code),
    }
}

/// The code of a refusal of which nothing but its HTTP code says more.
fn of_refused(code: u16) -> Code {
    match code {
        405 => Code::Unimplemented,
        406 | 415 => Code::InvalidArgument,
        412 => Code::FailedPrecondition,
        413 => Code::ResourceExhausted,
        _ => Code::Unknown,
    }
}

/// What is wrong with a field of a request.
pub(super) struct Violation {
    /// Its path, as a manifest shows it.
    pub(super) field: String,
    pub(super) message: String,
}

impl Violation {
    pub(super) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

/// A request with these errors.
pub(super) fn invalid(violations: &[Violation]) -> Refusal {
    let message = violations
        .iter()
        .map(|Violation { field, message }| match field.as_str() {
            "" => message.clone(),
            field => format!("{field}: {message}"),
        });
    let causes = violations
        .iter()
        .map(|Violation { field, message }| Cause::invalid(field, message));
    let details = Details {
        causes: causes.collect(),
        ..Details::default()
    };
    Refusal::new(Reason::BadRequest, message.collect::<Vec<_>>().join("; ")).with(details)
}

/// At most so many bytes of a text.
fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    format!("{}\u{2026}", &text[..text.floor_char_boundary(bytes)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As if the words of the cluster were not known, or its codes said enough.
    #[test]
    fn what_the_cluster_refuses_has_the_code_of_its_reason() {
        for (http, reason, expected) in [
            (409, "AlreadyExists", Code::AlreadyExists),
            (409, "Conflict", Code::FailedPrecondition),
            (504, "Timeout", Code::DeadlineExceeded),
            (500, "ServerTimeout", Code::Unavailable),
            (500, "StorageReadError", Code::Internal),
            (410, "Gone", Code::OutOfRange),
            (503, "", Code::Unavailable),
            (503, "AlreadyExists", Code::Unavailable),
            (503, "Conflict", Code::Unavailable),
            (503, "NotFound", Code::Unavailable),
            (400, "BadRequest", Code::InvalidArgument),
            (422, "Invalid", Code::InvalidArgument),
            (401, "Unauthorized", Code::Unauthenticated),
            (403, "Forbidden", Code::PermissionDenied),
            (404, "NotFound", Code::NotFound),
            (404, "", Code::NotFound),
            (405, "MethodNotAllowed", Code::Unimplemented),
            (406, "NotAcceptable", Code::InvalidArgument),
            (408, "Timeout", Code::DeadlineExceeded),
            (408, "", Code::Unavailable),
            (409, "", Code::FailedPrecondition),
            (410, "Expired", Code::OutOfRange),
            (412, "", Code::FailedPrecondition),
            (413, "RequestEntityTooLarge", Code::ResourceExhausted),
            (415, "UnsupportedMediaType", Code::InvalidArgument),
            (429, "", Code::ResourceExhausted),
            (429, "TooManyRequests", Code::ResourceExhausted),
            (500, "InternalError", Code::Internal),
            (501, "", Code::Unavailable),
            (504, "", Code::Unavailable),
            (520, "", Code::Unavailable),
            (301, "", Code::Unknown),
        ] {
            let said = json!({"kind": "Status", "status": "Failure", "code": http, "reason": reason});
            let refusal = Refusal::from_status(http, said.to_string().as_bytes());
            assert_eq!(code(&refusal), expected, "{http} {reason}");
            assert_eq!(refusal.reason.as_str(), reason);
        }
    }

    /// As if an object were gone or in another state because a webhook says so of another one.
    #[test]
    fn what_a_webhook_denies_is_not_permitted_or_may_be_later() {
        for (http, reason, expected) in [
            (403, "Forbidden", Code::PermissionDenied),
            (404, "NotFound", Code::PermissionDenied),
            (409, "AlreadyExists", Code::PermissionDenied),
            (409, "Conflict", Code::PermissionDenied),
            (422, "Invalid", Code::PermissionDenied),
            (429, "", Code::Unavailable),
            (500, "", Code::Unavailable),
        ] {
            let message = "admission webhook \"a.b.c\" denied the request: no";
            let said = json!({"kind": "Status", "code": http, "reason": reason, "message": message});
            let refusal = Refusal::from_status(http, said.to_string().as_bytes());
            assert_eq!(code(&refusal), expected, "{http} {reason}");
        }
    }
}
