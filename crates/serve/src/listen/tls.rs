//! The server's certificate and key, read again when their files change, and whose word about users counts: who renews
//! one of them restarts nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::front_proxy::FrontProxy;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// As the system says it.
        #[source]
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path}: holds no {what} in PEM form: {message}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What was expected.
        what: &'static str,
        /// What is wrong.
        message: String,
    },
    /// The two files do not belong together.
    #[error("cannot load the TLS certificate {certificate} with key {key}: {source}")]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
}

/// A certificate and its key, as their files have them.
#[derive(Clone)]
pub struct Tls {
    files: Arc<Files>,
    current: Arc<RwLock<Current>>,
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// What new connections are served with.
struct Current {
    texts: Texts,
    front_proxy: Option<FrontProxy>,
    config: Arc<ServerConfig>,
}

/// What the files held.
#[derive(PartialEq, Eq)]
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Tls {
    /// Reads the files. Clients need no certificate; one that comes with the front proxy's is believed.
    ///
    /// # Errors
    /// Files that form no usable certificate and key.
    pub fn read(certificate: &Path, key: &Path, front_proxy: Option<FrontProxy>) -> Result<Self, TlsError> {
        let files = Files {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        };
        let texts = files.texts()?;
        Self::of(files, texts, front_proxy)
    }

    /// A certificate, with those that lead from it to a root, and its key in PEM form. `place` says in errors where
    /// they were found. Others are taken up by [`Self::take_pem`] alone.
    ///
    /// # Errors
    /// Texts that form no usable certificate and key.
    pub fn from_pem(place: &Path, certificate: Vec<u8>, key: Vec<u8>) -> Result<Self, TlsError> {
        let files = Files {
            certificate: place.join("tls.crt"),
            key: place.join("tls.key"),
        };
        Self::of(files, Texts { certificate, key }, None)
    }

    fn of(files: Files, texts: Texts, front_proxy: Option<FrontProxy>) -> Result<Self, TlsError> {
        let current = Current {
            config: files.config(&texts, front_proxy.as_ref())?,
            texts,
            front_proxy,
        };
        Ok(Self {
            files: Arc::new(files),
            current: Arc::new(RwLock::new(current)),
        })
    }

    /// Serves new connections with these from now on; whether they are others than before.
    ///
    /// # Errors
    /// Texts that form no usable certificate and key. What is in use stays.
    pub fn take_pem(&self, certificate: Vec<u8>, key: Vec<u8>) -> Result<bool, TlsError> {
        self.take_texts(Texts { certificate, key })
    }

    /// Looks at the files `every` so often, and takes up what they hold when that has changed, until cancelled.
    /// Connections that stand stay as they are. A pair that makes no server changes nothing: the files may be on
    /// their way.
    pub async fn follow(self, every: Duration, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
            match self.files.texts().and_then(|texts| self.take_texts(texts)) {
                Ok(false) => {}
                Ok(true) => {
                    tracing::info!(certificate = %self.files.certificate.display(), "A new certificate is in use");
                }
                Err(error) => tracing::warn!(%error, "The certificate in use stays: the new one cannot be used"),
            }
        }
    }

    /// Whether these are others than before, which new connections get from now on.
    fn take_texts(&self, texts: Texts) -> Result<bool, TlsError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.texts == texts {
            return Ok(false);
        }
        current.config = self.files.config(&texts, current.front_proxy.as_ref())?;
        current.texts = texts;
        Ok(true)
    }

    /// Believes this front proxy from now on, and the one before no longer: its connections end, once what is under way
    /// on them has been answered.
    ///
    /// # Errors
    /// An authority that makes no server. The front proxy stays as it was.
    pub fn take_front_proxy(&self, front_proxy: FrontProxy) -> Result<(), TlsError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        current.config = self.files.config(&current.texts, Some(&front_proxy))?;
        if let Some(former) = current.front_proxy.replace(front_proxy) {
            former.replaced.cancel();
        }
        Ok(())
    }

    /// For the next connection, with whose word about users counts on it.
    pub(super) fn acceptor(&self) -> (TlsAcceptor, Option<FrontProxy>) {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        (TlsAcceptor::from(current.config.clone()), current.front_proxy.clone())
    }
}

impl Files {
    fn texts(&self) -> Result<Texts, TlsError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|source| TlsError::File {
                path: path.to_owned(),
                source,
            })
        };
        Ok(Texts {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
        })
    }

    fn config(&self, texts: &Texts, front_proxy: Option<&FrontProxy>) -> Result<Arc<ServerConfig>, TlsError> {
        let content = |path: &Path, what, message: String| TlsError::Content {
            path: path.to_owned(),
            what,
            message,
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&texts.certificate).collect();
        let chain = chain.map_err(|error| content(&self.certificate, "certificates", error.to_string()))?;
        // The parser's words may quote what it read: of a key, none are repeated.
        let key = PrivateKeyDer::from_pem_slice(&texts.key)
            .map_err(|_| content(&self.key, "private key", "it cannot be read".to_owned()))?;
        let pair = |source| TlsError::Pair {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            source,
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(pair)?;
        let builder = match front_proxy {
            Some(front_proxy) => builder.with_client_cert_verifier(front_proxy.verifier.clone()),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(pair)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}
