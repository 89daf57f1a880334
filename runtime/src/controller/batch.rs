//! Group commit: pending objects are read, decided and written together, one
//! transaction a batch. A batch that the database refuses is halved until the
//! object that it refuses is alone.

use std::collections::HashMap;
use std::time::Duration;

use kindex_model::object::{ResourceVersion, Uid};
use kindex_query::Life;
use kindex_store::{RowState, Written, backoff};

use super::super::decide::{self, Action, Context, Row, RowText, Then, Write};
use super::super::message::{Outcome, Output, PlannedWrite, StoreFailure, Ticket};
use super::Controller;
use super::entry::{Observation, Resume, State};
use super::records::Taken;

/// A batch that is under way.
#[derive(Debug)]
pub(super) enum Batch {
    Reading(Vec<Uid>),
    /// Rows, and the versions that go into the history with them.
    Writing(Vec<Item>, Taken),
}

/// One write of a batch.
#[derive(Debug)]
pub(super) struct Item {
    uid: Uid,
    action: Action,
    /// The row once the write is committed.
    after: Row,
}

/// Closed while the database is not asked for anything, after a failure.
#[derive(Debug, Default)]
pub(super) struct StoreGate {
    until: Duration,
    attempts: u32,
}

impl StoreGate {
    pub(super) fn is_closed(&self) -> bool {
        self.attempts > 0
    }
}

impl Controller {
    pub(super) fn begin_batches(&mut self) {
        while !self.is_paused()
            && self.batches.len() < self.settings.concurrent_reconciles
            && self.store_gate.until <= self.now.elapsed
        {
            let uids = self.next_batch();
            if uids.is_empty() && !self.may_record_alone() {
                return;
            }
            self.begin_batch(uids);
        }
    }

    /// Whether versions wait for the history that no row takes along.
    fn may_record_alone(&self) -> bool {
        self.batches.is_empty() && self.records.pending()
    }

    /// When a batch could begin that may not begin now.
    pub(super) fn batch_deadline(&self) -> Option<Duration> {
        let pending = !self.queue.is_empty() || !self.groups.is_empty();
        let free = self.batches.len() < self.settings.concurrent_reconciles;
        (free && !self.is_paused() && (pending || self.may_record_alone())).then(|| {
            let lingered = self.queue_since + self.settings.linger;
            if pending && self.groups.is_empty() {
                self.store_gate.until.max(lingered)
            } else {
                self.store_gate.until
            }
        })
    }

    /// Halves of a refused batch go first. Otherwise whatever is pending, at once where
    /// no batch is under way; else when it is enough, or has waited for company.
    fn next_batch(&mut self) -> Vec<Uid> {
        if let Some(group) = self.groups.pop_front() {
            return group;
        }
        let rows_max = self.settings.batch_rows_max;
        let lingered = self.queue_since + self.settings.linger <= self.now.elapsed;
        if !self.batches.is_empty() && self.queue.len() < rows_max && !lingered {
            return Vec::new();
        }
        self.queue_since = self.now.elapsed;
        self.queue.drain(..rows_max.min(self.queue.len())).collect()
    }

