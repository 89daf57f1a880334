//! The listener over real sockets.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream;
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::abort::AbortToken;

/// Longer than anything takes here.
const LONG: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Count(AtomicUsize);

impl Meter for Count {
    fn opened(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn closed(&self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A server that answers `/slow` once it is told to, and everything else at once.
struct Server {
    address: SocketAddr,
    count: Arc<Count>,
    /// A request for `/slow` has arrived.
    arrived: Arc<Notify>,
    /// It is answered once this is notified.
    answer: Arc<Notify>,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

impl Server {
    async fn start(limits: ConnectionLimits) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = socket.local_addr().expect("bound");
        let (count, arrived, release) = (
            Arc::<Count>::default(),
            Arc::<Notify>::default(),
            Arc::<Notify>::default(),
        );
        let (arriving, released) = (arrived.clone(), release.clone());
        let answer = move |request: Request<Incoming>| {
            let (arriving, released) = (arriving.clone(), released.clone());
            async move {
                if request.uri().path() == "/slow" {
                    arriving.notify_one();
                    released.notified().await;
                }
                let peer = request.extensions().get::<Peer>().expect("each request has it");
                Response::new(Full::new(Bytes::from(peer.address.to_string())))
            }
        };
        let listener = Listener {
            limits,
            meter: count.clone(),
            ..Listener::new(socket)
        };
        let stop = CancellationToken::new();
        Self {
            address,
            count,
            arrived,
            answer: release,
            served: tokio::spawn(listener.serve(answer, stop.clone())),
            stop,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("it listens")
    }

    async fn ask(&self, path: &str) -> TcpStream {
        let mut stream = self.connect().await;
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is read");
        stream
    }
}

/// The whole answer.
async fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    let read = timeout(LONG, stream.read_to_string(&mut text)).await;
    read.expect("an end").expect("an answer");
    text
}

#[tokio::test]
async fn who_comes_when_all_places_are_taken_waits_until_one_leaves() {
    let server = Server::start(ConnectionLimits {
        most: 2,
        first: LONG,
        ..ConnectionLimits::default()
    })
    .await;
    let slow = [server.ask("/slow").await, server.ask("/slow").await];
    for _ in &slow {
        server.arrived.notified().await;
    }
    let mut third = server.ask("/").await;
    let early = timeout(Duration::from_millis(100), third.read_u8()).await;
    assert!(early.is_err(), "it waits");
    assert_eq!(server.count.0.load(Ordering::SeqCst), 2);
    server.answer.notify_one();
    let answered = answer(third).await;
    assert!(answered.ends_with("127.0.0.1"), "{answered}");
    server.answer.notify_one();
    for slow in slow {
        assert!(answer(slow).await.contains("200 OK"));
    }
}

#[tokio::test]
async fn what_is_in_flight_when_the_server_stops_is_answered_and_nobody_else_is_let_in() {
    let mut server = Server::start(ConnectionLimits {
        grace: LONG,
        ..ConnectionLimits::default()
    })
    .await;
    let slow = server.ask("/slow").await;
    server.arrived.notified().await;
    server.stop.cancel();
    let early = timeout(Duration::from_millis(100), &mut server.served).await;
    assert!(early.is_err(), "it waits for what is in flight");
    server.answer.notify_one();
    assert!(answer(slow).await.contains("200 OK"));
    timeout(LONG, server.served)
        .await
        .expect("it ends")
        .expect("without a panic");
    assert_eq!(server.count.0.load(Ordering::SeqCst), 0);
    assert!(TcpStream::connect(server.address).await.is_err(), "nobody listens");
}

#[tokio::test]
async fn who_does_not_end_in_time_is_cut_off() {
    let server = Server::start(ConnectionLimits::default()).await;
    let mut slow = server.ask("/slow").await;
    server.arrived.notified().await;
    server.stop.cancel();
    timeout(LONG, server.served)
        .await
        .expect("it ends")
        .expect("without a panic");
    let mut nothing = Vec::new();
    let cut = timeout(LONG, slow.read_to_end(&mut nothing)).await.expect("an end");
    assert!(cut.is_err() || nothing.is_empty(), "no answer comes");
    assert_eq!(server.count.0.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_answer_that_is_broken_off_ends_while_its_client_takes_nothing() {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = socket.local_addr().expect("bound");
    let (abort, gone) = (CancellationToken::new(), CancellationToken::new());
    let (aborts, leaves) = (abort.clone(), gone.clone());
    let answer = move |_request: Request<Incoming>| {
        let held = leaves.clone().drop_guard();
        let without_an_end = stream::repeat_with(move || {
            let _as_long_as_the_answer = &held;
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b'x'; 1024])))
        });
        let mut response = Response::new(StreamBody::new(without_an_end));
        response.extensions_mut().insert(AbortToken(aborts.clone()));
        std::future::ready(response)
    };
    let listener = Listener {
        limits: ConnectionLimits {
            stalled: Duration::from_secs(3600),
            ..ConnectionLimits::default()
        },
        ..Listener::new(socket)
    };
    tokio::spawn(listener.serve(answer, CancellationToken::new()));
    let mut client = TcpStream::connect(address).await.expect("it listens");
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    client.write_all(request).await.expect("it is read");
    client.read_u8().await.expect("the answer begins");
    assert!(!gone.is_cancelled(), "the answer goes on");
    abort.cancel();
    timeout(LONG, gone.cancelled()).await.expect("the answer ends");
}
