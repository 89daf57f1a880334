//! What an error of the client library means: [`Outcome`] where the API server refused, and which of the five kinds of
//! failure it is for the ingester.

use std::time::Duration;

use kindex_kube_api::status::{Outcome, Reason, StatusParts};
use kindex_model::causes::chain;
use kindex_model::kind::Kind;
use kube::core::Status;

use super::{ClusterCause, ClusterError};

/// What an API server's refusal means; `None` where there was no answer, or none that could be read.
pub fn outcome(error: &kube::Error) -> Option<Outcome> {
    match error {
        kube::Error::Api(status) => Some(outcome_of(status)),
        _ => None,
    }
}

/// What an API server's refusal means, as the client library read it.
pub fn outcome_of(status: &Status) -> Outcome {
    let details = status.details.as_ref();
    let causes = details.into_iter().flat_map(|details| &details.causes);
    Outcome::of(&StatusParts {
        code: status.code,
        reason: &status.reason,
        message: &status.message,
        name: details.map_or("", |details| &details.name),
        causes: causes.map(|cause| cause.reason.as_str()).collect(),
    })
}

/// How long an API server asks to wait before the request is sent again.
fn retry_after(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref().map(|details| details.retry_after_seconds);
    let seconds = seconds.filter(|seconds| *seconds > 0);
    seconds.map(|seconds| Duration::from_secs(seconds.into()))
}

/// Classifies what a request ended with.
pub fn classify(error: &kube::Error) -> ClusterError {
    let retryable = |cause| ClusterError::Retryable {
        cause,
        retry_after: None,
        message: chain(error),
    };
    match error {
        kube::Error::Api(status) => classify_status(status),
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => {
            retryable(ClusterCause::Connection)
        }
        kube::Error::Auth(_) => retryable(ClusterCause::Authentication),
        _ => ClusterError::Refused(chain(error)),
    }
}

/// Classifies what a request for one object ended with. Of that object, a 404 says something only if it names it.
pub(super) fn classify_of(kind: &Kind, name: &str, error: &kube::Error) -> ClusterError {
    match error {
        kube::Error::Api(status) if outcome_of(status) == Outcome::Absent && !is_about(status, kind, name) => {
            ClusterError::Retryable {
                cause: ClusterCause::Unclear,
                retry_after: None,
                message: format!("asked for {name:?}: {}", status.message),
            }
        }
        error => classify(error),
    }
}

/// Whether a Status names this object. Older servers, and those of other services, name no kind.
fn is_about(status: &Status, kind: &Kind, name: &str) -> bool {
    let is_of_kind = |said: &str| said.is_empty() || said == kind.plural || said == kind.name;
    let details = status.details.as_ref();
    details.is_some_and(|details| details.name == name && is_of_kind(&details.kind))
}

/// Classifies the API server's own word.
pub(super) fn classify_status(status: &Status) -> ClusterError {
    let message = match status.message.as_str() {
        "" => status.reason.clone(),
        message => message.to_owned(),
    };
    let retry_after = retry_after(status);
    let retryable = |cause| ClusterError::Retryable {
        cause,
        retry_after,
        message: message.clone(),
    };
    match outcome_of(status) {
        Outcome::Absent => ClusterError::NotFound(message),
        // What stands before the server has pages of its own for that.
        Outcome::Unserved => retryable(ClusterCause::NotFound),
        Outcome::AlreadyExists | Outcome::Conflict => ClusterError::Conflict(message),
        Outcome::Expired => ClusterError::Expired(message),
        Outcome::TooManyRequests => retryable(ClusterCause::TooManyRequests),
        Outcome::Unauthorized => retryable(ClusterCause::Authentication),
        Outcome::Timeout => retryable(ClusterCause::Timeout),
        Outcome::Unavailable | Outcome::InternalError => retryable(ClusterCause::ServerError),
        // JSON of what stands before the server: the client library keeps no code but the one in it.
        Outcome::Refused if is_unexplained(status) => retryable(ClusterCause::ServerError),
        Outcome::Forbidden
        | Outcome::NamespaceTerminating
        | Outcome::Invalid
        | Outcome::BadRequest
        | Outcome::Denied { .. }
        | Outcome::Refused => ClusterError::Refused(message),
    }
}

