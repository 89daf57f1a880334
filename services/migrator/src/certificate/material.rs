//! Authorities and certificates in PEM form: how they are made, and what is read of them.

use std::time::SystemTime;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{AuthorityKeyIdentifier, SubjectAltName, SubjectKeyIdentifier};

use super::step::{Step, Stored, Validity};

/// Common name of every authority. They differ by their keys.
const AUTHORITY: &str = "kindex conversion webhook";

/// How long an authority holds: an API server that was off for years still believes it.
const AUTHORITY_HOLDS: SignedDuration = SignedDuration::from_hours(24 * 3_650);

/// How long a certificate holds: as those of most issuers.
const CERTIFICATE_HOLDS: SignedDuration = SignedDuration::from_hours(24 * 90);

/// Clocks differ.
const BEFORE_NOW: SignedDuration = SignedDuration::from_hours(1);

/// Authorities, the certificate and the keys, in PEM form.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Material {
    /// Those whose certificates API servers should believe, the newest first.
    pub authorities: String,
    /// Key of the newest authority.
    pub authority_key: String,
    /// What the webhook shows.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// Why material cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum MaterialError {
    /// It cannot be made.
    #[error("no certificate can be made for {host}: {source}")]
    Make {
        /// For whom.
        host: String,
        /// Why.
        source: rcgen::Error,
    },
    /// A part of it is unreadable.
    #[error("{0} cannot be read")]
    Unreadable(&'static str),
}

impl Material {
    /// An authority, and a certificate of it for a host: a name, or an address.
    ///
    /// # Errors
    /// A host that no certificate can be for.
    pub(super) fn make(host: &str, now: Timestamp) -> Result<Self, MaterialError> {
        let error = |source| failed(host, source);
        let authority_key = KeyPair::generate().map_err(error)?;
        let authority = authority(now).self_signed(&authority_key).map_err(error)?;
        let empty = Self {
            authorities: authority.pem(),
            authority_key: authority_key.serialize_pem(),
            certificate: String::new(),
            key: String::new(),
        };
        empty.with_certificate(host, now)
    }

    /// Does what is due.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub(super) fn after(&self, step: Step, host: &str, now: Timestamp) -> Result<Self, MaterialError> {
        match step {
            Step::Keep => Ok(self.clone()),
            Step::Certificate => self.with_certificate(host, now),
            Step::Authority => self.with_authority(host, now),
            Step::Both => Self::make(host, now),
        }
    }

    /// What a decision depends on. `published` is what the definitions say.
    ///
    /// # Errors
    /// Where a part is not what it should be.
    pub(super) fn stored(&self, host: &str, published: bool) -> Result<Stored, MaterialError> {
        let newest = first(&self.authorities).ok_or(MaterialError::Unreadable("the authority"))?;
        let certificate = first(&self.certificate).ok_or(MaterialError::Unreadable("the certificate"))?;
        KeyPair::from_pem(&self.authority_key).map_err(|_| MaterialError::Unreadable("the key of the authority"))?;
        KeyPair::from_pem(&self.key).map_err(|_| MaterialError::Unreadable("the key of the certificate"))?;
        Ok(Stored {
            authority: validity(&newest).ok_or(MaterialError::Unreadable("the authority"))?,
            certificate: validity(&certificate).ok_or(MaterialError::Unreadable("the certificate"))?,
            is_of_newest: signs(&newest, &certificate),
            is_for_host: is_for(&certificate, host),
            published,
        })
    }

    fn with_certificate(&self, host: &str, now: Timestamp) -> Result<Self, MaterialError> {
        let error = |source| failed(host, source);
        let authority_key = KeyPair::from_pem(&self.authority_key).map_err(error)?;
        // Of the authority, its name and its key are all that signing takes.
        let issuer = Issuer::new(authority(now), authority_key);
        let key = KeyPair::generate().map_err(error)?;
        let mut parameters = CertificateParams::new([host.to_owned()]).map_err(error)?;
        parameters.distinguished_name = DistinguishedName::new();
        parameters.not_before = SystemTime::from(now - BEFORE_NOW).into();
        parameters.not_after = SystemTime::from(now + CERTIFICATE_HOLDS).into();
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        parameters.use_authority_key_identifier_extension = true;
        let certificate = parameters.signed_by(&key, &issuer).map_err(error)?;
        Ok(Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            ..self.clone()
        })
    }

    /// Adds an authority before those that still hold.
    fn with_authority(&self, host: &str, now: Timestamp) -> Result<Self, MaterialError> {
        let error = |source| failed(host, source);
        let authority_key = KeyPair::generate().map_err(error)?;
        let newest = authority(now).self_signed(&authority_key).map_err(error)?;
        Ok(Self {
            authorities: newest.pem() + &self.authorities,
            authority_key: authority_key.serialize_pem(),
            ..self.clone()
        })
    }
}

