//! HTTPS in front of the API server of a service, for whoever has one of its tokens. Notes who asked for what.

use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode, header};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kindex_serve::listen::{Incoming, Listener, Tls};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// What the front shows. Nobody but itself has signed it.
pub(super) const CERTIFICATE: &str = include_str!("../../../../tests/tests/api/tls/first.crt");
const KEY: &str = include_str!("../../../../tests/tests/api/tls/first.key");

/// A front that serves until it is dropped.
pub(super) struct Front {
    pub(super) url: String,
    passage: Arc<Passage>,
    _runtime: Runtime,
}

/// What lies between a request and its answer.
struct Passage {
    /// The service, in plain HTTP.
    service: String,
    /// The tokens that count.
    tokens: &'static [&'static str],
    client: Client<HttpConnector, Empty<Bytes>>,
    /// Token and path of all requests, those that were refused too.
    asked: Mutex<Vec<(String, String)>>,
}

impl Front {
    pub(super) fn start(service: &str, tokens: &'static [&'static str]) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let socket = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let url = format!("https://{}", socket.local_addr().expect("bound"));
        let tls = Tls::from_pem(Path::new("front"), CERTIFICATE.into(), KEY.into()).expect("a pair");
        let passage = Arc::new(Passage {
            service: service.to_owned(),
            tokens,
            // The service is killed meanwhile: no connection to it is kept.
            client: Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(0)
                .build_http(),
            asked: Mutex::default(),
        });
        let listener = Listener {
            tls: Some(tls),
            ..Listener::new(socket)
        };
        let shared = passage.clone();
        let answer = move |request: Request<Incoming>| pass(shared.clone(), request);
        runtime.spawn(listener.serve(answer, CancellationToken::new()));
        Self {
            url,
            passage,
            _runtime: runtime,
        }
    }

    /// Whether somebody came with this token for what begins with this path.
    pub(super) fn was_asked(&self, token: &str, path: &str) -> bool {
        let asked = self.passage.asked.lock().expect("nobody panics with it");
        asked.iter().any(|(with, at)| with == token && at.starts_with(path))
    }
}

/// What the service answers to the holder of a token.
async fn pass(passage: Arc<Passage>, request: Request<Incoming>) -> Response<Body> {
    let (head, _) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let token = head.headers.get(header::AUTHORIZATION);
    let token = token.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let token = token.unwrap_or_default();
    let asked = (token.to_owned(), path.to_owned());
    passage.asked.lock().expect("nobody panics with it").push(asked);
    if !passage.tokens.contains(&token) {
        return refusal(StatusCode::UNAUTHORIZED, "the token has expired");
    }
    // Nobody who asks about references or events sends anything else.
    let mut passed = Request::builder()
        .method(&head.method)
        .uri(format!("{}{path}", passage.service));
    if let Some(accept) = head.headers.get(header::ACCEPT) {
        passed = passed.header(header::ACCEPT, accept);
    }
    let passed = passed.body(Empty::new()).expect("a request");
    match passage.client.request(passed).await {
        Ok(mut answer) => {
            // These are about the connection to the service.
            for hop in [header::CONNECTION, header::TRANSFER_ENCODING] {
                answer.headers_mut().remove(hop);
            }
            answer.map(Body::new)
        }
        Err(error) => refusal(StatusCode::BAD_GATEWAY, &error.to_string()),
    }
}

fn refusal(code: StatusCode, why: &str) -> Response<Body> {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(), "message": why});
    let mut answer = Response::new(Body::from(status.to_string()));
    *answer.status_mut() = code;
    answer
}
