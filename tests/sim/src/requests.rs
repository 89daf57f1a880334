//! Requests of processes: carried out or failed, and answered at once or later. Watches are in `watches`.

use kindex_kube_client::Target;
use kindex_runtime::message::{Effect, Input, Output};
use kindex_store::{Cause, CheckpointOutcome};

use super::api::RequestFailure;
use super::fault::Fault;
use super::process::{effect_of, is_mark, summary};
use super::step::{Class, Step};
use super::storage::CallFailure;
use super::world::{World, log};

impl World<'_> {
    /// Carries out one request.
    pub(crate) fn carry_out(&mut self, who: usize, pick: usize, fault: Option<Fault>, hold: bool) -> bool {
        let who = who % self.processes.len();
        let requests = &mut self.processes[who].requests;
        if requests.is_empty() {
            return false;
        }
        let index = pick % requests.len();
        let request = requests.swap_remove(index);
        let step = Step::of(&request);
        let fault = self
            .outage_of(step)
            .or(fault)
            .filter(|fault| fault.impossible(step).is_none());
        let fault = fault.filter(|fault| self.arrange(*fault, &request));
        log!(
            self,
            "{who} {}{}",
            summary(&request),
            fault.map_or(String::new(), |fault| format!(" ({fault:?})"))
        );
        let answer = self.execute(who, request.clone());
        self.api.set_failure(None);
        self.storage.set_failure(None);
        if let Some(fault) = fault {
            self.counts.faults += 1;
            self.met(fault, step);
        }
        if is_refused(&answer) {
            self.counts.faults += 1;
            self.met(Fault::Refused, step);
        }
        let marked = matches!(answer, Input::CheckpointSaved(Ok(CheckpointOutcome::Done))) && is_mark(&request);
        if marked && self.processes[who].marking {
            self.restorations.notice(who);
        }
        self.note_overlap(who, step);
        if hold {
            let uid = effect_of(&request).cloned();
            self.processes[who].answers.push((step, uid, answer));
        } else {
            self.step(who, answer);
        }
        true
    }

    /// Delivers an answer that is in flight.
    pub(crate) fn arrive(&mut self, who: usize, pick: usize) -> bool {
        let who = who % self.processes.len();
        let answers = &mut self.processes[who].answers;
        if answers.is_empty() {
            return false;
        }
        let index = pick % answers.len();
        let (step, _, answer) = answers.swap_remove(index);
        log!(self, "{who} receives the answer to {step:?}");
        self.step(who, answer);
        true
    }

    /// The fault that a current outage causes in a step.
    fn outage_of(&self, step: Step) -> Option<Fault> {
        let away = |until| self.elapsed < until;
        match step.class() {
            Class::ClusterRead | Class::ClusterWrite => away(self.outages.cluster).then_some(Fault::ClusterAway),
            Class::DatabaseWrite if away(self.outages.disk) => Some(Fault::DiskFull),
            Class::DatabaseRead | Class::DatabaseWrite => away(self.outages.database).then_some(Fault::DatabaseAway),
            Class::Stream | Class::Idle => None,
        }
    }

    /// Prepares a fault. Returns whether it can happen.
    fn arrange(&mut self, fault: Fault, request: &Output) -> bool {
        let cluster = |failing| (Some(failing), None);
        let store = |failing| (None, Some(failing));
        let (cluster, store) = match fault {
            Fault::Lost | Fault::ClusterAway => cluster(RequestFailure::Silence),
            // An ingester must receive the answers of the restored cluster in order to notice the restoration.
            Fault::Unanswered | Fault::Late if self.restorations.is_under_way() => return false,
            Fault::Unanswered => cluster(RequestFailure::LostAnswer),
            Fault::Throttled => cluster(RequestFailure::Throttled),
            Fault::ServerError => cluster(RequestFailure::ServerError),
            Fault::Late => {
                self.abandoned.late.push(request.clone());
                cluster(RequestFailure::Silence)
            }
            Fault::Conflict => return self.write_in_between(request),
            Fault::Expired => return self.expire(request),
            Fault::DisconnectBefore | Fault::DatabaseAway => store(CallFailure::Before(Cause::Connection)),
            Fault::DisconnectAfter => store(CallFailure::After(Cause::Connection)),
            Fault::Deadlock => store(CallFailure::Before(Cause::Deadlock)),
            Fault::DiskFull => store(CallFailure::Before(Cause::Resources)),
            Fault::SlowCommit => {
                self.abandoned.open_transactions.push(request.clone());
                store(CallFailure::Before(Cause::Timeout))
            }
            _ => return false,
        };
        self.api.set_failure(cluster);
        self.storage.set_failure(store);
        true
    }

    /// A user changes the object that a request is for.
    fn write_in_between(&mut self, request: &Output) -> bool {
        let Output::Effect(_, Effect::SetFinalizers { target, .. } | Effect::Delete(target)) = request else {
            return false;
        };
        let Target { name, uid, .. } = target;
        let mut cluster = self.api.cluster();
        let present = cluster
            .objects
            .get(&name.name)
            .is_some_and(|object| object.uid == *uid.0);
        if !present || self.restorations.is_under_way() {
            return false;
        }
        let touched = format!("{}", cluster.version);
        cluster.update(&name.name, false, |object| {
            object.annotations.insert("touched".to_owned(), touched);
        });
        drop(cluster);
        log!(self, "a user writes to {name}");
        true
    }

    /// Makes the list expire that a request continues.
    fn expire(&mut self, request: &Output) -> bool {
        let Output::List {
            continue_token: Some(_),
            ..
        } = request
        else {
            return false;
        };
        self.compact();
        true
    }

    /// Carries out a request of a process with production code.
    fn execute(&mut self, who: usize, request: Output) -> Input {
        let step = Step::of(&request);
        // Writers wait for the locks of an open transaction, and a start takes longer than a commit.
        let waits = step == Step::Load || step.class() == Class::DatabaseWrite;
        if waits && !self.storage.is_in_trouble() {
            self.commit_open_transactions();
        }
        if step == Step::Load {
            self.note_load(who);
        }
        let executor = self.processes[who].executor.clone();
        let wall = self.wall(who);
        self.harness.run(self.parts, executor.execute(request, wall))
    }

    /// Carries out a request whose sender has given up.
    pub(crate) fn late_request(&mut self, pick: usize) -> bool {
        let Some(request) = self.abandoned.take_late(pick) else {
            return false;
        };
        log!(self, "late: {}", summary(&request));
        self.execute(0, request);
        true
    }

    /// Ends the oldest transaction whose sender has given up.
    pub(crate) fn end_transaction(&mut self, committed: bool) -> bool {
        let Some(request) = self.abandoned.take_transaction() else {
            return false;
        };
        let outcome = if committed { "committed" } else { "rolled back" };
        log!(self, "{outcome} late: {}", summary(&request));
        if committed {
            if let Output::Effect(uid, Effect::Quarantine { .. }) = &request {
                self.checks.late_records.insert(uid.clone());
            }
            let executor = self.processes[0].executor.clone();
            let wall = self.wall(0);
            self.harness.run(self.parts, executor.execute(request, wall));
        }
        true
    }

    /// Commits all transactions whose senders have given up. Each is followed by a check, as in a turn of its own:
    /// after a restoration, the next request may set the version aside that a commit has just added to the history.
    pub(crate) fn commit_open_transactions(&mut self) {
        while self.end_transaction(true) {
            self.check();
        }
    }

    fn note_overlap(&mut self, who: usize, step: Step) {
        if !matches!(step.class(), Class::ClusterWrite | Class::DatabaseWrite) {
            return;
        }
        for other in (0..self.processes.len()).filter(|other| *other != who) {
            self.met_all(Fault::Overlap, other);
        }
    }
}

