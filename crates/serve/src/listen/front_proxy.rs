//! How a front proxy proves that it is the one who passes requests on and says who asks: a certificate of an authority
//! of its own, with a name that is allowed to. Knows nothing of where authority and names stand.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use tokio_util::sync::CancellationToken;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::asn1::{PrintableStringRef, Utf8StringRef};
use x509_cert::der::oid::ObjectIdentifier;

/// `id-at-commonName` of X.520. <https://www.rfc-editor.org/rfc/rfc5280#appendix-A.1>
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// Why nobody can be believed.
#[derive(Debug, thiserror::Error)]
pub enum FrontProxyError {
    /// No certificates.
    #[error("the CA of the front proxy holds no certificates in PEM form: {0}")]
    Authority(String),
    /// They cannot judge others.
    #[error("the CA of the front proxy cannot be used: {0}")]
    Verifier(String),
}

/// Whose word about users counts.
#[derive(Clone)]
pub struct FrontProxy {
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
    /// Common names; empty allows all that the authority has signed.
    names: Arc<[String]>,
    /// Cancelled once its word counts no longer.
    pub(super) replaced: CancellationToken,
}

impl FrontProxy {
    /// Those with a certificate of this authority and one of these common names, or with any where there are none.
    ///
    /// # Errors
    /// A text that holds no authority.
    pub fn new(authority_pem: &str, names: Vec<String>) -> Result<Self, FrontProxyError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority_pem.as_bytes()) {
            let certificate = certificate.map_err(|error| FrontProxyError::Authority(error.to_string()))?;
            let added = roots.add(certificate);
            added.map_err(|error| FrontProxyError::Authority(error.to_string()))?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            // Everybody else comes without a certificate.
            .allow_unauthenticated()
            .build()
            .map_err(|error| FrontProxyError::Verifier(error.to_string()))?;
        Ok(Self {
            verifier,
            names: names.into(),
            replaced: CancellationToken::new(),
        })
    }

    /// Whether these certificates of a client, whose first one the authority has signed, are of an allowed name.
    pub(super) fn is_shown(&self, certificates: Option<&[CertificateDer<'_>]>) -> bool {
        let first = certificates.and_then(<[_]>::first);
        first.is_some_and(|first| self.allows(first))
    }

    fn allows(&self, certificate: &CertificateDer<'_>) -> bool {
        self.names.is_empty() || common_names(certificate).iter().any(|name| self.names.contains(name))
    }
}

fn common_names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = Certificate::from_der(certificate) else {
        return Vec::new();
    };
    let parts = certificate.tbs_certificate().subject().iter();
    let names = parts.filter(|part| part.oid == COMMON_NAME).filter_map(|part| {
        let text = part
            .value
            .decode_as::<Utf8StringRef<'_>>()
            .map(|text| text.as_str().to_owned());
        let printable = || {
            part.value
                .decode_as::<PrintableStringRef<'_>>()
                .map(|text| text.as_str().to_owned())
        };
        text.or_else(|_| printable()).ok()
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `CN = kindex first`.
    const CERTIFICATE: &str = include_str!("../../../../tests/tests/api/tls/first.crt");

    #[test]
    fn a_certificate_of_another_name_is_not_believed() {
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
        let allows = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            FrontProxy::new(CERTIFICATE, names).unwrap().allows(&certificate)
        };
        assert!(allows(&["other", "kindex first"]));
        assert!(!allows(&["other", "kindex"]));
        assert!(allows(&[]), "no names are all names");
        let nonsense = CertificateDer::from(vec![1, 2, 3]);
        assert!(
            !FrontProxy::new(CERTIFICATE, vec![String::new()])
                .unwrap()
                .allows(&nonsense)
        );
    }

    #[test]
    fn an_authority_without_certificates_is_none() {
        for text in ["", "nonsense"] {
            assert!(FrontProxy::new(text, Vec::new()).is_err(), "{text}");
        }
    }
}
