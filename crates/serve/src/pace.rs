//! How fast a body has to come, as a rule over the time and the bytes so far.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::Instant;

/// How fast a body has to come.
#[derive(Clone, Copy, Debug)]
pub struct BodyPace {
    /// So long nothing is asked of a body.
    pub grace: Duration,
    /// From then on it has to have come at this rate.
    pub bytes_per_second: NonZeroU32,
    /// No body takes longer.
    pub longest: Duration,
}

impl Default for BodyPace {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(10),
            bytes_per_second: NonZeroU32::new(1024).expect("more than 0"),
            longest: Duration::from_secs(60),
        }
    }
}

impl BodyPace {
    /// When a body that began then is too slow, unless more of it comes.
    pub fn due(&self, began: Instant, received: usize) -> Instant {
        let paid = received as f64 / f64::from(self.bytes_per_second.get());
        // More than the longest adds nothing, and might be no time at all.
        let paid = Duration::from_secs_f64(paid.min(self.longest.as_secs_f64()));
        began + self.longest.min(self.grace + paid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_buys_time_up_to_the_longest() {
        let pace = BodyPace {
            grace: Duration::from_secs(10),
            bytes_per_second: NonZeroU32::new(100).expect("more than 0"),
            longest: Duration::from_secs(60),
        };
        let began = Instant::now();
        for (received, seconds) in [(0, 10), (100, 11), (1_000, 20), (5_000, 60), (usize::MAX, 60)] {
            assert_eq!(
                pace.due(began, received) - began,
                Duration::from_secs(seconds),
                "{received}"
            );
        }
    }
}
