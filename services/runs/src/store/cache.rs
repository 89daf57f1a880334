//! What the writer keeps in memory of runs: it is the only one that writes, so what it remembers is what is stored. A
//! transaction that fails forgets everything.

use std::collections::HashMap;

use crate::domain::{ProjectName, RunId, Status};
use crate::ledger::Queue;
use crate::lifecycle::Tokens;

/// What decisions on a run depend on.
#[derive(Clone, Debug)]
pub(super) struct RunState {
    /// Its number.
    pub number: i64,
    /// Its id.
    pub run: RunId,
    /// Its project.
    pub project: ProjectName,
    /// Its state.
    pub status: Status,
    /// In nanoseconds since the epoch.
    pub created_at: i64,
    /// In nanoseconds since the epoch.
    pub last_seen_at: i64,
    /// In nanoseconds since the epoch.
    pub finished_at: Option<i64>,
    /// Which resume tokens count.
    pub tokens: Tokens,
    /// The sum of all accepted points.
    pub points: u64,
    /// The batches that are held.
    pub queue: Queue,
    /// The numbers of its metrics, from 1 without a gap.
    pub names: HashMap<String, u32>,
}

impl RunState {
    /// Takes note of a call.
    pub(super) fn seen(&mut self, now: i64) {
        self.last_seen_at = self.last_seen_at.max(now);
    }
}

#[derive(Debug)]
struct Entry {
    state: RunState,
    is_dirty: bool,
    used: u64,
}

/// Runs by number and id.
#[derive(Debug, Default)]
pub(super) struct RunCache {
    by_number: HashMap<i64, Entry>,
    numbers: HashMap<RunId, i64>,
    /// Counts uses, so that the one that was not used for longest is known.
    uses: u64,
    names: usize,
}

impl RunCache {
    pub(super) fn number(&mut self, run: &RunId) -> Option<i64> {
        let number = *self.numbers.get(run)?;
        self.uses += 1;
        let uses = self.uses;
        if let Some(entry) = self.by_number.get_mut(&number) {
            entry.used = uses;
        }
        Some(number)
    }

    pub(super) fn get(&self, number: i64) -> Option<&RunState> {
        self.by_number.get(&number).map(|entry| &entry.state)
    }

    pub(super) fn insert(&mut self, state: RunState) {
        self.uses += 1;
        self.names += state.names.len();
        self.numbers.insert(state.run.clone(), state.number);
        let entry = Entry {
            used: self.uses,
            is_dirty: false,
            state,
        };
        self.by_number.insert(entry.state.number, entry);
    }

    /// Changes a run, which has to be written before the transaction ends.
    pub(super) fn change(&mut self, number: i64, change: impl FnOnce(&mut RunState)) {
        if let Some(entry) = self.by_number.get_mut(&number) {
            let names = entry.state.names.len();
            change(&mut entry.state);
            self.names += entry.state.names.len() - names;
            entry.is_dirty = true;
        }
    }

    /// The runs to write, in the order of their numbers; they count as written.
    pub(super) fn take_dirty(&mut self) -> Vec<RunState> {
        let dirty = self.by_number.values_mut().filter(|entry| entry.is_dirty);
        let mut states: Vec<RunState> = dirty
            .map(|entry| {
                entry.is_dirty = false;
                // Names are written when they are added.
                let names = std::mem::take(&mut entry.state.names);
                let state = entry.state.clone();
                entry.state.names = names;
                state
            })
            .collect();
        states.sort_by_key(|state| state.number);
        states
    }

    pub(super) fn remove(&mut self, number: i64) {
        if let Some(entry) = self.by_number.remove(&number) {
            self.names -= entry.state.names.len();
            self.numbers.remove(&entry.state.run);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Forgets the runs that were not used for longest while there are too many. Not within a transaction.
    pub(super) fn shrink(&mut self, runs_max: usize, names_max: usize) {
        if self.by_number.len() <= runs_max && self.names <= names_max {
            return;
        }
        let mut uses: Vec<(u64, i64)> = self
            .by_number
            .iter()
            .map(|(number, entry)| (entry.used, *number))
            .collect();
        uses.sort_unstable();
        for (_, number) in uses {
            // To half of the bounds, so that this is rare; one run always stays.
            if self.by_number.len() <= (runs_max / 2).max(1) && self.names <= names_max / 2 || self.by_number.len() == 1
            {
                break;
            }
            self.remove(number);
        }
    }
}
