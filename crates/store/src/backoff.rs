//! Pauses between attempts: doubling, capped, with jitter. Pure; randomness comes in.

use std::time::Duration;

use rand::{Rng, RngExt};

/// Pause before attempt number `attempt` (the first retry is 1).
///
/// # Guarantees
/// Between half and all of `base * 2^(attempt - 1)`, never above `cap`, never zero.
pub fn pause(attempt: u32, base: Duration, cap: Duration, rng: &mut (impl Rng + ?Sized)) -> Duration {
    let doublings = attempt.saturating_sub(1).min(20);
    let full = base
        .saturating_mul(1 << doublings)
        .min(cap)
        .max(Duration::from_millis(1));
    full.mul_f64(rng.random_range(0.5..=1.0))
}

/// First pause by cause: a deadlock is over at once, a lost server is not.
pub fn base(cause: &str) -> Duration {
    match cause {
        "deadlock" | "rolled_back" | "lock_wait" | "lock_wait_timeout" | "snapshot" | "busy" | "conflict" => {
            Duration::from_millis(5)
        }
        _ => Duration::from_millis(100),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn pauses_double_with_jitter_and_stop_at_the_cap() {
        let mut rng = StdRng::seed_from_u64(1);
        let cap = Duration::from_secs(30);
        let base = Duration::from_millis(100);
        for attempt in 1..200 {
            let full = base.saturating_mul(1 << attempt.min(20_u32).saturating_sub(1)).min(cap);
            let pause = pause(attempt, base, cap, &mut rng);
            assert!(pause <= full && pause >= full / 2, "attempt {attempt}: {pause:?}");
        }
    }

    #[test]
    fn two_controllers_do_not_retry_in_step() {
        let cap = Duration::from_secs(30);
        let mut one = StdRng::seed_from_u64(1);
        let mut two = StdRng::seed_from_u64(2);
        assert_ne!(
            pause(5, base("connection"), cap, &mut one),
            pause(5, base("connection"), cap, &mut two)
        );
    }
}
