//! How many requests one client may make in a second.

mod clients;

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::{Quota, RateLimiter};

use clients::Clients;

/// Clients of the last second that are told apart; those beyond share counters.
const CLIENTS_MAX: usize = 10_000;
/// A burst of one second's requests is let through: older ones do not matter.
const MEMORY: Duration = Duration::from_secs(1);

/// A client asks more often than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this client exceeds the request rate")]
pub struct RateExceeded;

/// The requests of the last second, by client.
pub struct Rate<C: Clone + Eq + Hash>(
    RateLimiter<C, Clients<C, DefaultClock>, DefaultClock, NoOpMiddleware<<DefaultClock as Clock>::Instant>>,
);

impl<C: Clone + Eq + Hash> Rate<C> {
    /// So many requests a second of each client.
    pub fn new(per_second: NonZeroU32) -> Self {
        let clock = DefaultClock::default();
        let clients = Clients::new(clock.clone(), MEMORY, CLIENTS_MAX);
        Self(RateLimiter::new(Quota::per_second(per_second), clients, clock))
    }

    /// Counts a request of this client.
    ///
    /// # Errors
    /// It is one too many.
    pub fn count(&self, client: &C) -> Result<(), RateExceeded> {
        self.0.check_key(client).map_err(|_| RateExceeded)
    }
}
