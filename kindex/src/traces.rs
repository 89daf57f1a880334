//! Whether traces are sent, and to which trace a request belongs: the one that its `traceparent` names. Knows nothing
//! of how they are sent.

use std::env;
use std::sync::Arc;

use axum::http::HeaderMap;
use kindex_serve::trace::Join;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Any of these names the collector; the exporter reads them itself.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// Whether the environment asks for traces.
pub(crate) fn are_sent() -> bool {
    let says = |name: &str, value: &str| env::var(name).is_ok_and(|found| found.eq_ignore_ascii_case(value));
    let named = ENDPOINTS
        .iter()
        .any(|name| env::var(name).is_ok_and(|value| !value.is_empty()));
    named && !says("OTEL_SDK_DISABLED", "true") && !says("OTEL_TRACES_EXPORTER", "none")
}

/// What makes spans of requests parts of their callers' traces, where traces are sent.
pub(crate) fn join() -> Join {
    match are_sent() {
        true => Arc::new(join_trace),
        false => Arc::new(|_, _| ()),
    }
}

/// A caller that names no trace, or none that is valid, begins one.
fn join_trace(span: &Span, headers: &HeaderMap) {
    let caller = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    if caller.span().span_context().is_valid() {
        // Without a layer of OpenTelemetry there is nothing to join.
        let _joined = span.set_parent(caller);
    }
}
