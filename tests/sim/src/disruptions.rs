//! Faults of whole processes and servers: crashes, stops, outages, wrong clocks, and a cluster that is restored from
//! its backup.

use std::time::Duration;

use kindex_model::checkpoint::Checkpoint;
use kindex_runtime::message::Input;

use super::api::{RequestFailure, failure};
use super::fault::Fault;
use super::process::{Process, Watch};
use super::step::{Class, Step};
use super::world::{World, log};

/// How long a process may take to stop, as in the driver.
const STOP_GRACE: Duration = Duration::from_secs(10);

impl World<'_> {
    /// Kills a process. Requests that it has sent may still be carried out.
    pub(crate) fn crash(&mut self, who: usize, effective: u32) -> bool {
        let who = who % self.processes.len();
        if !self.may_forget(who) {
            return false;
        }
        self.counts.faults += 1;
        log!(self, "{who} crashes and restarts");
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
                Class::ClusterWrite if lives_on => self.abandoned.late.push(request),
                Class::DatabaseWrite if lives_on => self.abandoned.open_transactions.push(request),
                _ => {}
            }
        }
        self.start_anew(who);
        true
    }

    /// Whether a process may lose its state. If it has not noticed that the cluster was restored, the restart must be
    /// able to: from the saved checkpoint, unless another process has replaced that.
    fn may_forget(&self, who: usize) -> bool {
        if self.restorations.is_noticed_by(who) {
            return true;
        }
        let version = self.api.cluster().version;
        let saved = self.storage.database().checkpoint.map_or(version, Checkpoint::pack);
        self.processes.len() == 1 && saved > version
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
        // A stop would lose what a process knows of a restoration and has not saved yet.
        if self.processes[who].stopping.is_some() || self.restorations.is_under_way() {
            return false;
        }
        self.counts.faults += 1;
        log!(self, "{who} receives a stop");
        self.met_all(Fault::Stop, who);
        self.processes[who].stopping = Some(self.elapsed);
        self.step(who, Input::Stop);
        true
    }

    /// Restarts the processes that have stopped, or did not within the grace period.
    pub(crate) fn restart_the_stopped(&mut self) {
        for who in 0..self.processes.len() {
            let process = &self.processes[who];
            let Some(since) = process.stopping else {
                continue;
            };
            let too_late = self.elapsed.saturating_sub(since) > STOP_GRACE;
            if process.is_drained() || too_late {
                log!(self, "{who} has stopped and restarts");
                self.start_anew(who);
            }
        }
    }

    /// Begins an outage.
    pub(crate) fn outage(&mut self, fault: Fault, time: Duration) -> bool {
        let until = self.elapsed + time;
        log!(self, "{fault:?} until {:.3}s", until.as_secs_f64());
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
                self.step(who, Input::Watch(Err(failure(RequestFailure::Silence))));
            }
        }
    }

    /// Makes the wall clock of a process wrong from now on.
    pub(crate) fn set_clock(&mut self, who: usize, wrong_by_s: i64) -> bool {
        let who = who % self.processes.len();
        log!(self, "the wall clock of {who} is wrong by {wrong_by_s} s");
        self.counts.faults += 1;
        self.met_all(Fault::ClockJump, who);
        self.processes[who].clock_error_s = wrong_by_s;
        // The wait for deletionDelay compares the wall clock with the deletionTimestamp.
        self.checks.deletion_delay = Duration::ZERO;
        true
    }

    /// Restores the cluster from its backup. No request or transaction survives that. Happens only if every ingester
    /// can notice it, by the versions it has received or by the saved checkpoint. The answer to a release or a delete
    /// that removes an object carries no version, so the cluster may have advanced by as many versions as it has
    /// objects without an ingester knowing.
    pub(crate) fn restore(&mut self) -> bool {
        let Some((backup, objects)) = self.api.cluster().backup_size() else {
            return false;
        };
        let saved = self.storage.database().checkpoint.map(Checkpoint::pack);
        let saved_is_ahead = saved.is_some_and(|saved| saved > backup + objects);
        let ahead = |process: &Process| match process.newest {
            // A process that has loaded the checkpoint may have read it before the restoration.
            0 => saved_is_ahead && (is_loading(process) || knows_nothing(process)),
            newest => newest > backup + objects && process.stopping.is_none(),
        };
        if self.restorations.is_under_way() || !saved_is_ahead || !self.processes.iter().all(ahead) {
            return false;
        }
        self.counts.faults += 1;
        log!(self, "the cluster is restored from its backup @{backup}");
        for who in 0..self.processes.len() {
            self.met_all(Fault::Restoration, who);
        }
        for who in 0..self.processes.len() {
            self.disconnect(who);
        }
        self.commit_open_transactions();
        self.abandoned.late.clear();
        self.api.cluster().restore();
        // A process that received nothing from the lost time has nothing to notice.
        let noticed: Vec<bool> = self.processes.iter().map(knows_nothing).collect();
        self.restorations.begin(noticed);
        self.checks.checkpoint_is_old = true;
        self.checks.unsaved_events.forget();
        for process in &mut self.processes {
            process.newest = 0;
            process.marking = false;
        }
        self.break_all_watches();
        true
    }

    /// The API server goes away: its answers arrive, and requests in flight fail.
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
}

fn is_loading(process: &Process) -> bool {
    process.requests.iter().any(|request| Step::of(request) == Step::Load)
}

/// Whether a process has found no saved checkpoint, and no answer of the cluster has arrived or is in flight.
fn knows_nothing(process: &Process) -> bool {
    process.is_blank && process.answers.is_empty() && process.stopping.is_none()
}
