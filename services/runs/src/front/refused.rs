//! A refusal in the words of either transport, before anybody looked at the request.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde_json::json;

use crate::grpc;
use crate::metrics::RejectionReason;
use crate::refusal::{Code, Refusal};
use crate::wire::v1::ErrorDetail;

/// What a request gets that is refused.
#[must_use]
pub fn refused(headers: &HeaderMap, refusal: &Refusal) -> Response {
    match grpc::is_grpc(headers) {
        true => grpc::status::of(refusal).into_http::<Body>(),
        false => over_rest(refusal),
    }
}

/// `{"error":{"code","message","details":[...]}}`, and when to ask again.
pub(crate) fn over_rest(refusal: &Refusal) -> Response {
    let body = json!({"error": {
        "code": word(refusal.code),
        "message": refusal.message,
        "details": [detail(&refusal.detail())],
    }});
    let mut response = (status(refusal), axum::Json(body)).into_response();
    if let Some(wait) = refusal.retry_after {
        let seconds = wait.as_secs_f64().ceil().max(1.0);
        if let Ok(value) = format!("{seconds:.0}").parse() {
            response.headers_mut().insert(header::RETRY_AFTER, value);
        }
    }
    response
}

/// A detail as REST spells it.
pub(crate) fn detail(detail: &ErrorDetail) -> serde_json::Value {
    json!({
        "code": detail.code,
        "message": detail.message,
        "field": detail.field,
        "severity": match detail.severity {
            1 => "warning",
            2 => "error",
            _ => "unspecified",
        },
    })
}

/// A field that is missing in a body that can be read has a code of its own, as existing clients know it.
fn status(refusal: &Refusal) -> StatusCode {
    match refusal.code {
        Code::InvalidArgument if refusal.reason == "REQUIRED" => StatusCode::UNPROCESSABLE_ENTITY,
        Code::InvalidArgument if refusal.reason == RejectionReason::BodyTooLarge.as_str() => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        Code::InvalidArgument if refusal.reason == "METHOD_NOT_ALLOWED" => StatusCode::METHOD_NOT_ALLOWED,
        Code::InvalidArgument => StatusCode::BAD_REQUEST,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists => StatusCode::CONFLICT,
        Code::FailedPrecondition => StatusCode::PRECONDITION_FAILED,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn word(code: Code) -> &'static str {
    match code {
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::Unauthenticated => "UNAUTHENTICATED",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::Unavailable => "UNAVAILABLE",
        Code::Internal => "INTERNAL",
    }
}
