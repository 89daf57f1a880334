//! gRPC: the emitted services of all kinds, with reflection and health. One handler serves all of them by the path of a
//! call, with messages in which objects stay bytes.

mod codec;

mod deadline;

mod message;

mod method;

mod status;

mod condition;

mod object;

mod past;

mod reply;

mod list;

mod call;

mod watch;

mod references;

mod events;

#[cfg(test)]
mod bounds;

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Version, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use kindex_serve::watches::{Accounting, WatchSlot};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::server::{Grpc, NamedService};
use tonic::{Code, Status};
use tower::{Service, ServiceExt, service_fn};

use codec::RawCodec;

use crate::identity;
use crate::metrics::Operation;
use crate::operations::{Caller, Operations, Reason, Refusal};
use crate::watched::watched;
pub(crate) use deadline::Deadline;
use method::{Action, Method, Methods};
use past::Past;
use reply::Reply;

/// The largest message that is read: as much as Kubernetes reads of an object.
const MESSAGE_MAX_BYTES: usize = 3 * 1024 * 1024;
/// The largest that holds no object: its parts take up to a hundred times as much as what they are written with.
const QUESTION_MAX_BYTES: usize = 512 * 1024;
/// The largest message of a stream of reflection: a name.
const NAME_MAX_BYTES: usize = 16 * 1024;
/// What one stream of reflection may ask, all names together: many times as much as a client needs for all services.
/// Each name is answered with a file, and the next one is read once somebody has taken that.
const NAMES_MAX_BYTES: usize = 256 * 1024;
/// What stands before a message: whether it is compressed, and its length.
pub(crate) const PREFIX_BYTES: usize = 5;
/// Warnings of an answer, and bytes of each: headers are bounded.
const WARNINGS_MAX: usize = 16;
const WARNING_MAX_BYTES: usize = 256;

/// Why gRPC cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum GrpcError {
    /// What was compiled in is no set of descriptors.
    #[error("the descriptors of the services cannot be read: {0}; build again")]
    Descriptors(#[from] prost::DecodeError),
    /// It is one, and reflection cannot use it.
    #[error("the descriptors of the services cannot be served: {0}; build again")]
    Reflection(#[from] tonic_reflection::server::Error),
}

#[derive(Clone)]
struct Served {
    operations: Arc<Operations>,
    methods: Arc<Methods>,
}

/// Takes the requests of gRPC, and leaves all others to `rest`.
///
/// # Errors
/// Descriptors that are none: a build that went wrong.
pub async fn beside(rest: Router, operations: Arc<Operations>) -> Result<Router, GrpcError> {
    let grpc = router(operations).await?;
    let either = service_fn(move |request: Request| {
        let router = if is_grpc(request.headers()) {
            grpc.clone()
        } else {
            rest.clone()
        };
        router.oneshot(request)
    });
    Ok(Router::new().fallback_service(either))
}

/// Whether a request is one of gRPC, by its type.
pub(crate) fn is_grpc(headers: &http::HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    let rest = content_type.and_then(|value| value.as_bytes().strip_prefix(b"application/grpc"));
    matches!(rest, Some([] | [b';', ..] | [b'+', b'p', b'r', b'o', b't', b'o', ..]))
}

/// Until when the client of a request wants its answer. What is no time is told by the call.
pub(crate) fn deadline(headers: &http::HeaderMap) -> Deadline {
    match is_grpc(headers) {
        true => Deadline::read(headers).unwrap_or(Deadline::NONE),
        false => Deadline::NONE,
    }
}

/// Whether the messages of a request come one by one, each once the one before was answered.
pub(crate) fn is_streamed(path: &str) -> bool {
    path.starts_with("/grpc.reflection.")
}

/// Whether everybody may make a call, whoever it is.
pub(crate) fn is_public(path: &str) -> bool {
    is_streamed(path) || is_health(path)
}

/// Whether a call asks for the server's health.
pub(crate) fn is_health(path: &str) -> bool {
    path.starts_with("/grpc.health.")
}

/// A message that is not read.
pub(crate) fn too_large() -> Refusal {
    larger_than(MESSAGE_MAX_BYTES)
}

fn larger_than(bytes: usize) -> Refusal {
    Refusal::new(
        Reason::RequestEntityTooLarge,
        format!("the message of the request is larger than {bytes} bytes"),
    )
}

impl Action {
    /// The largest message of a call that is read.
    fn message_max_bytes(self) -> usize {
        match self {
            Self::Create | Self::Update | Self::UpdateStatus => MESSAGE_MAX_BYTES,
            Self::Get | Self::Delete | Self::DeleteCollection | Self::List | Self::Watch => QUESTION_MAX_BYTES,
        }
    }
}

async fn router(operations: Arc<Operations>) -> Result<Router, GrpcError> {
    let methods = Methods::of(operations.registry())?;
    let (health, health_service) = tonic_health::server::health_reporter();
    for service in methods
        .services
        .iter()
        .map(String::as_str)
        .chain([references::NAME, events::NAME])
    {
        health
            .set_service_status(service, tonic_health::ServingStatus::Serving)
            .await;
    }
    // With the services beside the kinds', and the details of statuses.
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(operations.registry().descriptors)
            .register_encoded_file_descriptor_set(references::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
    };
    // Anybody may ask, and messages of a stream count against no budget: they are names.
    let v1 = reflection().build_v1()?.max_decoding_message_size(NAME_MAX_BYTES);
    let v1alpha = reflection().build_v1alpha()?.max_decoding_message_size(NAME_MAX_BYTES);
    let served = Served {
        operations: operations.clone(),
        methods: Arc::new(methods),
    };
    let router = Router::new().fallback(answer).with_state(served);
    let router = with(router, references::service(operations.clone()));
    let router = with(router, events::service(operations.clone()));
    let router = with(router, health_service);
    let router = with(with(router, Asking(v1)), Asking(v1alpha));
    Ok(router.layer(axum::middleware::from_fn_with_state(operations, check)))
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

/// A service of which one stream may ask [`NAMES_MAX_BYTES`].
#[derive(Clone)]
struct Asking<S>(S);

impl<S: NamedService> NamedService for Asking<S> {
    const NAME: &'static str = S::NAME;
}

impl<S: Service<Request>> Service<Request> for Asking<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.0
            .call(request.map(|body| Body::new(Limited::new(body, NAMES_MAX_BYTES))))
    }
}

