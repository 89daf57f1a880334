//! Limits of the server: connections, requests at once, requests a second, clients that do not read.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, stream};
use http::request::Parts;
use kindex_api::metrics::Metrics;
use kindex_api::operations::Refusal;
use kindex_api::server::{self, Authenticator, CallerIdentity, Limits};
use kindex_harness::wait::{WAIT_MAX, eventually};
use kindex_serve::listen::ConnectionLimits;
use kube::{Client, Config};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Whoever shows a token has its name.
struct ByToken;

impl Authenticator for ByToken {
    fn authenticate_request<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<CallerIdentity, Refusal>> {
        let token = head.headers.get("authorization").and_then(|token| token.to_str().ok());
        let caller = token.map_or(CallerIdentity::Unnamed, |token| CallerIdentity::Named(token.to_owned()));
        std::future::ready(Ok(caller)).boxed()
    }
}

/// A server with limits, and a path that answers when the test allows it.
struct TestServer {
    address: SocketAddr,
    metrics: Metrics,
    /// `/held` answers as many times as this allows.
    held: Arc<Semaphore>,
    /// How many of those who asked for it have been let in.
    let_in: Arc<AtomicUsize>,
    stop: CancellationToken,
}

impl TestServer {
    async fn open(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            metrics: Metrics::default(),
            held: Arc::new(Semaphore::new(0)),
            let_in: Arc::default(),
            stop: CancellationToken::new(),
        };
        let (held, let_in) = (server.held.clone(), server.let_in.clone());
        let wait = async move || {
            let_in.fetch_add(1, Ordering::SeqCst);
            held.acquire().await.unwrap().forget();
            "held"
        };
        let piece = || Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 16_384]));
        let endless = async move || Body::from_stream(stream::repeat_with(piece));
        let router = Router::new()
            .route("/", get(async || "hello").post(async || "changed"))
            .route("/held", get(wait))
            .route("/readyz", get(async || "ready"))
            .route("/apis/coordination.k8s.io/v1/leases", get(async || "led"))
            .route("/endless", get(endless));
        let (metrics, stop) = (server.metrics.clone(), server.stop.clone());
        tokio::spawn(server::serve(
            listener,
            router,
            Arc::new(ByToken),
            None,
            limits,
            metrics,
            stop,
        ));
        server
    }

    fn client(&self) -> Client {
        let mut config = Config::new(format!("http://{}", self.address).parse().unwrap());
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// Code, seconds until the next try, and the Status or text.
    async fn send(&self, method: &str, path: &str, token: &str) -> (u16, Option<String>, Value) {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {token}"))
            .body(kube::client::Body::empty())
            .unwrap();
        let response = self.client().send(request).await.unwrap();
        let code = response.status().as_u16();
        let again = response
            .headers()
            .get("retry-after")
            .map(|value| value.to_str().unwrap().to_owned());
        let body = http_body_util::BodyExt::collect(response.into_body())
            .await
            .unwrap()
            .to_bytes();
        (code, again, serde_json::from_slice(&body).unwrap_or_default())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_counted_and_idle_ones_closed() {
    let server = TestServer::open(Limits {
        connections: ConnectionLimits {
            most: 2,
            first: Duration::from_millis(300),
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    })
    .await;
    // They say nothing, and take all places.
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    let client = server.client();
    eventually("an answer once they are closed", async || {
        let request = http::Request::get("/").body(Vec::new()).unwrap();
        client.request_text(request).await.is_ok_and(|text| text == "hello")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_at_once_are_told_to_come_again() {
    let server = Arc::new(
        TestServer::open(Limits {
            reads: 1,
            changes: 1,
            grace: Duration::from_millis(50),
            ..Limits::default()
        })
        .await,
    );
    let first = tokio::spawn({
        let server = server.clone();
        async move { server.send("GET", "/held", "a").await }
    });
    eventually("the first is let in", async || {
        server.let_in.load(Ordering::SeqCst) == 1
    })
    .await;
    let (code, again, status) = server.send("GET", "/", "b").await;
    assert_eq!(
        (code, again.as_deref(), &status["reason"]),
        (429, Some("1"), &Value::from("TooManyRequests"))
    );
    let (code, ..) = server.send("POST", "/", "b").await;
    assert_eq!(code, 200, "changes have places of their own");
    server.held.add_permits(1);
    assert_eq!(first.await.unwrap().0, 200);
    let (code, ..) = server.send("GET", "/", "b").await;
    assert_eq!(code, 200, "the place is free again");
    // The head of an endless answer is there: what goes on takes no place.
    let response = server
        .client()
        .send(
            http::Request::get("/endless")
                .body(kube::client::Body::empty())
                .unwrap(),
        )
        .await;
    let (code, ..) = server.send("GET", "/", "b").await;
    assert_eq!(code, 200);
    drop(response);
}

/// Nobody leaves while others are asked for.
#[tokio::test(flavor = "multi_thread")]
async fn one_caller_never_has_all_places_and_health_and_leases_have_their_own() {
    let server = Arc::new(
        TestServer::open(Limits {
            reads: 4,
            grace: WAIT_MAX,
            ..Limits::default()
        })
        .await,
    );
    let hold = |token: &'static str| {
        let server = server.clone();
        tokio::spawn(async move { server.send("GET", "/held", token).await.0 })
    };
    let let_in = async |count: usize| {
        eventually("they are let in", async || {
            server.let_in.load(Ordering::SeqCst) == count
        })
        .await;
    };
    let mut all: Vec<_> = (0..10).map(|_| hold("greedy")).collect();
    let_in(3).await;
    assert_eq!(
        server.send("GET", "/", "modest").await.0,
        200,
        "a place is left for others"
    );
    all.push(hold("other"));
    let_in(4).await;
    for path in ["/readyz", "/apis/coordination.k8s.io/v1/leases"] {
        assert_eq!(server.send("GET", path, "modest").await.0, 200, "{path}");
    }
    let modest = tokio::spawn({
        let server = server.clone();
        async move { server.send("GET", "/", "modest").await.0 }
    });
    server.held.add_permits(all.len());
    assert_eq!(modest.await.unwrap(), 200);
    for held in futures::future::join_all(all).await {
        assert_eq!(held.unwrap(), 200, "who waits is not refused");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_its_share_and_another_one_too() {
    const SHARE: u32 = 3;
    let server = TestServer::open(Limits {
        requests_per_second: NonZeroU32::new(SHARE),
        ..Limits::default()
    })
    .await;
    let (mut refused, mut answered, begun) = (0_u32, 0_u32, Instant::now());
    // A machine that asks less often than the share is never refused: it asks at once.
    while refused == 0 {
        let all = (0..20).map(|_| server.send("GET", "/", "greedy"));
        for (code, again, _) in futures::future::join_all(all).await {
            assert!(
                code == 200 && again.is_none() || code == 429 && again.as_deref() == Some("1"),
                "{code} {again:?}"
            );
            refused += u32::from(code == 429);
            answered += u32::from(code == 200);
        }
        // What a second holds at first, and what has come since.
        let most = f64::from(SHARE) * (1.0 + begun.elapsed().as_secs_f64());
        assert!(
            f64::from(answered) <= most.ceil(),
            "{answered} in {:?}",
            begun.elapsed()
        );
        assert!(begun.elapsed() < WAIT_MAX, "nobody is refused");
    }
    assert_eq!(server.send("GET", "/", "modest").await.0, 200);
    eventually("the next second", async || {
        server.send("GET", "/", "greedy").await.0 == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_cut_off() {
    let server = TestServer::open(Limits {
        connections: ConnectionLimits {
            stalled: Duration::from_millis(300),
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    })
    .await;
    let mut stalled = TcpStream::connect(server.address).await.unwrap();
    stalled
        .write_all(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    // The first byte of an answer, and no other one. Who reads it too late finds the connection cut off already.
    match stalled.read_u8().await {
        Ok(first) => assert_eq!(first, b'H'),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    eventually("its end", async || server.metrics.connections.get() == 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_does_not_come_to_its_end_ends_its_connection() {
    let server = TestServer::open(Limits {
        connections: ConnectionLimits {
            first: Duration::from_secs(3600),
            idle: Duration::from_millis(200),
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    })
    .await;
    let (whole, half) = ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: ");
    for beginning in [half.to_owned(), format!("{whole}{half}")] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(beginning.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let end = tokio::time::timeout(WAIT_MAX, stream.read_to_end(&mut rest)).await;
        match end.expect("an end") {
            Ok(_) if beginning == half => assert!(!rest.starts_with(b"HTTP/1.1 200 ")),
            // Who asks or reads too late finds the connection cut off already.
            Ok(_) => assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 200 ")),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
    // A head that never ends, and never stands still either.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(half.as_bytes()).await.unwrap();
    eventually("its end", async || stream.write_all(b"x").await.is_err()).await;
}
