//! A key, as it is stored, and its secret, which is shown once.

use std::fmt::{self, Write as _};

use sha2::{Digest, Sha256};

use super::scope::Scopes;
use crate::domain::ProjectName;

/// How a secret begins, so that it is found where it should not be.
const BEGIN: &str = "mlrun_";
/// The random bytes of a secret.
const SECRET_BYTES: usize = 32;
/// The random bytes of an id.
const ID_BYTES: usize = 4;
/// The shortest secret that is taken from people, in bytes.
const GIVEN_BYTES_MIN: usize = 32;

/// Why a text is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an API key has at least {GIVEN_BYTES_MIN} characters, all of them visible ASCII")]
pub struct SecretError;

/// What a client shows. Displayed once, when the key is made.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Of random bytes.
    #[must_use]
    pub fn new(random: [u8; SECRET_BYTES]) -> Self {
        Self(format!("{BEGIN}{}", hex(&random)))
    }

    /// That somebody has made. Spaces and line ends around it do not count.
    ///
    /// # Errors
    /// A secret that could be guessed, or that a header cannot carry.
    pub fn given(text: &str) -> Result<Self, SecretError> {
        let secret = text.trim();
        match secret.len() >= GIVEN_BYTES_MIN && secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self(secret.to_owned())),
            false => Err(SecretError),
        }
    }

    /// What the client sends.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Of a secret, all that is stored.
#[must_use]
pub fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// What a key is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// Who gets it: the user of the runs that it opens.
    pub user: String,
    /// The only project that it is for; all of them if absent.
    pub project: Option<ProjectName>,
    /// What it allows.
    pub scopes: Scopes,
    /// From when on it does not count, in nanoseconds since the epoch.
    pub expires_at: Option<i64>,
}

/// A key, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// By which people name it.
    pub id: String,
    /// Of its secret.
    pub hash: [u8; 32],
    /// What it was made of.
    pub of: NewKey,
    /// In nanoseconds since the epoch.
    pub created_at: i64,
    /// In nanoseconds since the epoch; a key that counts has none.
    pub revoked_at: Option<i64>,
}

impl Key {
    /// A key of a secret. Its id is random too, and says nothing of the secret.
    #[must_use]
    pub fn new(of: NewKey, secret: &Secret, id: [u8; ID_BYTES], now: i64) -> Self {
        Self {
            id: hex(&id),
            hash: hash(secret.reveal()),
            of,
            created_at: now,
            revoked_at: None,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes all");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_secret_that_could_be_guessed_or_not_be_sent_is_refused() {
        let secret = Secret::given(&format!(" {}\n", "k".repeat(32))).expect("a secret");
        assert_eq!(secret.reveal(), "k".repeat(32));
        for text in [
            String::new(),
            "k".repeat(31),
            format!("{} k", "k".repeat(32)),
            "ü".repeat(32),
        ] {
            assert_eq!(Secret::given(&text).err(), Some(SecretError), "{text}");
        }
    }

    #[test]
    fn a_secret_has_the_form_that_clients_know_and_is_not_stored() {
        let secret = Secret::new([0xab; 32]);
        assert_eq!(secret.reveal(), format!("mlrun_{}", "ab".repeat(32)));
        let of = NewKey {
            user: "ana".to_owned(),
            project: None,
            scopes: Scopes::ALL,
            expires_at: None,
        };
        let key = Key::new(of, &secret, [1; 4], 5);
        assert_eq!(key.id, "01010101");
        assert!(!format!("{key:?} {secret:?}").contains(&"ab".repeat(32)));
    }
}
