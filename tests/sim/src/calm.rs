//! The end of a history: no users and no faults any more. Everything must come to rest
//! and be right, and once it rests, nothing may be written again.

use std::time::Duration;

use kindex_kube_client::ClusterError;
use kindex_runtime::message::Input;

use super::rest;
use super::user;
use super::world::{Outages, World, tell};

/// More than this is no way to rest.
const TURNS_MAX: u32 = 5_000;

impl World<'_> {
    /// Ends the history.
    pub fn calm_down(&mut self) {
        tell!(self, "calm");
        self.outages = Outages::default();
        while self.end_transaction(true) {}
        while self.late_request(0) {}
        self.come_to_rest();
        if !self.checks.alone {
            self.list_anew();
        }
        self.expect_rest("what the database refuses and others hold is left alone");
        user::tidy_up(&mut self.api.cluster());
        self.come_to_rest();
        self.expect_rest("nothing is held or refused any more");
        self.expect_no_loss();
        self.look_again();
        self.find_what_no_version_shows();
        tell!(self, "{} steps, {} faults", self.steps, self.faults);
    }

    fn expect_rest(&mut self, when: &str) {
        if self.wrong.is_none() {
            let cluster = self.api.cluster();
            let rested = rest::at_rest(&self.checks, &cluster, &self.storage.database());
            drop(cluster);
            self.wrong = rested.err().map(|wrong| format!("at rest, when {when}: {wrong}"));
        }
    }

    /// The lost counter says 0, unless somebody deleted what SQL could not have seen.
    fn expect_no_loss(&mut self) {
        let counted = self.ground.metrics.lost.get() - self.lost_before;
        if self.wrong.is_none() && self.checks.planted_losses == 0 && counted > 0 {
            self.wrong = Some(format!("{counted} objects are counted as lost, and none was"));
        }
    }

    /// A look at everything anew, by a list or by a start, writes nothing where nothing changed.
    fn look_again(&mut self) {
        if self.wrong.is_some() {
            return;
        }
        let changes = self.storage.database().changes;
        if self.steps.is_multiple_of(2) {
            self.list_anew();
        } else {
            for who in 0..self.processes.len() {
                self.crash(who, 0);
            }
            self.come_to_rest();
        }
        let written = self.storage.database().changes - changes;
        if self.wrong.is_none() && written > 0 {
            self.wrong = Some(format!("a look at what had not changed wrote {written} rows"));
        }
        self.expect_rest("everything was looked at anew");
    }

    /// A list finds every row that contradicts it, also where its version does not.
    fn find_what_no_version_shows(&mut self) {
        if self.wrong.is_some() {
            return;
        }
        tell!(self, "the cluster says otherwise");
        self.checks.position_is_old = true;
        self.api.cluster().say_otherwise();
        self.list_anew();
        self.expect_rest("the cluster had said other things under the same versions");
    }

    fn list_anew(&mut self) {
        for who in 0..self.processes.len() {
            tell!(self, "{who} lists anew");
            let forgotten = ClusterError::Expired("simulated".to_owned());
            self.step(who, Input::Watch(Err(forgotten)));
        }
        self.come_to_rest();
    }

    fn come_to_rest(&mut self) {
        for turn in 0.. {
            if turn > TURNS_MAX {
                self.wrong = Some("something starves: no rest after the calm".to_owned());
            }
            if self.wrong.is_some() || !self.calm_turn() {
                return;
            }
        }
    }

    /// Whether anything was left to do.
    fn calm_turn(&mut self) -> bool {
        let mut busy = false;
        for who in 0..self.processes.len() {
            busy |= self.guarded(|world| {
                let arrived = world.arrive(who, 0);
                let carried = world.carry_out(who, 0, None, false);
                let opened = world.open_watch(who, None);
                let seen = world.event(who);
                arrived || carried || opened || seen
            });
        }
        if busy {
            self.guarded(|world| {
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
        self.guarded(|world| {
            world.pass(pause);
            true
        })
    }
}
