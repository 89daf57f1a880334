//! Which services have just been silent, so that not everybody waits for them. Pure.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// How long nobody else waits for a service that was silent.
const SPARED: Duration = Duration::from_secs(5);

/// Until when services are not waited for, by the groups of their kinds.
#[derive(Default)]
pub(super) struct Silent(HashMap<&'static str, Instant>);

impl Silent {
    /// Whether a service is asked now. Of those who come once the time is over, only the first finds out whether the
    /// service is back.
    pub(super) fn may_be_asked(&mut self, group: &str, now: Instant) -> bool {
        match self.0.get_mut(group) {
            None => true,
            Some(until) if now < *until => false,
            Some(until) => {
                *until = now + SPARED;
                true
            }
        }
    }

    /// A service has answered, or it was silent until now.
    pub(super) fn note(&mut self, group: &'static str, has_answered: bool, now: Instant) {
        match has_answered {
            true => self.0.remove(group),
            false => self.0.insert(group, now + SPARED),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_silence_one_finds_out_whether_the_service_is_back_and_nobody_else_waits() {
        let (mut silent, now) = (Silent::default(), Instant::now());
        assert!(silent.may_be_asked("region", now));
        silent.note("region", false, now);
        let just_before = now + SPARED - Duration::from_millis(1);
        assert!(!silent.may_be_asked("region", just_before));
        assert!(silent.may_be_asked("identity", now), "another one");
        assert!(silent.may_be_asked("region", now + SPARED));
        assert!(!silent.may_be_asked("region", now + SPARED), "one does already");
        silent.note("region", true, now + SPARED);
        assert!(silent.may_be_asked("region", now + SPARED));
    }
}
