//! Group commit: which batches are in flight, when the next one may begin, and how a rejected batch is halved until the
//! rejected object is alone. Versions for the history are part of the batches.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use kindex_decide::ingest::{Action, Write};
use kindex_decide::row::{Row, RowText};
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::row_version::RowVersion;
use kindex_query::Life;
use kindex_store::RowWrite;

use super::entry::{Entry, Observation};
use super::environment::Environment;
use super::records::{Records, Taken};
use crate::message::{Output, StoreFailure, Ticket};

#[derive(Debug, Default)]
pub(super) struct Commit {
    reading: BTreeMap<Ticket, Vec<Uid>>,
    writing: BTreeMap<Ticket, Writing>,
    next_ticket: Ticket,
    /// Halves of rejected batches. They are written before the queue.
    groups: VecDeque<Vec<Uid>>,
    gate: StoreGate,
    records: Records,
}

/// A batch that is being written: rows, and the versions that go into the history with them.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) items: Vec<Item>,
    records: Taken,
}

/// One write of a batch.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) uid: Uid,
    pub(super) action: Action,
    /// The row once the write is committed.
    pub(super) after: Row,
}

/// Closed for a pause after a failure of the database.
#[derive(Debug, Default)]
struct StoreGate {
    until: Duration,
    attempts: u32,
}

/// How the rows of a rejected batch are retried.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RetryPlan {
    /// In these groups, in order.
    Groups(Vec<Vec<Uid>>),
    /// This object is the rejected one.
    Alone(Uid),
}

impl Commit {
    pub(super) fn records(&self) -> &Records {
        &self.records
    }

    pub(super) fn records_mut(&mut self) -> &mut Records {
        &mut self.records
    }

    fn in_flight(&self) -> usize {
        self.reading.len() + self.writing.len()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight() == 0
    }

    /// Whether the database did not answer the last batch.
    pub(super) fn is_failing(&self) -> bool {
        self.gate.attempts > 0
    }

    /// Whether another batch may begin.
    pub(super) fn has_room(&self, env: &Environment) -> bool {
        self.in_flight() < env.settings.concurrent_reconciles && self.gate.until <= env.now.elapsed
    }

    /// Whether versions wait for the history without a row to write.
    pub(super) fn may_record_alone(&self) -> bool {
        self.is_idle() && self.records.pending()
    }

    /// When the next batch may begin, if it may not begin now. `queued_until` is the time at which the queue is written
    /// although the batch is not full.
    pub(super) fn deadline(&self, env: &Environment, queued_until: Option<Duration>) -> Option<Duration> {
        let free = self.in_flight() < env.settings.concurrent_reconciles;
        if !free {
            None
        } else if !self.groups.is_empty() {
            Some(self.gate.until)
        } else if let Some(lingered) = queued_until {
            Some(self.gate.until.max(lingered))
        } else {
            self.may_record_alone().then_some(self.gate.until)
        }
    }

    /// Part of a batch that was refused, where there is one.
    pub(super) fn next_group(&mut self) -> Option<Vec<Uid>> {
        self.groups.pop_front()
    }

    /// Those that wait in parts of refused batches.
    pub(super) fn grouped(&self) -> impl Iterator<Item = &Uid> {
        self.groups.iter().flatten()
    }

    /// Writes an object alone, so that it does not make the database reject others.
    pub(super) fn isolate(&mut self, uid: &Uid) {
        self.groups.push_back(vec![uid.clone()]);
    }

    pub(super) fn next_ticket(&mut self) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        ticket
    }

    /// Begins a batch by reading the rows `unknown`.
    pub(super) fn read(&mut self, env: &mut Environment, ticket: Ticket, uids: Vec<Uid>, unknown: Vec<Uid>) {
        self.reading.insert(ticket, uids);
        env.emit(Output::ReadRows(ticket, unknown));
    }

    /// The batch whose rows were read.
    pub(super) fn end_reading(&mut self, ticket: Ticket) -> Option<Vec<Uid>> {
        self.reading.remove(&ticket)
    }

    /// Writes a batch, with versions for the history as there is room. Returns false if there is nothing to write.
    pub(super) fn write(
        &mut self,
        env: &mut Environment,
        ticket: Ticket,
        items: Vec<Item>,
        mut writes: Vec<RowWrite<Object>>,
    ) -> bool {
        let records = self.records.join(&mut writes, env.settings.batch_rows_max);
        if writes.is_empty() {
            return false;
        }
        if !items.is_empty() {
            env.metrics.batch_rows.observe(items.len() as f64);
        }
        self.writing.insert(ticket, Writing { items, records });
        env.emit(Output::Write(ticket, writes));
        true
    }

    /// The batch that was written, or was to be.
    pub(super) fn end_writing(&mut self, ticket: Ticket) -> Option<Writing> {
        self.writing.remove(&ticket)
    }

    /// The database answers.
    pub(super) fn open_gate(&mut self) {
        self.gate = StoreGate::default();
    }

    /// A batch is committed.
    pub(super) fn on_success(&mut self, batch: &Writing) {
        self.open_gate();
        self.records.on_committed(&batch.records, !batch.items.is_empty());
    }

    /// What becomes of the versions for the history of a batch that failed.
    pub(super) fn on_records_failure(
        &mut self,
        env: &mut Environment,
        records: &Taken,
        rows: bool,
        failure: &StoreFailure,
    ) {
        self.records.on_failure(env, records, rows, failure);
    }

    /// Begins no batch for a while.
    pub(super) fn close_gate(&mut self, env: &mut Environment, cause: &'static str) {
        self.gate.attempts = self.gate.attempts.saturating_add(1);
        self.gate.until = env.now.elapsed + env.backoff(self.gate.attempts, cause);
    }

    /// Puts the groups of a refused batch before all others.
    pub(super) fn retry_in(&mut self, groups: Vec<Vec<Uid>>) {
        for group in groups.into_iter().rev() {
            self.groups.push_front(group);
        }
    }

    /// Drops everything: the cluster was restored.
    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.records.clear();
    }
}

