//! gRPC: the calls of `mlrun.v1`, with reflection and health. Who calls was found out before.

pub mod status;

mod in_flight;

mod permits;

mod stream;

mod ingest;

mod query;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use bytes::{BufMut, Bytes, BytesMut};
use http::header;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower::Service;

use crate::keys::Caller;
use crate::limits;
use crate::operations::Operations;
use crate::wire::DESCRIPTORS;
use crate::wire::v1::ingest_service_server::IngestServiceServer;
use crate::wire::v1::query_service_server::QueryServiceServer;

pub use in_flight::InFlight;
pub use stream::Streams;

/// What stands before a message: whether it is packed, and its length.
pub const PREFIX_BYTES: usize = 5;
/// The largest message of reflection: a name.
const NAME_MAX_BYTES: usize = 16 * 1024;

/// Why gRPC cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("the descriptors of the services cannot be served: {0}; build again")]
pub struct GrpcError(#[from] tonic_reflection::server::Error);

/// Answers calls.
#[derive(Clone)]
struct Served {
    operations: Arc<Operations>,
    streams: Streams,
}

/// Whether a request is one of gRPC, by its type.
#[must_use]
pub fn is_grpc(headers: &http::HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    let rest = content_type.and_then(|value| value.as_bytes().strip_prefix(b"application/grpc"));
    matches!(rest, Some([] | [b';', ..] | [b'+', b'p', b'r', b'o', b't', b'o', ..]))
}

/// Whether the messages of a request come one by one, and are read by whoever answers them.
#[must_use]
pub fn is_streamed(path: &str) -> bool {
    path == "/mlrun.v1.IngestService/LogMetricsStream" || path.starts_with("/grpc.reflection.")
}

/// Whether everybody may make a call: it says what the service is, and nothing of what it holds.
#[must_use]
pub fn is_public(path: &str) -> bool {
    path.starts_with("/grpc.reflection.") || path.starts_with("/grpc.health.")
}

/// A message that is not packed, with its prefix; none if it is too long for one.
#[must_use]
pub(crate) fn framed(message: &[u8]) -> Option<Bytes> {
    let length = u32::try_from(message.len()).ok()?;
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    framed.put_u8(0);
    framed.put_u32(length);
    framed.extend_from_slice(message);
    Some(framed.freeze())
}

/// All services, and what tells of their health.
///
/// # Errors
/// Descriptors that are none: a build that went wrong.
pub async fn router(operations: Arc<Operations>, streams: Streams) -> Result<(Router, Health), GrpcError> {
    let served = Served { operations, streams };
    let ingest = IngestServiceServer::new(served.clone())
        .max_decoding_message_size(limits::TRANSPORT_BYTES.max)
        .accept_compressed(Gzip)
        .send_compressed(Gzip);
    let query = QueryServiceServer::new(served)
        .max_decoding_message_size(limits::TRANSPORT_BYTES.max)
        .accept_compressed(Gzip)
        .send_compressed(Gzip);
    let (reporter, health_service) = tonic_health::server::health_reporter();
    let health = Health(reporter);
    health.report(true).await;
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
    };
    let v1 = reflection().build_v1()?.max_decoding_message_size(NAME_MAX_BYTES);
    let v1alpha = reflection().build_v1alpha()?.max_decoding_message_size(NAME_MAX_BYTES);
    let router = with(with(Router::new(), ingest), query);
    let router = with(with(with(router, health_service), v1), v1alpha);
    let router = router.fallback(async |request: Request| {
        let message = format!("no service has the call {}", request.uri().path());
        Status::unimplemented(message).into_http::<Body>()
    });
    Ok((router, health))
}

/// `grpc.health.v1.Health`, as far as the store is concerned.
pub struct Health(HealthReporter);

impl Health {
    /// Tells what the store says until told to stop: reading goes on while nothing can be written.
    pub async fn follow(self, mut store: watch::Receiver<Option<String>>, stop: CancellationToken) {
        let following = async {
            loop {
                let is_well = store.borrow_and_update().is_none();
                self.report(is_well).await;
                if store.changed().await.is_err() {
                    return;
                }
            }
        };
        stop.run_until_cancelled(following).await;
    }

    /// The server as a whole has no name.
    async fn report(&self, writes: bool) {
        let status = match writes {
            true => ServingStatus::Serving,
            false => ServingStatus::NotServing,
        };
        for name in ["", IngestServiceServer::<Served>::NAME] {
            self.0.set_service_status(name, status).await;
        }
        self.0.set_serving::<QueryServiceServer<Served>>().await;
    }
}

fn with<S>(router: Router, service: S) -> Router
where
    S: Service<Request, Response = http::Response<tonic::body::Body>, Error = Infallible>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    router.route_service(&format!("/{}/{{*call}}", S::NAME), service)
}

/// Who sent a request, as was found out before it came here.
fn caller<T>(request: &tonic::Request<T>) -> Result<Caller, Status> {
    let caller = request.extensions().get::<Caller>().cloned();
    caller.ok_or_else(|| Status::unauthenticated("nobody found out who calls"))
}
