//! HTTP: connections in, replies out. Reads requests within bounds, finds what their path points at, writes
//! replies; refuses to know what objects mean.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::access;
use crate::api::Api;
use crate::request::{self, Query, Rendering, Target};
use crate::resource::Nature;
use crate::rest::{self, Body, ObjectRequest, Reply};
use crate::status::Status;
use crate::{discovery, openapi_index};

/// The largest body that is read.
const BODY_MAX_BYTES: usize = 3 * 1024 * 1024;
/// How long connections may take to end when the server stops.
const GRACE: Duration = Duration::from_secs(5);
const ACCEPTED: &str = "application/json, application/yaml";
const SWAGGER_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Serves connections until the shutdown token is cancelled, then lets those under way end.
pub(crate) async fn serve(api: Api, listener: TcpListener) -> std::io::Result<()> {
    let address = listener.local_addr()?;
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            () = api.shutdown.cancelled() => break,
            // What has ended is forgotten as it ends.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most likely: connections that end will free some.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        connections.spawn(serve_connection(api.clone(), stream, address));
    }
    // Whoever does not end in time is cut off.
    let _late = tokio::time::timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
    Ok(())
}

async fn serve_connection(api: Api, stream: TcpStream, address: SocketAddr) {
    // Without this, small events wait for acknowledgements; a socket that refuses still works.
    let _slower = stream.set_nodelay(true);
    let shutdown = api.shutdown.clone();
    let service = service_fn(move |request| {
        let api = api.clone();
        async move { Ok::<_, Infallible>(respond(&api, request, address).await) }
    });
    // A connection that idles is kept: closing it could cross a request that is on its way.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection ended early");
    }
}

async fn respond(
    api: &Api,
    request: Request<Incoming>,
    address: SocketAddr,
) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let rendering = request::rendering(text(request.headers(), header::ACCEPT));
    let reply = answer(api, request, address)
        .await
        .unwrap_or_else(|status| refusal(&status, rendering));
    tracing::debug!(%method, path, code = reply.code, "answered");
    into_response(reply)
}

/// A refusal in the form that the client wants.
fn refusal(status: &Status, rendering: Option<Rendering>) -> Reply {
    match rendering {
        Some(Rendering::Yaml) => serde_saphyr::to_string(&status)
            .map_or_else(|_| Reply::from(status), |text| Reply::yaml(status.http_code(), text)),
        Some(Rendering::Json | Rendering::Table | Rendering::Metadata) | None => Reply::from(status),
    }
}

async fn answer(api: &Api, request: Request<Incoming>, address: SocketAddr) -> Result<Reply, Status> {
    let (parts, body) = request.into_parts();
    access::check(&api.token, address, &parts)?;
    let accept = text(&parts.headers, header::ACCEPT);
    let path = match request::parse_path(parts.uri.path()) {
        Target::Resource(path) => path,
        target => {
            return match parts.method {
                Method::GET | Method::HEAD => {
                    let found = document(api, &target, accept, address)?;
                    found.ok_or_else(|| nothing_at(api, parts.uri.path()))
                }
                _ => Err(if target == Target::Unknown {
                    nothing_at(api, parts.uri.path())
                } else {
                    Status::method_not_allowed()
                }),
            };
        }
    };
    let request = ObjectRequest {
        // What is only asked about is found as if it were read; the connection leaves the body out.
        method: match parts.method {
            Method::HEAD => Method::GET,
            method => method,
        },
        path,
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        rendering: request::rendering(accept).ok_or_else(|| Status::not_acceptable(ACCEPTED))?,
        content_type: text(&parts.headers, header::CONTENT_TYPE)
            .unwrap_or_default()
            .to_owned(),
        user_agent: text(&parts.headers, header::USER_AGENT).unwrap_or_default().to_owned(),
        body: read(body).await?,
    };
    rest::answer(api, &request).await
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

async fn read(body: Incoming) -> Result<Bytes, Status> {
    match Limited::new(body, BODY_MAX_BYTES).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Status::too_large(BODY_MAX_BYTES)),
        Err(error) => Err(Status::bad_request(format!("error reading the body: {error}"))),
    }
}

/// The core group answers for all of its paths, the OpenAPI documents for theirs; below a custom resource, the object
/// is what is not found.
fn nothing_at(api: &Api, path: &str) -> Status {
    let catalog = api.registry.catalog();
    let above = path
        .match_indices('/')
        .filter_map(|(at, _)| match request::parse_path(&path[..at]) {
            Target::Resource(found) => Some((catalog.find(&found.group, &found.version, &found.plural)?, found.name?)),
            _ => None,
        });
    let mut custom = above.filter(|(resource, _)| resource.nature == Nature::Custom);
    if let Some((resource, name)) = custom.next_back() {
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
        Target::Swagger if accept.is_some_and(|accept| accept.contains(SWAGGER_PROTOBUF)) => {
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

fn into_response(reply: Reply) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
    let body = match reply.body {
        Body::Whole(text) => Full::new(text).boxed_unsync(),
        Body::Pieces(pieces) => StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece)))).boxed_unsync(),
    };
    let mut response = Response::new(body);
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
