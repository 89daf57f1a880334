//! HTTP: connections in, replies out. Reads requests within bounds, finds what their path points at, writes
//! replies; refuses to know what objects mean.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body as HttpBody, Frame};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use kindex_kube_api::request::{self, Query, Rendering, Target};
use kindex_kube_api::status::Status;
use kindex_serve::cut::{Cut, Ended};
use kindex_serve::linger::{Lingering, Unread};
use kindex_serve::watches::Texture;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::access::{self, Holder};
use crate::api::Api;
use crate::door::{BODY_MAX_BYTES, Caller, Door, Limits};
use crate::resource::Nature;
use crate::rest::{self, Body, ObjectRequest, Reply};
use crate::{discovery, openapi_index};

/// What is buffered of one connection, and the largest head of a request.
const BUFFER_MAX_BYTES: usize = 64 * 1024;
/// How long connections may take to end when the server stops.
const GRACE: Duration = Duration::from_secs(5);
const ACCEPTED: &str = "application/json, application/yaml";
/// What clients of all ages ask for, and what is answered: the `@` of the older name is no character of media types.
const SWAGGER_PROTOBUF_ASKED: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    SWAGGER_PROTOBUF,
];
const SWAGGER_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What all connections share.
pub(crate) struct Host {
    api: Api,
    door: Door,
    limits: Limits,
    address: SocketAddr,
}

impl Host {
    /// Of a server that is found at this address.
    pub(crate) fn new(api: Api, limits: Limits, address: SocketAddr) -> Self {
        Self {
            door: Door::new(&limits),
            address,
            limits,
            api,
        }
    }
}

/// Who sends a request, as far as that does not stand in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sender {
    /// Whoever is at the other end of a connection: shows a token.
    Peer(SocketAddr),
    /// A part of this process.
    Own(Holder),
}

/// Serves connections until the shutdown token is cancelled, then lets those under way end.
pub(crate) async fn serve(api: Api, listener: TcpListener, limits: Limits) -> std::io::Result<()> {
    let host = Arc::new(Host::new(api, limits, listener.local_addr()?));
    let shutdown = host.api.shutdown.clone();
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let (place, stream, peer) = tokio::select! {
            () = shutdown.cancelled() => break,
            // What has ended is forgotten as it ends.
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &places) => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, most likely: connections that end will free some.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let host = Arc::clone(&host);
        connections.spawn(async move {
            serve_connection(host, stream, peer).await;
            drop(place);
        });
    }
    // Whoever does not end in time is cut off.
    let _late = tokio::time::timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
    Ok(())
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> std::io::Result<(OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    let place = Arc::clone(places).acquire_owned().await;
    let place = place.map_err(std::io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((place, stream, peer))
}

async fn serve_connection(host: Arc<Host>, stream: TcpStream, peer: SocketAddr) {
    // Without this, small events wait for acknowledgements; a socket that refuses still works.
    let _slower = stream.set_nodelay(true);
    let (shutdown, limits) = (host.api.shutdown.clone(), host.limits);
    let (cut, has_asked) = (Arc::new(Cut::default()), Arc::new(AtomicBool::new(false)));
    let (follows, asks) = (Arc::clone(&cut), Arc::clone(&has_asked));
    let unread = Unread::default();
    let stream = Lingering::new(stream, unread.clone(), limits.body);
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        asks.store(true, Ordering::Relaxed);
        let request = unread.watch(request);
        let (host, cut) = (Arc::clone(&host), Arc::clone(&follows));
        async move {
            let response = respond(&host, request, Sender::Peer(peer)).await;
            cut.follow(response.extensions().get::<Ended>());
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_buf_size(BUFFER_MAX_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = silent(&has_asked, limits.first) => return tracing::debug!("a client connects and asks nothing"),
        () = cut.needed() => return tracing::debug!("a watch ends whose client does not read"),
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection ended early");
    }
}

/// Until so long has passed, where nothing was asked by then.
async fn silent(has_asked: &AtomicBool, first: Duration) {
    tokio::time::sleep(first).await;
    if has_asked.load(Ordering::Relaxed) {
        std::future::pending().await
    }
}

/// What all answers are.
pub(crate) type Answered = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Answers one request.
pub(crate) async fn respond<B>(host: &Host, request: Request<B>, sender: Sender) -> Answered
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let rendering = request::rendering(text(request.headers(), header::ACCEPT));
    let reply = answer(host, request, sender)
        .await
        .unwrap_or_else(|status| refusal(&status, rendering));
    tracing::debug!(%method, path, code = reply.code, "answered");
    into_response(reply)
}

/// A refusal in the form that the client wants.
fn refusal(status: &Status, rendering: Option<Rendering>) -> Reply {
    let reply = Reply::from(status);
    match rendering {
        Some(Rendering::Yaml) => match serde_saphyr::to_string(&status) {
            Ok(text) => Reply {
                retry_after_seconds: reply.retry_after_seconds,
                ..Reply::yaml(status.http_code(), text)
            },
            Err(_) => reply,
        },
        Some(Rendering::Json | Rendering::Table | Rendering::Metadata) | None => reply,
    }
}

async fn answer<B>(host: &Host, request: Request<B>, sender: Sender) -> Result<Reply, Status>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let Host { api, door, .. } = host;
    let (parts, body) = request.into_parts();
    let (address, holder) = match sender {
        Sender::Peer(peer) => (peer.ip(), access::check(&api.tokens, host.address, &parts)?),
        Sender::Own(holder) => (host.address.ip(), holder),
    };
    let accept = text(&parts.headers, header::ACCEPT);
    let user_agent = text(&parts.headers, header::USER_AGENT);
    let caller = Caller::new(address, user_agent, holder);
    let target = request::parse_path(parts.uri.path());
    let Target::Resource(path) = target.clone() else {
        let _place = door.enter(&target, caller).await?;
        return match parts.method {
            Method::GET | Method::HEAD => {
                let found = document(api, &target, accept, host.address)?;
                found.ok_or_else(|| nothing_at(api, parts.uri.path()))
            }
            _ => Err(if target == Target::Unknown {
                nothing_at(api, parts.uri.path())
            } else {
                Status::method_not_allowed()
            }),
        };
    };
    let request = ObjectRequest {
        rendering: request::rendering(accept).ok_or_else(|| Status::not_acceptable(ACCEPTED))?,
        body: door.read(&parts.method, &target, &caller, body).await?,
        // What is only asked about is found as if it were read; the connection leaves the body out.
        method: match parts.method {
            Method::HEAD => Method::GET,
            method => method,
        },
        path,
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        content_type: text(&parts.headers, header::CONTENT_TYPE)
            .unwrap_or_default()
            .to_owned(),
        user_agent: user_agent.unwrap_or_default().to_owned(),
    };
    // Given back with the head of the answer, so that a watch takes none while it goes on.
    let _turn = door.work(weight(&request), caller.clone()).await?;
    let _place = door.enter(&target, caller).await?;
    rest::answer(api, &request).await
}

