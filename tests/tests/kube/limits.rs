//! Limits of the embedded cluster: bodies and heads that do not come, and watches that nobody reads.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kindex_cluster::{Limits, Token};
use kindex_harness::wait::{WAIT_MAX, eventually};
use kindex_serve::BodyPace;
use kindex_serve::listen::ConnectionLimits;
use kindex_serve::watches::WatchLimits;
use kindex_tests::limits::held_back_bodies;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::cluster::TestCluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const KIB: usize = 1024;
const OBJECTS: usize = 40;
const STALLED: usize = 6;
const LARGE_BYTES: usize = 400 * KIB;

async fn send(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// A request with the token, of which one byte of the body comes.
async fn begin(cluster: &TestCluster, method: &str) -> TcpStream {
    begin_as(cluster, method, &cluster.server.authorization()).await
}

async fn begin_as(cluster: &TestCluster, method: &str, authorization: &str) -> TcpStream {
    let head = format!(
        "{method} {MAPS} HTTP/1.1\r\nHost: localhost\r\n{authorization}Content-Type: application/json\r\n\
         Content-Length: 1000\r\n\r\n"
    );
    send(cluster.server.address, &format!("{head}{{")).await
}

async fn code(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    let answer = timeout(WAIT_MAX, stream.read_exact(&mut head)).await;
    answer.expect("an answer").unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}

async fn request(cluster: &TestCluster, method: &str, path: &str, body: String) -> u16 {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(body.into_bytes()));
    let response = cluster.client.send(request.unwrap()).await.unwrap();
    let code = response.status().as_u16();
    response.into_body().collect().await.unwrap();
    code
}

async fn create(cluster: &TestCluster, name: &str, bytes: usize) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"text": "x".repeat(bytes)}});
    assert_eq!(request(cluster, "POST", MAPS, map.to_string()).await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_do_not_come_keep_nobody_waiting() {
    let cluster = TestCluster::with_limits(Limits {
        requests: 4,
        connections: held_back_bodies(),
        ..Limits::default()
    })
    .await;
    let mut held = Vec::new();
    for _ in 0..50 {
        let mut nobody = begin_as(&cluster, "POST", "").await;
        assert_eq!(code(&mut nobody).await, "401", "told before the body is there");
        held.push(begin(&cluster, "POST").await);
        let mut reader = begin(&cluster, "GET").await;
        assert_eq!(code(&mut reader).await, "200", "what only reads needs no body");
    }
    create(&cluster, "a", 1).await;
    for path in ["/readyz", "/apis/coordination.k8s.io/v1/leases", MAPS] {
        assert_eq!(request(&cluster, "GET", path, String::new()).await, 200, "{path}");
    }
    drop(held);
}

/// A request that says that it has such a body, of which all comes but the last byte.
async fn begin_large(cluster: &TestCluster, token: &Token, agent: &str) -> TcpStream {
    begin_large_at(cluster, MAPS, token, agent).await
}

async fn begin_large_at(cluster: &TestCluster, path: &str, token: &Token, agent: &str) -> TcpStream {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nUser-Agent: {agent}\r\nContent-Type: \
         application/json\r\nContent-Length: {LARGE_BYTES}\r\n\r\n",
        token.secret()
    );
    send(cluster.server.address, &(head + &" ".repeat(LARGE_BYTES - 1))).await
}

