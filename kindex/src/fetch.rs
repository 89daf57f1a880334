//! HTTP requests of commands: one at a time, to servers that people name. Knows no server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};

/// A connector for plain and encrypted addresses.
pub(crate) type Connector = HttpsConnector<HttpConnector>;

/// Answers are shown as a whole.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Longest exchange.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// What was to be asked is no request.
    #[error("the address is wrong: {0}")]
    Request(#[from] axum::http::Error),
    /// Nobody answers.
    #[error("no answer: {0}")]
    Unreachable(#[from] hyper_util::client::legacy::Error),
    /// The answer broke off, or is larger than anything that is shown.
    #[error("the answer cannot be read: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    /// It takes too long.
    #[error("no answer within {} seconds", TIMEOUT.as_secs())]
    Slow,
}

/// Sends a request.
pub(crate) async fn fetch(
    request: axum::http::Request<Full<Bytes>>,
) -> Result<axum::http::Response<Bytes>, FetchError> {
    let client: Client<Connector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector());
    let exchange = async {
        let (head, body) = client.request(request).await?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX)
            .collect()
            .await
            .map_err(FetchError::Body)?;
        Ok(axum::http::Response::from_parts(head, body.to_bytes()))
    };
    tokio::time::timeout(TIMEOUT, exchange)
        .await
        .map_err(|_| FetchError::Slow)?
}

/// Connects to either sort of address.
pub(crate) fn connector() -> Connector {
    HttpsConnectorBuilder::new()
        .with_tls_config(tls())
        .https_or_http()
        .enable_http1()
        .build()
}

/// Trusts whom the machine trusts. One that trusts nobody can still send in the clear.
fn tls() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
