//! Which services have just been silent, so that not everybody waits for them. Pure.

use std::collections::HashMap;
use std::time::Duration;

use kindex_kube_client::ClusterError;
use tokio::time::Instant;

/// How long nobody else waits for a service that was silent.
const SPARED: Duration = Duration::from_secs(5);

/// Until when services are not waited for, by the groups of their kinds.
#[derive(Default)]
pub(super) struct SilentServices(HashMap<&'static str, Instant>);

impl SilentServices {
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

/// Whether a service is there: also one that refuses to say anything of an object may answer for others. The outer
/// error is that it has said nothing in time.
pub(super) fn has_answered<T, E>(asked: &Result<Result<T, ClusterError>, E>) -> bool {
    match asked {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => !error.is_silence(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use kindex_kube_client::ClusterCause;

    use super::*;

    #[test]
    fn a_service_that_refuses_one_object_is_asked_about_others() {
        let refused = |error| has_answered::<(), ()>(&Ok(Err(error)));
        let late = ClusterError::Retryable {
            cause: ClusterCause::Unavailable,
            retry_after: None,
            message: String::new(),
        };
        assert!(refused(ClusterError::Refused("forbidden".to_owned())));
        assert!(!refused(late));
        assert!(!has_answered::<(), ()>(&Err(())), "no answer in time");
        assert!(has_answered::<(), ()>(&Ok(Ok(()))));
    }

    #[test]
    fn after_a_silence_one_finds_out_whether_the_service_is_back_and_nobody_else_waits() {
        let (mut silent, now) = (SilentServices::default(), Instant::now());
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
