//! At most so many things a second, over the whole of a run. Pure; time comes in.

use std::time::Duration;

/// What was let through since the start.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    per_second: Option<f64>,
    passed: f64,
}

impl Pace {
    /// Without a number there is no limit.
    pub fn new(per_second: Option<f64>) -> Self {
        Self {
            per_second: per_second.filter(|number| *number > 0.0),
            passed: 0.0,
        }
    }

    /// Takes up so many objects, and says how long to wait before the next ones.
    pub fn pass(&mut self, objects: usize, elapsed: Duration) -> Duration {
        let Some(per_second) = self.per_second else {
            return Duration::ZERO;
        };
        self.passed += objects as f64;
        let due = Duration::try_from_secs_f64(self.passed / per_second).unwrap_or(Duration::MAX);
        due.saturating_sub(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_never_exceeds_its_rate() {
        let mut pace = Pace::new(Some(100.0));
        assert_eq!(pace.pass(50, Duration::ZERO), Duration::from_millis(500));
        assert_eq!(pace.pass(50, Duration::from_millis(500)), Duration::from_millis(500));
        assert_eq!(pace.pass(50, Duration::from_secs(9)), Duration::ZERO, "slow by itself");
        assert_eq!(Pace::new(None).pass(1_000_000, Duration::ZERO), Duration::ZERO);
    }
}
