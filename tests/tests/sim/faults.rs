//! What goes wrong: processes die, watches break, requests arrive late, and a cluster
//! returns from its backup.

use kindex_runtime::ingester::message::{Effect, Input, Output};
use kindex_runtime::object::ResourceVersion;
use rand::RngExt;

use super::perform;
use super::world::{Ingester, World};

impl World {
    pub(super) fn is_restoration_unseen(&self) -> bool {
        let Some(before) = &self.restored else {
            return false;
        };
        let seen = self.ingesters.iter().zip(before);
        seen.into_iter()
            .any(|(ingester, before)| ingester.metrics.relists.get() <= *before)
    }

    /// Lets a request reach the cluster later. A transaction is not like that: when its
    /// connection ends, it is committed by then or never.
    pub(super) fn haunt(&mut self, task: Output) {
        match task {
            Output::Effect(_, Effect::Delete(_) | Effect::SetFinalizers { .. }) => {
                self.ghosts.push(task);
            }
            Output::Write(..) if self.rng.random_bool(0.5) => {
                let wall = self.wall();
                perform::perform(&task, &mut self.cluster, &mut self.database, wall);
            }
            _ => {}
        }
    }

    pub(super) fn bookmark(&mut self, who: usize) {
        let Some(position) = self.ingesters[who].watch else {
            return;
        };
        if let Ok(None) = self.cluster.next_event(position) {
            let version = ResourceVersion(self.cluster.version);
            self.ingesters[who].watch = Some(position.max(version.0));
            tell!(self, "{who} bookmark @{version}");
            self.step(who, Input::Watch(Ok(perform::bookmark(version))));
        }
    }

    pub(super) fn cut_watch(&mut self, who: usize) {
        if self.ingesters[who].watch.take().is_none() {
            return;
        }
        self.faults += 1;
        if self.rng.random_bool(0.5) {
            tell!(self, "{who} watch ends");
            self.step(who, Input::WatchEnded);
        } else {
            tell!(self, "{who} watch breaks");
            self.step(who, Input::Watch(Err(perform::timeout())));
        }
    }

    /// Kills a process. What it had sent may still arrive.
    pub(super) fn crash(&mut self, who: usize) {
        if self.is_restoration_unseen() {
            return;
        }
        self.faults += 1;
        tell!(self, "{who} crashes and starts again");
        let tasks = std::mem::take(&mut self.ingesters[who].tasks);
        for task in tasks {
            if self.rng.random_bool(0.5) {
                self.haunt(task);
            }
        }
        self.ingesters[who] = self.new_ingester();
        if let Some(restored) = &mut self.restored {
            restored[who] = 0;
        }
        self.step(who, Input::Start);
    }

    /// The cluster returns to its backup; nobody's requests survive that. Only where every
    /// ingester is far enough ahead to notice, which backups of a minute ago always are.
    pub(super) fn restore(&mut self) {
        let Some(backup) = self.cluster.backup_version() else {
            return;
        };
        let ahead = |i: &Ingester| i.watch.is_some() && i.controller.status().settled.0 > backup + 10;
        let quiet = |i: &Ingester| i.tasks.is_empty() && i.controller.status().pending == 0;
        if self.restored.is_some() || !self.ingesters.iter().all(|i| ahead(i) && quiet(i)) {
            return;
        }
        tell!(self, "the cluster is restored from its backup");
        self.faults += 1;
        self.cluster.restore();
        self.ghosts.clear();
        let relists = self.ingesters.iter().map(|i| i.metrics.relists.get());
        self.restored = Some(relists.collect());
        for who in 0..self.ingesters.len() {
            self.ingesters[who].watch = None;
            self.step(who, Input::Watch(Err(perform::timeout())));
        }
    }
}
