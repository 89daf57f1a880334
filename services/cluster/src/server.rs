//! HTTP: requests in, replies out. Finds what the path of a request points at, and writes the reply; knows nothing of
//! what objects mean.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body as HttpBody, Frame};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use kindex_kube_api::headers;
use kindex_kube_api::media;
use kindex_kube_api::request::{self, Query, Target};
use kindex_kube_api::status::Status;
use kindex_serve::abort::AbortToken;
use kindex_serve::admission::{Admission, Admitted};
use kindex_serve::listen::{Incoming, Listener};
use kindex_serve::watches::Accounting;
use tokio::net::TcpListener;

use crate::api::Api;
use crate::limits::{ClusterAdmissionPolicy, Limits};
use crate::resource::ResourceType;
use crate::rest::{self, Body, ObjectRequest, Reply};
use crate::{discovery, openapi_index};

/// What clients of all ages ask for, and what is answered: the `@` of the older name is no character of media types.
const SWAGGER_PROTOBUF_ASKED: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    SWAGGER_PROTOBUF,
];
const SWAGGER_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What all connections share.
pub(crate) struct Host {
    api: Api,
    admission: Admission<ClusterAdmissionPolicy>,
    address: SocketAddr,
}

impl Host {
    /// Of a server that is found at this address.
    pub(crate) fn new(api: Api, limits: &Limits, address: SocketAddr) -> Self {
        let policy = ClusterAdmissionPolicy::new(limits, api.tokens.clone(), address);
        Self {
            admission: Admission::new(policy, limits.connections.body, limits.queue_timeout),
            address,
            api,
        }
    }
}

/// Serves connections until the shutdown token is cancelled, then lets what is in flight end.
pub(crate) async fn serve(api: Api, socket: TcpListener, limits: &Limits) -> std::io::Result<()> {
    let shutdown = api.shutdown.clone();
    let host = Arc::new(Host::new(api, limits, socket.local_addr()?));
    let listener = Listener {
        limits: limits.connections,
        ..Listener::new(socket)
    };
    let answer = move |request: Request<Incoming>| {
        let host = Arc::clone(&host);
        async move { respond(&host, request).await }
    };
    listener.serve(answer, shutdown).await;
    Ok(())
}

/// What all answers are.
pub(crate) type Answered = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Answers one request.
pub(crate) async fn respond<B>(host: &Host, request: Request<B>) -> Answered
where
    B: HttpBody<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let rendering = request::rendering(text(request.headers(), header::ACCEPT));
    let reply = answer(host, request)
        .await
        .unwrap_or_else(|status| Reply::refusal(&status, rendering));
    tracing::debug!(%method, path, code = reply.code, "answered");
    into_response(reply)
}

async fn answer<B>(host: &Host, request: Request<B>) -> Result<Reply, Status>
where
    B: HttpBody<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let Host {
        api,
        admission,
        address,
    } = host;
    let (parts, body) = request.into_parts();
    // Places are given back with the head of the answer, so that a watch takes none while it goes on.
    let Admitted {
        body,
        permits: _permits,
    } = admission.admit(&parts, body).await?;
    let accept = text(&parts.headers, header::ACCEPT);
    let target = request::parse_path(parts.uri.path());
    let Target::Resource(path) = target else {
        return match parts.method {
            Method::GET | Method::HEAD => {
                let found = document(api, &target, accept, *address)?;
                found.ok_or_else(|| nothing_at(api, parts.uri.path()))
            }
            _ => Err(if target == Target::Unknown {
                nothing_at(api, parts.uri.path())
            } else {
                Status::method_not_allowed()
            }),
        };
    };
    let header = |name| text(&parts.headers, name).unwrap_or_default().to_owned();
    let request = ObjectRequest {
        rendering: request::rendering(accept).ok_or_else(Status::not_acceptable)?,
        body,
        content_type: header(header::CONTENT_TYPE),
        user_agent: header(header::USER_AGENT),
        // What is only asked about is found as if it were read; the connection leaves the body out.
        method: match parts.method {
            Method::HEAD => Method::GET,
            method => method,
        },
        path,
        query: Query::parse(parts.uri.query().unwrap_or_default()),
    };
    rest::answer(api, &request).await
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// The most parts of an object's path: `apis`, group, version, `namespaces`, one of these, resource, name.
const OBJECT_PARTS_MAX: usize = 7;

