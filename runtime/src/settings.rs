//! The numbers that one kind's controller works with. Knows nothing of files.

use std::time::Duration;

/// How one kind is ingested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Parallel batch writers; effects get [`Settings::effects_max`] and [`Settings::questions_max`] of their own.
    pub concurrent_reconciles: usize,
    /// Longest pause between two attempts at anything.
    pub requeue_period: Duration,
    /// How long a soft delete waits after the deletion was asked for.
    pub deletion_delay: Duration,
    /// How long our finalizer stays on an object that is being deleted while others hold it.
    pub finalizer_wait: Duration,
    /// Whether objects without our finalizer are adopted.
    pub adopt_finalizers: bool,
    /// Whether the versions of all rows are kept in memory, to skip what did not change
    /// and spare the read before each batch.
    pub version_cache: bool,
    /// Most objects a batch.
    pub batch_rows_max: usize,
    /// How long an object waits for a full batch while another batch is being written.
    pub linger: Duration,
    /// How many objects may be pending before the watch is no longer read.
    pub pending_max: usize,
    /// Most objects a page of a list.
    pub page_rows: u32,
    /// How often the checkpoint is saved. A restart repeats what happened since, and a process that is killed
    /// repeatedly must still make progress.
    pub checkpoint_period: Duration,
    /// How long a watch may go on before SQL is compared with the whole list; zero: without limit.
    pub compare_period: Duration,
    /// When a relist may close rows.
    pub orphan_limits: OrphanLimits,
    /// How many rows the first comparison after the start may close in spite of the limits. Above 0, the ingester
    /// compares SQL with the whole list before it watches.
    pub orphans_allowed: usize,
}

/// A relist that would close more rows than both limits closes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrphanLimits {
    /// Rows that may always be closed.
    pub rows_max: u32,
    /// Share of the live rows that may be closed, in percent.
    pub percent_max: u32,
}

impl OrphanLimits {
    /// Whether closing this many of so many live rows exceeds both limits.
    pub fn forbids(&self, orphans: usize, live: usize) -> bool {
        let over_share = orphans as u64 * 100 > live as u64 * u64::from(self.percent_max);
        orphans > self.rows_max as usize && over_share
    }
}

impl Settings {
    /// Effects in flight at once, without questions about what objects own: they wait for the network, not for a
    /// processor.
    pub fn effects_max(&self) -> usize {
        const EFFECTS_PER_WORKER: usize = 4;
        self.concurrent_reconciles * EFFECTS_PER_WORKER
    }

    /// Questions in flight at once about what objects own. Fewer, because a cluster may look at all objects of a kind
    /// for one.
    pub fn questions_max(&self) -> usize {
        const QUESTIONS_PER_WORKER: usize = 2;
        self.concurrent_reconciles * QUESTIONS_PER_WORKER
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrent_reconciles: 1,
            requeue_period: Duration::from_secs(30),
            deletion_delay: Duration::ZERO,
            finalizer_wait: Duration::from_secs(600),
            adopt_finalizers: false,
            version_cache: false,
            batch_rows_max: 200,
            linger: Duration::from_millis(3),
            pending_max: 10_000,
            page_rows: 500,
            checkpoint_period: Duration::from_secs(1),
            compare_period: Duration::from_secs(24 * 3_600),
            orphan_limits: OrphanLimits {
                rows_max: 100,
                percent_max: 50,
            },
            orphans_allowed: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_empties_a_big_table_is_not_believed() {
        let limits = Settings::default().orphan_limits;
        assert!(!limits.forbids(100, 100), "few rows may always be closed");
        assert!(!limits.forbids(500, 1000), "half is believable");
        assert!(limits.forbids(501, 1000));
    }
}
