//! The same port speaks HTTP/2: to who begins with it in plain text, and to who agrees on it over TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use futures::StreamExt;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kindex_api::metrics::Metrics;
use kindex_api::server::{self, Limits};
use kindex_harness::wait::{WAIT_MAX, eventually};
use kindex_serve::listen::ConnectionLimits;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use super::stage::{CERTIFICATE, MODELS, Stage};

type Sender = SendRequest<Empty<Bytes>>;

async fn begin(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Sender {
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn begin_plain(address: SocketAddr) -> Sender {
    begin(TcpStream::connect(address).await.unwrap()).await
}

async fn code_of(sender: &mut Sender, uri: &str) -> (u16, String) {
    let request = http::Request::get(uri).body(Empty::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8_lossy(&body).into_owned())
}

/// What is agreed on with a client of these protocols.
async fn connect_secure(address: SocketAddr, protocols: &[&str]) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_kubernetes_are_answered_in_http_2_as_well() {
    let stage = Stage::on_sqlite().await;
    let address = stage.address;
    let mut sender = begin_plain(address).await;
    let here = format!("http://{address}");
    for path in [MODELS, "/apis/michelangelo.api/v2", "/version"] {
        let (code, text) = code_of(&mut sender, &format!("{here}{path}")).await;
        assert_eq!(code, 200, "{path}: {text}");
    }
    // A page of somebody else, whose name leads here.
    let (code, text) = code_of(&mut sender, &format!("http://elsewhere.example{MODELS}")).await;
    assert_eq!(code, 403, "{text}");

    // A watch keeps no other request of its connection waiting.
    let watch = http::Request::get(format!("{here}{MODELS}?watch=true"))
        .body(Empty::new())
        .unwrap();
    let watch = sender.send_request(watch).await.unwrap();
    assert_eq!(code_of(&mut sender, &format!("{here}{MODELS}")).await.0, 200);
    stage.create("seen", serde_json::json!({}), serde_json::json!({})).await;
    let event = watch.into_body().into_data_stream().next().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&event).contains("seen"));

    for (offered, agreed) in [
        (&["h2", "http/1.1"][..], Some(&b"h2"[..])),
        (&["http/1.1"][..], Some(&b"http/1.1"[..])),
        (&[][..], None),
    ] {
        let stream = connect_secure(stage.secure, offered).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), agreed);
    }
    let mut sender = begin(connect_secure(stage.secure, &["h2"]).await).await;
    let (code, text) = code_of(&mut sender, &format!("https://{}{MODELS}", stage.secure)).await;
    assert_eq!(code, 200, "{text}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_never_asks_is_closed_and_one_that_waits_for_an_answer_is_not() {
    let stop = CancellationToken::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (answer, answers) = tokio::sync::watch::channel(false);
    let (begun, mut beginnings) = tokio::sync::mpsc::unbounded_channel();
    let slow = async move || {
        let mut answers = answers.clone();
        begun.send(()).unwrap();
        answers.wait_for(|is_time| *is_time).await.unwrap();
        "at last"
    };
    let router = Router::new().route("/slow", get(slow));
    let limits = Limits {
        connections: ConnectionLimits {
            idle: Duration::from_millis(200),
            ..ConnectionLimits::default()
        },
        ..Limits::default()
    };
    tokio::spawn(server::serve(
        listener,
        router,
        Arc::new(()),
        None,
        limits,
        Metrics::default(),
        stop.clone(),
    ));
    // A busy machine may be too slow with its question, and is closed like anybody who never asks.
    let waiting = loop {
        let mut sender = begin_plain(address).await;
        let mut asking = tokio::spawn(async move { code_of(&mut sender, &format!("http://{address}/slow")).await });
        tokio::select! {
            Some(()) = beginnings.recv() => break asking,
            early = &mut asking => assert!(early.is_err(), "nothing is answered yet: {early:?}"),
        }
    };

    // Each says as much as leaves open what it will be.
    for beginning in ["", "P", "PRI * HTTP/2.0\r\n\r\n", "GET /slow HT"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(beginning.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(WAIT_MAX, stream.read_to_end(&mut rest)).await;
        closed.expect("closed in time").ok();
    }
    let idle = begin_plain(address).await;
    eventually("an idle connection is closed", async || idle.is_closed()).await;
    answer.send(true).unwrap();
    assert_eq!(waiting.await.unwrap(), (200, "at last".to_owned()));
    stop.cancel();
}
