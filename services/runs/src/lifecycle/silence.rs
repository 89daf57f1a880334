//! When silence means that a run has crashed. Time in which the server did not listen, because it was down, suspended
//! or its clock was set, is nobody's silence.

/// How long a run may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceRules {
    /// Nanoseconds without a call of the run until it has crashed.
    pub crash_after: i64,
    /// A longer time between two looks is downtime.
    pub look_within: i64,
}

impl Default for SilenceRules {
    fn default() -> Self {
        Self {
            crash_after: 300_000_000_000,
            look_within: 60_000_000_000,
        }
    }
}

/// Since when the server has listened without a break. All times are nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    since: i64,
    looked_at: i64,
}

impl Watch {
    /// Begins to listen.
    #[must_use]
    pub fn begin(now: i64) -> Self {
        Self {
            since: now,
            looked_at: now,
        }
    }

    /// Looks at the clock; a clock that went back or leapt ahead begins anew.
    #[must_use]
    pub fn look(self, now: i64, rules: &SilenceRules) -> Self {
        let passed = now.checked_sub(self.looked_at);
        let is_unbroken = passed.is_some_and(|passed| (0..=rules.look_within).contains(&passed));
        if is_unbroken {
            Self { looked_at: now, ..self }
        } else {
            Self::begin(now)
        }
    }

    /// Runs that were last heard of at this time or before have crashed; none where the server has not listened long
    /// enough to know.
    #[must_use]
    pub fn silent_since(&self, rules: &SilenceRules) -> Option<i64> {
        let limit = self.looked_at.saturating_sub(rules.crash_after);
        (self.since <= limit).then_some(limit)
    }

    /// Whether a run has crashed that was last heard of then.
    #[must_use]
    pub fn has_crashed(&self, last_seen_at: i64, rules: &SilenceRules) -> bool {
        self.silent_since(rules).is_some_and(|limit| last_seen_at <= limit)
    }
}