/// Refuses what can be no call, before anybody looks at it.
async fn check(State(operations): State<Arc<Operations>>, request: Request, next: axum::middleware::Next) -> Response {
    if request.version() != Version::HTTP_2 {
        return (http::StatusCode::UPGRADE_REQUIRED, "gRPC is spoken over HTTP/2").into_response();
    }
    let (parts, body) = request.into_parts();
    if operations.is_open()
        && let Err(refusal) = identity::check_origin(&parts)
    {
        let status = status::of(&refusal, operations.registry().platform.group);
        return status.into_http::<Body>();
    }
    with_watch_slot(next.run(Request::from_parts(parts, body)).await)
}

/// A stream that has a place among the watches is followed as one.
fn with_watch_slot(mut response: Response) -> Response {
    match response.extensions_mut().remove::<WatchSlot>() {
        Some(slot) => watched(response, slot, Accounting::Own),
        None => response,
    }
}

/// The answer to a request that was refused before it was read.
pub(crate) fn refused(refusal: &Refusal) -> Response {
    status::of(refusal, "").into_http::<Body>()
}

/// One call, before its message is read.
struct Inbound {
    operations: Arc<Operations>,
    method: Method,
    path: String,
    caller: Caller,
    deadline: Deadline,
    past: Past,
}

async fn answer(State(served): State<Served>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let Some(method) = served.methods.find(&path) else {
        let status = Status::unimplemented(format!("no service has the call {path}"));
        return status.into_http::<Body>();
    };
    let mut response = match Inbound::read(served.operations, method, path, &request) {
        Err(status) => status.into_http::<Body>(),
        Ok(inbound) => inbound.answer(request).await,
    };
    response.extensions_mut().insert(Operation {
        verb: method.action.verb().into(),
        kind: method.kind.name,
    });
    response
}

impl Inbound {
    fn read(operations: Arc<Operations>, method: Method, path: String, request: &Request) -> Result<Self, Status> {
        let headers = request.headers();
        let deadline = Deadline::read(headers)?;
        // Time has passed since the request came.
        let deadline = request.extensions().get().copied().unwrap_or(deadline);
        let past = Past::read(headers, method.action);
        let past = past.map_err(|refusal| status::of(&refusal, operations.registry().platform.group))?;
        Ok(Self {
            method,
            path,
            caller: identity::caller(headers),
            deadline,
            past,
            operations,
        })
    }

