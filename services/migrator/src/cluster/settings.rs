//! How migrations are carried out, whatever they are of: how fast, how it is counted, and until when.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// Of a second's writes, the part that may be sent at once.
const BURSTS_A_SECOND: u32 = 10;

/// For kube-controller-manager, which may be about to start, to begin a migration.
pub const TAKEN_UP_WITHIN: Duration = Duration::from_secs(300);

/// How a migration is paced.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Objects of a page.
    pub page: u32,
    /// Objects that are patched at a time.
    pub workers: usize,
}

/// How many writes all migrations together may send in a second. Clones share one limit.
#[derive(Clone, Debug)]
pub struct WriteRate(Option<Arc<DefaultDirectRateLimiter>>);

impl WriteRate {
    /// As many as are answered.
    pub fn unlimited() -> Self {
        Self(None)
    }

    /// So many.
    pub fn per_second(writes: NonZeroU32) -> Self {
        let burst = NonZeroU32::new(writes.get() / BURSTS_A_SECOND).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(writes).allow_burst(burst);
        Self(Some(Arc::new(RateLimiter::direct(quota))))
    }

    /// Waits until another write may be sent.
    pub(super) async fn wait(&self) {
        if let Some(limiter) = &self.0 {
            limiter.until_ready().await;
        }
    }
}

/// What all migrations of a process have in common.
#[derive(Clone, Debug)]
pub struct MigrationSettings {
    /// Of each.
    pub pace: Pace,
    /// Of all.
    pub rate: WriteRate,
    /// How long after its begin a migration may verify. See [`crate::trigger::Settings::settle`].
    pub settle: Duration,
    /// Within which Kubernetes' own migrator must take up a migration, where it goes first.
    pub taken_up_within: Duration,
    /// Where they are counted.
    pub metrics: Metrics,
    /// Ends a migration where it is. What it saved stays.
    pub stop: CancellationToken,
}

/// Without a limit, and until the end.
impl From<Pace> for MigrationSettings {
    fn from(pace: Pace) -> Self {
        Self {
            pace,
            rate: WriteRate::unlimited(),
            settle: Duration::ZERO,
            taken_up_within: TAKEN_UP_WITHIN,
            metrics: Metrics::default(),
            stop: CancellationToken::new(),
        }
    }
}
