//! Who calls: the keys of the store, as a server has them at hand.

use std::collections::HashMap;

use super::key::{Key, hash};
use super::scope::{Scope, Scopes};
use crate::domain::ProjectName;
use crate::refusal::{Code, Refusal};

/// All keys that were ever made.
#[derive(Clone, Debug, Default)]
pub struct KeyTable {
    by_hash: HashMap<[u8; 32], Key>,
    hash_by_id: HashMap<String, [u8; 32]>,
}

/// Who calls, and what the caller may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The id of the key; empty where none is needed.
    pub key: String,
    /// The user; empty where no key is needed.
    pub user: String,
    /// The only project; all of them if absent.
    pub project: Option<ProjectName>,
    /// What the key allows.
    pub scopes: Scopes,
}

impl KeyTable {
    /// Of what the store holds.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        let by_hash: HashMap<[u8; 32], Key> = keys.into_iter().map(|key| (key.hash, key)).collect();
        let hash_by_id = by_hash.values().map(|key| (key.id.clone(), key.hash)).collect();
        Self { by_hash, hash_by_id }
    }

    /// Whether callers need no key: none was ever made.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.by_hash.is_empty()
    }

    /// Whether a secret is of any key, valid or not.
    #[must_use]
    pub fn knows(&self, secret: &str) -> bool {
        self.by_hash.contains_key(&hash(secret))
    }

    /// Who shows this secret at this time.
    ///
    /// # Errors
    /// No secret where one is needed, and one that counts no longer or never did. Which of them is not said.
    pub fn caller(&self, secret: Option<&str>, now: i64) -> Result<Caller, Refusal> {
        if self.is_open() {
            return Ok(Caller::anybody());
        }
        let Some(secret) = secret else {
            return Err(unauthenticated(
                "KEY_MISSING",
                "the request has no API key; send it as `authorization: Bearer KEY`, over REST also as `x-api-key: KEY`",
            ));
        };
        let Some(key) = self.by_hash.get(&hash(secret)).filter(|key| is_valid(key, now)) else {
            return Err(invalid());
        };
        Ok(Caller {
            key: key.id.clone(),
            user: key.of.user.clone(),
            project: key.of.project.clone(),
            scopes: key.of.scopes,
        })
    }

    /// Whether a caller who was let in would be let in at this time too.
    ///
    /// # Errors
    /// As [`Self::caller`].
    pub fn recheck(&self, caller: &Caller, now: i64) -> Result<(), Refusal> {
        if caller.key.is_empty() {
            return self.caller(None, now).map(|_| ());
        }
        let key = self.hash_by_id.get(&caller.key).and_then(|hash| self.by_hash.get(hash));
        match key.is_some_and(|key| is_valid(key, now)) {
            true => Ok(()),
            false => Err(invalid()),
        }
    }
}

fn is_valid(key: &Key, now: i64) -> bool {
    key.revoked_at.is_none() && key.of.expires_at.is_none_or(|end| now < end)
}

fn invalid() -> Refusal {
    unauthenticated(
        "KEY_INVALID",
        "the API key is unknown, expired or revoked; make another with `kindex runs key create`",
    )
}

fn unauthenticated(reason: &'static str, message: &str) -> Refusal {
    Refusal::new(Code::Unauthenticated, reason, message)
}

impl Caller {
    /// Who calls where no key is needed.
    #[must_use]
    pub fn anybody() -> Self {
        Self {
            key: String::new(),
            user: String::new(),
            project: None,
            scopes: Scopes::ALL,
        }
    }

    /// Who calls what is public, and may do nothing else.
    #[must_use]
    pub fn nobody() -> Self {
        Self {
            scopes: Scopes::default(),
            ..Self::anybody()
        }
    }

    /// Whether the key allows it at all.
    ///
    /// # Errors
    /// It does not.
    pub fn may(&self, scope: Scope) -> Result<(), Refusal> {
        if self.scopes.allow(scope) {
            return Ok(());
        }
        let message = format!(
            "the API key {} has the scopes {}, and this needs {}; use another key",
            self.key,
            self.scopes,
            scope.word()
        );
        Err(Refusal::new(Code::PermissionDenied, "SCOPE_DENIED", message))
    }

    /// Whether the key is for a project. What the project holds is not said.
    ///
    /// # Errors
    /// It is not.
    pub fn may_in(&self, project: &ProjectName) -> Result<(), Refusal> {
        match &self.project {
            Some(own) if own != project => {
                let message = format!(
                    "the API key {} is for the project {own} alone; use another key",
                    self.key
                );
                Err(Refusal::new(Code::PermissionDenied, "PROJECT_DENIED", message))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::key::{NewKey, Secret};

    const NOW: i64 = 1_000;

    fn key(letter: u8, change: impl FnOnce(&mut Key)) -> (String, Key) {
        let secret = Secret::new([letter; 32]);
        let of = NewKey {
            user: "ana".to_owned(),
            project: Some(ProjectName::new("vision")),
            scopes: Scopes::of(&[Scope::Ingest]),
            expires_at: None,
        };
        let mut key = Key::new(of, &secret, [letter; 4], 0);
        change(&mut key);
        (secret.reveal().to_owned(), key)
    }

    #[test]
    fn a_key_that_is_missing_unknown_expired_or_revoked_is_refused() {
        let (good, good_key) = key(1, |key| key.of.expires_at = Some(NOW + 1));
        let (expired, expired_key) = key(2, |key| key.of.expires_at = Some(NOW));
        let (revoked, revoked_key) = key(3, |key| key.revoked_at = Some(NOW - 1));
        let table = KeyTable::new([good_key, expired_key, revoked_key]);
        let caller = table.caller(Some(&good), NOW).expect("a caller");
        assert_eq!((caller.user.as_str(), caller.key.as_str()), ("ana", "01010101"));
        for secret in [
            None,
            Some(""),
            Some("mlrun_x"),
            Some(expired.as_str()),
            Some(revoked.as_str()),
        ] {
            let refusal = table.caller(secret, NOW).expect_err("refused");
            assert_eq!(refusal.code, Code::Unauthenticated, "{secret:?}");
        }
    }

    #[test]
    fn a_key_that_was_revoked_does_not_open_the_service_again() {
        assert!(KeyTable::default().is_open());
        assert_eq!(KeyTable::default().caller(Some("whatever"), NOW), Ok(Caller::anybody()));
        let (_, revoked) = key(1, |key| key.revoked_at = Some(0));
        let table = KeyTable::new([revoked]);
        assert!(!table.is_open() && table.caller(None, NOW).is_err());
    }

    #[test]
    fn a_key_of_another_project_or_scope_is_denied() {
        let (secret, key) = key(1, |_| {});
        let caller = KeyTable::new([key]).caller(Some(&secret), NOW).expect("a caller");
        assert_eq!(caller.may(Scope::Ingest), Ok(()));
        assert_eq!(caller.may_in(&ProjectName::new("vision")), Ok(()));
        let denied = [caller.may(Scope::Query), caller.may_in(&ProjectName::new("speech"))];
        for refusal in denied {
            assert_eq!(refusal.expect_err("denied").code, Code::PermissionDenied);
        }
    }
}
