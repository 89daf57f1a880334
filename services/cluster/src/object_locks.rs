//! A queue for each object that is being changed: concurrent changes wait for each other, first come, first served,
//! instead of conflicting and retrying. Nobody waits for the change of another object, however long its conversion
//! webhook takes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::store::ObjectKey;

/// The locks of the objects that are being changed.
#[derive(Default)]
pub(crate) struct ObjectLocks {
    locks: Mutex<HashMap<ObjectKey, Arc<AsyncMutex<()>>>>,
}

/// Holds the lock of one object until it is dropped.
pub(crate) struct ObjectLock<'a> {
    // Dropped in this order: the next one is let in before the lock is given back.
    _guard: OwnedMutexGuard<()>,
    _user: LockUser<'a>,
}

/// Who holds a lock or waits for it; the last one removes it.
struct LockUser<'a> {
    all: &'a ObjectLocks,
    key: &'a ObjectKey,
    lock: Arc<AsyncMutex<()>>,
}

impl ObjectLocks {
    /// Waits for the lock of the object.
    pub(crate) async fn lock<'a>(&'a self, key: &'a ObjectKey) -> ObjectLock<'a> {
        let lock = Arc::clone(self.locks().entry(key.clone()).or_default());
        let user = LockUser { all: self, key, lock };
        ObjectLock {
            _guard: Arc::clone(&user.lock).lock_owned().await,
            _user: user,
        }
    }

    fn locks(&self) -> MutexGuard<'_, HashMap<ObjectKey, Arc<AsyncMutex<()>>>> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LockUser<'_> {
    fn drop(&mut self) {
        let mut locks = self.all.locks();
        // Whoever holds the lock or waits for it has a count of it: one is this, one is the table's.
        if Arc::strong_count(&self.lock) <= 2 {
            locks.remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const WAIT_MAX: Duration = Duration::from_secs(240);

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("configmaps", "default", name)
    }

    #[tokio::test]
    async fn only_who_wants_the_same_object_waits_and_nothing_stays_behind() {
        let locks = ObjectLocks::default();
        let slow = key("slow");
        let held = locks.lock(&slow).await;
        for at in 0..1_000 {
            let other = key(&at.to_string());
            let lock = timeout(WAIT_MAX, locks.lock(&other)).await;
            drop(lock.expect("nobody else changes it"));
        }
        let given_up = timeout(Duration::from_millis(10), locks.lock(&slow)).await;
        assert!(given_up.is_err(), "the object is being changed");
        assert_eq!(locks.locks().len(), 1);
        drop(held);
        assert!(locks.locks().is_empty());
    }

    #[tokio::test]
    async fn who_waits_is_let_in_and_keeps_the_others_out() {
        let locks = ObjectLocks::default();
        let one = key("one");
        let first = locks.lock(&one).await;
        let (mut second, mut third) = (Box::pin(locks.lock(&one)), Box::pin(locks.lock(&one)));
        assert!(timeout(Duration::from_millis(10), &mut second).await.is_err());
        drop(first);
        let held = timeout(WAIT_MAX, second).await.expect("let in");
        assert!(timeout(Duration::from_millis(10), &mut third).await.is_err());
        drop(held);
        drop(timeout(WAIT_MAX, third).await.expect("let in"));
        assert!(locks.locks().is_empty());
    }
}
