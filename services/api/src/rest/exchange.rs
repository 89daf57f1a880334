//! The parts of HTTP that all requests share: who asks, what form is wanted, bodies within bounds, answers with
//! Kubernetes' headers, and requests that go to the cluster as they are.

use std::net::IpAddr;

use axum::body::{Body, to_bytes};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use kindex_cluster::request::{Rendering, rendering};

use crate::operations::{Answer, Caller, Impersonation, Operations, Reason, Refusal};

/// The largest body that is read: that of kube-apiserver.
const BODY_MAX_BYTES: usize = 3 * 1024 * 1024;
const ACCEPTED: &str = "application/json, application/yaml";

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
        let rendering = rendering(accept).ok_or_else(|| {
            Refusal::new(
                Reason::NotAcceptable,
                format!("only the following media types are accepted: {ACCEPTED}"),
            )
        })?;
        let content_type = text(headers, header::CONTENT_TYPE).unwrap_or_default();
        let media = content_type.split(';').next().unwrap_or_default().trim();
        Ok(Self {
            rendering,
            content_type: media.to_owned(),
        })
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Who asks.
pub(super) fn caller(headers: &HeaderMap) -> Caller {
    let bearer = text(headers, header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    let user_agent = text(headers, header::USER_AGENT).map(str::to_owned);
    Caller::new(bearer, impersonation(headers), user_agent)
}

/// Refuses what a browser sends for a page of somebody else: a server that asks for no credentials would do it.
pub(super) fn check_origin(parts: &Parts) -> Result<(), Refusal> {
    // HTTP/2 has the address that was asked for in the target, HTTP/1.1 in a header.
    let asked = parts.uri.authority().map(Authority::as_str);
    let mut hosts = asked.into_iter().chain(text(&parts.headers, header::HOST)).peekable();
    let is_here = hosts.peek().is_some() && hosts.all(is_loopback);
    if is_here && !parts.headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    Err(Refusal::new(
        Reason::Forbidden,
        "this server acts with its own rights (--rights server): it answers programs that ask for its loopback address, \
         and no pages of a browser",
    ))
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn impersonation(headers: &HeaderMap) -> Option<Impersonation> {
    let named = |name: &HeaderName| name.as_str().starts_with("impersonate-");
    let is_understood = |name: &HeaderName| matches!(name.as_str(), "impersonate-user" | "impersonate-group");
    let mut names = headers.keys().filter(|name| named(name)).peekable();
    names.peek()?;
    let texts = |name: &str| {
        let values = headers.get_all(name).iter();
        values.filter_map(|value| value.to_str().ok().map(str::to_owned))
    };
    Some(Impersonation {
        user: texts("impersonate-user").next().unwrap_or_default(),
        groups: texts("impersonate-group").collect(),
        has_more: names.any(|name| !is_understood(name)),
    })
}

/// The whole body.
pub(super) async fn read(body: Body) -> Result<Bytes, Refusal> {
    to_bytes(body, BODY_MAX_BYTES).await.map_err(|error| {
        let source = std::error::Error::source(&error);
        if source.is_some_and(|source| source.is::<http_body_util::LengthLimitError>()) {
            return Refusal::new(
                Reason::RequestEntityTooLarge,
                format!("Request entity too large: limit is {BODY_MAX_BYTES}"),
            );
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
    let mut response = (code, json(refusal.status().to_string())).into_response();
    let headers = response.headers_mut();
    if let Some(seconds) = refusal.details["retryAfterSeconds"].as_u64() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if refusal.code == 401 {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// A JSON text as an answer.
pub(super) fn json(body: impl Into<Body>) -> Response {
    typed("application/json", body.into())
}

/// A body of some media type as an answer.
pub(super) fn typed(content_type: &'static str, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-cache, private"),
    ];
    (headers, body).into_response()
}

/// Puts the code and the warnings of an answer on a response.
pub(super) fn headed(answer: &Answer, mut response: Response) -> Response {
    *response.status_mut() = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::OK);
    for warning in &answer.warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}
