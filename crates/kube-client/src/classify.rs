//! Which of the five kinds of failure an error of the client library is.

use std::time::Duration;

use kindex_kube_api::status::Reason;
use kindex_model::causes::chain;
use kube::core::Status;

use super::ClusterError;

/// Classifies what a request ended with.
pub fn classify(error: &kube::Error) -> ClusterError {
    let retryable = |cause| ClusterError::Retryable {
        cause,
        retry_after: None,
        message: chain(error),
    };
    match error {
        kube::Error::Api(status) => classify_status(status),
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => retryable("connection"),
        kube::Error::Auth(_) => retryable("authentication"),
        _ => ClusterError::Refused(chain(error)),
    }
}

/// Classifies the API server's own word.
pub(super) fn classify_status(status: &Status) -> ClusterError {
    let message = match status.message.as_str() {
        "" => status.reason.clone(),
        message => message.to_owned(),
    };
    let retry_after = status
        .details
        .as_ref()
        .map(|details| details.retry_after_seconds)
        .filter(|seconds| *seconds > 0)
        .map(|seconds| Duration::from_secs(seconds.into()));
    let retryable = |cause| ClusterError::Retryable {
        cause,
        retry_after,
        message: message.clone(),
    };
    match (status.code, Reason::from(status.reason.as_str())) {
        (404, _) => ClusterError::NotFound(message),
        (409, _) => ClusterError::Conflict(message),
        (410, _) | (_, Reason::Expired | Reason::Gone) => ClusterError::Expired(message),
        (429, _) => retryable("too_many_requests"),
        (401, _) => retryable("authentication"),
        (408, _) | (504, _) => retryable("timeout"),
        (500.., _) => retryable("server_error"),
        _ => ClusterError::Refused(message),
    }
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
            ClusterError::Retryable { cause: "timeout", .. }
        ));
    }
}
