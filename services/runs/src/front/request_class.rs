//! Which class a request is of, by its head alone: each class has places of its own, so that readers never keep a
//! training job waiting, and who may ask what is known before anything is read.

use http::Method;
use http::request::Parts;
use kindex_serve::body;

use crate::artifacts::Artifacts;
use crate::grpc;

/// Classes of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestClass {
    /// Whether the service is there, and what it is. Asked by nobody in particular.
    Public,
    /// Sends or reads a file, by an address whose signature says who may.
    File,
    /// Opens a stream, which is read by whoever answers it.
    Stream,
    /// Sends what belongs to a run.
    Ingest,
    /// Reads, and its answer may be large.
    Series,
    /// Reads.
    Query,
}

impl RequestClass {
    pub(super) fn of(head: &Parts) -> Self {
        let path = head.uri.path();
        if grpc::is_grpc(&head.headers) {
            return match path {
                _ if grpc::is_public(path) => Self::Public,
                _ if grpc::is_streamed(path) => Self::Stream,
                "/mlrun.v1.QueryService/GetMetrics" | "/mlrun.v1.QueryService/CompareRuns" => Self::Series,
                _ if path.starts_with("/mlrun.v1.QueryService/") => Self::Query,
                _ => Self::Ingest,
            };
        }
        match path {
            "/" | "/health" | "/openapi.json" if !body::is_expected(&head.method) => Self::Public,
            _ if Artifacts::is_address(path) => Self::File,
            "/api/v1/runs/compare" => Self::Series,
            _ if path.starts_with("/api/v1/runs/") && path.ends_with("/metrics") => Self::Series,
            _ if head.method == Method::GET || head.method == Method::HEAD => Self::Query,
            _ => Self::Ingest,
        }
    }

    /// Whether everybody may ask: files show by their signature who may have them.
    pub(super) fn is_public(self) -> bool {
        match self {
            Self::Public | Self::File => true,
            Self::Stream | Self::Ingest | Self::Query | Self::Series => false,
        }
    }

    /// Whether its place is taken until its answer was taken.
    pub(super) fn keeps_its_place(self) -> bool {
        match self {
            Self::Query | Self::Series => true,
            Self::Public | Self::File | Self::Stream | Self::Ingest => false,
        }
    }

    /// Whether the body is there as a whole before the request takes a place.
    pub(super) fn is_read(self, head: &Parts) -> bool {
        match self {
            Self::File | Self::Stream => false,
            Self::Public => !grpc::is_streamed(head.uri.path()) && body::is_expected(&head.method),
            Self::Ingest | Self::Query | Self::Series => body::is_expected(&head.method),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn only_health_reflection_and_signed_addresses_are_public() {
        let grpc = "application/grpc";
        for (method, path, content_type, class) in [
            ("GET", "/", "", RequestClass::Public),
            ("GET", "/health", "", RequestClass::Public),
            ("GET", "/openapi.json", "", RequestClass::Public),
            ("POST", "/health", "", RequestClass::Ingest),
            ("POST", "/grpc.health.v1.Health/Check", grpc, RequestClass::Public),
            ("POST", "/grpc.health.v1.Health/Check", "", RequestClass::Ingest),
            ("PUT", "/artifacts/x", "", RequestClass::File),
            ("POST", "/mlrun.v1.IngestService/LogMetrics", grpc, RequestClass::Ingest),
            (
                "POST",
                "/mlrun.v1.IngestService/LogMetricsStream",
                grpc,
                RequestClass::Stream,
            ),
            ("POST", "/mlrun.v1.QueryService/GetMetrics", grpc, RequestClass::Series),
            ("POST", "/mlrun.v1.QueryService/GetRun", grpc, RequestClass::Query),
            ("POST", "/anything", grpc, RequestClass::Ingest),
            ("POST", "/api/v1/ingest/batch", "application/json", RequestClass::Ingest),
            ("GET", "/api/v1/runs", "", RequestClass::Query),
            ("GET", "/api/v1/runs/r", "", RequestClass::Query),
            ("GET", "/api/v1/runs/r/metrics", "", RequestClass::Series),
            ("POST", "/api/v1/runs/compare", "application/json", RequestClass::Series),
        ] {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header("content-type", content_type);
            let (head, ()) = request.body(()).expect("a request").into_parts();
            assert_eq!(RequestClass::of(&head), class, "{method} {path}");
        }
    }
}
