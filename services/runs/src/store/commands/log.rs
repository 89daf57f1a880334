//! `LogMetrics`: the ledger row, the points, the counters and what comes with them, in one transaction.

use std::collections::HashMap;
use std::sync::Arc;

use kindex_series::{Columns, batch};

use crate::domain::{Batch, Logged, MetricName, Status, warning};
use crate::ledger::{Admission, StoredMatch, admit_names, compare_with_stored};
use crate::lifecycle::{Call, permit, refusals};
use crate::limits::WARN_PERCENT;
use crate::refusal::{Code, Refusal};
use crate::store::error::held_full;
use crate::store::statements::batches::{self, NewBatch, State};
use crate::store::statements::{attributes, names};
use crate::store::transaction::{Command, Effect, Failure, Tx};

use super::attributes::{plan_params, plan_tags, write_params, write_tags};
use super::release::carry_out;

/// A batch whose points were encoded already, which is the larger part of the work and needs no transaction.
#[derive(Debug)]
pub(in crate::store) struct LogBatch {
    /// Its points are in `columns`.
    batch: Batch,
    /// The second part of the body.
    columns: Vec<u8>,
    points: u64,
    /// The points of each name.
    counts: Vec<u64>,
}

impl LogBatch {
    pub(in crate::store) fn new(mut batch: Batch) -> Self {
        let counts = batch.points.count_by_name();
        let points = batch.points.len() as u64;
        let columns = Columns {
            names: std::mem::take(&mut batch.points.name_of),
            steps: std::mem::take(&mut batch.points.steps),
            times: std::mem::take(&mut batch.points.times),
            bits: std::mem::take(&mut batch.points.values),
        };
        Self {
            columns: batch::encode_columns(&columns),
            points,
            counts,
            batch,
        }
    }

    fn names(&self) -> &[MetricName] {
        &self.batch.points.names
    }

    /// The points of names that are not known.
    fn new_counts(&self, known: &HashMap<String, u32>) -> Vec<u64> {
        let names = self.names().iter().zip(&self.counts);
        let new = names.filter(|(name, _)| !known.contains_key(name.as_str()));
        new.map(|(_, points)| *points).collect()
    }

    /// The numbers of all names, 0 for those that are not admitted; and the new ones to store.
    fn numbers<'b>(&'b self, known: &HashMap<String, u32>, admission: &Admission) -> (Vec<u32>, Vec<&'b str>) {
        let mut admitted = admission.admitted.iter();
        let mut added = Vec::new();
        let mut numbers = Vec::with_capacity(self.names().len());
        for name in self.names() {
            let number = known.get(name.as_str()).copied().unwrap_or_else(|| {
                if admitted.next() != Some(&true) {
                    return 0;
                }
                added.push(name.as_str());
                (known.len() + added.len()) as u32
            });
            numbers.push(number);
        }
        (numbers, added)
    }

    fn body(&self, numbers: &[u32]) -> Arc<[u8]> {
        let mut body = Vec::with_capacity(self.columns.len() + numbers.len() * 3 + 6);
        batch::encode_head(numbers, &mut body);
        body.extend_from_slice(&self.columns);
        body.into()
    }

    fn duplicate(&self, now: i64) -> Logged {
        Logged {
            deduplicated: self.points,
            dropped: self.batch.dropped,
            // First, since an answer has only so many.
            warnings: [&[warning::duplicate_batch()], &self.batch.warnings[..]].concat(),
            server_time: now,
            ..Logged::default()
        }
    }

    fn conflict(&self) -> Refusal {
        let message = format!(
            "Batch id {:?} of run {} is known with other content. Nothing was stored: give each batch an id of its \
             own, and send a batch again as it was.",
            self.batch.batch_id.as_str(),
            self.batch.run,
        );
        Refusal::new(Code::AlreadyExists, "BATCH_ID_CONFLICT", message).at("batch_id")
    }

    /// Stores a batch whose id is new, of a run that is running.
    async fn store(&self, tx: &mut Tx, run: i64) -> Result<Logged, Failure> {
        let settings = tx.settings();
        let state = tx.run(run);
        let new_counts = self.new_counts(&state.names);
        let admission = admit_names(
            state.names.len() as u64,
            &new_counts,
            settings.metric_names_max,
            WARN_PERCENT,
        );
        let (numbers, added) = self.numbers(&state.names, &admission);
        let first = state.names.len() as u32 + 1;
        let accepted = self.points - admission.refused_points;
        let body = self.body(&numbers);
        let expected = state.queue.expected();
        let held_bytes = tx.held_bytes().await?;
        let arrival = tx.next_arrival().await?;
        let placement = tx.run(run).queue.place(arrival, self.batch.sequence, &settings.reorder);
        if placement.is_held && held_bytes + body.len() as u64 > settings.held_bytes_max {
            return Err(held_full().into());
        }
        let mut logged = self.attributes(tx, run).await?;
        learn(tx, run, first, &added).await?;
        let arriving = Some((self.batch.sequence, arrival, self.batch.received_at));
        let ordinal = carry_out(tx, run, &placement, arriving).await?;
        let (row_state, stored_body) = match (placement.is_held, accepted) {
            (true, _) => (State::Held, Some(&body[..])),
            // There is nothing to compact.
            (false, 0) => (State::Compacted, None),
            (false, _) => (State::Applied, Some(&body[..])),
        };
        let row = NewBatch {
            arrival,
            ordinal,
            run,
            batch_id: &self.batch.batch_id,
            payload_hash: &self.batch.payload_hash,
            sequence: self.batch.sequence,
            state: row_state,
            received_at: self.batch.received_at,
            accepted,
            dropped: self.batch.sent - accepted,
            body: stored_body,
        };
        batches::insert(tx.change()?, &row).await?;
        let now = tx.now();
        tx.update(run, |state| {
            state.points += accepted;
            state.seen(now);
        });
        hand_over(tx, (run, arrival), accepted, body, placement.is_held);
        logged.accepted = accepted;
        logged.dropped = self.batch.sent - accepted;
        logged.server_time = now;
        self.warn(
            &mut logged,
            &admission,
            placement.is_late,
            expected,
            settings.metric_names_max,
        );
        Ok(logged)
    }

    /// Parameters and tags of the batch. What they depend on is read before the first of them is written.
    async fn attributes(&self, tx: &mut Tx, run: i64) -> Result<Logged, Failure> {
        let mut logged = Logged {
            warnings: self.batch.warnings.clone(),
            ..Logged::default()
        };
        let settings = tx.settings();
        if !self.batch.params.is_empty() {
            let stored = attributes::params(tx.step()?, run).await?;
            let plan = plan_params(&stored, &self.batch.params, settings.params_max);
            write_params(tx, run, &plan).await?;
            logged.params_accepted = plan.added.len() as u64;
            logged.params_existing = plan.existing;
            logged.warnings.extend(plan.warnings);
        }
        if !self.batch.tags.is_empty() {
            let stored = attributes::tags(tx.step()?, run).await?;
            let plan = plan_tags(&stored, &self.batch.tags, &[], settings.tags_max);
            write_tags(tx, run, &plan).await?;
            logged.tags_updated = plan.set.len() as u64;
            logged.warnings.extend(plan.warnings);
        }
        Ok(logged)
    }

    /// Warnings of the store come first, since an answer has only so many.
    fn warn(&self, logged: &mut Logged, admission: &Admission, is_late: bool, expected: i64, names_max: u64) {
        let mut first = Vec::new();
        if admission.refused_names > 0 {
            let (names, points) = (admission.refused_names, admission.refused_points);
            first.push(warning::cardinality_exceeded(names, points, names_max));
        }
        if admission.is_approaching {
            first.push(warning::cardinality_approaching(admission.names, names_max));
        }
        if let Some(sequence) = self.batch.sequence.filter(|_| is_late) {
            first.push(warning::sequence_late(sequence, expected));
        }
        logged.warnings.splice(0..0, first);
    }
}

