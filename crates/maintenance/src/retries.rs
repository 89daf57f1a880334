//! Calls on cluster and database for who waits at a terminal: what may pass is tried again
//! for a while, and then said. The ingester, which never gives up, has its own ways.

use std::time::Duration;

use kindex_kube_client::ClusterError;
use kindex_store::{StoreError, backoff};
use tokio::time::{Instant, sleep};

/// How long failures in a row are borne.
#[derive(Clone, Copy, Debug)]
pub struct RetryBudget(pub Duration);

impl Default for RetryBudget {
    /// Longer than a database takes to start again, or an API server to be replaced.
    fn default() -> Self {
        Self(Duration::from_secs(120))
    }
}

const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// An error that says whether it may pass.
pub trait Transient: std::fmt::Display {
    /// The least pause before another attempt is worth it; `None` where none ever is.
    fn retry_after(&self) -> Option<Duration>;
}

impl Transient for ClusterError {
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Retryable { retry_after, .. } => Some(retry_after.unwrap_or_default()),
            Self::NotFound(_) | Self::Conflict(_) | Self::Expired(_) | Self::Refused(_) => None,
        }
    }
}

impl Transient for StoreError {
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Retryable { .. } => Some(Duration::ZERO),
            Self::Refused { .. }
            | Self::Schema(_)
            | Self::Corrupt { .. }
            | Self::Address(_)
            | Self::Continue(_)
            | Self::NoHistory(_)
            | Self::Template(_)
            | Self::Direct { .. }
            | Self::Everything(_) => None,
        }
    }
}

/// Calls until the answer is no error that may pass, or the retry budget is spent.
pub async fn with_retries<T, E: Transient, F: Future<Output = Result<T, E>>>(
    retry_budget: RetryBudget,
    mut call: impl FnMut() -> F,
) -> Result<T, E> {
    let began = Instant::now();
    let mut attempt = 1;
    loop {
        let error = match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let Some(pause) = retry_budget.next_pause(attempt, began.elapsed(), &error) else {
            return Err(error);
        };
        tracing::debug!(attempt, "Trying again: {error}");
        sleep(pause).await;
        attempt += 1;
    }
}

impl RetryBudget {
    /// How long to wait before another attempt; `None` where none is worth it.
    fn next_pause(self, attempt: u32, waited: Duration, error: &impl Transient) -> Option<Duration> {
        let at_least = error.retry_after()?;
        let pause = backoff::pause(attempt, PAUSE_FIRST, PAUSE_MAX, &mut rand::rng()).max(at_least);
        (waited + pause <= self.0).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_tried_again_no_sooner_than_asked_until_the_budget_is_spent() {
        let busy = ClusterError::Retryable {
            cause: "too_many_requests",
            retry_after: Some(Duration::from_secs(7)),
            message: "busy".to_owned(),
        };
        let retry_budget = RetryBudget(Duration::from_secs(20));
        let pause = |waited| retry_budget.next_pause(1, Duration::from_secs(waited), &busy);
        assert_eq!(pause(13), Some(Duration::from_secs(7)));
        assert_eq!(pause(14), None);
    }

    #[test]
    fn what_does_not_pass_is_not_repeated() {
        let refused = ClusterError::Refused("forbidden".to_owned());
        assert_eq!(RetryBudget::default().next_pause(1, Duration::ZERO, &refused), None);
        let schema = StoreError::Schema("no table".to_owned());
        assert_eq!(RetryBudget::default().next_pause(1, Duration::ZERO, &schema), None);
    }
}
