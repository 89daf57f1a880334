//! What all steps together do at a time, however many are carried out.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Holders that are read, of those whose references were placed: a share of the requests that an API server takes.
const READS_MAX: usize = 128;
/// Sweeps of the archive: each has up to a page of whole objects in memory, which may be large.
const SWEEPS_MAX: usize = 16;

/// The turns that are left. Clones share them.
#[derive(Clone)]
pub(super) struct Limits {
    reads: Arc<Semaphore>,
    sweeps: Arc<Semaphore>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reads: Arc::new(Semaphore::new(READS_MAX)),
            sweeps: Arc::new(Semaphore::new(SWEEPS_MAX)),
        }
    }
}

impl Limits {
    /// The turn of a read of one holder.
    pub(super) async fn read(&self) -> SemaphorePermit<'_> {
        turn(&self.reads).await
    }

    /// The turn of a sweep for an object of our own. For those of other services, their turns are limit enough: one
    /// that hangs keeps no sweep of our own waiting.
    pub(super) async fn sweep(&self) -> SemaphorePermit<'_> {
        turn(&self.sweeps).await
    }
}

async fn turn(turns: &Semaphore) -> SemaphorePermit<'_> {
    turns.acquire().await.expect("nobody closes it")
}