impl Command for LogBatch {
    type Answer = Logged;

    async fn apply(&self, tx: &mut Tx) -> Result<Logged, Failure> {
        let id = &self.batch.run;
        let run = tx.find(id).await?.ok_or_else(|| refusals::unknown_run(id))?;
        let stored = batches::hash(tx.step()?, run, &self.batch.batch_id).await?;
        let status = tx.run(run).status;
        match compare_with_stored(stored.as_deref(), &self.batch.payload_hash) {
            StoredMatch::Conflict => Err(self.conflict().into()),
            StoredMatch::Duplicate => {
                permit(Call::LogKnown, id, Some(status))?;
                if status == Status::Running {
                    tx.seen(run);
                }
                Ok(self.duplicate(tx.now()))
            }
            StoredMatch::New => {
                permit(Call::LogNew, id, Some(status))?;
                self.store(tx, run).await
            }
        }
    }

    fn bytes(&self) -> usize {
        let texts = |pairs: &[(String, String)]| pairs.iter().map(|(a, b)| a.len() + b.len() + 64).sum::<usize>();
        let names = self.names().iter().map(|name| name.as_str().len() + 32).sum::<usize>();
        512 + self.columns.len() + names + texts(&self.batch.params) + texts(&self.batch.tags)
    }
}

/// Gives numbers to names that are new, from `first` on.
async fn learn(tx: &mut Tx, run: i64, first: u32, added: &[&str]) -> Result<(), Failure> {
    if added.is_empty() {
        return Ok(());
    }
    names::insert(tx.change()?, run, first, added).await?;
    let numbered = added.iter().zip(first..);
    let numbered = numbered.map(|(name, number)| ((*name).to_owned(), number));
    tx.update(run, |state| state.names.extend(numbered));
    Ok(())
}

/// A held batch counts as such, and one with points is compacted once it is committed.
fn hand_over(tx: &mut Tx, (run, arrival): (i64, i64), points: u64, body: Arc<[u8]>, is_held: bool) {
    if is_held {
        tx.holds(body.len() as u64, 0);
    } else if points > 0 {
        tx.after_commit(Effect::Applied {
            arrival,
            run,
            points,
            body: Some(body),
        });
    }
}
