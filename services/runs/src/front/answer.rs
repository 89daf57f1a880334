//! One request from its head to its answer.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts as Head;
use http::{HeaderMap, Request, StatusCode, Version, header};
use kindex_serve::BodyPace;
use kindex_serve::admission::Admission;
use kindex_serve::browser::{self, Hosts};
use kindex_serve::budget::Budget;
use kindex_serve::deadline::Deadline;
use kindex_serve::listen::Incoming;
use kindex_serve::pieces::PiecewiseBody;
use kindex_serve::trace::Join;
use tower::ServiceExt;
use tracing::Instrument as _;

use super::admission::{AdmissionKey, RunsAdmissionPolicy, WAIT_MAX, is_gzip, packed, too_large};
use super::compress;
use super::cors::{self, Cors, CorsRequest};
use super::messages::StreamBudget;
use super::refused::refused;
use super::request_class::RequestClass;
use super::trace;
use crate::domain::{Clock, nanos};
use crate::grpc::{self, InFlight};
use crate::keys::{Caller, KeyRing};
use crate::limits;
use crate::metrics::{Metrics, RejectionReason, Transport};
use crate::pack::{self, PackError};
use crate::refusal::{Code, Refusal};

/// Who reaches an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// This machine alone.
    Loopback,
    /// Other machines: nobody asks without a key.
    Network,
}

/// What a front is made of.
pub struct Parts {
    /// The keys.
    pub keys: Arc<KeyRing>,
    /// The time.
    pub clock: Clock,
    /// The pages that may ask.
    pub cors: Cors,
    /// Bytes of the bodies of all requests in flight together.
    pub body_bytes: usize,
    /// How fast bodies have to come.
    pub pace: BodyPace,
    /// What answers gRPC.
    pub grpc: Router,
    /// What answers all other requests.
    pub rest: Router,
    /// What is counted.
    pub metrics: Metrics,
    /// Makes requests parts of their callers' traces.
    pub join: Join,
}

/// Stands before both transports.
pub struct Front {
    keys: Arc<KeyRing>,
    clock: Clock,
    cors: Cors,
    admission: Admission<RunsAdmissionPolicy>,
    streams: StreamBudget,
    grpc: Router,
    rest: Router,
    metrics: Metrics,
    join: Join,
}

impl Front {
    /// Of its parts.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let bodies = Budget::new(parts.body_bytes);
        let policy = RunsAdmissionPolicy::new(&bodies, parts.metrics.clone());
        Self {
            keys: parts.keys,
            clock: parts.clock,
            cors: parts.cors,
            admission: Admission::new(policy, parts.pace, WAIT_MAX),
            streams: StreamBudget {
                bodies,
                pace: parts.pace,
                metrics: parts.metrics.clone(),
            },
            grpc: parts.grpc,
            rest: parts.rest,
            metrics: parts.metrics,
            join: parts.join,
        }
    }

    /// Answers a request that came to an address of this exposure.
    pub async fn answer(&self, exposure: Exposure, request: Request<Incoming>) -> Response {
        let began = Instant::now();
        let (head, body) = request.into_parts();
        let asked = self.cors.asked(&head.method, &head.headers);
        let origin = head.headers.get(header::ORIGIN).cloned();
        let transport = match grpc::is_grpc(&head.headers) {
            true => Transport::Grpc,
            false => Transport::Rest,
        };
        let call = call(transport, &head);
        let span = trace::request(transport, &call);
        (self.join)(&span, &head.headers);
        let mut response = match asked {
            CorsRequest::Preflight => cors::preflight(),
            CorsRequest::NoPage | CorsRequest::Allowed | CorsRequest::Foreign => {
                let headers = head.headers.clone();
                match self.in_time(exposure, asked, head, body).instrument(span.clone()).await {
                    Ok(response) => response,
                    Err(refusal) => refused(&headers, &refusal),
                }
            }
        };
        Cors::annotate(asked, origin, response.headers_mut());
        let code = code(&response);
        trace::answered(&span, &code);
        // Names that no service has are as many as anybody likes.
        let call = if code == "grpc 12" { "other" } else { &call };
        self.metrics.answered(transport, call, &code, began.elapsed());
        response
    }

    /// Waits no longer than a client of gRPC does.
    async fn in_time(
        &self,
        exposure: Exposure,
        asked: CorsRequest,
        mut head: Head,
        body: Incoming,
    ) -> Result<Response, Refusal> {
        if !grpc::is_grpc(&head.headers) {
            return self.enter(exposure, asked, head, body).await;
        }
        let late = |error| grpc::status::late(&error).into_http::<Body>();
        let deadline = match Deadline::read(&head.headers) {
            Ok(deadline) => deadline,
            Err(error) => return Ok(late(error)),
        };
        head.extensions.insert(deadline);
        let entered = deadline.bound(self.enter(exposure, asked, head, body)).await;
        entered.unwrap_or_else(|error| Ok(late(error)))
    }

    /// Nothing of the body is read before it is known who asks.
    async fn enter(
        &self,
        exposure: Exposure,
        asked: CorsRequest,
        mut head: Head,
        body: Incoming,
    ) -> Result<Response, Refusal> {
        let class = RequestClass::of(&head);
        let caller = self.caller(exposure, asked, &head, class).await?;
        head.extensions.insert(caller);
        if grpc::is_grpc(&head.headers) && head.version != Version::HTTP_2 {
            let mut response = Response::new(Body::from("gRPC is spoken over HTTP/2\n"));
            *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
            return Ok(response);
        }
        let mut body = Body::new(body);
        let admitted = self.admission.admit(&head, &mut body).await?;
        if class.is_read(&head) {
            body = Body::from(unpacked(&mut head, admitted.body)?);
        }
        let is_packed = class != RequestClass::File && compress::is_taken(&head.headers);
        let mut permits = Some(admitted.permits);
        if class == RequestClass::Stream {
            // A stream has its place for as long as it is open.
            let in_flight = InFlight::within(permits.take());
            body = self.streams.counted(
                body,
                AdmissionKey::of(&head),
                is_gzip(&head, "grpc-encoding"),
                in_flight.clone(),
            );
            head.extensions.insert(in_flight);
        }
        let (router, is_packed) = match grpc::is_grpc(&head.headers) {
            // It packs messages by itself.
            true => (self.grpc.clone(), false),
            false => (self.rest.clone(), is_packed),
        };
        let response = router.oneshot(Request::from_parts(head, body)).await;
        let response = response.unwrap_or_else(|never| match never {});
        let response = match is_packed {
            true => compress::packed(response),
            false => response,
        };
        Ok(match class.keeps_its_place() {
            // An answer that nobody reads is memory that others need.
            true => response.map(|body| Body::new(PiecewiseBody::holding(body, permits))),
            false => response,
        })
    }

    async fn caller(
        &self,
        exposure: Exposure,
        asked: CorsRequest,
        head: &Head,
        class: RequestClass,
    ) -> Result<Caller, Refusal> {
        if self.keys.is_open() {
            check_page(exposure, asked, head)?;
        }
        if class.is_public() {
            return Ok(Caller::nobody());
        }
        if exposure == Exposure::Network && self.keys.is_open() {
            let message = "no API key was made yet; make one with `kindex runs key create` where the service runs";
            return Err(Refusal::new(Code::Unauthenticated, "KEY_MISSING", message));
        }
        let now = nanos((self.clock)()).unwrap_or_default();
        self.keys.caller(secret(&head.headers), now).await
    }
}

