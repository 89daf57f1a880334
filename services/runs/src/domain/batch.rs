//! Requests that were checked, and what their answers say.

use crate::wire::v1::ErrorDetail;

use super::ids::{BatchId, RunId};
use super::points::Points;

/// A batch: points, and over REST also parameters and tags, that are stored together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The run.
    pub run: RunId,
    /// Not empty.
    pub batch_id: BatchId,
    /// Of all that was sent, dropped points included.
    pub payload_hash: [u8; 32],
    /// Its place among the batches of the run.
    pub sequence: Option<i64>,
    /// What is left of the points.
    pub points: Points,
    /// Names and values that fit the limits.
    pub params: Vec<(String, String)>,
    /// Keys and values that fit the limits.
    pub tags: Vec<(String, String)>,
    /// What was dropped or adjusted.
    pub warnings: Vec<ErrorDetail>,
    /// The points of the request.
    pub sent: u64,
    /// The points of the request that are not in `points`.
    pub dropped: u64,
    /// When it was received, in nanoseconds since the epoch.
    pub received_at: i64,
}

/// The answer to a batch: `accepted`, `deduplicated` and `dropped` points are all that were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    /// Points that are durable now.
    pub accepted: u64,
    /// Points of a batch that was stored before.
    pub deduplicated: u64,
    /// Points that no limit let in.
    pub dropped: u64,
    /// Parameters that are new.
    pub params_accepted: u64,
    /// Parameters that were there, with the same value or another.
    pub params_existing: u64,
    /// Tags that were set.
    pub tags_updated: u64,
    /// Those of the batch and those of the store.
    pub warnings: Vec<ErrorDetail>,
    /// When it was decided, in nanoseconds since the epoch.
    pub server_time: i64,
}

impl Logged {
    /// Whether the batch was stored before.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        self.warnings
            .iter()
            .any(|warning| warning.code == super::warning::DUPLICATE_BATCH)
    }
}

/// Parameters to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamsChange {
    /// The run.
    pub run: RunId,
    /// Names and values that fit the limits, each name once.
    pub params: Vec<(String, String)>,
    /// What was dropped.
    pub warnings: Vec<ErrorDetail>,
}

/// The answer to parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamsLogged {
    /// How many are new.
    pub accepted: u64,
    /// How many were there; one with another value has a warning.
    pub existing: u64,
    /// Those of the request and those of the store.
    pub warnings: Vec<ErrorDetail>,
}

/// Tags to set and to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagsChange {
    /// The run.
    pub run: RunId,
    /// Keys and values that fit the limits; of one key the last value counts.
    pub set: Vec<(String, String)>,
    /// Removed after `set` was stored.
    pub remove: Vec<String>,
    /// What was dropped.
    pub warnings: Vec<ErrorDetail>,
}

/// The answer to tags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagsLogged {
    /// How many were set.
    pub updated: u64,
    /// How many were there and were removed.
    pub removed: u64,
    /// Those of the request and those of the store.
    pub warnings: Vec<ErrorDetail>,
}
