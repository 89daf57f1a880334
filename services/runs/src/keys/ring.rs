//! The keys of a running server: a table in memory that follows the file, so that a key counts as soon as it is made,
//! and within a second no longer once it is revoked.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::store::{KeyStore, KeyStoreError};
use super::table::{Caller, KeyTable};
use crate::refusal::{Code, Refusal};

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The keys that count now.
#[derive(Debug)]
pub struct KeyRing {
    store: KeyStore,
    known: RwLock<Known>,
}

#[derive(Debug)]
struct Known {
    /// Of the file, when it was read.
    version: i64,
    table: Arc<KeyTable>,
}

impl KeyRing {
    /// Reads the file.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub async fn new(store: KeyStore) -> Result<Self, KeyStoreError> {
        let known = read(&store).await?;
        Ok(Self {
            store,
            known: RwLock::new(known),
        })
    }

    /// Whether callers need no key now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.table().is_open()
    }

    /// Who shows this secret at this time. The file is asked for a secret that is not known yet.
    ///
    /// # Errors
    /// As [`KeyTable::caller`]; a file that cannot be read.
    pub async fn caller(&self, secret: Option<&str>, now: i64) -> Result<Caller, Refusal> {
        let table = self.table();
        match secret {
            Some(secret) if !table.knows(secret) => {
                self.look().await.map_err(unavailable)?;
                self.table().caller(Some(secret), now)
            }
            _ => table.caller(secret, now),
        }
    }

    /// Whether a caller who was let in would be let in at this time too.
    ///
    /// # Errors
    /// As [`KeyTable::recheck`].
    pub fn recheck(&self, caller: &Caller, now: i64) -> Result<(), Refusal> {
        self.table().recheck(caller, now)
    }

    /// Takes up what the file holds, where it has changed.
    ///
    /// # Errors
    /// A file that cannot be read. What was known stays.
    pub async fn look(&self) -> Result<(), KeyStoreError> {
        let version = self.store.version().await?;
        if version != self.known.read().unwrap_or_else(PoisonError::into_inner).version {
            let next = read(&self.store).await?;
            *self.known.write().unwrap_or_else(PoisonError::into_inner) = next;
        }
        Ok(())
    }

    /// Looks at the file every second, until cancelled.
    pub async fn follow(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "The API keys stay as they are");
            }
        }
    }

    fn table(&self) -> Arc<KeyTable> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).table.clone()
    }
}

/// The version comes first: what is written between is read again.
async fn read(store: &KeyStore) -> Result<Known, KeyStoreError> {
    let version = store.version().await?;
    let table = Arc::new(KeyTable::new(store.all().await?));
    Ok(Known { version, table })
}

fn unavailable(error: KeyStoreError) -> Refusal {
    let message = format!("{error}; try again");
    Refusal::new(Code::Unavailable, "KEYS_UNAVAILABLE", message).again_after(LOOK_EVERY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::key::{Key, NewKey, Secret};
    use crate::keys::scope::Scopes;

    #[tokio::test]
    async fn a_key_counts_once_it_is_made_and_no_longer_once_it_is_revoked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys.db");
        let open = async || KeyStore::open(&path).await.expect("a file");
        let ring = KeyRing::new(open().await).await.expect("keys");
        assert!(ring.is_open());
        assert_eq!(ring.caller(None, 0).await, Ok(Caller::anybody()));

        // Another process makes and revokes it.
        let others = open().await;
        let secret = Secret::new([7; 32]);
        let of = NewKey {
            user: "ana".to_owned(),
            project: None,
            scopes: Scopes::ALL,
            expires_at: Some(10),
        };
        let key = Key::new(of, &secret, [1; 4], 0);
        others.insert(&key).await.expect("stored");
        assert_eq!(others.all().await.expect("keys"), std::slice::from_ref(&key));
        let caller = ring.caller(Some(secret.reveal()), 0).await.expect("a caller");
        assert_eq!(caller.user, "ana");
        assert_eq!(ring.recheck(&caller, 9), Ok(()));
        assert!(ring.recheck(&caller, 10).is_err(), "it has expired");
        assert!(
            ring.recheck(&Caller::anybody(), 0).is_err(),
            "a key is needed from now on"
        );
        assert!(ring.caller(None, 0).await.is_err(), "a key is needed from now on");
        assert!(ring.caller(Some(secret.reveal()), 10).await.is_err(), "it has expired");

        assert!(others.revoke(&key.id, 5).await.expect("revoked"));
        assert!(!others.revoke(&key.id, 6).await.expect("nothing to revoke"));
        ring.look().await.expect("the file");
        assert!(ring.caller(Some(secret.reveal()), 0).await.is_err());
        assert!(ring.recheck(&caller, 0).is_err());
        assert!(!ring.is_open());
    }
}
