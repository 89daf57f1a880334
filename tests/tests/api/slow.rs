//! Requests whose bodies do not come: they hold nobody up, and come to an end.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use kindex_api::server::Limits;
use kindex_generated::kinds::model;
use kindex_harness::wait::{WAIT_MAX, eventually};
use kindex_serve::BodyPace;
use kindex_serve::listen::ConnectionLimits;
use kindex_serve::watches::WatchLimits;
use kindex_tests::limits::held_back_bodies;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::Code;

use super::grpc::client::Client;
use super::stage::{MODELS, Stage, client_of, manifest, send_with};

/// A request that says that it has a body, of which one byte comes.
pub(super) async fn begin(address: SocketAddr, method: &str, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{method} {MODELS} HTTP/1.1\r\nHost: localhost\r\n{token}Content-Type: application/json\r\nContent-Length: \
         1000\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// The code of an answer, once it comes.
pub(super) async fn code(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    let answer = timeout(WAIT_MAX, stream.read_exact(&mut head)).await;
    answer.expect("an answer").unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}

async fn send(address: SocketAddr, method: &str, path: &str, body: &Value) -> u16 {
    let headers = [
        ("content-type", "application/json"),
        ("authorization", "Bearer root-token"),
    ];
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let client = client_of(address);
    let answer = timeout(WAIT_MAX, send_with(&client, method, path, &headers, text)).await;
    answer.expect("an answer that is not a 429").0
}

const LARGE_BYTES: usize = 400 * 1024;
pub(super) const JANE: &str = "Authorization: Bearer jane-token\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_do_not_come_keep_nobody_waiting() {
    let stage = Stage::with_rights().await;
    let limits = Limits {
        reads: 1,
        changes: 1,
        connections: held_back_bodies(),
        ..Limits::default()
    };
    let (address, metrics) = stage.with_limits(limits, WatchLimits::default()).await;
    let mut held = Vec::new();
    for _ in 0..50 {
        let mut nobody = begin(address, "POST", "").await;
        assert_eq!(
            code(&mut nobody).await,
            "401",
            "whoever is nobody is told before the body is there"
        );
        let mut reader = begin(address, "GET", JANE).await;
        assert_eq!(code(&mut reader).await, "200", "what only reads needs no body");
        held.push(begin(address, "POST", JANE).await);
        held.push(begin(address, "DELETE", JANE).await);
    }
    eventually("all are there", async || metrics.connections.get() >= 100.0).await;
    let object = manifest(json!({"name": "a"}), json!({}));
    assert_eq!(send(address, "POST", MODELS, &object).await, 201);
    assert_eq!(send(address, "GET", MODELS, &Value::Null).await, 200);
    assert_eq!(send(address, "GET", "/readyz", &Value::Null).await, 200);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    assert_eq!(send(address, "GET", leases, &Value::Null).await, 200);
    drop(held);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_too_slowly_is_given_up() {
    let stage = Stage::with_rights().await;
    let limits = Limits {
        connections: ConnectionLimits {
            body: BodyPace {
                grace: Duration::from_millis(100),
                bytes_per_second: NonZeroU32::new(1024).unwrap(),
                longest: Duration::from_secs(3600),
            },
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    };
    let (address, _) = stage.with_limits(limits, WatchLimits::default()).await;
    let mut slow = begin(address, "POST", JANE).await;
    assert_eq!(code(&mut slow).await, "408");
    stage.end().await;
}

/// A body of which all comes but the last byte.
async fn begin_large(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {MODELS} HTTP/1.1\r\nHost: localhost\r\n{JANE}Content-Type: application/json\r\nContent-Length: \
         {LARGE_BYTES}\r\n\r\n"
    );
    let sent = head + &" ".repeat(LARGE_BYTES - 1);
    stream.write_all(sent.as_bytes()).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_under_way_share_a_budget_of_which_one_caller_has_half() {
    let stage = Stage::with_rights().await;
    let limits = Limits {
        body_bytes: 4 * LARGE_BYTES,
        connections: held_back_bodies(),
        ..Limits::default()
    };
    let (address, _) = stage.with_limits(limits, WatchLimits::default()).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(begin_large(address).await);
    }
    let answers = held.iter_mut().map(|stream| Box::pin(code(stream)));
    let (refused, ..) = futures::future::select_all(answers).await;
    assert_eq!(refused, "429");
    let object = manifest(
        json!({"name": "a"}),
        json!({"description": "x".repeat(LARGE_BYTES / 2)}),
    );
    assert_eq!(send(address, "POST", MODELS, &object).await, 201, "others have room");
    let large = json!({"model": {"metadata": {"name": "b", "namespace": "default"},
        "spec": {"description": "x".repeat(3 * LARGE_BYTES)}}});
    let client = Client::plain(address).await.with_token("root-token");
    let refused = client.call(&model::KIND, "Create*", large).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(
        refused.message().contains("the memory for request bodies is used up"),
        "{refused:?}"
    );
    drop(held);
    stage.end().await;
}
