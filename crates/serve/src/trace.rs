//! Of whose trace a request is a part. Knows nothing of how traces are sent.

use std::sync::Arc;

use http::HeaderMap;
use tracing::Span;

/// Makes a span a part of the trace that the headers of a request name.
pub type Join = Arc<dyn Fn(&Span, &HeaderMap) + Send + Sync>;