    async fn answer(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let body = match self.whole(body).await {
            Ok(body) => body,
            Err(status) => {
                self.log(&status);
                return status.into_http::<Body>();
            }
        };
        let request = Request::from_parts(parts, Full::new(body));
        let mut grpc = Grpc::new(RawCodec).max_decoding_message_size(MESSAGE_MAX_BYTES);
        let response = if self.method.action == Action::Watch {
            let service = service_fn(|request: tonic::Request<Bytes>| self.watch(request.into_inner()));
            grpc.server_streaming(service, request).await
        } else {
            let service = service_fn(|request: tonic::Request<Bytes>| self.reply(request.into_inner()));
            grpc.unary(service, request).await
        };
        response.map(Body::new)
    }

    /// The whole body, which is one message with its prefix.
    async fn whole(&self, body: Body) -> Result<Bytes, Status> {
        let too_large = || self.refused(&too_large());
        let read = Limited::new(body, MESSAGE_MAX_BYTES + PREFIX_BYTES).collect();
        let read = self.deadline.bound(read).await?;
        let bytes = read.map_err(|error| match error.is::<http_body_util::LengthLimitError>() {
            true => too_large(),
            false => Status::cancelled(format!("the request broke off: {error}")),
        })?;
        let bytes = bytes.to_bytes();
        let length = bytes.get(1..PREFIX_BYTES).and_then(|length| length.try_into().ok());
        match length.map(u32::from_be_bytes) {
            Some(length) if length as usize > MESSAGE_MAX_BYTES => Err(too_large()),
            Some(length) if length as usize > self.method.action.message_max_bytes() => {
                Err(self.refused(&larger_than(self.method.action.message_max_bytes())))
            }
            Some(_) | None => Ok(bytes),
        }
    }

    async fn reply(&self, message: Bytes) -> Result<tonic::Response<Vec<u8>>, Status> {
        let answered = call::answer(&self.operations, &self.caller, self.method, self.past, message);
        let replied = self.deadline.bound(answered).await;
        let replied = replied.and_then(|answered| answered.map_err(|refusal| self.refused(&refusal)));
        self.logged(replied.map(|Reply { message, warnings }| {
            let mut response = tonic::Response::new(message);
            warn(response.metadata_mut(), &warnings);
            response
        }))
    }

    async fn watch(&self, message: Bytes) -> Result<tonic::Response<watch::Messages>, Status> {
        let Self {
            operations,
            caller,
            method,
            deadline,
            ..
        } = self;
        let opened = watch::watch(operations, caller, method.kind, message, *deadline);
        let opened = deadline.bound(opened).await;
        let opened = opened.and_then(|opened| opened.map_err(|refusal| self.refused(&refusal)));
        self.logged(opened.map(|(messages, slot)| {
            let mut response = tonic::Response::new(messages);
            response.extensions_mut().insert(slot);
            response
        }))
    }

    fn refused(&self, refusal: &Refusal) -> Status {
        status::of(refusal, self.operations.registry().platform.group)
    }

    fn logged<T>(&self, answered: Result<T, Status>) -> Result<T, Status> {
        match &answered {
            Ok(_) => self.log(&Status::ok("")),
            Err(status) => self.log(status),
        }
        answered
    }

    /// As the front end of REST does it: what changes something, and what somebody may not do.
    fn log(&self, status: &Status) {
        let (path, code) = (&self.path, status.code());
        if self.method.action.writes() || matches!(code, Code::Unauthenticated | Code::PermissionDenied) {
            let user = self.operations.known(&self.caller);
            tracing::info!(target: "kindex_api::audit", user, method = "gRPC", path, ?code, "answered");
        } else {
            tracing::debug!(method = "gRPC", path, ?code, "answered");
        }
    }
}

/// Puts warnings on an answer, one `warning` each.
fn warn(metadata: &mut MetadataMap, warnings: &[String]) {
    for warning in warnings.iter().take(WARNINGS_MAX) {
        let is_visible = |letter: char| letter == ' ' || letter.is_ascii_graphic();
        let text: String = warning.chars().take(WARNING_MAX_BYTES).collect();
        let text = text.replace(|letter| !is_visible(letter), "?");
        if let Ok(value) = MetadataValue::try_from(text) {
            metadata.append("warning", value);
        }
    }
}