    fn begin_batch(&mut self, uids: Vec<Uid>) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let mut unknown = Vec::new();
        for uid in &uids {
            let entry = self.entries.get_mut(uid).expect("queued entries exist");
            entry.state = State::Batch;
            if entry.row.is_none() {
                entry.overtaken = false;
                unknown.push(uid.clone());
            }
        }
        if unknown.is_empty() {
            return self.write_batch(ticket, uids);
        }
        self.batches.insert(ticket, Batch::Reading(uids));
        self.out.push(Output::ReadRows(ticket, unknown));
    }

    pub(super) fn on_rows(&mut self, ticket: Ticket, answer: Result<Vec<RowState>, StoreFailure>) {
        let Some(Batch::Reading(uids)) = self.batches.remove(&ticket) else {
            return;
        };
        let states = match answer {
            Ok(states) => states,
            Err(failure) => {
                let deletes = uids.iter().any(|uid| self.is_leaving(uid));
                return self.on_batch_failure(uids, deletes, false, &failure);
            }
        };
        let states: HashMap<&Uid, &RowState> = states.iter().map(|state| (&state.uid, state)).collect();
        let mut known = Vec::with_capacity(uids.len());
        for uid in uids {
            let entry = self.entries.get_mut(&uid).expect("entries in a batch exist");
            if entry.row.is_none() && entry.outdates_rows() {
                self.enqueue(&uid);
                continue;
            }
            if entry.row.is_none() {
                let observed = entry.newest().object();
                entry.row = Some(states.get(&uid).map(|state| Row::beside(state, observed)));
            }
            known.push(uid);
        }
        self.write_batch(ticket, known);
        // A database that answers reads may still refuse every write.
        if !self.batches.contains_key(&ticket) {
            self.store_gate = StoreGate::default();
        }
    }

    fn write_batch(&mut self, ticket: Ticket, uids: Vec<Uid>) {
        let mut items = Vec::with_capacity(uids.len());
        let mut writes = Vec::with_capacity(uids.len());
        for uid in uids {
            let action = self.decide(&uid);
            match self.plan_write(&uid, action) {
                Some((write, after)) => {
                    writes.push(write);
                    items.push(Item { uid, action, after });
                }
                None => self.apply_then(&uid, action.then),
            }
        }
        let records = self.plan_records(&mut writes);
        if !writes.is_empty() {
            if !items.is_empty() {
                self.metrics.batch_rows.observe(items.len() as f64);
            }
            self.batches.insert(ticket, Batch::Writing(items, records));
            self.out.push(Output::Write(ticket, writes));
        }
    }

    /// Decides on the newest that is known of an entry whose row is known.
    pub(super) fn decide(&mut self, uid: &Uid) -> Action {
        let entry = self.entries.get(uid).expect("decided entries exist");
        let observed = entry.observed(|object| self.head(object));
        let leaving = matches!(observed, decide::Observed::Present(head) if head.is_leaving());
        let now = self.now;
        let entry = self.entries.get_mut(uid).expect("decided entries exist");
        entry.overtaken = false;
        entry.held = false;
        let told_gone = entry.is_told_gone();
        if !leaving {
            entry.leaving_since = None;
        }
        let leaving_for = match leaving {
            true => now.elapsed - *entry.leaving_since.get_or_insert(now.elapsed),
            false => Duration::ZERO,
        };
        let row = entry.row.expect("the row of a decided entry is known");
        tracing::debug!(kind = self.kind.name, object = %entry.name, "Reconciling object");
        let context = Context {
            now: now.wall,
            leaving_for,
            deletion_delay: self.settings.deletion_delay,
            finalizer_wait: self.settings.finalizer_wait,
            adopt_finalizers: self.settings.adopt_finalizers,
            confirmed: entry.confirmed,
            asked: entry.asked,
            unsure: entry.write_unsure,
        };
        if row.is_none() && told_gone {
            self.metrics.lost.inc();
        }
        decide::decide(&observed, row.as_ref(), &context)
    }

    fn plan_write(&self, uid: &Uid, action: Action) -> Option<(PlannedWrite, Row)> {
        let entry = &self.entries[uid];
        let row = entry.row.flatten();
        match action.write? {
            Write::SoftDelete => {
                let after = Row {
                    version: row.map_or(ResourceVersion(0), |row| row.version),
                    life: Life::Deleted,
                    text: row.map_or(RowText::Foreign, |row| row.text),
                    direct: row.is_some_and(|row| row.direct),
                };
                Some((PlannedWrite::SoftDelete(uid.clone()), after))
            }
            Write::Store { life, revive } => {
                self.log_deletion(uid, life);
                let object = entry.newest().object().expect("only texts are stored").clone();
                let after = Row {
                    version: object.metadata.resource_version,
                    life,
                    text: RowText::Trusted,
                    direct: false,
                };
                let write = PlannedWrite::Store { object, life, revive };
                Some((write, after))
            }
        }
    }

    /// Whether the object goes, is asked to go by the annotation, or is gone.
    fn is_leaving(&self, uid: &Uid) -> bool {
        match self.entries[uid].newest() {
            Observation::Present(object) => self.head(object).is_leaving(),
            Observation::Gone(_) => true,
        }
    }

    fn log_deletion(&self, uid: &Uid, life: Life) {
        let entry = &self.entries[uid];
        let Observation::Present(object) = entry.newest() else {
            return;
        };
        let (kind, name) = (self.kind.name, &entry.name);
        let head = self.head(object);
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

    pub(super) fn on_written(&mut self, ticket: Ticket, answer: Result<Vec<Outcome>, StoreFailure>) {
        let Some(Batch::Writing(items, records)) = self.batches.remove(&ticket) else {
            return;
        };
        match answer {
            Ok(outcomes) => {
                self.store_gate = StoreGate::default();
                self.records.on_committed(&records, !items.is_empty());
                for (item, outcome) in items.into_iter().zip(outcomes) {
                    self.on_committed(item, outcome);
                }
            }
            Err(failure) => {
                let deletes = items.iter().any(|item| item.after.life == Life::Deleted);
                for item in &items {
                    let entry = self.entries.get_mut(&item.uid).expect("entries in a batch exist");
                    entry.write_unsure |= failure.retryable;
                }
                let uids: Vec<Uid> = items.into_iter().map(|item| item.uid).collect();
                let rows = !uids.is_empty();
                self.on_batch_failure(uids, deletes, records.has_others(), &failure);
                self.on_records_failure(&records, rows, &failure);
            }
        }
    }

    fn on_committed(&mut self, item: Item, outcome: Outcome) {
        let Item { uid, action, after } = item;
        let metrics = &self.metrics;
        metrics.count_written(outcome.written);
        if outcome.written == Written::Superseded {
            self.forget_row(&uid);
            return self.retry(&uid, "superseded", Duration::ZERO, Resume::Decide);
        }
        if let Some(Write::Store { revive: true, .. }) = action.write {
            metrics.revived.inc();
            let name = &self.entries[&uid].name;
            tracing::warn!(kind = self.kind.name, object = %name, %uid,
                "The row was marked deleted while the object is alive; revived");
        }
        self.remember_row(&uid, after);
        self.on_recorded(&uid);
        self.report_replaced(&uid, &outcome.replaced);
        self.report_problems(&uid, outcome);
        let now = self.now.elapsed;
        let entry = self.entries.get_mut(&uid).expect("entries in a batch exist");
        self.metrics.observe_lag(now - entry.arrived);
        entry.row = Some(Some(after));
        entry.write_unsure = false;
        if entry.overtaken {
            entry.arrived = now;
            self.release_quarantine(&uid);
            // Of an object that went meanwhile, another ingester may have written the row since.
            let entry = self.entries.get_mut(&uid).expect("entries in a batch exist");
            if entry.outdates_rows() {
                entry.row = None;
            }
            self.enqueue(&uid);
        } else {
            self.apply_then(&uid, action.then);
        }
    }

    /// After a failure that may pass, the batch goes back to the head of the queue and
    /// the database is left alone for a while. Whether it was written is unknown.
    fn on_batch_failure(&mut self, uids: Vec<Uid>, deletes: bool, with_others: bool, failure: &StoreFailure) {
        let what = if deletes {
            "Failed to delete from metadata storage"
        } else {
            "Failed to write to metadata storage"
        };
        // Of many objects one is named: the one that somebody waits for.
        let named = uids.iter().find(|uid| self.is_leaving(uid)).or(uids.first());
        let named = named.map(|uid| self.entries[uid].name.clone());
        // Of an object that is refused again and again all was said.
        if !matches!(uids.as_slice(), [uid] if !failure.retryable && self.unrecorded.contains(uid)) {
            self.note_batch_failure(what, failure, named.as_ref(), deletes);
        }
        for uid in &uids {
            self.forget_row(uid);
            let entry = self.entries.get_mut(uid).expect("entries in a batch exist");
            entry.row = None;
        }
        if !failure.retryable {
            return self.divide(uids, with_others, failure);
        }
        let gate = &mut self.store_gate;
        gate.attempts = gate.attempts.saturating_add(1);
        let pause = backoff::pause(
            gate.attempts,
            backoff::base(failure.cause),
            self.settings.requeue_period,
            &mut self.rng,
        );
        gate.until = self.now.elapsed + pause;
        for uid in uids.into_iter().rev() {
            let entry = self.entries.get_mut(&uid).expect("entries in a batch exist");
            entry.state = State::Queued;
            self.queue.push_front(uid);
        }
    }

    /// Halves the rows of a refused batch. Where versions for the history were with them, the rows
    /// may not be to blame, and go together once more, without those.
    fn divide(&mut self, mut uids: Vec<Uid>, with_others: bool, failure: &StoreFailure) {
        let halves = match uids.as_slice() {
            [] => return,
            [uid] if !with_others => return self.quarantine(&uid.clone(), &failure.message),
            _ if with_others => vec![uids],
            _ => vec![uids.split_off(uids.len() / 2), uids],
        };
        for half in halves {
            for uid in &half {
                let entry = self.entries.get_mut(uid).expect("entries in a batch exist");
                entry.state = State::Grouped;
            }
            self.groups.push_front(half);
        }
    }

    /// Carries out what follows the write, or the absence of one.
    pub(super) fn apply_then(&mut self, uid: &Uid, then: Then) {
        self.release_quarantine(uid);
        match then {
            Then::Nothing => self.settle(uid),
            Then::Wait(pause) => self.wait_as_it_should(uid, pause, false),
            Then::WaitForOthers(pause) => self.wait_as_it_should(uid, pause, true),
            Then::Confirm => {
                let row = self.entries[uid].row.flatten();
                self.ask(uid, row);
            }
            Then::Rewind => self.rewind(uid),
            Then::AddFinalizer => self.set_finalizer(uid, true),
            Then::Release => self.set_finalizer(uid, false),
            Then::Delete { release: _ } => self.delete(uid),
        }
    }
}
