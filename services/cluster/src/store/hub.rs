//! Hands committed revisions to those who wait for them: one bounded ring per resource. A slow reader loses its
//! place in the ring and catches up from the log; it never holds up the writer and never makes memory grow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{broadcast, watch};

use super::record::Revision;

/// Revisions a ring holds for its slowest reader.
const RING_MAX: usize = 256;
/// The ring that carries every resource, for housekeeping.
const EVERYTHING: &str = "*";

/// Why a feed gave nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeedError {
    /// The reader was too slow; the log has what it missed.
    Lagged,
    /// The resource is gone, or the store has closed.
    Closed,
}

/// The rings, and the last committed resource version.
pub(super) struct Hub {
    rings: Mutex<HashMap<String, broadcast::Sender<Arc<Revision>>>>,
    committed: watch::Sender<u64>,
}

impl Hub {
    pub(super) fn new(committed: u64) -> Self {
        Self {
            rings: Mutex::new(HashMap::new()),
            committed: watch::Sender::new(committed),
        }
    }

    pub(super) fn committed(&self) -> u64 {
        *self.committed.borrow()
    }

    pub(super) fn subscribe(&self, resource: Option<&str>) -> Feed {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let ring = rings
            .entry(resource.unwrap_or(EVERYTHING).to_owned())
            .or_insert_with(|| broadcast::Sender::new(RING_MAX));
        Feed { ring: ring.subscribe() }
    }

    /// Offers `revisions` to their readers, then declares them committed, in that order: who sees a committed
    /// version finds everything up to it in the ring.
    pub(super) fn publish(&self, revisions: &[Arc<Revision>], newest: u64) {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        for revision in revisions {
            for ring in [&*revision.key.resource, EVERYTHING]
                .iter()
                .filter_map(|ring| rings.get(*ring))
            {
                // No reader at this moment is no error: the log keeps the revision.
                let _unread = ring.send(Arc::clone(revision));
            }
        }
        self.committed.send_replace(newest);
    }

    /// Ends the feeds of a resource that no longer exists, after what they have yet to read.
    pub(super) fn close(&self, resource: &str) {
        self.rings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(resource);
    }
}

/// A reader's place in a ring.
pub(crate) struct Feed {
    ring: broadcast::Receiver<Arc<Revision>>,
}

impl Feed {
    /// The next revision, waiting for it.
    pub(crate) async fn next(&mut self) -> Result<Arc<Revision>, FeedError> {
        self.ring.recv().await.map_err(|error| match error {
            broadcast::error::RecvError::Lagged(_) => FeedError::Lagged,
            broadcast::error::RecvError::Closed => FeedError::Closed,
        })
    }

    /// The next revision if it is there already.
    pub(crate) fn ready(&mut self) -> Result<Option<Arc<Revision>>, FeedError> {
        match self.ring.try_recv() {
            Ok(revision) => Ok(Some(revision)),
            Err(broadcast::error::TryRecvError::Empty) => Ok(None),
            Err(broadcast::error::TryRecvError::Lagged(_)) => Err(FeedError::Lagged),
            Err(broadcast::error::TryRecvError::Closed) => Err(FeedError::Closed),
        }
    }
}