fn is_refused(answer: &Input) -> bool {
    matches!(answer, Input::Written(_, Err(failure)) if !failure.retryable)
}

#[cfg(test)]
mod tests {
    use kindex_model::object::ResourceVersion;
    use kindex_query::{Life, Revive};
    use kindex_store::RowWrite;

    use super::*;
    use crate::harness::{Harness, Parts};
    use crate::past::SimHistory;

    /// The row is rewound and its version is stored again, but only in later turns.
    #[test]
    fn a_late_commit_is_checked_before_the_history_is_set_aside_that_waited_for_it() {
        let harness = Harness::default();
        let mut world = World::new(0, Parts::Controller, &harness, false);
        world.storage.database().history = Some(SimHistory::default());
        world.api.cluster().create("a", 1, true);
        let object = world.api.cluster().get("a").expect("it was created");
        let uid = object.metadata.uid.clone();
        let version = object.metadata.resource_version;
        let write = RowWrite::Store {
            version: object,
            life: Life::Live,
            revive: Revive::Never,
        };
        world.abandoned.open_transactions = vec![Output::Write(0, vec![write])];
        let beyond = ResourceVersion(version.0 - 1);
        world.processes[0].requests = vec![Output::SetHistoryAside(beyond)];
        assert!(world.carry_out(0, 0, None, true));
        world.check();

        assert_eq!(world.verdict(), Ok(()));
        let database = world.storage.database();
        assert_eq!(database.rows[&uid].version, version);
        let history = database.history.as_ref().expect("one is kept");
        assert!(history.get(&uid, version).is_none(), "it was set aside");
    }
}
