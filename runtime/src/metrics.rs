//! What one kind's ingester counts. Plain atomics that a controller moves and a
//! reader copies; knows no exposition format.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Something that only grows, or is set anew.
#[derive(Debug, Default)]
pub struct Number(AtomicU64);

impl Number {
    /// Adds.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Replaces.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Reads.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts of observations under fixed upper bounds.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    counts: Vec<AtomicU64>,
    sum: AtomicU64,
}

impl Histogram {
    /// A histogram with these upper bounds, ascending, and one more bucket without any.
    pub fn new(bounds: &'static [u64]) -> Self {
        Self {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        }
    }

    /// Counts one observation.
    pub fn observe(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Upper bounds with the number of observations at or below each; the last bound is
    /// `None`, above which there is nothing.
    pub fn cumulative(&self) -> Vec<(Option<u64>, u64)> {
        let bounds = self.bounds.iter().copied().map(Some).chain([None]);
        let mut total = 0;
        let counts = self.counts.iter().map(|count| {
            total += count.load(Ordering::Relaxed);
            total
        });
        bounds.zip(counts).collect()
    }

    /// The mean of all observations; `None` before the first.
    pub fn mean(&self) -> Option<u64> {
        let count = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        self.sum().checked_div(count)
    }

    /// Sum of all observations.
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}

const LAG_MICROS: &[u64] = &[
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    5_000_000,
    30_000_000,
    300_000_000,
];
const BATCH_ROWS: &[u64] = &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];

/// The figures of one kind.
#[derive(Debug)]
pub struct KindMetrics {
    /// From the arrival of an event to its committed row, in microseconds.
    pub lag_micros: Histogram,
    /// Rows a batch.
    pub batch_rows: Histogram,
    /// Watch events received.
    pub events: Number,
    /// Events that a newer one of the same uid replaced before they were stored.
    pub collapsed: Number,
    /// Rows inserted.
    pub inserted: Number,
    /// Rows changed.
    pub updated: Number,
    /// Writes that found the row as it should be.
    pub unchanged: Number,
    /// Writes that lost against a newer row.
    pub superseded: Number,
    /// Objects pending now.
    pub queue_depth: Number,
    /// Objects in quarantine, as far as this process put them there.
    pub quarantined: Number,
    /// Objects that left the cluster for SQL.
    pub evicted: Number,
    /// Deletions of which SQL never held the object.
    pub lost: Number,
    /// Rows that were marked deleted while the cluster showed the object alive.
    pub revived: Number,
    /// Stored objects that did not fit their typed projection.
    pub problems: Number,
    /// Texts from the cluster that are no objects.
    pub unreadable: Number,
    /// Full lists.
    pub relists: Number,
    /// Live rows whose object a list did not show.
    pub orphans: Number,
    retries: Mutex<BTreeMap<&'static str, u64>>,
}

impl Default for KindMetrics {
    fn default() -> Self {
        Self {
            lag_micros: Histogram::new(LAG_MICROS),
            batch_rows: Histogram::new(BATCH_ROWS),
            events: Number::default(),
            collapsed: Number::default(),
            inserted: Number::default(),
            updated: Number::default(),
            unchanged: Number::default(),
            superseded: Number::default(),
            queue_depth: Number::default(),
            quarantined: Number::default(),
            evicted: Number::default(),
            lost: Number::default(),
            revived: Number::default(),
            problems: Number::default(),
            unreadable: Number::default(),
            relists: Number::default(),
            orphans: Number::default(),
            retries: Mutex::default(),
        }
    }
}

impl KindMetrics {
    /// Counts one more attempt for this cause.
    pub fn retry(&self, cause: &'static str) {
        let mut retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        *retries.entry(cause).or_default() += 1;
    }

    /// Attempts by cause.
    pub fn retries(&self) -> BTreeMap<&'static str, u64> {
        self.retries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts the time from an event's arrival to its row.
    pub fn observe_lag(&self, lag: Duration) {
        self.lag_micros
            .observe(u64::try_from(lag.as_micros()).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_counts_under_every_bound_that_holds_it() {
        let histogram = Histogram::new(&[1, 5]);
        for value in [1, 2, 5, 6] {
            histogram.observe(value);
        }
        assert_eq!(histogram.cumulative(), [(Some(1), 1), (Some(5), 3), (None, 4)]);
        assert_eq!(histogram.sum(), 14);
    }
}
