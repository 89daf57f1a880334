//! HTTP functions for all requests: content negotiation, bounded bodies, responses with Kubernetes' headers, and
//! forwarding to the cluster.

use axum::body::{Body, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use kindex_kube_api::request::{QueryError, Rendering, rendering};
use kindex_kube_api::size::OBJECT_BYTES_MAX;
use kindex_kube_api::status::Status;
use kindex_kube_api::{headers, media};

use crate::operations::{Answer, Caller, Operations, Reason, Refusal};

/// Headers that say something about one connection, or about the credentials that our client sends.
const OF_ONE_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::HOST,
    header::CONTENT_LENGTH,
    header::AUTHORIZATION,
    header::PROXY_AUTHORIZATION,
];

/// What the headers of a request say about its body and its answer.
pub(super) struct Head {
    pub(super) rendering: Rendering,
    pub(super) content_type: String,
}

impl Head {
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, Refusal> {
        let accept = text(headers, header::ACCEPT);
        let rendering = rendering(accept).ok_or_else(Status::not_acceptable)?;
        let content_type = text(headers, header::CONTENT_TYPE).unwrap_or_default();
        Ok(Self {
            rendering,
            content_type: media::essence(content_type).to_owned(),
        })
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// A parameter that cannot be understood, as Kubernetes refuses it.
impl From<QueryError> for Refusal {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Unsupported(..) => Self::new(Reason::Invalid, error.to_string()),
            QueryError::Selector(_) | QueryError::Number(_) | QueryError::Version(_) | QueryError::Flag(..) => {
                Self::bad_request(error.to_string())
            }
        }
    }
}

/// The whole body.
pub(super) async fn read(body: Body) -> Result<Bytes, Refusal> {
    to_bytes(body, OBJECT_BYTES_MAX).await.map_err(|error| {
        let source = std::error::Error::source(&error);
        if source.is_some_and(|source| source.is::<http_body_util::LengthLimitError>()) {
            return Status::object_too_large().into();
        }
        Refusal::bad_request(format!("error reading the body: {error}"))
    })
}

/// Hands a request to the cluster, and its answer back.
pub(super) async fn relay(
    operations: &Operations,
    caller: &Caller,
    parts: Parts,
    body: Bytes,
) -> Result<Response, Refusal> {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut request = Request::builder().method(parts.method).uri(target);
    for (name, value) in parts.headers.iter().filter(|(name, _)| !OF_ONE_HOP.contains(name)) {
        request = request.header(name, value);
    }
    let request = request
        .body(body)
        .map_err(|error| Refusal::bad_request(error.to_string()))?;
    let response = operations.relay(caller, request).await?;
    let (mut parts, body) = response.into_parts();
    for name in OF_ONE_HOP {
        parts.headers.remove(name);
    }
    Ok(Response::from_parts(parts, Body::from_stream(body)))
}

/// A refusal as an answer.
pub(crate) fn refused(refusal: &Refusal) -> Response {
    let code = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (code, json(refusal.to_json())).into_response();
    let headers = response.headers_mut();
    let details = refusal.details.as_deref();
    if let Some(seconds) = details.and_then(|details| details.retry_after_seconds) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if code == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// A JSON text as an answer.
pub(super) fn json(body: impl Into<Body>) -> Response {
    typed(media::JSON, body.into())
}

/// A body of some media type as an answer.
pub(super) fn typed(content_type: &'static str, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, headers::CACHE_CONTROL),
    ];
    (headers, body).into_response()
}

/// Puts the code and the warnings of an answer on a response.
pub(super) fn headed(answer: &Answer, mut response: Response) -> Response {
    *response.status_mut() = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::OK);
    for warning in &answer.warnings {
        warn(&mut response, warning);
    }
    response
}

/// Puts a warning on a response, unless it is there already: the cluster may have given the same one.
pub(super) fn warn(response: &mut Response, warning: &str) {
    let Ok(value) = HeaderValue::from_str(&headers::warning(warning)) else {
        return;
    };
    let headers = response.headers_mut();
    if !headers.get_all(header::WARNING).iter().any(|given| *given == value) {
        headers.append(header::WARNING, value);
    }
}
