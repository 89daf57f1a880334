//! How long the ids of batches are remembered.

use crate::domain::Status;

const HOUR: i64 = 3_600_000_000_000;

/// When an id may be forgotten. All times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionRules {
    /// Kept so long after receipt in any case.
    pub kept: i64,
    /// Kept so long after the last activity of a run that can still be resumed: what it sends then may be what it sent.
    pub resumable: i64,
}

impl Default for RetentionRules {
    fn default() -> Self {
        Self {
            kept: 24 * HOUR,
            resumable: 7 * 24 * HOUR,
        }
    }
}

impl RetentionRules {
    /// Whether the id of a batch that was received then may be forgotten now.
    #[must_use]
    pub fn is_over(&self, received_at: i64, status: Status, last_seen_at: i64, now: i64) -> bool {
        let is_old = received_at < self.received_before(now);
        is_old && (status.is_terminal() || last_seen_at < self.seen_before(now))
    }

    /// Ids that were received earlier may be forgotten, as far as their receipt is concerned.
    #[must_use]
    pub fn received_before(&self, now: i64) -> i64 {
        now.saturating_sub(self.kept)
    }

    /// Ids of runs that have not ended may be forgotten where the run was last heard of earlier.
    #[must_use]
    pub fn seen_before(&self, now: i64) -> i64 {
        now.saturating_sub(self.resumable)
    }
}
