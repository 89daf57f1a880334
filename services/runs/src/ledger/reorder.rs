//! The order of batches that carry a sequence: one that comes early is held until those before it have come, or until
//! it has waited long enough. A held batch is durable; only its place in the order of application is open.

use std::collections::BTreeMap;

/// How long and how many batches are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderRules {
    /// Held batches of a run; one more releases all.
    pub batches_max: usize,
    /// Nanoseconds from the arrival of the oldest held batch to the release of all.
    pub wait: i64,
    /// A batch further ahead than this is applied at once.
    pub gap_max: i64,
}

impl Default for ReorderRules {
    fn default() -> Self {
        Self {
            batches_max: 100,
            wait: 30_000_000_000,
            gap_max: 1000,
        }
    }
}

/// The held batches of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The sequence that is applied next; 1 for a new run.
    expected: i64,
    /// Time of arrival by sequence and arrival number.
    held: BTreeMap<(i64, i64), i64>,
}

/// What happens when a batch arrives, or when held batches are released.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Arrival numbers of the batches to apply, in this order; the arriving batch may be among them.
    pub applied: Vec<i64>,
    /// Whether the arriving batch is held.
    pub is_held: bool,
    /// Whether it belongs before batches that were applied.
    pub is_late: bool,
    /// The sequence that is applied next.
    pub expected: i64,
}

impl Queue {
    /// Of a run whose next sequence is known, with nothing held.
    #[must_use]
    pub fn new(expected: i64) -> Self {
        Self {
            expected,
            held: BTreeMap::new(),
        }
    }

    /// Puts back a batch that is stored as held.
    pub fn restore(&mut self, sequence: i64, arrival: i64, received_at: i64) {
        self.held.insert((sequence, arrival), received_at);
    }

    /// The sequence that is applied next.
    #[must_use]
    pub fn expected(&self) -> i64 {
        self.expected
    }

    /// How many are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether none is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// When the oldest held batch arrived.
    #[must_use]
    pub fn oldest(&self) -> Option<i64> {
        self.held.values().min().copied()
    }

    /// Whether the oldest held batch has waited long enough.
    #[must_use]
    pub fn is_due(&self, now: i64, rules: &ReorderRules) -> bool {
        self.oldest()
            .is_some_and(|oldest| now.saturating_sub(oldest) >= rules.wait)
    }

    /// Decides on a batch that arrives; changes nothing.
    #[must_use]
    pub fn place(&self, arrival: i64, sequence: Option<i64>, rules: &ReorderRules) -> Placement {
        let alone = |is_late| Placement {
            applied: vec![arrival],
            is_held: false,
            is_late,
            expected: self.expected,
        };
        let Some(sequence) = sequence else {
            return alone(false);
        };
        if sequence < self.expected {
            return alone(true);
        }
        if sequence.saturating_sub(self.expected) > rules.gap_max {
            return alone(false);
        }
        if sequence == self.expected {
            return self.gap_closed(arrival);
        }
        if self.held.len() >= rules.batches_max {
            let mut full = self.clone();
            full.restore(sequence, arrival, 0);
            return full.release();
        }
        Placement {
            applied: Vec::new(),
            is_held: true,
            is_late: false,
            expected: self.expected,
        }
    }

    /// The expected batch, and all held ones that follow without a gap.
    fn gap_closed(&self, arrival: i64) -> Placement {
        let mut applied = vec![arrival];
        let mut expected = self.expected.saturating_add(1);
        for (sequence, held) in self.held.keys() {
            if *sequence > expected {
                break;
            }
            applied.push(*held);
            expected = sequence.saturating_add(1).max(expected);
        }
        Placement {
            applied,
            is_held: false,
            is_late: false,
            expected,
        }
    }

    /// Decides to apply all that is held, in the order of their sequences, whatever is missing; changes nothing.
    #[must_use]
    pub fn release(&self) -> Placement {
        let highest = self
            .held
            .keys()
            .next_back()
            .map(|(sequence, _)| sequence.saturating_add(1));
        Placement {
            applied: self.held.keys().map(|(_, arrival)| *arrival).collect(),
            is_held: false,
            is_late: false,
            expected: highest.unwrap_or(self.expected).max(self.expected),
        }
    }

    /// Takes note of a decision that was carried out; `arriving` is the batch that it was about, if any.
    pub fn settle(&mut self, placement: &Placement, arriving: Option<(i64, i64, i64)>) {
        self.expected = placement.expected;
        self.held.retain(|(_, arrival), _| !placement.applied.contains(arrival));
        if let Some((sequence, arrival, received_at)) = arriving.filter(|_| placement.is_held) {
            self.restore(sequence, arrival, received_at);
        }
    }
}