impl Writing {
    /// Whether it marks a row deleted.
    pub(super) fn deletes(&self) -> bool {
        self.items.iter().any(|item| item.after.life == Life::Deleted)
    }

    /// Takes it apart after a failure.
    pub(super) fn into_parts(self) -> (Vec<Item>, Taken) {
        (self.items, self.records)
    }
}

impl RetryPlan {
    /// Halves the rows of a rejected batch. If it contained versions for the history, those may be the cause: the rows
    /// are retried once without them.
    pub(super) fn of(mut uids: Vec<Uid>, with_others: bool) -> Self {
        match uids.as_slice() {
            [] => Self::Groups(Vec::new()),
            [uid] if !with_others => Self::Alone(uid.clone()),
            _ if with_others => Self::Groups(vec![uids]),
            _ => {
                let second = uids.split_off(uids.len() / 2);
                Self::Groups(vec![uids, second])
            }
        }
    }
}

/// The write of an entry, and the row once it is committed.
pub(super) fn planned(env: &Environment, uid: &Uid, entry: &Entry, write: Write) -> (RowWrite<Object>, Row) {
    let row = entry.row.flatten();
    match write {
        Write::SoftDelete => {
            let after = Row {
                version: row.map_or(RowVersion::Cluster(ResourceVersion(0)), |row| row.version),
                life: Life::Deleted,
                text: row.map_or(RowText::Foreign, |row| row.text),
            };
            (RowWrite::SoftDelete { uid: uid.clone() }, after)
        }
        Write::Store { life, revive } => {
            log_deletion(env, entry, life);
            let version = entry.newest().object().expect("only texts are stored").clone();
            let after = Row {
                version: RowVersion::Cluster(version.metadata.resource_version),
                life,
                text: RowText::Trusted,
            };
            (RowWrite::Store { version, life, revive }, after)
        }
    }
}

fn log_deletion(env: &Environment, entry: &Entry, life: Life) {
    let Observation::Present(object) = entry.newest() else {
        return;
    };
    let (kind, name) = (env.kind.name, &entry.name);
    let head = env.head(object);
    if head.deletion_timestamp.is_some() {
        tracing::info!(kind, object = %name, "Object is being deleted");
        let closed = entry.row.flatten().is_some_and(|row| row.life == Life::Deleted);
        if life == Life::Deleted && !closed {
            tracing::info!(kind, object = %name, "Grace period expired, deleting from metadata storage");
        }
    } else if head.deleting {
        tracing::info!(kind, object = %name, "Object marked for deletion via annotation");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uids(names: &[&str]) -> Vec<Uid> {
        names.iter().map(|name| Uid::from(*name)).collect()
    }

    #[test]
    fn a_refused_batch_is_halved_until_one_is_alone() {
        let all = uids(&["a", "b", "c"]);
        let halves = vec![uids(&["a"]), uids(&["b", "c"])];
        assert_eq!(RetryPlan::of(all, false), RetryPlan::Groups(halves));
        assert_eq!(RetryPlan::of(uids(&["a"]), false), RetryPlan::Alone(Uid::from("a")));
        assert_eq!(RetryPlan::of(Vec::new(), false), RetryPlan::Groups(Vec::new()));
    }

    #[test]
    fn rows_beside_versions_for_the_history_are_tried_once_more_without_those() {
        for rows in [uids(&["a"]), uids(&["a", "b"])] {
            assert_eq!(RetryPlan::of(rows.clone(), true), RetryPlan::Groups(vec![rows]));
        }
        assert_eq!(RetryPlan::of(Vec::new(), true), RetryPlan::Groups(Vec::new()));
    }

    #[test]
    fn halves_go_before_other_groups_and_in_their_order() {
        let mut commit = Commit::default();
        commit.isolate(&Uid::from("alone"));
        commit.retry_in(vec![uids(&["a"]), uids(&["b"])]);
        let groups: Vec<_> = std::iter::from_fn(|| commit.next_group()).collect();
        assert_eq!(groups, [uids(&["a"]), uids(&["b"]), uids(&["alone"])]);
    }
}
