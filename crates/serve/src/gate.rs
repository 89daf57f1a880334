//! Permits at work, shared as `shares` says. Who finds none waits a while for one.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::shares::{Outcome, Shares, Sizes};

/// The part of the permits that one caller may have, in quarters.
const MOST_QUARTERS: usize = 3;
/// Who waits, for each permit.
const WAITING_FOR_EACH: usize = 4;

/// All permits are taken, and the line is full or did not move in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests are in flight")]
pub struct Full;

/// Permits of one sort, shared by callers.
pub struct Gate<K: Ord + Clone> {
    shares: Mutex<Shares<K, oneshot::Sender<Permit<K>>>>,
    wait_max: Duration,
}

impl<K: Ord + Clone> Gate<K> {
    /// So many permits. Who finds none waits so long for one.
    pub fn new(permits: usize, wait_max: Duration) -> Arc<Self> {
        Self::lined(permits, permits * WAITING_FOR_EACH, wait_max)
    }

    /// So many permits, and so many who wait for one.
    pub fn lined(permits: usize, waiting: usize, wait_max: Duration) -> Arc<Self> {
        let sizes = Sizes {
            permits,
            most: (permits * MOST_QUARTERS).div_ceil(4),
            waiting,
        };
        Arc::new(Self {
            shares: Mutex::new(Shares::new(sizes)),
            wait_max,
        })
    }

    /// A permit for this caller, given back when it is dropped.
    ///
    /// # Errors
    /// No permit became free in time, or too many wait.
    pub async fn enter(self: &Arc<Self>, caller: K) -> Result<Permit<K>, Full> {
        let (to, permit) = oneshot::channel();
        let outcome = self.shares().ask(&caller, to);
        match outcome {
            Outcome::Enters(_) => Ok(self.permit(caller)),
            Outcome::Refused(_) => Err(Full),
            // Who is displaced hears of it as its sender goes.
            Outcome::Waits(number, _displaced) => {
                let _line = Line {
                    gate: self,
                    caller: &caller,
                    number,
                };
                let permit = tokio::time::timeout(self.wait_max, permit).await;
                permit.map_err(|_| Full)?.map_err(|_| Full)
            }
        }
    }

    fn permit(self: &Arc<Self>, caller: K) -> Permit<K> {
        Permit {
            gate: self.clone(),
            caller,
        }
    }

    fn shares(&self) -> MutexGuard<'_, Shares<K, oneshot::Sender<Permit<K>>>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A permit, until it is dropped.
pub struct Permit<K: Ord + Clone> {
    gate: Arc<Gate<K>>,
    caller: K,
}

impl<K: Ord + Clone> fmt::Debug for Permit<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

impl<K: Ord + Clone> Drop for Permit<K> {
    fn drop(&mut self) {
        let next = self.gate.shares().leave(&self.caller);
        if let Some((caller, waits)) = next {
            // Who is gone by now drops the permit, and the next one gets it.
            let _gone = waits.send(self.gate.permit(caller));
        }
    }
}

/// A place in the line, until somebody waits no more.
struct Line<'a, K: Ord + Clone> {
    gate: &'a Gate<K>,
    caller: &'a K,
    number: u64,
}

impl<K: Ord + Clone> Drop for Line<'_, K> {
    fn drop(&mut self) {
        self.gate.shares().give_up(self.caller, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT_MAX: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_the_next_place_or_is_told_that_there_is_none() {
        let gate = Gate::new(1, WAIT_MAX);
        let first = gate.enter("a").await.expect("a permit");
        assert_eq!(gate.enter("b").await.err(), Some(Full), "nobody leaves");
        let waits = tokio::spawn({
            let gate = gate.clone();
            async move { gate.enter("b").await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waits.await.expect("no panic"));
        gate.enter("c").await.expect("all have left");
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_for_somebody_who_has_gone_is_not_lost() {
        let gate = Gate::new(1, WAIT_MAX);
        let first = gate.enter("a").await.expect("a permit");
        for _ in 0..3 {
            let waits = tokio::spawn({
                let gate = gate.clone();
                async move { gate.enter("b").await.is_ok() }
            });
            tokio::task::yield_now().await;
            waits.abort();
        }
        drop(first);
        gate.enter("c").await.expect("a permit");
    }
}
