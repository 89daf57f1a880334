//! The span of a request: what was called over what, and the code of its answer. Holds nothing that a caller sent.

use tracing::field::Empty;
use tracing::{Span, debug_span};

use crate::metrics::Transport;

/// Codes of gRPC by which a server tells of a failure of its own, as OpenTelemetry's conventions have it.
const GRPC_FAILURES: [&str; 6] = ["grpc 2", "grpc 4", "grpc 12", "grpc 13", "grpc 14", "grpc 15"];

/// The span of a request.
pub(super) fn request(transport: Transport, call: &str) -> Span {
    debug_span!(
        "request",
        transport = transport.word(),
        call,
        code = Empty,
        otel.kind = "server",
        otel.status_code = Empty
    )
}

/// Takes note of the code of the answer.
pub(super) fn answered(span: &Span, code: &str) {
    span.record("code", code);
    if is_failure(code) {
        span.record("otel.status_code", "ERROR");
    }
}

fn is_failure(code: &str) -> bool {
    code.starts_with('5') || GRPC_FAILURES.contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_caller_did_wrong_is_no_failure_of_the_server() {
        for (code, fails) in [
            ("200", false),
            ("404", false),
            ("429", false),
            ("503", true),
            ("grpc 0", false),
            ("grpc 5", false),
            ("grpc 8", false),
            ("grpc 13", true),
            ("grpc 14", true),
        ] {
            assert_eq!(is_failure(code), fails, "{code}");
        }
    }
}
