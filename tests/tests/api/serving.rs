//! API servers on free ports, with and without TLS.

use std::net::SocketAddr;
use std::sync::Arc;

use kindex_api::metrics::Metrics;
use kindex_api::operations::Operations;
use kindex_api::server::{self, Limits};
use kindex_api::{grpc, rest::Rest};
use kindex_serve::listen::{FrontProxy, Tls};
use kube::{Client, Config};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The certificate that the server shows, and clients trust. A client that shows it itself is the front proxy.
pub(super) const CERTIFICATE: &str = include_str!("tls/first.crt");
/// Its key.
pub(super) const KEY: &str = include_str!("tls/first.key");

pub(super) fn keys(directory: &TempDir) -> Tls {
    let (certificate, key) = (directory.path().join("tls.crt"), directory.path().join("tls.key"));
    std::fs::write(&certificate, CERTIFICATE).unwrap();
    std::fs::write(&key, KEY).unwrap();
    let front_proxy = FrontProxy::new(CERTIFICATE, vec!["kindex first".to_owned()]).unwrap();
    Tls::read(&certificate, &key, Some(front_proxy)).unwrap()
}

pub(super) async fn serve(operations: Operations, tls: Option<Tls>, stop: &CancellationToken) -> SocketAddr {
    serve_within(operations, tls, Limits::default(), Metrics::default(), stop).await
}

pub(super) async fn serve_within(
    operations: Operations,
    tls: Option<Tls>,
    limits: Limits,
    metrics: Metrics,
    stop: &CancellationToken,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let operations = Arc::new(operations);
    let rest = Rest::new(operations.clone()).router();
    let router = grpc::beside(rest, operations.clone()).await.unwrap();
    let stop = stop.clone();
    tokio::spawn(server::serve(listener, router, operations, tls, limits, metrics, stop));
    address
}

pub(super) fn client_of(address: SocketAddr) -> Client {
    Client::try_from(Config::new(format!("http://{address}").parse().unwrap())).unwrap()
}