fn failed(host: &str, source: rcgen::Error) -> MaterialError {
    MaterialError::Make {
        host: host.to_owned(),
        source,
    }
}

fn authority(now: Timestamp) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, AUTHORITY);
    parameters.not_before = SystemTime::from(now - BEFORE_NOW).into();
    parameters.not_after = SystemTime::from(now + AUTHORITY_HOLDS).into();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters
}

fn first(pem: &str) -> Option<Certificate> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
    Certificate::from_der(&der).ok()
}

fn validity(certificate: &Certificate) -> Option<Validity> {
    let validity = certificate.tbs_certificate().validity();
    let of = |time: x509_cert::time::Time| Timestamp::try_from(time.to_system_time()).ok();
    Some(Validity {
        from: of(validity.not_before)?,
        until: of(validity.not_after)?,
    })
}

/// Whether a certificate names the key of an authority as the one that signed it.
fn signs(authority: &Certificate, certificate: &Certificate) -> bool {
    let own = authority.tbs_certificate().get_extension::<SubjectKeyIdentifier>();
    let named = certificate.tbs_certificate().get_extension::<AuthorityKeyIdentifier>();
    match (own, named) {
        (Ok(Some((_, own))), Ok(Some((_, named)))) => named.key_identifier.as_ref() == Some(&own.0),
        _ => false,
    }
}

fn is_for(certificate: &Certificate, host: &str) -> bool {
    let Ok(Some((_, names))) = certificate.tbs_certificate().get_extension::<SubjectAltName>() else {
        return false;
    };
    names.0.iter().any(|name| match name {
        GeneralName::DnsName(name) => name.as_str() == host,
        GeneralName::IpAddress(octets) => match host.parse() {
            Ok(std::net::IpAddr::V4(address)) => octets.as_bytes() == address.octets(),
            Ok(std::net::IpAddr::V6(address)) => octets.as_bytes() == address.octets(),
            Err(_) => false,
        },
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "kindex-migrator.kindex.svc";

    fn now() -> Timestamp {
        "2026-11-23T12:00:00Z".parse().expect("a moment")
    }

    #[test]
    fn what_was_made_is_for_its_host_and_of_its_authority() {
        let material = Material::make(HOST, now()).expect("made");
        let stored = material.stored(HOST, true).expect("readable");
        assert!(stored.is_of_newest && stored.is_for_host, "{stored:?}");
        assert_eq!(
            stored.certificate.until.duration_since(stored.certificate.from),
            CERTIFICATE_HOLDS + BEFORE_NOW
        );
        assert!(!material.stored("other.kindex.svc", true).expect("readable").is_for_host);
        let address = Material::make("127.0.0.1", now()).expect("made");
        assert!(address.stored("127.0.0.1", true).expect("readable").is_for_host);
        assert!(!address.stored("127.0.0.2", true).expect("readable").is_for_host);
    }

    #[test]
    fn another_authority_is_listed_before_the_former_and_signs_the_next_certificate() {
        let former = Material::make(HOST, now()).expect("made");
        let renewed = former.after(Step::Authority, HOST, now()).expect("made");
        assert!(renewed.authorities.ends_with(&former.authorities) && renewed.authorities != former.authorities);
        assert_eq!(renewed.certificate, former.certificate);
        assert!(!renewed.stored(HOST, true).expect("readable").is_of_newest);
        let signed = renewed.after(Step::Certificate, HOST, now()).expect("made");
        assert!(signed.stored(HOST, true).expect("readable").is_of_newest);
        assert_ne!(signed.key, former.key);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let whole = Material::make(HOST, now()).expect("made");
        let broken = Material {
            authority_key: "none".to_owned(),
            ..whole
        };
        let error = broken.stored(HOST, true).expect_err("no key");
        assert_eq!(error.to_string(), "the key of the authority cannot be read");
    }
}
