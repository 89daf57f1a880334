//! One connection to the service, over HTTP/2 in the clear or with TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::body::Body;
use tower::Service;

use crate::error::Error;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// Nobody is there.
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    /// Somebody is there who does not speak HTTP/2.
    #[error("cannot speak HTTP/2: {0}")]
    Http(#[from] hyper::Error),
    /// The host cannot be that of a certificate.
    #[error("cannot be the name of a certificate: {0}")]
    Name(#[from] rustls_pki_types::InvalidDnsNameError),
}

/// A connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Link(SendRequest<Body>);

impl Link {
    /// Connects to the host of a URL, where that is `https` as one of those trusted.
    pub(crate) async fn connect(url: &Uri, trusted: Option<&TlsConnector>) -> Result<Self, LinkError> {
        let is_secure = url.scheme_str() == Some("https");
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let socket = TcpStream::connect((host.as_str(), port)).await?;
        socket.set_nodelay(true)?;
        let Some(trusted) = trusted else {
            return Self::over(socket).await;
        };
        let name = ServerName::try_from(host)?;
        Self::over(trusted.connect(name, socket).await?).await
    }

    async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Self, LinkError> {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            // Whoever waits for an answer is told why there is none.
            let _broken = connection.await;
        });
        Ok(Self(sender))
    }
}

/// Trusts the authorities of a file, or whom the machine trusts.
///
/// # Errors
/// There are none.
pub(crate) fn trusting(file: Option<&Path>) -> Result<TlsConnector, Error> {
    let (place, found) = match file {
        Some(file) => (file.display().to_string(), of_file(file)),
        None => ("the store of this machine".to_owned(), of_machine()),
    };
    let authorities = |why| Error::Authorities { place, why };
    let mut roots = RootCertStore::empty();
    let (taken, _) = match found {
        Ok(certificates) => roots.add_parsable_certificates(certificates),
        Err(why) => return Err(authorities(why)),
    };
    if taken == 0 {
        return Err(authorities("there is no certificate".to_owned()));
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn of_file(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    certificates.map_err(|error| error.to_string())
}

fn of_machine() -> Result<Vec<CertificateDer<'static>>, String> {
    let found = rustls_native_certs::load_native_certs();
    match found.errors.first() {
        Some(error) if found.certs.is_empty() => Err(error.to_string()),
        _ => Ok(found.certs),
    }
}

type Answered<F> = std::pin::Pin<Box<F>>;

impl Service<http::Request<Body>> for Link {
    type Response = http::Response<hyper::body::Incoming>;
    type Error = hyper::Error;
    type Future = Answered<dyn Future<Output = Result<Self::Response, hyper::Error>> + Send>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
