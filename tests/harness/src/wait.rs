//! Waiting for what must happen, in tests: for the condition itself, and long enough for a machine that does a dozen
//! other things. A run that passes never waits for the end of a deadline.

use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for anything that must happen.
pub const WAIT_MAX: Duration = Duration::from_secs(240);

/// Between two looks, at least.
const PERIOD: Duration = Duration::from_millis(10);
/// Between two looks that take long.
const PERIOD_MAX: Duration = Duration::from_millis(400);

/// Looks again and again until there is what is waited for. Where a look begins a process, as most do, the tests beside
/// it have the processors for two thirds of the time.
///
/// # Panics
/// When it does not come; the message holds what was seen last.
pub fn wait_until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let began = Instant::now();
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(
                Instant::now() < deadline,
                "{what} did not come within {WAIT_MAX:?}: {seen}"
            ),
        }
        thread::sleep((began.elapsed() * 2).clamp(PERIOD, PERIOD_MAX));
    }
}

/// Looks again and again, among other tasks, until the condition holds.
///
/// # Panics
/// When it does not come to hold.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + WAIT_MAX;
    // A look that never ends is no reason to wait for ever.
    while !tokio::time::timeout_at(deadline, holds()).await.unwrap_or(false) {
        assert!(
            tokio::time::Instant::now() < deadline,
            "{what} did not come within {WAIT_MAX:?}"
        );
        tokio::time::sleep(PERIOD).await;
    }
}

/// Looks again and again, among other tasks, until there is what is waited for.
///
/// # Panics
/// When it does not come; the message holds what was seen last.
pub async fn eventually_ok<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let deadline = tokio::time::Instant::now() + WAIT_MAX;
    let mut last = "nothing".to_owned();
    loop {
        // A look that never ends is no reason to wait for ever.
        match tokio::time::timeout_at(deadline, look()).await {
            Ok(Ok(found)) => return found,
            Ok(Err(seen)) => last = seen,
            Err(_) => {}
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "{what} did not come within {WAIT_MAX:?}: {last}"
        );
        tokio::time::sleep(PERIOD).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_condition_that_holds_late_is_waited_for() {
        let mut looks = 0;
        eventually("the third look", async || {
            looks += 1;
            looks == 3
        })
        .await;
        assert_eq!(looks, 3);
    }

    #[tokio::test]
    async fn what_comes_late_is_waited_for_among_other_tasks() {
        let mut looks = 0;
        let found = eventually_ok("the third look", async || {
            looks += 1;
            match looks {
                3 => Ok(looks),
                _ => Err(format!("look {looks}")),
            }
        })
        .await;
        assert_eq!(found, 3);
    }

    #[test]
    fn what_comes_late_is_waited_for() {
        let mut looks = 0;
        let found = wait_until("the third look", || {
            looks += 1;
            if looks == 3 {
                Ok(looks)
            } else {
                Err(format!("look {looks}"))
            }
        });
        assert_eq!(found, 3);
    }
}
