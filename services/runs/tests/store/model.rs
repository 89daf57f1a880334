//! What a store holds, said as plainly as possible: no columns, no chunks, no groups, no file.

use std::collections::BTreeMap;

use kindex_runs::domain::{Batch, Status};
use kindex_runs::ledger::ReorderRules;

/// What the model answers to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelAnswer {
    Stored(u64),
    Known,
    Refused,
}

#[derive(Clone, Debug)]
pub(crate) struct ModelRun {
    pub(crate) status: Status,
    pub(crate) generation: i64,
    /// The newest token that was shown.
    pub(crate) shown: i64,
    pub(crate) last_seen: i64,
    pub(crate) points: u64,
    pub(crate) expected: i64,
    pub(crate) values: BTreeMap<(String, i64), (i64, u64)>,
    pub(crate) params: BTreeMap<String, String>,
    hashes: BTreeMap<String, [u8; 32]>,
    /// In the order of arrival.
    pub(crate) held: Vec<Batch>,
}

impl ModelRun {
    pub(crate) fn new(now: i64) -> Self {
        Self {
            status: Status::Running,
            generation: 1,
            shown: 1,
            last_seen: now,
            points: 0,
            expected: 1,
            values: BTreeMap::new(),
            params: BTreeMap::new(),
            hashes: BTreeMap::new(),
            held: Vec::new(),
        }
    }

    fn apply(&mut self, batch: &Batch) {
        let points = &batch.points;
        for at in 0..points.len() {
            let name = points.names[points.name_of[at] as usize].as_str().to_owned();
            self.values
                .insert((name, points.steps[at]), (points.times[at], points.values[at]));
        }
    }

    /// Applies the held batches for which `is_chosen`, in the order of their sequences.
    fn release(&mut self, is_chosen: impl Fn(i64) -> bool) {
        let sequence = |batch: &Batch| batch.sequence.expect("only these are held");
        let (mut released, kept): (Vec<Batch>, Vec<Batch>) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|batch| is_chosen(sequence(batch)));
        self.held = kept;
        released.sort_by_key(sequence);
        for batch in released {
            self.apply(&batch);
            self.expected = self.expected.max(sequence(&batch) + 1);
        }
    }

    pub(crate) fn release_all(&mut self) {
        self.release(|_| true);
    }

    pub(crate) fn log(&mut self, batch: &Batch, now: i64, rules: &ReorderRules) -> ModelAnswer {
        match self.hashes.get(batch.batch_id.as_str()) {
            Some(hash) if *hash != batch.payload_hash => return ModelAnswer::Refused,
            Some(_) => {
                if self.status == Status::Running {
                    self.last_seen = now;
                }
                return ModelAnswer::Known;
            }
            None if self.status != Status::Running => return ModelAnswer::Refused,
            None => {}
        }
        self.last_seen = now;
        self.hashes
            .insert(batch.batch_id.as_str().to_owned(), batch.payload_hash);
        self.points += batch.points.len() as u64;
        match batch.sequence {
            Some(sequence) if sequence > self.expected && sequence - self.expected <= rules.gap_max => {
                self.held.push(batch.clone());
                if self.held.len() > rules.batches_max {
                    self.release_all();
                }
            }
            sequence => {
                self.apply(batch);
                if sequence == Some(self.expected) {
                    self.expected += 1;
                    while self.held.iter().any(|held| held.sequence == Some(self.expected)) {
                        let next = self.expected;
                        self.release(|sequence| sequence <= next);
                    }
                    // A second batch of the sequence that has just come waits for nothing.
                    let next = self.expected;
                    self.release(|sequence| sequence < next);
                }
            }
        }
        ModelAnswer::Stored(batch.points.len() as u64)
    }

    pub(crate) fn is_due(&self, now: i64, rules: &ReorderRules) -> bool {
        self.held.iter().any(|held| now - held.received_at >= rules.wait)
    }

    pub(crate) fn param(&mut self, name: &str, value: &str) {
        self.params.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}
