//! The newest batches in memory, so that readers need not fetch them from the file. Bodies never change, so that what
//! is here is right for as long as the row has not been compacted; what is missing is read.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
struct State {
    bodies: HashMap<i64, Arc<[u8]>>,
    /// Oldest first; some may be gone.
    order: VecDeque<i64>,
    bytes: usize,
}

/// Bodies by arrival number, within a budget of bytes.
#[derive(Debug)]
pub(super) struct Tail {
    state: Mutex<State>,
    bytes_max: usize,
}

/// What an entry costs beside its bytes.
const OVERHEAD: usize = 96;

impl Tail {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            bytes_max,
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().expect("nothing panics while it has the tail"))
    }

    /// Adds a body; the oldest ones make room.
    pub(super) fn insert(&self, arrival: i64, body: Arc<[u8]>) {
        self.with(|state| {
            state.bytes += body.len() + OVERHEAD;
            state.order.push_back(arrival);
            state.bodies.insert(arrival, body);
            while state.bytes > self.bytes_max || state.order.len() > 2 * state.bodies.len() + 64 {
                let Some(oldest) = state.order.pop_front() else { break };
                // One that is gone already makes the list shorter.
                state.drop_body(oldest);
            }
        });
    }

    pub(super) fn get(&self, arrival: i64) -> Option<Arc<[u8]>> {
        self.with(|state| state.bodies.get(&arrival).cloned())
    }

    /// Drops bodies that are in chunks.
    pub(super) fn remove(&self, arrivals: &[i64]) {
        self.with(|state| {
            for arrival in arrivals {
                state.drop_body(*arrival);
            }
        });
    }

    /// The budget.
    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// How many bytes are kept.
    pub(super) fn bytes(&self) -> usize {
        self.with(|state| state.bytes)
    }
}

impl State {
    fn drop_body(&mut self, arrival: i64) {
        if let Some(body) = self.bodies.remove(&arrival) {
            self.bytes -= body.len() + OVERHEAD;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_stays_within_its_budget_and_keeps_the_newest() {
        let tail = Tail::new(10 * (100 + OVERHEAD));
        for arrival in 0..1000 {
            tail.insert(arrival, vec![0; 100].into());
            assert!(tail.bytes() <= 10 * (100 + OVERHEAD));
        }
        assert!(tail.get(989).is_none());
        assert!(tail.get(990).is_some());
        tail.remove(&(990..1000).collect::<Vec<i64>>());
        assert_eq!(tail.bytes(), 0);
    }

    #[test]
    fn bodies_that_are_gone_leave_no_trace() {
        let tail = Tail::new(1_000_000);
        for arrival in 0..10_000 {
            tail.insert(arrival, vec![0; 10].into());
            tail.remove(&[arrival]);
        }
        assert_eq!(tail.bytes(), 0);
        assert!(tail.with(|state| state.order.len()) < 100);
    }
}
