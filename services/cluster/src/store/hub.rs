//! Broadcasts committed revisions to subscribers: one ring buffer per resource, bounded in revisions and bytes. A slow
//! reader loses its position and catches up from the log; it never blocks the writer and never makes memory grow.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::record::Revision;

/// Revisions a ring holds for its slowest reader.
const RING_MAX: usize = 256;
/// And their texts; the last revision is there in any case.
const RING_MAX_BYTES: usize = 4 * 1024 * 1024;
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
    rings: Mutex<HashMap<String, Ring>>,
    committed: watch::Sender<u64>,
}

/// The newest revisions of one resource.
struct Ring {
    buffer: Arc<Mutex<RingBuffer>>,
    /// Says when there is another one; gone with the ring.
    news: watch::Sender<()>,
}

impl Ring {
    /// One piece of news, however many revisions there are.
    fn offer<'a>(&self, revisions: impl Iterator<Item = &'a Arc<Revision>>) {
        let mut buffer = locked(&self.buffer);
        // The log keeps what nobody reads at this moment.
        if self.news.receiver_count() == 0 {
            buffer.forget();
            return;
        }
        for revision in revisions {
            buffer.push(Arc::clone(revision));
        }
        drop(buffer);
        self.news.send_replace(());
    }
}

/// Revisions are numbered as they come.
#[derive(Default)]
struct RingBuffer {
    /// The number of the first that is kept.
    first: u64,
    revisions: VecDeque<Arc<Revision>>,
    bytes: usize,
}

impl RingBuffer {
    fn push(&mut self, revision: Arc<Revision>) {
        self.bytes += size(&revision);
        self.revisions.push_back(revision);
        while self.revisions.len() > RING_MAX || (self.revisions.len() > 1 && self.bytes > RING_MAX_BYTES) {
            if let Some(oldest) = self.revisions.pop_front() {
                self.bytes -= size(&oldest);
                self.first += 1;
            }
        }
    }

    /// Nobody reads.
    fn forget(&mut self) {
        self.first = self.end() + 1;
        self.revisions.clear();
        self.bytes = 0;
    }

    fn end(&self) -> u64 {
        self.first + self.revisions.len() as u64
    }
}

fn size(revision: &Revision) -> usize {
    revision.text.len() + revision.before.as_ref().map_or(0, |before| before.text.len())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut rings = locked(&self.rings);
        let ring = rings
            .entry(resource.unwrap_or(EVERYTHING).to_owned())
            .or_insert_with(|| Ring {
                buffer: Arc::default(),
                news: watch::Sender::new(()),
            });
        let next = locked(&ring.buffer).end();
        Feed {
            buffer: Arc::clone(&ring.buffer),
            news: ring.news.subscribe(),
            next,
        }
    }

    /// Offers `revisions` to their readers, then declares them committed, in that order: who sees a committed
    /// version finds everything up to it in the ring.
    pub(super) fn publish(&self, revisions: &[Arc<Revision>], newest: u64) {
        let rings = locked(&self.rings);
        let resources: BTreeSet<&str> = revisions.iter().map(|revision| &*revision.key.resource).collect();
        for resource in resources {
            if let Some(ring) = rings.get(resource) {
                ring.offer(revisions.iter().filter(|revision| *revision.key.resource == *resource));
            }
        }
        if let Some(ring) = rings.get(EVERYTHING) {
            ring.offer(revisions.iter());
        }
        self.committed.send_replace(newest);
    }

    /// Ends the feeds of a resource that no longer exists, after what they have yet to read.
    pub(super) fn close(&self, resource: &str) {
        locked(&self.rings).remove(resource);
    }
}

/// A reader's place in a ring.
pub(crate) struct Feed {
    buffer: Arc<Mutex<RingBuffer>>,
    news: watch::Receiver<()>,
    /// The number of the next revision.
    next: u64,
}

impl Feed {
    /// The next revision, waiting for it.
    pub(crate) async fn next(&mut self) -> Result<Arc<Revision>, FeedError> {
        loop {
            // What comes after the look is news.
            self.news.mark_unchanged();
            if let Some(revision) = self.ready()? {
                return Ok(revision);
            }
            // A ring that is gone has nothing more, which the next look says.
            let _gone = self.news.changed().await;
        }
    }

    /// The next revision if it is there already.
    pub(crate) fn ready(&mut self) -> Result<Option<Arc<Revision>>, FeedError> {
        // Asked first: what was published before the end is read.
        let is_closed = self.news.has_changed().is_err();
        let buffer = locked(&self.buffer);
        if self.next < buffer.first {
            self.next = buffer.first;
            return Err(FeedError::Lagged);
        }
        let place = usize::try_from(self.next - buffer.first).unwrap_or(usize::MAX);
        match buffer.revisions.get(place) {
            Some(revision) => {
                self.next += 1;
                Ok(Some(Arc::clone(revision)))
            }
            None if is_closed => Err(FeedError::Closed),
            None => Ok(None),
        }
    }
}
