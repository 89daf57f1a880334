//! Clients of HTTP/2 that grant no window: what they do not take is not kept for them, and what else they asked for
//! over the same connection goes on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::routing::{MethodRouter, get};
use axum::{Extension, Router};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kindex_api::metrics::Metrics;
use kindex_api::server::{self, Limits};
use kindex_harness::wait::{WAIT_MAX, eventually, eventually_ok};
use kindex_serve::abort::AbortToken;
use kindex_serve::listen::ConnectionLimits;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const STALLED: Duration = Duration::from_millis(300);
const LARGE_BYTES: usize = 3 * 1024 * 1024;
const PIECE_BYTES: usize = 16_384;

/// Counts answers.
#[derive(Default)]
struct Answers {
    /// Those that have begun so far.
    begun: AtomicUsize,
    /// Those that are not done with.
    open: AtomicUsize,
}

/// One more answer that is not done with, until it is dropped.
struct Open(Arc<Answers>);

impl Open {
    fn one(count: &Arc<Answers>) -> Self {
        count.begun.fetch_add(1, Ordering::Relaxed);
        count.open.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

struct TestServer {
    address: SocketAddr,
    metrics: Metrics,
    /// All answers but those of `/`.
    answers: Arc<Answers>,
    /// `/quiet` says something once this is true.
    news: watch::Sender<bool>,
    /// Breaks `/watch` off.
    ended: CancellationToken,
    stop: CancellationToken,
}

impl TestServer {
    async fn open(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (news, heard) = watch::channel(false);
        let server = Self {
            address: listener.local_addr().unwrap(),
            metrics: Metrics::default(),
            answers: Arc::default(),
            news,
            ended: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        let piece = || Bytes::from_static(&[b'x'; PIECE_BYTES]);
        let quiet = move || {
            let mut heard = heard.clone();
            async move {
                heard.wait_for(|is_said| *is_said).await.unwrap();
                Bytes::from_static(b"news")
            }
        };
        let (answers, ended) = (server.answers.clone(), server.ended.clone());
        let watch = async move || {
            let open = Open::one(&answers);
            let pieces = stream::repeat_with(move || {
                let _until_the_end = &open;
                Ok::<_, std::io::Error>(piece())
            });
            (Extension(AbortToken(ended.clone())), Body::from_stream(pieces))
        };
        let router = Router::new()
            .route("/", get(async || "hello"))
            .route("/endless", counted(&server.answers, move || stream::repeat_with(piece)))
            .route(
                "/large",
                counted(&server.answers, || stream::iter([Bytes::from(vec![b'x'; LARGE_BYTES])])),
            )
            .route("/watch", get(watch))
            .route("/quiet", counted(&server.answers, move || stream::once(quiet())));
        let (metrics, stop) = (server.metrics.clone(), server.stop.clone());
        tokio::spawn(server::serve(
            listener,
            router,
            Arc::new(()),
            None,
            limits,
            metrics,
            stop,
        ));
        server
    }

    /// A client that grants each answer so many bytes until it reads.
    async fn client(&self, window: u32) -> SendRequest<Empty<Bytes>> {
        self.try_client(window).await.unwrap()
    }

    async fn try_client(&self, window: u32) -> hyper::Result<SendRequest<Empty<Bytes>>> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .initial_connection_window_size(1024 * 1024)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn send(&self, client: &mut SendRequest<Empty<Bytes>>, path: &str) -> Incoming {
        self.try_send(client, path).await.unwrap()
    }

    async fn try_send(&self, client: &mut SendRequest<Empty<Bytes>>, path: &str) -> hyper::Result<Incoming> {
        let request = http::Request::get(format!("http://{}{path}", self.address));
        let response = client.send_request(request.body(Empty::new()).unwrap()).await?;
        assert_eq!(response.status(), 200);
        Ok(response.into_body())
    }

    fn begun(&self) -> usize {
        self.answers.begun.load(Ordering::Relaxed)
    }

    fn open_answers(&self) -> usize {
        self.answers.open.load(Ordering::Relaxed)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Answers with these pieces, and counts the answers.
fn counted<S>(count: &Arc<Answers>, pieces: impl Fn() -> S + Clone + Send + Sync + 'static) -> MethodRouter
where
    S: Stream<Item = Bytes> + Send + 'static,
{
    let count = count.clone();
    get(move || {
        let (open, pieces) = (Open::one(&count), pieces());
        async move {
            Body::from_stream(pieces.map(move |piece| {
                let _until_the_end = &open;
                Ok::<_, std::io::Error>(piece)
            }))
        }
    })
}

fn limits() -> Limits {
    Limits {
        connections: ConnectionLimits {
            stalled: STALLED,
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_taken_ends_alone() {
    let server = TestServer::open(limits()).await;
    let mut client = server.client(65_535).await;
    for (path, begun) in [("/endless", 1), ("/large", 2)] {
        let body = server.send(&mut client, path).await;
        // On a busy machine, it may have ended by now.
        assert_eq!(server.begun(), begun, "{path}");
        eventually("its end", async || server.open_answers() == 0).await;
        let read = tokio::time::timeout(WAIT_MAX, body.collect()).await;
        let broken = read.expect("an end").expect_err("not a whole answer");
        assert!(
            broken.to_string().contains("CANCEL") || format!("{broken:?}").contains("CANCEL"),
            "{broken:?}"
        );
        let hello = server.send(&mut client, "/").await.collect().await.unwrap().to_bytes();
        assert_eq!(&hello[..], b"hello", "the connection goes on");
        assert_eq!(server.metrics.connections.get(), 1.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_ends_for_the_sake_of_others_gives_its_connection_back() {
    let server = TestServer::open(Limits {
        connections: ConnectionLimits {
            stalled: Duration::from_secs(3600),
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    })
    .await;
    let mut client = server.client(65_535).await;
    let body = server.send(&mut client, "/watch").await;
    assert_eq!(server.open_answers(), 1);
    server.ended.cancel();
    eventually("its end", async || server.open_answers() == 0).await;
    let read = tokio::time::timeout(WAIT_MAX, body.collect()).await;
    read.expect("an end").expect_err("not a whole answer");
    let hello = server.send(&mut client, "/").await.collect().await.unwrap().to_bytes();
    assert_eq!(&hello[..], b"hello", "the connection goes on");
    drop(client);
    eventually("the connection ends", async || server.metrics.connections.get() == 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_slowly_and_who_waits_for_news_are_not_cut_off() {
    // Less than the reading takes, and longer than a busy machine keeps a reader from its next piece.
    let stalled = Duration::from_secs(4);
    let limits = Limits {
        connections: ConnectionLimits {
            stalled,
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    };
    let (server, begun) = (TestServer::open(limits).await, Instant::now());
    let mut client = server.client(65_535).await;
    let quiet = server.send(&mut client, "/quiet").await;
    let mut slow = server.send(&mut client, "/large").await;
    let (mut ticks, mut read) = (tokio::time::interval(stalled / 160), 0);
    while let Some(frame) = slow.frame().await {
        let before = read;
        read += frame.expect("not cut off").into_data().unwrap().len();
        // By bytes, since windows cut frames into small ones.
        for _ in before / PIECE_BYTES..read / PIECE_BYTES {
            ticks.tick().await;
        }
    }
    assert_eq!(read, LARGE_BYTES);
    assert!(begun.elapsed() > stalled, "{:?}", begun.elapsed());
    server.news.send(true).unwrap();
    let news = quiet.collect().await.unwrap().to_bytes();
    assert_eq!(&news[..], b"news", "long after the limit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_client_takes_no_end_of_its_answers_is_closed() {
    let server = TestServer::open(Limits {
        connections: ConnectionLimits {
            idle: STALLED,
            ..limits().connections
        },
        ..limits()
    })
    .await;
    // A busy machine may be too slow with its question, and is closed like anybody who never asks.
    let _not_read = eventually_ok("an answer", async || {
        let asked = async {
            let mut client = server.try_client(2).await?;
            let body = server.try_send(&mut client, "/").await?;
            Ok::<_, hyper::Error>((client, body))
        };
        asked.await.map_err(|error| error.to_string())
    })
    .await;
    eventually("its end", async || server.metrics.connections.get() == 0.0).await;
}
