//! Watches at the limits of the server: how many there may be, and what their events may take.

use std::io::ErrorKind::WouldBlock;
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::BodyExt;
use kindex_api::server::Limits;
use kindex_harness::wait::eventually;
use kindex_serve::listen::ConnectionLimits;
use kindex_serve::watches::WatchLimits;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::stage::{MODELS, Stage, client_of, send};

const KIB: usize = 1024;
const OBJECTS: usize = 40;
const STALLED: usize = 6;

/// A watch from the beginning, of which the first byte is read and no other one.
async fn stalled(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let head = format!("GET {MODELS}?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.read_u8().await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn one_watch_too_many_is_told_to_come_again() {
    let stage = Stage::on_sqlite().await;
    let watches = WatchLimits {
        watches: 2,
        ..WatchLimits::default()
    };
    let (address, metrics) = stage.with_limits(Limits::default(), watches).await;
    let path = format!("{MODELS}?watch=true&resourceVersion=1");
    // One that does not ask again by itself.
    let mut config = Config::new(format!("http://{address}").parse().unwrap());
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    let watch = async |path: &str| {
        let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
        client.send(request).await.unwrap()
    };
    let first = watch(&path).await;
    // Of another kind, which goes to the cluster as it is.
    let second = watch("/api/v1/namespaces?watch=true&resourceVersion=1").await;
    assert_eq!([first.status().as_u16(), second.status().as_u16()], [200, 200]);
    let third = watch(&path).await;
    assert_eq!(
        (third.status().as_u16(), &third.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    let (code, _) = send(&client_of(address), "GET", MODELS, &Value::Null).await;
    assert_eq!(code, 200, "lists are not watches");
    drop(first);
    eventually("a place for one more", async || watch(&path).await.status() == 200).await;
    assert_eq!(metrics.watches_ended.get(), 0);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_that_nobody_reads_end_where_others_need_the_memory() {
    let stage = Stage::on_sqlite().await;
    for number in 0..OBJECTS {
        stage
            .create(
                &format!("a{number}"),
                json!({}),
                json!({"algorithm": "x".repeat(250 * KIB)}),
            )
            .await;
    }
    let watches = WatchLimits {
        bytes: KIB * KIB,
        grace: Duration::from_secs(2),
        beginnings: 2,
        ..WatchLimits::default()
    };
    let limits = Limits {
        connections: ConnectionLimits {
            stalled: Duration::from_secs(3600),
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    };
    let (address, metrics) = stage.with_limits(limits, watches).await;
    let mut held = Vec::new();
    for _ in 0..STALLED {
        held.push(stalled(address).await);
        assert!(metrics.watch_bytes.get() < 4e6, "what is held has a bound");
    }
    // Whoever reads is told everything, and what happens then.
    let request = http::Request::get(format!("{MODELS}?watch=true")).body(kube::client::Body::empty());
    let mut events = client_of(address).send(request.unwrap()).await.unwrap().into_body();
    let mut text = Vec::new();
    let mut read_until = async |count: usize| {
        while text.iter().filter(|byte| **byte == b'\n').count() < count {
            text.extend(events.frame().await.unwrap().unwrap().into_data().unwrap());
        }
    };
    read_until(OBJECTS).await;
    stage.create("last", json!({}), json!({})).await;
    read_until(OBJECTS + 1).await;
    let (code, _) = send(&client_of(address), "GET", "/readyz", &Value::Null).await;
    assert_eq!(code, 200);
    eventually("one that is not read has ended", async || {
        metrics.watches_ended.get() > 0
    })
    .await;
    // Nothing of the answer is taken, so that nothing but a write tells.
    eventually("its connection has ended as well", async || {
        let refused = |stalled: &TcpStream| matches!(stalled.try_write(b"x"), Err(error) if error.kind() != WouldBlock);
        held.iter().any(refused)
    })
    .await;
    drop(held);
    stage.end().await;
}
