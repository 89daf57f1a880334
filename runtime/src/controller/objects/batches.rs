//! The path of objects through a batch: their rows are read, they are decided on and written together, and each
//! continues with the result of its write.

use std::collections::HashMap;
use std::time::Duration;

use kindex_decide::ingest::OwnedObjects;
use kindex_decide::row::Row;
use kindex_model::object::Uid;
use kindex_store::{RowState, Written};

use super::Objects;
use crate::controller::commit::{Item, RetryPlan, planned};
use crate::controller::entry::{Observation, Resume, State};
use crate::controller::environment::Environment;
use crate::controller::reports::Reports;
use crate::message::{Outcome, StoreFailure, Ticket};

impl Objects {
    pub(in super::super) fn begin_batches(&mut self, env: &mut Environment) {
        while self.commit.has_room(env) {
            let group = self.commit.next_group();
            let uids = group.unwrap_or_else(|| self.pending.next_batch(env, self.commit.is_idle()));
            if uids.is_empty() && !self.commit.may_record_alone() {
                return;
            }
            self.begin_batch(env, uids);
        }
    }

    /// When the next batch may begin, if it may not begin now.
    pub(in super::super) fn batch_deadline(&self, env: &Environment) -> Option<Duration> {
        let queued = !self.pending.is_queue_empty();
        let lingered = queued.then(|| self.pending.lingers_until(&env.settings));
        self.commit.deadline(env, lingered)
    }

    fn begin_batch(&mut self, env: &mut Environment, uids: Vec<Uid>) {
        let ticket = self.commit.next_ticket();
        let mut unknown = Vec::new();
        for uid in &uids {
            let entry = self.pending.entry_mut(uid);
            entry.state = State::Batch;
            if entry.row.is_none() {
                entry.overtaken = false;
                unknown.push(uid.clone());
            }
        }
        if unknown.is_empty() {
            self.write_batch(env, ticket, uids);
        } else {
            self.commit.read(env, ticket, uids, unknown);
        }
    }

    pub(in super::super) fn on_rows(
        &mut self,
        env: &mut Environment,
        ticket: Ticket,
        answer: Result<Vec<RowState>, StoreFailure>,
    ) {
        let Some(uids) = self.commit.end_reading(ticket) else {
            return;
        };
        let states = match answer {
            Ok(states) => states,
            Err(failure) => {
                let deletes = uids.iter().any(|uid| self.is_leaving(env, uid));
                return self.on_batch_failure(env, uids, deletes, false, &failure);
            }
        };
        let states: HashMap<&Uid, &RowState> = states.iter().map(|state| (&state.uid, state)).collect();
        let mut known = Vec::with_capacity(uids.len());
        for uid in uids {
            let entry = self.pending.entry_mut(&uid);
            if entry.row.is_none() && entry.outdates_rows() {
                self.enqueue(env, &uid);
                continue;
            }
            if entry.row.is_none() {
                let observed = entry.newest().object();
                entry.row = Some(states.get(&uid).map(|state| Row::beside(state, observed)));
            }
            known.push(uid);
        }
        // A database that answers reads may still refuse every write.
        if !self.write_batch(env, ticket, known) {
            self.commit.open_gate();
        }
    }

    /// Decides on the entries of a batch and writes the result. Returns false if there is nothing to write.
    fn write_batch(&mut self, env: &mut Environment, ticket: Ticket, uids: Vec<Uid>) -> bool {
        let mut items = Vec::with_capacity(uids.len());
        let mut writes = Vec::with_capacity(uids.len());
        for uid in uids {
            let action = self.pending.decide(env, &uid);
            let entry = self.pending.entry(&uid);
            match action.write.map(|write| planned(env, &uid, entry, write)) {
                Some((write, after)) => {
                    writes.push(write);
                    items.push(Item { uid, action, after });
                }
                None => self.apply_then(env, &uid, action.then),
            }
        }
        self.commit.write(env, ticket, items, writes)
    }

    /// Whether the object is being deleted, is annotated for deletion, or is gone.
    fn is_leaving(&self, env: &Environment, uid: &Uid) -> bool {
        match self.pending.entry(uid).newest() {
            Observation::Present(object) => env.head(object).is_leaving(),
            Observation::Gone(_) => true,
        }
    }