/// How large a body is where it is worked on: copies of a JSON patch make as much as the largest body may bring.
fn weight(request: &ObjectRequest) -> usize {
    const COPY: &[u8] = b"\"copy\"";
    let is_patch = request.content_type.starts_with("application/json-patch+json");
    match is_patch && request.body.windows(COPY.len()).any(|part| part == COPY) {
        true => BODY_MAX_BYTES,
        false => request.body.len(),
    }
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
    let custom = above.filter(|(resource, _)| resource.nature == Nature::Custom);
    if let Some((resource, name)) = custom.last() {
        return Status::not_found(resource.named(), &name);
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
        content_type: AGGREGATED,
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
            return Err(Status::not_acceptable(ACCEPTED));
        }
        Target::Swagger => Some(openapi_index::swagger()),
        Target::Resource(_) | Target::Unknown => None,
    };
    Ok(document.map(|document| Reply::value(200, &document)))
}

fn into_response(reply: Reply) -> Answered {
    let (body, ended) = match reply.body {
        Body::Whole(text) => (Full::new(text).boxed_unsync(), None),
        Body::Watch(seat, pieces) => {
            let ended = Ended(seat.ended().clone());
            let body = StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece))));
            (seat.seen(body, Texture::Counted).boxed_unsync(), Some(ended))
        }
    };
    let mut response = Response::new(body);
    if let Some(ended) = ended {
        response.extensions_mut().insert(ended);
    }
    if let Some(seconds) = reply.retry_after_seconds {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    *response.status_mut() = StatusCode::from_u16(reply.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    for warning in &reply.warnings {
        let quoted: String = warning.chars().filter(|c| !c.is_control()).flat_map(escape).collect();
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(header::WARNING, value);
        }
    }
    response
}

/// The characters that a quoted string must escape.
fn escape(c: char) -> impl Iterator<Item = char> {
    let backslash = matches!(c, '"' | '\\').then_some('\\');
    backslash.into_iter().chain([c])
}
