//! How many large bodies are worked on at once. A body takes a multiple of its length while it is read, compared and
//! written, a hundred times as much at worst: permits for requests alone would not bound that.

use std::sync::Arc;
use std::time::Duration;

use crate::gate::{Full, Gate, Permit};

/// Up to here a body waits for no others.
const SMALL_BYTES_MAX: usize = 16 * 1024;
/// Up to here it waits for those of its size.
const MIDDLE_BYTES_MAX: usize = 256 * 1024;
/// Bodies of each size that are worked on at once.
const MIDDLE_PERMITS: usize = 8;
const LARGE_PERMITS: usize = 1;
/// Bodies that wait, of each size: the budget of bodies bounds them.
const WAITING_MAX: usize = 1000;

/// The permits of large bodies, shared by callers.
pub struct Work<K: Ord + Clone> {
    middle: Arc<Gate<K>>,
    large: Arc<Gate<K>>,
}

impl<K: Ord + Clone> Work<K> {
    /// Nothing is worked on yet. A body waits so long for its turn.
    pub fn new(wait_max: Duration) -> Self {
        Self {
            middle: Gate::lined(MIDDLE_PERMITS, WAITING_MAX, wait_max),
            large: Gate::lined(LARGE_PERMITS, WAITING_MAX, wait_max),
        }
    }

    /// A body of so many bytes is worked on until the permit is dropped.
    ///
    /// # Errors
    /// Its turn did not come in time, or too many wait.
    pub async fn begin(&self, bytes: usize, caller: K) -> Result<Option<Permit<K>>, Full> {
        if bytes <= SMALL_BYTES_MAX {
            return Ok(None);
        }
        let gate = if bytes <= MIDDLE_BYTES_MAX {
            &self.middle
        } else {
            &self.large
        };
        gate.enter(caller).await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bodies_wait_for_those_of_their_size_alone() {
        let work = Work::new(Duration::from_secs(10));
        let large = work.begin(3 * 1024 * 1024, "a").await.expect("a turn");
        assert_eq!(work.begin(MIDDLE_BYTES_MAX + 1, "b").await.err(), Some(Full));
        let mut held = Vec::new();
        for _ in 0..MIDDLE_PERMITS / 2 {
            held.push(work.begin(MIDDLE_BYTES_MAX, "a").await.expect("a turn"));
            held.push(work.begin(SMALL_BYTES_MAX + 1, "b").await.expect("a turn"));
        }
        assert_eq!(work.begin(MIDDLE_BYTES_MAX, "c").await.err(), Some(Full));
        for _ in 0..1000 {
            held.push(work.begin(SMALL_BYTES_MAX, "c").await.expect("no turn is needed"));
        }
        drop(large);
        assert!(work.begin(3 * 1024 * 1024, "b").await.is_ok());
    }
}