/// Without keys a page of anybody's could ask what its reader may.
fn check_page(exposure: Exposure, asked: CorsRequest, head: &Head) -> Result<(), Refusal> {
    let hosts = match exposure {
        Exposure::Loopback => Hosts::Loopback,
        Exposure::Network => Hosts::Any,
    };
    let checked = match asked {
        CorsRequest::Allowed => browser::check(&head.method, &head.uri, &Cors::forgiven(&head.headers), hosts),
        CorsRequest::NoPage | CorsRequest::Preflight | CorsRequest::Foreign => {
            browser::check(&head.method, &head.uri, &head.headers, hosts)
        }
    };
    checked.map_err(|sign| {
        let message = format!(
            "the request may be a browser's, sent for a page: {sign}. Without API keys this server takes requests of \
             programs on this machine alone; allow the page with --cors-origin, or make a key"
        );
        Refusal::new(Code::PermissionDenied, "BROWSER_REFUSED", message)
    })
}

/// What a request shows as its key.
fn secret(headers: &HeaderMap) -> Option<&str> {
    let bearer_token = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(secret.trim())
    });
    bearer_token.or_else(|| headers.get("x-api-key")?.to_str().ok())
}

/// A body as it is once it is unpacked, and a head that says so.
fn unpacked(head: &mut Head, body: Bytes) -> Result<Bytes, Refusal> {
    let Some(packed) = packed(head, &body) else {
        return Ok(body);
    };
    let whole = pack::unpack(packed, limits::TRANSPORT_BYTES.max).map_err(|error| match error {
        PackError::TooLarge(_) => too_large(),
        PackError::Broken(_) | PackError::Length => {
            let reason = RejectionReason::BodyBroken.as_str();
            Refusal::new(Code::InvalidArgument, reason, format!("{error}; send it whole"))
        }
    })?;
    head.headers.remove(header::CONTENT_LENGTH);
    if !grpc::is_grpc(&head.headers) {
        head.headers.remove(header::CONTENT_ENCODING);
        return Ok(whole.into());
    }
    head.headers.remove("grpc-encoding");
    grpc::framed(&whole).ok_or_else(too_large)
}

/// What is called, of a bounded number of words whatever is asked for.
fn call(transport: Transport, head: &Head) -> String {
    let path = head.uri.path();
    match transport {
        Transport::Grpc => match path.rsplit_once('/') {
            Some(("/mlrun.v1.IngestService" | "/mlrun.v1.QueryService", name)) if name.len() < 32 => {
                let is_word = name.bytes().all(|byte| byte.is_ascii_alphabetic());
                if is_word { name.to_owned() } else { "other".to_owned() }
            }
            _ => "other".to_owned(),
        },
        Transport::Rest => match RequestClass::of(head) {
            RequestClass::Public => "health".to_owned(),
            RequestClass::File => "file".to_owned(),
            RequestClass::Stream | RequestClass::Ingest if path == "/api/v1/ingest/batch" => "ingest/batch".to_owned(),
            RequestClass::Stream | RequestClass::Ingest => "ingest".to_owned(),
            RequestClass::Query | RequestClass::Series => "query".to_owned(),
        },
    }
}

/// Of a gRPC answer its own code, where the head has it.
fn code(response: &Response) -> String {
    let grpc = response
        .headers()
        .get("grpc-status")
        .and_then(|code| code.to_str().ok());
    grpc.map_or_else(|| response.status().as_u16().to_string(), |code| format!("grpc {code}"))
}