/// Whether it says neither by a code nor by a reason that is known what it means.
pub(super) fn is_unexplained(status: &Status) -> bool {
    let reason = Reason::from(status.reason.as_str());
    status.code == 0 && matches!(reason, Reason::Unknown | Reason::Other(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> ClusterError {
        classify_status(&serde_json::from_str(text).expect("a Status"))
    }

    #[test]
    fn a_server_that_asks_for_patience_gets_it() {
        let busy = status(r#"{"code":429,"details":{"retryAfterSeconds":7}}"#);
        let ClusterError::Retryable { retry_after, .. } = busy else {
            panic!("{busy:?}");
        };
        assert_eq!(retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn only_what_may_pass_is_retryable() {
        assert!(matches!(status(r#"{"code":503}"#), ClusterError::Retryable { .. }));
        assert!(matches!(status(r#"{"code":403}"#), ClusterError::Refused(_)));
        assert!(matches!(status(r#"{"code":422}"#), ClusterError::Refused(_)));
        assert!(matches!(status(r#"{"code":409}"#), ClusterError::Conflict(_)));
        for reason in ["Expired", "Gone"] {
            let said = format!(r#"{{"reason":"{reason}"}}"#);
            assert!(matches!(status(&said), ClusterError::Expired(_)), "{reason}");
        }
        assert!(matches!(
            status(r#"{"code":504,"reason":"Timeout"}"#),
            ClusterError::Retryable {
                cause: ClusterCause::Timeout,
                ..
            }
        ));
    }

    /// As if the page of a proxy closed the row of an object.
    #[test]
    fn only_what_is_named_is_not_found() {
        static WIDGETS: Kind = Kind {
            name: "Widget",
            plural: "widgets",
            ..Kind::EMPTY
        };
        let said = |details: &str| {
            let text = format!(r#"{{"code":404,"reason":"NotFound","message":"m","details":{details}}}"#);
            let status = serde_json::from_str(&text).expect("a Status");
            classify_of(&WIDGETS, "a", &kube::Error::Api(Box::new(status)))
        };
        for details in [
            r#"{"name":"a"}"#,
            r#"{"name":"a","kind":"widgets"}"#,
            r#"{"name":"a","kind":"Widget"}"#,
        ] {
            assert_eq!(said(details), ClusterError::NotFound("m".to_owned()), "{details}");
        }
        for details in [
            "{}",
            r#"{"kind":"widgets"}"#,
            r#"{"name":"b","kind":"widgets"}"#,
            r#"{"name":"a","kind":"namespaces"}"#,
        ] {
            let cause = said(details);
            assert!(matches!(cause, ClusterError::Retryable { .. }), "{details}: {cause:?}");
        }
        assert!(
            !said(r#"{"name":"b"}"#).is_silence(),
            "it says something of another object"
        );
        assert!(said("{}").is_silence());
    }

    /// As if a gateway could refuse an object for good.
    #[test]
    fn what_says_neither_code_nor_reason_is_retryable() {
        for said in ["{}", r#"{"message":"no healthy upstream"}"#, r#"{"reason":"NoRoute"}"#] {
            let cause = status(said);
            let is_retryable = matches!(cause, ClusterError::Retryable { .. });
            assert!(is_retryable, "{said}: {cause:?}");
        }
        for said in [
            r#"{"reason":"MethodNotAllowed"}"#,
            r#"{"code":405}"#,
            r#"{"message":"admission webhook \"w\" denied the request: no"}"#,
        ] {
            assert!(matches!(status(said), ClusterError::Refused(_)), "{said}");
        }
    }

    /// As if an object were gone, or another one, because a webhook did not find what it looked up, or as if the
    /// cluster were away because a webhook says so of one object.
    #[test]
    fn a_webhook_that_denies_says_nothing_of_the_object_nor_of_the_cluster() {
        for code in [403, 404, 409, 410, 429, 500, 503, 504] {
            let denial = format!(r#"{{"code":{code},"message":"admission webhook \"w\" denied the request: no"}}"#);
            assert!(matches!(status(&denial), ClusterError::Refused(_)), "{code}");
        }
    }
}
