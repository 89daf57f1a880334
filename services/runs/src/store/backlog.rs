//! Which runs have points that are not in chunks, how many, which run is to be compacted next, and which ones are put
//! aside because their compaction failed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crate::domain::RunId;

/// Points that wait longer are compacted however few they are, in nanoseconds.
const WAIT_MAX: i64 = 600_000_000_000;
/// How long a run is put aside after a first failure, in nanoseconds; after each further one, twice as long.
const DEFERRAL_MIN: i64 = 1_000_000_000;
/// How long a run is put aside at most.
const DEFERRAL_MAX: i64 = 300_000_000_000;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Make chunks of batches of a run.
    Compact(i64),
    /// Give the chunks of a run their last encoding.
    Seal(i64),
}

impl Work {
    /// The run.
    pub(super) fn run(self) -> i64 {
        match self {
            Self::Compact(run) | Self::Seal(run) => run,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    points: u64,
    /// Since when.
    since: i64,
}

/// A run whose compaction failed.
#[derive(Debug)]
struct Deferred {
    id: RunId,
    reason: String,
    /// How long it is put aside.
    wait: i64,
    until: i64,
}

#[derive(Debug, Default)]
struct State {
    runs: BTreeMap<i64, Waiting>,
    ended: BTreeSet<i64>,
    deferred: BTreeMap<i64, Deferred>,
    total: u64,
}

impl State {
    fn has_work(&self, run: i64) -> bool {
        self.runs.contains_key(&run) || self.ended.contains(&run)
    }

    fn forget_idle(&mut self, run: i64) {
        if !self.has_work(run) {
            self.deferred.remove(&run);
        }
    }
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
            state.forget_idle(run);
        });
    }

    /// A run has ended.
    pub(super) fn ended(&self, run: i64) {
        self.with(|state| state.ended.insert(run));
    }

    /// A run has its last encoding, goes on, or is gone.
    pub(super) fn sealed(&self, run: i64) {
        self.with(|state| {
            state.ended.remove(&run);
            state.forget_idle(run);
        });
    }

    /// A step of a run was done.
    pub(super) fn succeeded(&self, run: i64) {
        self.with(|state| state.deferred.remove(&run));
    }

    /// A step of a run failed: others go first for a while. Whether that is news, by its reason.
    pub(super) fn defer(&self, run: i64, id: RunId, reason: &str, now: i64) -> bool {
        self.with(|state| {
            if !state.has_work(run) {
                return false;
            }
            let known = state.deferred.remove(&run);
            let is_news = known.as_ref().is_none_or(|known| known.reason != reason);
            let wait = known.map_or(DEFERRAL_MIN, |known| (known.wait * 2).min(DEFERRAL_MAX));
            let deferred = Deferred {
                id,
                reason: reason.to_owned(),
                wait,
                until: now.saturating_add(wait),
            };
            state.deferred.insert(run, deferred);
            is_news
        })
    }

    /// How many runs are put aside.
    pub(super) fn deferred(&self) -> usize {
        self.with(|state| state.deferred.len())
    }

    /// Whether too many points wait for a run to get more. Runs that are put aside share a limit of their own, since
    /// their points may wait forever, and no other run is to be refused for that.
    pub(super) fn is_full(&self, run: &RunId, points_max: u64) -> bool {
        self.with(|state| {
            if state.total <= points_max {
                return false;
            }
            let points = |run: &i64| state.runs.get(run).map_or(0, |waiting| waiting.points);
            let of_deferred: u64 = state.deferred.keys().map(points).sum();
            let is_deferred = state.deferred.values().any(|deferred| deferred.id == *run);
            let waiting = match is_deferred {
                true => of_deferred,
                false => state.total - of_deferred,
            };
            waiting > points_max
        })
    }

    /// First the run with most points if it has enough of them, then what has ended, then what has waited long enough.
    /// A run that is put aside is none of them until its time has come.
    pub(super) fn next(&self, enough: u64, now: i64) -> Option<Work> {
        self.with(|state| {
            let is_due = |run: i64| state.deferred.get(&run).is_none_or(|deferred| deferred.until <= now);
            let due = state.runs.iter().filter(|(run, _)| is_due(**run));
            let most = due.clone().max_by_key(|(_, waiting)| waiting.points);
            if let Some((run, waiting)) = most
                && waiting.points >= enough
            {
                return Some(Work::Compact(*run));
            }
            if let Some(run) = state.ended.iter().find(|run| is_due(**run)) {
                let has_points = state.runs.contains_key(run);
                return Some(if has_points {
                    Work::Compact(*run)
                } else {
                    Work::Seal(*run)
                });
            }
            let is_old = |waiting: &Waiting| now.saturating_sub(waiting.since) >= WAIT_MAX;
            let old = due.clone().find(|(_, waiting)| is_old(waiting));
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

    /// As if the one that failed were the most urgent one again at every step.
    #[test]
    fn a_run_whose_compaction_failed_lets_every_other_go_first() {
        let backlog = Backlog::default();
        backlog.add(1, 300, 0);
        backlog.add(2, 200, 0);
        backlog.ended(3);
        backlog.ended(4);
        for (work, next) in [
            (Work::Compact(1), Some(Work::Compact(2))),
            (Work::Compact(2), Some(Work::Seal(3))),
            (Work::Seal(3), Some(Work::Seal(4))),
            (Work::Seal(4), None),
        ] {
            assert_eq!(backlog.next(100, 0), Some(work));
            assert!(backlog.defer(work.run(), RunId::new("r"), "damaged", 0));
            assert_eq!(backlog.next(100, 0), next);
        }
        assert_eq!(backlog.next(100, DEFERRAL_MIN - 1), None);
        assert_eq!(backlog.next(100, DEFERRAL_MIN), Some(Work::Compact(1)));
        assert_eq!(backlog.deferred(), 4);
    }

    #[test]
    fn each_failure_doubles_the_wait_and_only_another_reason_is_news() {
        let backlog = Backlog::default();
        backlog.ended(1);
        let mut now = 0;
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            assert_eq!(backlog.defer(1, RunId::new("r"), "damaged", now), now == 0);
            let wait = seconds * 1_000_000_000;
            assert_eq!(backlog.next(100, now + wait - 1), None, "{seconds} s");
            assert_eq!(backlog.next(100, now + wait), Some(Work::Seal(1)), "{seconds} s");
            now += wait;
        }
        assert!(backlog.defer(1, RunId::new("r"), "a panic", now));
        backlog.succeeded(1);
        assert_eq!((backlog.deferred(), backlog.next(100, now)), (0, Some(Work::Seal(1))));
        assert!(backlog.defer(1, RunId::new("r"), "a panic", now));
        assert_eq!(backlog.next(100, now + DEFERRAL_MIN), Some(Work::Seal(1)));
        backlog.sealed(1);
        assert_eq!(backlog.deferred(), 0);
        assert!(!backlog.defer(1, RunId::new("r"), "damaged", now), "it was deleted");
        assert_eq!(backlog.deferred(), 0);
    }

    #[test]
    fn runs_that_are_put_aside_have_a_limit_of_their_own() {
        let backlog = Backlog::default();
        let (damaged, other) = (RunId::new("damaged"), RunId::new("other"));
        let full = || (backlog.is_full(&damaged, 100), backlog.is_full(&other, 100));
        backlog.add(1, 100, 0);
        assert_eq!(full(), (false, false));
        backlog.add(2, 1, 0);
        assert_eq!(full(), (true, true));
        backlog.defer(1, damaged.clone(), "damaged", 0);
        assert_eq!(full(), (false, false));
        backlog.add(1, 1, 0);
        assert_eq!(full(), (true, false));
        backlog.add(2, 100, 0);
        assert_eq!(full(), (true, true));
        backlog.remove(2, 1, 0);
        assert_eq!(full(), (true, false));
        backlog.succeeded(1);
        assert_eq!(full(), (true, true));
    }
}
