//! The calls, whichever transport they came by: who may make one, what is kept of its request, and the answer.

mod fence;

mod ingest;

mod query;

use std::sync::Arc;

use crate::artifacts::Artifacts;
use crate::domain::{Clock, nanos};
use crate::metrics::Metrics;
use crate::read::Reader;
use crate::roles::Ingest;
use crate::secrets::Secrets;
use crate::validate::Oversized;

/// The calls.
pub struct Operations {
    /// Takes in runs.
    pub store: Arc<dyn Ingest>,
    /// Keeps the files of runs.
    pub artifacts: Arc<Artifacts>,
    /// Reads runs.
    pub reader: Arc<Reader>,
    /// By which resume tokens are signed.
    pub secrets: Secrets,
    /// The time.
    pub clock: Clock,
    /// What becomes of a batch that is over its limits.
    pub oversized: Oversized,
    /// What is counted.
    pub metrics: Metrics,
}

impl Operations {
    /// The time of receipt, in nanoseconds since the epoch.
    pub(crate) fn now(&self) -> i64 {
        nanos((self.clock)()).unwrap_or_default()
    }
}
