//! The checkpoints of the intake: which one is saved, what follows if saving is refused, and the status of the intake.

use std::time::Duration;

use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::ResourceVersion;
use kindex_store::CheckpointOutcome;

use super::{Backlog, Event, Intake, Phase, WAITS_FOR_CRD};
use crate::controller::environment::Environment;
use crate::controller::watermark::{Oldest, watermark};
use crate::marks::found_beside;
use crate::message::StoreFailure;
use crate::status::HeldOrphans;

/// A write to the cluster that is in flight.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Sent {
    /// The version of the object that it replaces.
    pub(in super::super) replaces: ResourceVersion,
    /// The newest version that the cluster had reported when it was sent.
    pub(in super::super) newest: ResourceVersion,
}

impl Sent {
    /// Whether it made a version that the cluster had already passed, which shows a restoration. A write that changes
    /// nothing makes no version.
    fn made_in_the_past(self, answered: ResourceVersion) -> bool {
        answered > self.replaces && answered <= self.newest
    }
}

impl Intake {
    /// An effect was answered with an object of this version; `sent` is its write, if it was one. A restored cluster
    /// may already have passed the known version, also by our own writes, but a write always makes a version that is
    /// newer than all before.
    pub(in super::super) fn on_answer(&mut self, sent: Option<Sent>, version: ResourceVersion) {
        if sent.is_some_and(|sent| sent.made_in_the_past(version)) {
            let before = found_beside(self.checkpoints.saved(), ResourceVersion(version.0 - 1));
            self.restore_beyond(before);
        }
        self.note_version(version);
    }

    /// Our write removed an object. That made a version too, which no answer names: the cluster is beyond all that it
    /// had reported before, unless it was restored and our own writes have brought it back to one of these.
    pub(in super::super) fn on_removal(&mut self, sent: Sent) {
        self.note_version(ResourceVersion(sent.newest.0 + 1));
    }

    /// A checkpoint worth saving that is not the saved one.
    pub(super) fn unsaved(&self, oldest: Oldest) -> Option<Checkpoint> {
        let watching = matches!(self.phase, Phase::Watching { .. }) && self.restoring.is_none();
        let watermark = watermark(self.received, oldest).filter(|_| watching)?;
        self.checkpoints.unsaved(watermark, self.held_orphans.is_some())
    }

    /// Saves the checkpoint if it is due.
    pub(in super::super) fn save_checkpoint(&mut self, env: &mut Environment, backlog: Backlog) {
        let last_call = env.stopping && !backlog.in_flight;
        let due = last_call || self.checkpoints.due() <= env.now.elapsed;
        let Some(checkpoint) = self.unsaved(backlog.oldest).filter(|_| due) else {
            return;
        };
        self.checkpoints
            .put_off(env.now.elapsed + env.settings.checkpoint_period);
        env.emit(self.checkpoints.save(checkpoint));
    }

    pub(in super::super) fn on_checkpoint_saved(
        &mut self,
        env: &mut Environment,
        answer: Result<CheckpointOutcome, StoreFailure>,
    ) -> Event {
        let saved = self.checkpoints.end_saving();
        match self.leave() {
            Phase::Restoring(restoration) if restoration.is_marking() => {
                return self.on_marked(env, restoration, answer);
            }
            other => self.phase = other,
        }
        let mut is_saved = matches!(answer, Ok(CheckpointOutcome::Done));
        match answer {
            Ok(CheckpointOutcome::Done) => {}
            Ok(CheckpointOutcome::Refused(shown)) => self.join_restoration(env, shown),
            Err(failure) => {
                env.note_store_failure("save the position", &failure);
                // The checkpoint only saves time at the next start, and the stop must not wait for it.
                is_saved = env.stopping;
            }
        }
        if let Some(saved) = saved.filter(|_| is_saved) {
            self.checkpoints.learn(saved);
        }
        Event::Nothing
    }

    /// Whether nothing new may begin: the cluster was restored, and pending objects will be dropped.
    pub(in super::super) fn is_restoring(&self) -> bool {
        self.restoring.is_some()
    }

    /// Whether a restoration is not settled yet.
    pub(in super::super) fn is_marked(&self) -> bool {
        self.checkpoints.is_marked()
    }

    pub(in super::super) fn is_saving(&self) -> bool {
        self.checkpoints.is_saving()
    }

    /// Whether the last request to the cluster or the database failed. An attempt in flight does not change that, but
    /// an open watch does.
    pub(in super::super) fn is_failing(&self) -> bool {
        self.attempts > 0 && !matches!(self.phase, Phase::Watching { .. })
    }

    pub(in super::super) fn is_unserved(&self) -> bool {
        self.unserved
    }

    pub(in super::super) fn is_synced(&self) -> bool {
        self.synced
    }

    pub(in super::super) fn held_orphans(&self) -> Option<HeldOrphans> {
        self.held_orphans
    }

    /// The phase, for people.
    pub(in super::super) fn phase(&self) -> &'static str {
        match self.unserved {
            true => WAITS_FOR_CRD,
            false => self.phase.name(),
        }
    }

    /// The newest version received.
    pub(in super::super) fn received(&self) -> ResourceVersion {
        self.received
    }

    /// The newest version that the cluster has reported.
    pub(in super::super) fn newest(&self) -> ResourceVersion {
        self.newest
    }

    /// Where a watch may resume after a crash; `None` before the first list.
    pub(in super::super) fn watermark(&self, oldest: Oldest) -> Option<ResourceVersion> {
        watermark(self.received, oldest)
    }

    /// When its next timer is due.
    pub(in super::super) fn deadline(&self, backlog: Backlog) -> Option<Duration> {
        let pause = match &self.phase {
            Phase::Pausing { until, .. } => Some(*until),
            _ => None,
        };
        let checkpoint = self.unsaved(backlog.oldest).map(|_| self.checkpoints.due());
        pause.into_iter().chain(checkpoint).min()
    }
}
