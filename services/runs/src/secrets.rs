//! The secrets by which the service knows again what it signed: resume tokens and addresses of artifacts. Several count
//! at once, so that a new one can be put first without making anything invalid. Knows no clock and shows no secret.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The shortest secret, in bytes: as long as a signature.
const SECRET_BYTES_MIN: usize = 32;

/// Why a text holds no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretsError {
    /// There is none.
    #[error("contains no secret: write one per line, newest first")]
    None,
    /// A secret that could be guessed.
    #[error("line {0}: a secret has at least {SECRET_BYTES_MIN} bytes")]
    Short(usize),
}

/// Secrets, the newest first.
#[derive(Clone)]
pub struct Secrets(Vec<Vec<u8>>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secrets").field(&self.0.len()).finish()
    }
}

impl Secrets {
    /// One secret a line, the newest first. Spaces around it and empty lines do not count.
    ///
    /// # Errors
    /// No secret, and one that is too short.
    pub fn parse(text: &str) -> Result<Self, SecretsError> {
        let mut secrets = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let secret = line.trim();
            match secret.len() {
                0 => {}
                1..SECRET_BYTES_MIN => return Err(SecretsError::Short(number + 1)),
                _ => secrets.push(secret.as_bytes().to_vec()),
            }
        }
        match secrets.is_empty() {
            true => Err(SecretsError::None),
            false => Ok(Self(secrets)),
        }
    }

    /// The signature of a message by the newest secret.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 32] {
        let newest = self.0.first().map_or(&[][..], Vec::as_slice);
        mac(newest, message).finalize().into_bytes().into()
    }

    /// Whether one of the secrets signed a message. Takes as long for a wrong signature as for a right one.
    #[must_use]
    pub fn is_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let by = |secret: &Vec<u8>| mac(secret, message).verify_slice(signature).is_ok();
        self.0.iter().any(by)
    }
}

fn mac(secret: &[u8], message: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key may have any length");
    mac.update(message);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_secret_signed_counts_until_the_secret_is_gone() {
        let (old, new) = ("o".repeat(32), "n".repeat(32));
        let before = Secrets::parse(&old).expect("secrets");
        let signature = before.sign(b"message");
        let rotated = Secrets::parse(&format!("{new}\n\n  {old}\n")).expect("secrets");
        assert!(rotated.is_signed(b"message", &signature));
        assert!(!rotated.is_signed(b"massage", &signature));
        assert_ne!(rotated.sign(b"message"), signature, "the newest signs");
        let after = Secrets::parse(&new).expect("secrets");
        assert!(!after.is_signed(b"message", &signature));
        assert!(!after.is_signed(b"message", &[]));
    }

    #[test]
    fn a_secret_that_could_be_guessed_is_refused_and_none_is_shown() {
        assert_eq!(Secrets::parse(" \n").err(), Some(SecretsError::None));
        let text = format!("{}\nshort", "x".repeat(32));
        assert_eq!(Secrets::parse(&text).err(), Some(SecretsError::Short(2)));
        let secrets = Secrets::parse(&"x".repeat(32)).expect("a secret");
        assert_eq!(format!("{secrets:?}"), "Secrets(1)");
    }
}
