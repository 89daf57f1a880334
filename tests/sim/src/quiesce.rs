//! The end of a history: without further users and faults, SQL must converge with the cluster, and nothing may be
//! written after that.

use std::time::Duration;

use kindex_kube_client::ClusterError;
use kindex_runtime::message::Input;

use super::convergence;
use super::user;
use super::world::{Outages, World, log};

/// If the system still has work after so many turns, it does not converge.
const TURNS_MAX: u32 = 5_000;

impl World<'_> {
    /// Ends the history: stops users and faults, and checks the final state.
    pub fn quiesce(&mut self) {
        log!(self, "users and faults stop");
        self.outages = Outages::default();
        self.commit_open_transactions();
        while self.late_request(0) {}
        self.run_until_idle();
        if !self.checks.alone {
            self.relist();
        }
        self.expect_convergence("rejected objects and finalizers of others remain");
        user::tidy_up(&mut self.api.cluster());
        self.run_until_idle();
        self.expect_convergence("no object is rejected or held any more");
        self.expect_no_loss();
        self.check_idempotence();
        self.check_comparison();
        log!(self, "{} steps, {} faults", self.counts.steps, self.counts.faults);
    }

    fn expect_convergence(&mut self, when: &str) {
        if self.wrong.is_none() {
            let cluster = self.api.cluster();
            let rested = convergence::check_convergence(&self.checks, &cluster, &self.storage.database());
            drop(cluster);
            self.wrong = rested
                .err()
                .map(|wrong| format!("not converged, while {when}: {wrong}"));
        }
    }

    /// The lost counter is 0, unless a user deleted an object that SQL could not have seen.
    fn expect_no_loss(&mut self) {
        let counted = self.counts.lost(self.harness.metrics.lost.get());
        if self.wrong.is_none() && self.checks.planted_losses == 0 && counted > 0 {
            self.wrong = Some(format!("{counted} objects are counted as lost, but none was"));
        }
    }

    /// A relist or a restart writes nothing if nothing has changed.
    fn check_idempotence(&mut self) {
        if self.wrong.is_some() {
            return;
        }
        let changes = self.storage.database().changes;
        if self.counts.steps.is_multiple_of(2) {
            self.relist();
        } else {
            for who in 0..self.processes.len() {
                self.crash(who, 0);
            }
            self.run_until_idle();
        }
        let written = self.storage.database().changes - changes;
        if self.wrong.is_none() && written > 0 {
            self.wrong = Some(format!("a relist or restart without changes wrote {written} rows"));
        }
        self.expect_convergence("everything was compared again");
    }

    /// A relist corrects every row that contradicts the cluster, even if both have the same version.
    fn check_comparison(&mut self) {
        if self.wrong.is_some() {
            return;
        }
        log!(self, "the cluster reuses versions for other texts");
        self.checks.checkpoint_is_old = true;
        self.api.cluster().reuse_versions();
        self.relist();
        self.expect_convergence("the cluster has reused versions for other texts");
    }

    fn relist(&mut self) {
        for who in 0..self.processes.len() {
            log!(self, "{who} relists");
            let forgotten = ClusterError::Expired("simulated".to_owned());
            self.step(who, Input::Watch(Err(forgotten)));
        }
        self.run_until_idle();
    }

    fn run_until_idle(&mut self) {
        for turn in 0.. {
            if turn > TURNS_MAX {
                self.wrong = Some("no convergence: the system still has work".to_owned());
            }
            if self.wrong.is_some() || !self.drain_turn() {
                return;
            }
        }
    }

    /// Carries out what is in flight, or advances the time. Returns false if nothing was left to do.
    fn drain_turn(&mut self) -> bool {
        let mut busy = false;
        for who in 0..self.processes.len() {
            busy |= self.catching_panics(|world| {
                let arrived = world.arrive(who, 0);
                let carried = world.carry_out(who, 0, None, false);
                let opened = world.open_watch(who, None);
                let seen = world.event(who);
                arrived || carried || opened || seen
            });
        }
        if busy {
            self.catching_panics(|world| {
                world.pass(Duration::from_millis(1));
                true
            });
            return true;
        }
        let stopping = self.processes.iter().any(|process| process.stopping.is_some());
        let next = self.processes.iter().filter_map(|process| process.wakes_at()).min();
        let next = next.or(stopping.then(|| self.elapsed + Duration::from_secs(11)));
        let Some(next) = next else {
            return false;
        };
        let pause = next.saturating_sub(self.elapsed);
        self.catching_panics(|world| {
            world.pass(pause);
            true
        })
    }
}