/// The core group answers for all of its paths, the OpenAPI documents for theirs; below a custom resource, the object
/// is what is not found.
fn nothing_at(api: &Api, path: &str) -> Status {
    let catalog = api.registry.catalog();
    let above = path
        .match_indices('/')
        .take(OBJECT_PARTS_MAX + 2)
        .filter_map(|(at, _)| match request::parse_path(&path[..at]) {
            Target::Resource(found) => Some((catalog.find(&found.group, &found.version, &found.plural)?, found.name?)),
            _ => None,
        });
    let custom = above.filter(|(resource, _)| resource.resource_type == ResourceType::Custom);
    if let Some((resource, name)) = custom.last() {
        return Status::not_found(resource.group_resource(), &name);
    }
    if ["/api/", "/openapi/"].iter().any(|known| path.starts_with(known)) {
        Status::unknown_path()
    } else {
        Status::page_not_found()
    }
}

/// Everything that is no object.
fn document(api: &Api, target: &Target, accept: Option<&str>, address: SocketAddr) -> Result<Option<Reply>, Status> {
    let catalog = api.registry.catalog();
    let aggregated = request::wants_aggregated_discovery(accept);
    let whole = |core| Reply {
        content_type: media::AGGREGATED_DISCOVERY,
        ..Reply::value(200, &discovery::aggregated(&catalog, core))
    };
    let document = match target {
        Target::Version => Some(discovery::version()),
        Target::Health => return Ok(Some(Reply::text(200, "ok"))),
        Target::Root => Some(discovery::root(&catalog)),
        Target::CoreVersions if aggregated => return Ok(Some(whole(true))),
        Target::CoreVersions => Some(discovery::core_versions(&address.to_string())),
        Target::Groups if aggregated => return Ok(Some(whole(false))),
        Target::Groups => Some(discovery::group_list(&catalog)),
        Target::Group(group) => discovery::group(&catalog, group),
        Target::GroupVersion(group, version) => discovery::resource_list(&catalog, group, version),
        Target::OpenApiIndex => Some(openapi_index::index(&catalog)),
        Target::OpenApiDocument(group, version) => openapi_index::document(&catalog, group, version),
        Target::Swagger if accept.is_some_and(|accept| SWAGGER_PROTOBUF_ASKED.iter().any(|it| accept.contains(it))) => {
            return Ok(Some(Reply {
                content_type: SWAGGER_PROTOBUF,
                ..Reply::json(200, openapi_index::swagger_protobuf())
            }));
        }
        Target::Swagger if request::rendering(accept).is_none() => {
            return Err(Status::not_acceptable());
        }
        Target::Swagger => Some(openapi_index::swagger()),
        Target::Resource(_) | Target::Unknown => None,
    };
    Ok(document.map(|document| Reply::value(200, &document)))
}

fn into_response(reply: Reply) -> Answered {
    let (body, abort) = match reply.body {
        Body::Whole(text) => (Full::new(text).boxed_unsync(), None),
        Body::Watch(slot, pieces) => {
            let abort = AbortToken(slot.ended().clone());
            let body = StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece))));
            (slot.track(body, Accounting::Counted).boxed_unsync(), Some(abort))
        }
    };
    let mut response = Response::new(body);
    if let Some(abort) = abort {
        response.extensions_mut().insert(abort);
    }
    if let Some(seconds) = reply.retry_after_seconds {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    *response.status_mut() = StatusCode::from_u16(reply.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(headers::CACHE_CONTROL));
    for warning in &reply.warnings {
        if let Ok(value) = HeaderValue::from_str(&headers::warning(warning)) {
            headers.append(header::WARNING, value);
        }
    }
    response
}
