//! Retries calls to the cluster and the database for a command in a terminal: transient errors are retried within a
//! budget, and then reported. The ingester never gives up, and has its own backoff.

use std::time::Duration;

use kindex_kube_client::ClusterError;
use kindex_store::{Retry, StoreError, backoff};
use tokio::time::{Instant, sleep};

/// How long consecutive failures are retried.
#[derive(Clone, Copy, Debug)]
pub struct RetryBudget(pub Duration);

impl Default for RetryBudget {
    /// Longer than a database takes to restart, or an API server to be replaced.
    fn default() -> Self {
        Self(Duration::from_secs(120))
    }
}

const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// An error that may be transient.
pub trait Transient: std::fmt::Display {
    /// The least pause before the next attempt; `None` if the error is permanent.
    fn retry_after(&self) -> Option<Duration>;
}

impl Transient for ClusterError {
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Retryable { retry_after, .. } => Some(retry_after.unwrap_or_default()),
            Self::NotFound(_) | Self::Unserved { .. } | Self::Conflict(_) | Self::Expired(_) | Self::Refused(_) => None,
        }
    }
}

impl Transient for StoreError {
    fn retry_after(&self) -> Option<Duration> {
        match self.retry() {
            Retry::Later => Some(Duration::ZERO),
            // Whoever sits at the terminal is the one who can change it, and learns at once what to change.
            Retry::AfterChange | Retry::Never => None,
        }
    }
}

/// Repeats a call while it fails with a transient error, until the retry budget is spent.
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
        tracing::debug!(attempt, "Retrying: {error}");
        sleep(pause).await;
        attempt += 1;
    }
}

impl RetryBudget {
    /// How long to wait before the next attempt; `None` to give up.
    fn next_pause(self, attempt: u32, waited: Duration, error: &impl Transient) -> Option<Duration> {
        let at_least = error.retry_after()?;
        let pause = backoff::pause(attempt, PAUSE_FIRST, PAUSE_MAX, &mut rand::rng()).max(at_least);
        (waited + pause <= self.0).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use kindex_kube_client::ClusterCause;

    use super::*;

    #[test]
    fn transient_errors_are_retried_after_retry_after_until_the_budget_is_spent() {
        let busy = ClusterError::Retryable {
            cause: ClusterCause::TooManyRequests,
            retry_after: Some(Duration::from_secs(7)),
            message: "busy".to_owned(),
        };
        let retry_budget = RetryBudget(Duration::from_secs(20));
        let pause = |waited| retry_budget.next_pause(1, Duration::from_secs(waited), &busy);
        assert_eq!(pause(13), Some(Duration::from_secs(7)));
        assert_eq!(pause(14), None);
    }

    #[test]
    fn permanent_errors_are_not_retried() {
        let refused = ClusterError::Refused("forbidden".to_owned());
        assert_eq!(RetryBudget::default().next_pause(1, Duration::ZERO, &refused), None);
        let schema = StoreError::Schema("no table".to_owned());
        assert_eq!(RetryBudget::default().next_pause(1, Duration::ZERO, &schema), None);
    }
}
