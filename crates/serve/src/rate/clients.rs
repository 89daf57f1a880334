//! What the limit of requests a second remembers of clients: of each for as long as it matters, and of no more than a
//! bound at once. What a request costs here does not depend on how many there are.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, Reference};
use governor::nanos::Nanos;
use governor::state::StateStore;

/// Counters that clients beyond the bound have in common.
const SHARED: usize = 1024;

/// The counters of all clients.
pub(super) struct Clients<K, C: Clock> {
    clock: C,
    /// A counter that was not touched for so long says nothing any more.
    lifetime: Duration,
    bound: usize,
    hasher: RandomState,
    known: Mutex<Known<K, C::Instant>>,
}

struct Known<K, I> {
    /// Since when `recent` has been filled.
    since: I,
    recent: HashMap<K, Nanos>,
    /// What was `recent` before: a client that is here may have a counter that matters.
    former: HashMap<K, Nanos>,
    /// Of clients for whom there is no room. They are held to one limit with those of the same counter: too strict, and
    /// never too lax.
    shared: Box<[Option<Nanos>]>,
}

impl<K: Eq + Hash, C: Clock> Clients<K, C> {
    /// Remembers `bound` clients at least `lifetime` after each request.
    pub(super) fn new(clock: C, lifetime: Duration, bound: usize) -> Self {
        let known = Known {
            since: clock.now(),
            recent: HashMap::new(),
            former: HashMap::new(),
            shared: vec![None; SHARED].into(),
        };
        Self {
            clock,
            lifetime,
            bound,
            hasher: RandomState::new(),
            known: Mutex::new(known),
        }
    }
}

impl<K, I: Reference> Known<K, I> {
    /// Forgets whom nothing was heard of.
    fn turn(&mut self, now: I, lifetime: Duration) {
        let age = now.duration_since(self.since);
        if age < lifetime.into() {
            return;
        }
        let recent = mem::take(&mut self.recent);
        // Nothing was written since the time of `recent` was over.
        self.former = if age < (2 * lifetime).into() {
            recent
        } else {
            HashMap::new()
        };
        self.since = now;
    }
}

impl<K: Clone + Eq + Hash, C: Clock> StateStore for Clients<K, C> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let shared = usize::try_from(self.hasher.hash_one(key) % SHARED as u64).unwrap_or_default();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.turn(self.clock.now(), self.lifetime);
        if let Some(counter) = known.recent.get_mut(key) {
            let (outcome, next) = decide(Some(*counter))?;
            *counter = next;
            return Ok(outcome);
        }
        // Who had to share a counter a moment ago does not begin anew.
        let counter = known.former.get(key).copied().max(known.shared[shared]);
        let (outcome, next) = decide(counter)?;
        if known.recent.len() < self.bound {
            known.recent.insert(key.clone(), next);
        } else {
            known.shared[shared] = Some(next);
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Instant;

    use governor::clock::FakeRelativeClock;
    use governor::middleware::NoOpMiddleware;
    use governor::{Quota, RateLimiter};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const BOUND: usize = 1000;
    const LIMIT: u32 = 3;

    type Limiter = RateLimiter<u64, Clients<u64, FakeRelativeClock>, FakeRelativeClock, NoOpMiddleware<Nanos>>;

    fn limiter() -> (Limiter, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let quota = Quota::per_second(NonZeroU32::new(LIMIT).expect("more than 0"));
        let clients = Clients::new(clock.clone(), SECOND, BOUND);
        (RateLimiter::new(quota, clients, clock.clone()), clock)
    }

    /// How many of ten requests at once are let in.
    fn let_in(limiter: &Limiter, client: u64) -> u32 {
        let tries = (0..10).map(|_| u32::from(limiter.check_key(&client).is_ok()));
        tries.sum()
    }

    #[test]
    fn a_client_has_its_share_a_second_and_no_more_among_a_million_others() {
        let (limiter, clock) = limiter();
        let mut others = 1..;
        for _ in 0..20 {
            assert_eq!(let_in(&limiter, 0), LIMIT);
            // A tenth of a second each, with more clients than are remembered.
            for _ in 0..9 {
                clock.advance(SECOND / 10);
                for other in others.by_ref().take(5 * BOUND) {
                    limiter.check_key(&other).ok();
                }
            }
            assert!(let_in(&limiter, 0) < LIMIT, "its time has not come");
            clock.advance(2 * SECOND);
        }
    }

    #[test]
    fn a_client_for_whom_there_is_no_room_has_no_more_than_its_share_either() {
        let (limiter, clock) = limiter();
        for other in 1..=BOUND as u64 {
            limiter.check_key(&other).expect("its first");
        }
        clock.advance(SECOND * 9 / 10);
        assert_eq!(let_in(&limiter, 0), LIMIT, "nobody else shares its counter yet");
        // Now there is room for it.
        clock.advance(SECOND * 2 / 10);
        assert_eq!(let_in(&limiter, 0), 0, "a fifth of a second brings nothing");
        clock.advance(SECOND);
        assert_eq!(let_in(&limiter, 0), LIMIT);
    }

    /// No assertion but the time: a look at all clients for each request takes hours here.
    #[test]
    fn many_clients_take_neither_memory_nor_time() {
        let (limiter, clock) = limiter();
        let deadline = Instant::now() + Duration::from_secs(60);
        for client in 0..1_000_000 {
            limiter.check_key(&client).ok();
            if client % 1000 == 0 {
                clock.advance(SECOND / 100);
                assert!(Instant::now() < deadline);
            }
        }
        let known = limiter.into_state_store();
        let known = known.known.lock().expect("nobody has panicked");
        assert!(known.recent.len() <= BOUND && known.former.len() <= BOUND);
        assert!(known.recent.capacity() < 4 * BOUND);
    }
}
