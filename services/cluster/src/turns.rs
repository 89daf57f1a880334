//! A queue for each object that is being changed: concurrent changes wait for each other, first come, first served,
//! instead of conflicting and retrying.

use std::hash::{BuildHasher, RandomState};

use tokio::sync::{Mutex, MutexGuard};

use crate::store::ObjectKey;

/// Lines; objects that share one wait for each other without need, so there are many.
const LINES: usize = 256;

/// The lines before all objects.
pub(crate) struct Turns {
    lines: Vec<Mutex<()>>,
    hasher: RandomState,
}

impl Turns {
    /// Nobody waits.
    pub(crate) fn new() -> Self {
        Self {
            lines: (0..LINES).map(|_| Mutex::new(())).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Waits for the turn at `key`; the turn ends when the guard is dropped.
    pub(crate) async fn at(&self, key: &ObjectKey) -> MutexGuard<'_, ()> {
        let line = self.hasher.hash_one(key) % LINES as u64;
        // The remainder is below the number of lines.
        self.lines[line as usize].lock().await
    }
}
