//! HTTPS, with a certificate that is renewed while the server runs.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use kindex_api::metrics::Metrics;
use kindex_api::server::{self, Limits};
use kindex_harness::wait::eventually;
use kindex_serve::listen::Tls;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const FIRST: [&str; 2] = [include_str!("tls/first.crt"), include_str!("tls/first.key")];
const SECOND: [&str; 2] = [include_str!("tls/second.crt"), include_str!("tls/second.key")];

fn write(directory: &Path, [certificate, key]: [&str; 2]) {
    std::fs::write(directory.join("tls.key"), key).unwrap();
    std::fs::write(directory.join("tls.crt"), certificate).unwrap();
}

/// Whether a client that trusts this certificate alone is answered, over a connection of its own.
async fn is_trusted(address: SocketAddr, certificate: &str) -> bool {
    let mut config = Config::new(format!("https://{address}").parse().unwrap());
    let root = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    config.root_cert = Some(vec![root.to_vec()]);
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    let request = http::Request::get("/").body(Vec::new()).unwrap();
    client.request_text(request).await.is_ok_and(|text| text == "hello")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_taken_up_and_a_broken_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = (directory.path().join("tls.crt"), directory.path().join("tls.key"));
    assert!(Tls::read(&certificate, &key, None).is_err(), "no files");
    write(directory.path(), [FIRST[0], SECOND[1]]);
    assert!(Tls::read(&certificate, &key, None).is_err(), "not a pair");
    write(directory.path(), FIRST);
    let tls = Tls::read(&certificate, &key, None).unwrap();

    let stop = CancellationToken::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(async || "hello"));
    tokio::spawn(tls.clone().follow(Duration::from_millis(20), stop.clone()));
    let served = tokio::spawn(server::serve(
        listener,
        router,
        Arc::new(()),
        Some(tls),
        Limits::default(),
        Metrics::default(),
        stop.clone(),
    ));
    assert!(is_trusted(address, FIRST[0]).await);
    assert!(!is_trusted(address, SECOND[0]).await);
    write(directory.path(), ["nonsense", "nonsense"]);
    let deadline = Instant::now() + Duration::from_millis(200);
    while Instant::now() < deadline {
        assert!(is_trusted(address, FIRST[0]).await);
    }
    write(directory.path(), SECOND);
    eventually("the renewed certificate", async || is_trusted(address, SECOND[0]).await).await;
    assert!(!is_trusted(address, FIRST[0]).await);
    stop.cancel();
    served.await.unwrap();
}