    pub(in super::super) fn on_written(
        &mut self,
        env: &mut Environment,
        ticket: Ticket,
        answer: Result<Vec<Outcome>, StoreFailure>,
    ) {
        let Some(batch) = self.commit.end_writing(ticket) else {
            return;
        };
        match answer {
            Ok(outcomes) => {
                self.commit.on_success(&batch);
                for (item, outcome) in batch.into_parts().0.into_iter().zip(outcomes) {
                    self.on_committed(env, item, &outcome);
                }
            }
            Err(failure) => {
                let deletes = batch.deletes();
                let (items, records) = batch.into_parts();
                for item in &items {
                    let entry = self.pending.entry_mut(&item.uid);
                    entry.write_unsure |= failure.retryable;
                    let revives = item.action.revives();
                    // Until the next attempt, the object may leave, and its row be archived or deleted once more.
                    if failure.retryable && revives {
                        entry.confirmed = None;
                    }
                }
                let uids: Vec<Uid> = items.into_iter().map(|item| item.uid).collect();
                let rows = !uids.is_empty();
                self.on_batch_failure(env, uids, deletes, records.has_others(), &failure);
                self.commit.on_records_failure(env, &records, rows, &failure);
            }
        }
    }

    fn on_committed(&mut self, env: &mut Environment, item: Item, outcome: &Outcome) {
        let Item { uid, action, after } = item;
        env.metrics.count_written(outcome.written);
        if outcome.written == Written::Superseded {
            // The look at the cluster was for a row that another ingester has written since.
            self.pending.entry_mut(&uid).confirmed = None;
            self.pending.forget_row(&uid);
            let resume = Resume::Decide;
            return self.pending.retry(env, &uid, "superseded", Duration::ZERO, resume);
        }
        let entry = self.pending.entry(&uid);
        if action.revives() {
            env.metrics.revived.inc();
            tracing::warn!(kind = env.kind.name, object = %entry.name, %uid,
                "The row was marked deleted, or archived, while the object is alive; revived");
        }
        self.quarantine.on_recorded(env, &uid);
        Reports::replaced(env, &uid, entry, &outcome.replaced);
        self.reports.problems(env, &uid, entry, &outcome.problems);
        env.metrics.observe_lag(env.now.elapsed - entry.arrived);
        self.pending.remember_row(&uid, after);
        let entry = self.pending.entry_mut(&uid);
        entry.row = Some(Some(after));
        entry.write_unsure = false;
        if !entry.overtaken {
            return self.apply_then(env, &uid, action.then);
        }
        entry.arrived = env.now.elapsed;
        self.quarantine.release(env, &uid, entry);
        // If the object left meanwhile, another ingester may have written the row since.
        if entry.outdates_rows() {
            entry.row = None;
        }
        self.enqueue(env, &uid);
    }

    /// After a transient failure, puts the batch back at the head of the queue and pauses writing. Whether the batch
    /// was written is unknown.
    fn on_batch_failure(
        &mut self,
        env: &mut Environment,
        uids: Vec<Uid>,
        deletes: bool,
        with_others: bool,
        failure: &StoreFailure,
    ) {
        let what = if deletes {
            "Failed to delete from metadata storage"
        } else {
            "Failed to write to metadata storage"
        };
        // Names one object: preferably one whose deletion waits.
        let named = uids.iter().find(|uid| self.is_leaving(env, uid)).or(uids.first());
        let named = named.map(|uid| self.pending.entry(uid).name.clone());
        // An object that is refused repeatedly has already been logged.
        if !matches!(uids.as_slice(), [uid] if !failure.retryable && self.quarantine.is_unrecorded(uid)) {
            env.note_batch_failure(what, failure, named.as_ref(), deletes);
        }
        for uid in &uids {
            self.pending.forget_row(uid);
            let entry = self.pending.entry_mut(uid);
            entry.row = None;
            entry.state = State::Grouped;
        }
        if failure.retryable {
            self.commit.close_gate(env, failure.cause);
            // Other groups wait for as long as the queue.
            for uid in self.commit.grouped() {
                self.pending.entry_mut(uid).owned_objects = OwnedObjects::Unknown;
            }
            return self.pending.requeue(uids);
        }
        // An object that asked again for what it owns would leave its half of the batch, so no answer is forgotten.
        match RetryPlan::of(uids, with_others) {
            RetryPlan::Groups(groups) => self.commit.retry_in(groups),
            RetryPlan::Alone(uid) => self.quarantine(env, &uid, &failure.message),
        }
    }
}
