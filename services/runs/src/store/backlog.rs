//! Which runs have points that are not in chunks, how many, and which run is to be compacted next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Points that wait longer are compacted however few they are, in nanoseconds.
const WAIT_MAX: i64 = 600_000_000_000;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Make chunks of batches of a run.
    Compact(i64),
    /// Give the chunks of a run their last encoding.
    Seal(i64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    points: u64,
    /// Since when.
    since: i64,
}

#[derive(Debug, Default)]
struct State {
    runs: BTreeMap<i64, Waiting>,
    ended: BTreeSet<i64>,
    total: u64,
}

/// The backlog of compaction.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    state: Mutex<State>,
}

impl Backlog {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().expect("nothing panics while it counts points"))
    }

    /// All points that wait.
    pub(super) fn total(&self) -> u64 {
        self.with(|state| state.total)
    }

    /// Points of a run were applied.
    pub(super) fn add(&self, run: i64, points: u64, now: i64) {
        self.with(|state| {
            state.total += points;
            let waiting = state.runs.entry(run).or_insert(Waiting { points: 0, since: now });
            waiting.points += points;
        });
    }

    /// Points of a run are in chunks.
    pub(super) fn remove(&self, run: i64, points: u64, now: i64) {
        self.with(|state| {
            if let Some(waiting) = state.runs.get_mut(&run) {
                let points = points.min(waiting.points);
                waiting.points -= points;
                waiting.since = now;
                state.total -= points;
                if waiting.points == 0 {
                    state.runs.remove(&run);
                }
            }
        });
    }

    /// A run has no points that wait.
    pub(super) fn empty(&self, run: i64) {
        self.with(|state| {
            if let Some(waiting) = state.runs.remove(&run) {
                state.total -= waiting.points;
            }
        });
    }

    /// A run has ended.
    pub(super) fn ended(&self, run: i64) {
        self.with(|state| state.ended.insert(run));
    }

    /// A run has its last encoding, goes on, or is gone.
    pub(super) fn sealed(&self, run: i64) {
        self.with(|state| state.ended.remove(&run));
    }

    /// First the run with most points if it has enough of them, then what has ended, then what has waited long enough.
    pub(super) fn next(&self, enough: u64, now: i64) -> Option<Work> {
        self.with(|state| {
            let most = state.runs.iter().max_by_key(|(_, waiting)| waiting.points);
            if let Some((run, waiting)) = most
                && waiting.points >= enough
            {
                return Some(Work::Compact(*run));
            }
            if let Some(run) = state.ended.first() {
                let has_points = state.runs.contains_key(run);
                return Some(if has_points {
                    Work::Compact(*run)
                } else {
                    Work::Seal(*run)
                });
            }
            let is_old = |waiting: &Waiting| now.saturating_sub(waiting.since) >= WAIT_MAX;
            let old = state.runs.iter().find(|(_, waiting)| is_old(waiting));
            old.map(|(run, _)| Work::Compact(*run))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_with_most_points_is_first_then_what_has_ended_then_what_is_old() {
        let backlog = Backlog::default();
        backlog.add(1, 40, 0);
        backlog.add(2, 100, 5);
        backlog.add(3, 120, 5);
        backlog.ended(1);
        backlog.ended(4);
        assert_eq!(backlog.next(100, 0), Some(Work::Compact(3)));
        backlog.remove(3, 120, 6);
        assert_eq!(backlog.next(100, 0), Some(Work::Compact(2)));
        backlog.remove(2, 99, 6);
        assert_eq!(backlog.next(100, 0), Some(Work::Compact(1)), "before it is sealed");
        backlog.empty(1);
        assert_eq!(backlog.next(100, 0), Some(Work::Seal(1)));
        backlog.sealed(1);
        assert_eq!(backlog.next(100, 0), Some(Work::Seal(4)));
        backlog.sealed(4);
        assert_eq!(backlog.next(100, 5 + WAIT_MAX), None);
        assert_eq!(backlog.next(100, 6 + WAIT_MAX), Some(Work::Compact(2)));
        assert_eq!(backlog.total(), 1);
    }
}