/// Where a body ends whose last byte comes: it says nothing, or there was no room for it.
async fn code_at_the_end(mut stream: TcpStream) -> String {
    // Whoever is refused may not take it any more.
    let _refused = stream.write_all(b" ").await;
    code(&mut stream).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_under_way_share_a_budget_and_the_ingester_has_its_own_by_its_token_alone() {
    let cluster = TestCluster::with_limits(Limits {
        body_bytes: 4 * LARGE_BYTES,
        connections: held_back_bodies(),
        ..Limits::default()
    })
    .await;
    let (token, of_the_ingester) = (&cluster.server.token, &cluster.server.ingester_token);
    let agent = "kindex-ingester/0.1.0";
    // A name gives nothing: one of these is more than half of the budget holds.
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(begin_large(&cluster, token, agent).await);
    }
    let answers = held.iter_mut().map(|stream| Box::pin(code(stream)));
    let (refused, at, _) = futures::future::select_all(answers).await;
    assert_eq!(refused, "429");
    drop(held.swap_remove(at));
    create(&cluster, "of-others", LARGE_BYTES / 2).await;
    let ingester = begin_large(&cluster, of_the_ingester, agent).await;
    assert_eq!(code_at_the_end(ingester).await, "400", "there was room for its body");
    let mut ends = Vec::new();
    for stream in held {
        ends.push(code_at_the_end(stream).await);
    }
    assert!(ends.contains(&"400".to_owned()), "who had room keeps it: {ends:?}");
    let again = begin_large(&cluster, token, agent).await;
    assert_eq!(code_at_the_end(again).await, "400", "the room is free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_the_ingester_and_of_a_lease_has_room_where_others_have_filled_the_budget() {
    let cluster = TestCluster::with_limits(Limits {
        // Half of it holds one such body, whatever it takes while it grows: less than twice its length.
        body_bytes: 4 * LARGE_BYTES,
        connections: held_back_bodies(),
        ..Limits::default()
    })
    .await;
    let (token, of_the_ingester) = (&cluster.server.token, &cluster.server.ingester_token);
    let held = RefCell::new(Vec::new());
    eventually("the budget is full", async || {
        let agent = format!("holder{}/1", held.borrow().len());
        let holder = begin_large(&cluster, token, &agent).await;
        held.borrow_mut().push(holder);
        let one_more = begin_large(&cluster, token, "one-more/1").await;
        code_at_the_end(one_more).await == "429"
    })
    .await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    for aside in [
        begin_large(&cluster, of_the_ingester, "one-more/1").await,
        begin_large_at(&cluster, leases, token, "one-more/1").await,
    ] {
        assert_eq!(code_at_the_end(aside).await, "400", "there was room for its body");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_ends() {
    let cluster = TestCluster::with_limits(Limits {
        connections: ConnectionLimits {
            body: BodyPace {
                grace: Duration::from_millis(100),
                bytes_per_second: NonZeroU32::new(1024).unwrap(),
                longest: Duration::from_secs(3600),
            },
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    })
    .await;
    let mut slow = begin(&cluster, "POST").await;
    assert_eq!(code(&mut slow).await, "408");
}

/// What comes of an answer until the end of a connection. A client that was too slow with its beginning may find the
/// connection reset.
async fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    let end = timeout(WAIT_MAX, stream.read_to_end(&mut rest)).await;
    if let Err(error) = end.expect("it ends") {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    rest
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_that_do_not_come_end() {
    let (soon, late) = (Duration::from_millis(100), Duration::from_secs(3600));
    let half = format!("GET {MAPS} HTTP/1.1\r\nHost: loc");
    let whole = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (first, idle, before) in [(soon, late, ""), (late, soon, whole)] {
        let cluster = TestCluster::with_limits(Limits {
            connections: ConnectionLimits {
                first,
                idle,
                ..ConnectionLimits::default()
            },
            ..Limits::default()
        })
        .await;
        let mut stream = send(cluster.server.address, &format!("{before}{half}")).await;
        let answered = read_to_end(&mut stream).await;
        assert!(
            answered.is_empty() || (first == late && answered.starts_with(b"HTTP/1.1 200 ")),
            "{}",
            String::from_utf8_lossy(&answered)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_leases_and_the_ingester_are_answered_where_no_other_request_has_a_place() {
    let cluster = TestCluster::with_limits(Limits {
        requests: 0,
        ..Limits::default()
    })
    .await;
    let authorization = cluster.server.authorization();
    for (path, expected) in [
        (MAPS, "429"),
        ("/version", "429"),
        ("/readyz", "200"),
        ("/apis/coordination.k8s.io/v1/leases", "200"),
    ] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}\r\n");
        let mut answer = send(cluster.server.address, &head).await;
        assert_eq!(code(&mut answer).await, expected, "{path}");
    }
    let ingester = cluster.server.ingester_token.secret();
    let head = format!("GET {MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ingester}\r\n\r\n");
    let mut answer = send(cluster.server.address, &head).await;
    assert_eq!(code(&mut answer).await, "200");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_connects_and_asks_nothing_ends_sooner_than_who_has_asked() {
    let cluster = TestCluster::with_limits(Limits {
        connections: ConnectionLimits {
            first: Duration::from_millis(100),
            idle: Duration::from_secs(3600),
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    })
    .await;
    let mut silent = send(cluster.server.address, "GET /readyz HTTP/1.1\r\n").await;
    let rest = read_to_end(&mut silent).await;
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
}

async fn patch(cluster: &TestCluster, patch_type: &str, patch: &Value) -> (u16, String) {
    let request = http::Request::patch(format!("{MAPS}/a"))
        .header("content-type", patch_type)
        .body(Body::from(patch.to_string().into_bytes()));
    let response = cluster.client.send(request.unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn small_patches_do_not_make_large_objects() {
    let cluster = TestCluster::empty().await;
    create(&cluster, "a", 1).await;
    // Less than ten megabytes, where nobody counts.
    let double = |at: usize| json!({"op": "copy", "from": "/data", "path": format!("/data/x{at}")});
    let doubled: Value = (0..18).map(double).collect();
    let (code, message) = patch(&cluster, "application/json-patch+json", &doubled).await;
    assert_eq!(code, 422, "{message}");
    assert!(
        message.contains("the accumulated size increase of copy is"),
        "{message}"
    );
    let mut codes = Vec::new();
    for number in 0..4 {
        let more = json!({"data": {format!("text{number}"): "x".repeat(KIB * KIB)}});
        codes.push(patch(&cluster, "application/merge-patch+json", &more).await.0);
    }
    assert_eq!(
        codes,
        [200, 200, 413, 413],
        "three megabytes are too much for one object"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_watch_too_many_is_told_to_come_again() {
    let cluster = TestCluster::with_limits(Limits {
        watches: WatchLimits {
            watches: 1,
            ..Limits::default().watches
        },
        ..Limits::default()
    })
    .await;
    // One that does not ask again by itself.
    let mut config = cluster.server.config();
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    let watch = async || {
        let request = http::Request::get(format!("{MAPS}?watch=true")).body(Body::empty());
        client.send(request.unwrap()).await.unwrap()
    };
    let first = watch().await;
    let second = watch().await;
    assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 429));
    assert_eq!(second.headers()["retry-after"], "1");
    drop(first);
    eventually("there is room again", async || watch().await.status() == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_that_nobody_reads_end_where_others_need_the_memory() {
    let cluster = TestCluster::with_limits(Limits {
        watches: WatchLimits {
            bytes: KIB * KIB,
            grace: Duration::from_secs(2),
            ..Limits::default().watches
        },
        connections: ConnectionLimits {
            stalled: Duration::from_secs(3600),
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    })
    .await;
    for number in 0..OBJECTS {
        create(&cluster, &format!("a{number}"), 250 * KIB).await;
    }
    let authorization = cluster.server.authorization();
    let watch = format!("GET {MAPS}?watch=true&timeoutSeconds=600 HTTP/1.1\r\nHost: localhost\r\n{authorization}\r\n");
    let mut held = Vec::new();
    for _ in 0..STALLED {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stalled = socket.connect(cluster.server.address).await.unwrap();
        stalled.write_all(watch.as_bytes()).await.unwrap();
        stalled.read_u8().await.unwrap();
        held.push(stalled);
    }
    let request = http::Request::get(format!("{MAPS}?watch=true")).body(Body::empty());
    let mut events = cluster.client.send(request.unwrap()).await.unwrap().into_body();
    let mut lines = 0;
    let mut read_until = async |count: usize| {
        while lines < count {
            let piece = events.frame().await.unwrap().unwrap().into_data().unwrap();
            lines += piece.iter().filter(|byte| **byte == b'\n').count();
        }
    };
    read_until(OBJECTS).await;
    create(&cluster, "last", 1).await;
    read_until(OBJECTS + 1).await;
    // A watch that goes on has no end for ten minutes: the first that ends was ended.
    let ends = held.iter_mut().map(|stalled| {
        Box::pin(async {
            let mut piece = vec![0; 64 * KIB];
            while !matches!(stalled.read(&mut piece).await, Ok(0) | Err(_)) {}
        })
    });
    futures::future::select_all(ends).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_ends_where_it_is_large_and_the_next_one_goes_on() {
    let cluster = TestCluster::empty().await;
    const LARGE: usize = 2_500 * KIB;
    for number in 0..8 {
        create(&cluster, &format!("a{number}"), LARGE).await;
    }
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    for pages in [
        ListParams::default().limit(500),
        ListParams::default().limit(500).fields("metadata.name!=a3"),
    ] {
        let first = maps.list(&pages).await.unwrap();
        let token = first.metadata.continue_.clone().unwrap_or_default();
        assert_eq!(first.items.len(), 6, "as many as fit");
        let rest = maps.list(&pages.clone().continue_token(&token)).await.unwrap();
        let selected = if pages.field_selector.is_some() { 7 } else { 8 };
        assert_eq!(first.items.len() + rest.items.len(), selected);
        assert!(rest.metadata.continue_.is_none_or(|token| token.is_empty()));
    }
    let whole = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(whole.items.len(), 8, "who asks for no pages gets none");
}
