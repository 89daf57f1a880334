//! How a store is run.

use std::fmt;
use std::sync::Arc;

use crate::ledger::{ReorderRules, RetentionRules};
use crate::lifecycle::SilenceRules;
use crate::limits;

const MIB: usize = 1024 * 1024;

/// What an answer survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process; a power failure may take the last transactions along.
    #[default]
    Normal,
    /// A power failure too.
    Full,
}

/// For tests: is asked before every statement of a transaction, with how many there were, and makes it fail.
#[derive(Clone)]
pub struct Faults(pub Arc<dyn Fn(u64) -> bool + Send + Sync>);

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

/// How a store is run; the defaults suit a service.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What an answer survives.
    pub durability: Durability,
    /// How long batches are held for those before them.
    pub reorder: ReorderRules,
    /// When a run has crashed.
    pub silence: SilenceRules,
    /// How long ids of batches are remembered.
    pub retention: RetentionRules,
    /// Commands that share a transaction at most.
    pub group_max: usize,
    /// Commands that wait for the writer at most.
    pub queue_max: usize,
    /// Bytes that wait for the writer at most.
    pub queue_bytes_max: usize,
    /// Bytes of held batches of all runs at most.
    pub held_bytes_max: u64,
    /// Bytes of batches that are kept in memory for readers.
    pub tail_bytes_max: usize,
    /// Points of a run that are compacted together, and at which it is done.
    pub compact_points: u64,
    /// Chunks that one transaction of compaction writes, so that batches do not wait long for it.
    pub compact_chunks: usize,
    /// Points that wait for compaction at most, over all runs.
    pub backlog_points_max: u64,
    /// Metrics of a run.
    pub metric_names_max: u64,
    /// Parameters of a run.
    pub params_max: u64,
    /// Tags of a run.
    pub tags_max: u64,
    /// Running runs of a project that get no warning.
    pub active_runs_max: u64,
    /// Names of metrics that the writer keeps in memory, over all runs.
    pub cached_names_max: usize,
    /// Runs that the writer keeps in memory.
    pub cached_runs_max: usize,
    /// Whether compaction, checkpoints and what depends on time go on by themselves; a test may call for each instead.
    pub in_background: bool,
    /// For tests.
    pub faults: Option<Faults>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            durability: Durability::Normal,
            reorder: ReorderRules::default(),
            silence: SilenceRules::default(),
            retention: RetentionRules::default(),
            group_max: 256,
            queue_max: 4096,
            queue_bytes_max: 48 * MIB,
            held_bytes_max: 1024 * MIB as u64,
            tail_bytes_max: 64 * MIB,
            compact_points: 50_000,
            compact_chunks: 32,
            backlog_points_max: 200_000_000,
            metric_names_max: limits::METRIC_NAMES_OF_RUN.max as u64,
            params_max: limits::PARAMS_OF_RUN.max as u64,
            tags_max: limits::TAGS_OF_RUN.max as u64,
            active_runs_max: 10_000,
            cached_names_max: 200_000,
            cached_runs_max: 4_096,
            in_background: true,
            faults: None,
        }
    }
}
