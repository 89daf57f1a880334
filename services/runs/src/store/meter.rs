//! What is measured of a store while it works: its transactions, what it holds back, and runs that went silent.

use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{Gauge, Histogram, HistogramOpts, IntCounter, IntGauge};

/// From a group that only memory sees to a disk that hardly answers.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];
/// Up to the largest group.
const COMMANDS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// The measures of one store. Clones count together.
#[derive(Clone, Debug)]
pub struct Meter {
    seconds: Histogram,
    commands: Histogram,
    held: IntGauge,
    crashed: IntCounter,
    looked_at: Gauge,
}

/// Measures that nobody sees.
impl Default for Meter {
    fn default() -> Self {
        let histogram = |name: &str, help: &str, buckets: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
            Histogram::with_opts(options).expect("a valid name")
        };
        let gauge = |name: &str, help: &str| IntGauge::new(name, help).expect("a valid name");
        let looked = "When silent runs and held batches were last looked for, in seconds since 1970.";
        Self {
            seconds: histogram(
                "kindex_runs_commit_seconds",
                "Time of a transaction that was committed, from its first statement on.",
                SECONDS,
            ),
            commands: histogram("kindex_runs_commit_commands", "Commands per transaction.", COMMANDS),
            held: gauge(
                "kindex_runs_held_bytes",
                "Bytes of batches that wait for batches before them.",
            ),
            crashed: IntCounter::new(
                "kindex_runs_crashed_total",
                "Runs that have crashed: nothing was heard of them.",
            )
            .expect("a valid name"),
            looked_at: Gauge::new("kindex_runs_last_look_timestamp_seconds", looked).expect("a valid name"),
        }
    }
}

impl Meter {
    /// Everything that is measured.
    #[must_use]
    pub fn collectors(&self) -> [&dyn Collector; 5] {
        [
            &self.seconds,
            &self.commands,
            &self.held,
            &self.crashed,
            &self.looked_at,
        ]
    }

    /// A transaction of so many commands was committed after this time.
    pub(super) fn committed(&self, commands: usize, after: Duration) {
        self.seconds.observe(after.as_secs_f64());
        self.commands.observe(commands as f64);
    }

    /// So many bytes of batches are held.
    pub(super) fn holds(&self, bytes: u64) {
        self.held.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Silent runs were looked for at a time, in nanoseconds since the epoch, and so many were found.
    pub(super) fn looked(&self, now: i64, crashed: usize) {
        self.looked_at.set(now as f64 / 1e9);
        self.crashed.inc_by(crashed as u64);
    }
}
