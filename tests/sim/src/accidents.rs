//! What happens to whole processes and servers: crashes, stops, outages, clocks that are
//! wrong, and a cluster that returns from its backup.

use std::time::Duration;

use kindex_model::checkpoint::Checkpoint;
use kindex_runtime::message::Input;

use super::api::{Trouble, failure};
use super::fault::Fault;
use super::process::{Process, Watch};
use super::step::{Class, Step};
use super::world::{World, tell};

/// How long a stop is waited for, as a driver does.
const STOP_GRACE: Duration = Duration::from_secs(10);

impl World<'_> {
    /// Kills a process. What it had sent may still have its effect.
    pub(crate) fn crash(&mut self, who: usize, effective: u32) -> bool {
        let who = who % self.processes.len();
        if !self.may_forget(who) {
            return false;
        }
        self.faults += 1;
        tell!(self, "{who} crashes and starts again");
        for step in self.processes[who].requests.iter().map(Step::of).collect::<Vec<_>>() {
            self.met(Fault::CrashBefore, step);
        }
        for step in self.processes[who]
            .answers
            .iter()
            .map(|(step, ..)| *step)
            .collect::<Vec<_>>()
        {
            self.met(Fault::CrashAfter, step);
        }
        match self.processes[who].watch {
            Watch::Opening(_) => self.met(Fault::CrashBefore, Step::OpenWatch),
            Watch::Open(_) => self.met(Fault::CrashAfter, Step::Watch),
            Watch::Closed => {}
        }
        if self.processes[who].is_pausing() {
            self.met(Fault::CrashBefore, Step::Pause);
        }
        let requests = std::mem::take(&mut self.processes[who].requests);
        for (index, request) in requests.into_iter().enumerate() {
            let lives_on = effective & (1 << (index % 32)) != 0;
            match Step::of(&request).class() {
                Class::ClusterWrite if lives_on => self.late.push(request),
                Class::DatabaseWrite if lives_on => self.open_transactions.push(request),
                _ => {}
            }
        }
        self.start_anew(who);
        true
    }

    /// A process that dies while the cluster is another one and does not know it yet must find
    /// out again: its saved position says so, unless another process has replaced it.
    fn may_forget(&self, who: usize) -> bool {
        let Some(noticed) = &self.noticed else {
            return true;
        };
        let version = self.api.cluster().version;
        let saved = self.storage.database().checkpoint.map_or(version, Checkpoint::pack);
        noticed[who] || (self.processes.len() == 1 && saved > version)
    }

    fn start_anew(&mut self, who: usize) {
        self.checks.unsaved_events.forget();
        let clock_error_s = self.processes[who].clock_error_s;
        self.processes[who] = self.new_process();
        self.processes[who].clock_error_s = clock_error_s;
        self.step(who, Input::Start);
    }

    /// Asks a process to stop.
    pub(crate) fn stop(&mut self, who: usize) -> bool {
        let who = who % self.processes.len();
        // What a process knows and has not noted in the database yet, a stop would forget.
        if self.processes[who].stopping.is_some() || self.noticed.is_some() {
            return false;
        }
        self.faults += 1;
        tell!(self, "{who} is asked to stop");
        self.met_all(Fault::Stop, who);
        self.processes[who].stopping = Some(self.elapsed);
        self.step(who, Input::Stop);
        true
    }

    /// Starts again what has stopped, or was not ready to in time.
    pub(crate) fn restart_the_stopped(&mut self) {
        for who in 0..self.processes.len() {
            let process = &self.processes[who];
            let Some(since) = process.stopping else {
                continue;
            };
            let too_late = self.elapsed.saturating_sub(since) > STOP_GRACE;
            if process.is_drained() || too_late {
                tell!(self, "{who} has stopped and starts again");
                self.start_anew(who);
            }
        }
    }

    /// Something is away for a while.
    pub(crate) fn outage(&mut self, fault: Fault, time: Duration) -> bool {
        let until = self.elapsed + time;
        tell!(self, "{fault:?} until {:.3}s", until.as_secs_f64());
        match fault {
            Fault::DiskFull => self.outages.disk = until,
            Fault::DatabaseAway => self.outages.database = until,
            Fault::ClusterAway => {
                self.outages.cluster = until;
                self.break_all_watches();
            }
            _ => return false,
        }
        true
    }

    fn break_all_watches(&mut self) {
        for who in 0..self.processes.len() {
            if self.processes[who].watch != Watch::Closed {
                self.step(who, Input::Watch(Err(failure(Trouble::Silence))));
            }
        }
    }

    /// The clock of a process is wrong from now on.
    pub(crate) fn set_clock(&mut self, who: usize, wrong_by_s: i64) -> bool {
        let who = who % self.processes.len();
        tell!(self, "the wall clock of {who} is wrong by {wrong_by_s} s");
        self.faults += 1;
        self.met_all(Fault::ClockJump, who);
        self.processes[who].clock_error_s = wrong_by_s;
        // Waiting goes by the wall clock where a deletionTimestamp tells since when.
        self.checks.deletion_delay = Duration::ZERO;
        true
    }

    /// The cluster returns to its backup; nobody's requests survive that, and it takes
    /// longer than any transaction. Only where every ingester has seen enough to notice,
    /// or has a saved position that tells it: the answer to a release or a delete after which
    /// an object is gone has no version of its own, so that a cluster may grow unnoticed by
    /// as many versions as it has objects.
    pub(crate) fn restore(&mut self) -> bool {
        let Some((backup, objects)) = self.api.cluster().backup_size() else {
            return false;
        };
        let saved = self.storage.database().checkpoint.map(Checkpoint::pack);
        let told = saved.is_some_and(|saved| saved > backup + objects);
        let ahead = |process: &Process| match process.newest {
            // What it has read already may be of before.
            0 => told && (is_loading(process) || knows_nothing(process)),
            newest => newest > backup + objects && process.stopping.is_none(),
        };
        if self.noticed.is_some() || !told || !self.processes.iter().all(ahead) {
            return false;
        }
        self.faults += 1;
        self.restorations += 1;
        tell!(self, "the cluster is restored from its backup @{backup}");
        for who in 0..self.processes.len() {
            self.met_all(Fault::Restoration, who);
        }
        for who in 0..self.processes.len() {
            self.disconnect(who);
        }
        while self.end_transaction(true) {}
        self.late.clear();
        self.api.cluster().restore();
        // One that knows nothing of the time that was lost has nothing to notice.
        let noticed: Vec<bool> = self.processes.iter().map(knows_nothing).collect();
        self.noticed = noticed.contains(&false).then_some(noticed);
        self.checks.position_is_old = true;
        self.checks.unsaved_events.forget();
        for process in &mut self.processes {
            process.newest = 0;
            process.marking = false;
        }
        self.break_all_watches();
        true
    }

    /// The API server goes away: what it answered has arrived, what it was asked fails.
    fn disconnect(&mut self, who: usize) {
        let is_of_cluster = |step: Step| matches!(step.class(), Class::ClusterRead | Class::ClusterWrite);
        self.outages.cluster = self.elapsed + Duration::from_millis(1);
        loop {
            let process = &self.processes[who];
            if let Some(pick) = process.answers.iter().position(|(step, ..)| is_of_cluster(*step)) {
                self.arrive(who, pick);
            } else if let Some(pick) = process
                .requests
                .iter()
                .position(|request| is_of_cluster(Step::of(request)))
            {
                self.carry_out(who, pick, None, false);
            } else {
                return;
            }
        }
    }

    /// A process has noticed that the cluster is another one, and has marked it in the database.
    pub(crate) fn notice(&mut self, who: usize) {
        if let Some(noticed) = &mut self.noticed {
            noticed[who] = true;
        }
    }

    /// Whether no process is left that takes the cluster for the one before.
    pub(crate) fn all_noticed(&self) -> bool {
        self.noticed.iter().flatten().all(|noticed| *noticed)
    }

    /// A process reads a position that another one saved since, and has nothing to notice.
    pub(crate) fn note_load(&mut self, who: usize) {
        let version = self.api.cluster().version;
        let saved = self.storage.database().checkpoint.map_or(version, Checkpoint::pack);
        if saved <= version {
            self.notice(who);
            self.checks.position_is_old &= !self.all_noticed();
        }
    }
}

fn is_loading(process: &Process) -> bool {
    process.requests.iter().any(|request| Step::of(request) == Step::Load)
}

/// It has found no saved position, and no answer of the cluster has come or is on its way.
fn knows_nothing(process: &Process) -> bool {
    process.is_blank && process.answers.is_empty() && process.stopping.is_none()
}
