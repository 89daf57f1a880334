//! Following the cluster: resume from the saved position, watch, and find out when
//! the stream has a gap. What to do about a gap is the business of `listing`.

use std::time::Duration;

use super::super::backoff;
use super::super::message::{Output, Saved, StoreFailure};
use super::Controller;
use super::entry::Observation;
use super::listing::Listing;
use super::sweep::{Closing, Sweep};
use crate::cluster::{ClusterError, ObjectName, Unreadable, WatchEvent};
use crate::object::{ResourceVersion, Uid};

/// A watch that ends sooner, without an event, has failed.
const WATCH_LEAST: Duration = Duration::from_secs(1);

/// Saved as position from the moment a restored cluster is found until it has been listed,
/// for its versions may have grown beyond ours by then. No list has this version.
const RESTORED: ResourceVersion = ResourceVersion(0);

/// What the intake does.
#[derive(Debug)]
pub(super) enum Phase {
    Idle,
    /// The saved position is being read.
    Loading,
    /// The cluster's version is being compared with our position.
    Probing,
    /// The cluster was restored: what is under way ends before everything is listed.
    Draining,
    /// [`RESTORED`] is being saved.
    Marking,
    Listing(Listing),
    Sweeping(Sweep),
    Closing(Closing),
    Watching {
        since: Duration,
        events: u64,
    },
    Pausing {
        until: Duration,
        next: Box<Phase>,
    },
}

impl Phase {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Idle => "starting",
            Self::Loading => "reading the saved position",
            Self::Probing => "asking the cluster for its version",
            Self::Draining | Self::Marking => "making ready for a restored cluster",
            Self::Listing(_) => "listing",
            Self::Sweeping(_) => "comparing",
            Self::Closing(_) => "closing orphans",
            Self::Watching { .. } => "watching",
            Self::Pausing { next, .. } => next.name(),
        }
    }
}

/// The position as the database holds it.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    saved: Option<ResourceVersion>,
    under_way: Option<ResourceVersion>,
    /// Nothing below is saved: the list that ended a restoration is not settled yet.
    least: ResourceVersion,
    due: Duration,
    /// Quarantine records whose removal failed; tried again with the next checkpoint.
    pub(super) unreleased: Vec<Uid>,
}

impl Checkpoints {
    /// A restoration was found and is not known to be settled.
    pub(super) fn marked(&self) -> bool {
        self.saved == Some(RESTORED)
    }

    /// A list has ended at this version. Orphans of a restored cluster are in no watch: the
    /// mark stays until they are settled.
    pub(super) fn on_listed(&mut self, version: ResourceVersion) {
        self.least = if self.marked() { version } else { RESTORED };
    }

    pub(super) fn saving(&self) -> bool {
        self.under_way.is_some()
    }
}

impl Controller {
    /// Whether nothing new begins.
    pub(super) fn is_paused(&self) -> bool {
        self.stopping || self.restoring
    }

    pub(super) fn start(&mut self) {
        self.enter(Phase::Loading);
    }

    /// Begins a phase with the question that it waits for.
    pub(super) fn enter(&mut self, phase: Phase) {
        match &phase {
            Phase::Idle | Phase::Draining | Phase::Closing(_) | Phase::Pausing { .. } => {}
            Phase::Loading => self.out.push(Output::Load),
            Phase::Probing => self.out.push(Output::Probe),
            Phase::Marking => {
                self.checkpoints.under_way = Some(RESTORED);
                self.out.push(Output::SaveCheckpoint(RESTORED));
            }
            Phase::Listing(listing) => self.out.push(listing.request(&self.settings)),
            Phase::Sweeping(sweep) => self.out.push(sweep.request(&self.settings)),
            Phase::Watching { .. } => self.out.push(Output::Watch(self.position.seen())),
        }
        self.phase = phase;
    }

    /// Enters a phase later: its question failed.
    pub(super) fn enter_later(&mut self, next: Phase, what: &str, error: &ClusterError) {
        tracing::warn!(kind = self.kind.name, "{what}: {error}");
        let (cause, at_least) = match error {
            ClusterError::Retryable { cause, retry_after, .. } => (*cause, retry_after.unwrap_or_default()),
            ClusterError::NotFound(_) => ("not_found", Duration::ZERO),
            ClusterError::Conflict(_) => ("conflict", Duration::ZERO),
            ClusterError::Expired(_) => ("expired", Duration::ZERO),
            ClusterError::Refused(_) => ("refused_by_cluster", Duration::ZERO),
        };
        self.metrics.retry(cause);
        self.last_error = Some(format!("{what}: {error}"));
        self.pause_intake(next, cause, at_least);
    }

    pub(super) fn enter_later_for_store(&mut self, next: Phase, failure: &StoreFailure) {
        self.note_store_failure(next.name(), failure);
        self.pause_intake(next, failure.cause, Duration::ZERO);
    }

    fn pause_intake(&mut self, next: Phase, cause: &'static str, at_least: Duration) {
        self.intake_attempts = self.intake_attempts.saturating_add(1);
        let pause = backoff::pause(
            self.intake_attempts,
            backoff::base(cause),
            self.settings.requeue_period,
            &mut self.rng,
        );
        self.phase = Phase::Pausing {
            until: self.now.elapsed + pause.max(at_least),
            next: Box::new(next),
        };
    }

    /// Whether the last question to the cluster or the database failed. An attempt that is
    /// under way does not change that; an open watch does.
    pub(super) fn is_intake_failing(&self) -> bool {
        self.intake_attempts > 0 && !matches!(self.phase, Phase::Watching { .. })
    }

    pub(super) fn intake_deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Pausing { until, .. } if !self.stopping => Some(*until),
            _ => None,
        }
    }

    /// Goes on where time or room was missing.
    pub(super) fn continue_intake(&mut self) {
        if self.stopping {
            return;
        }
        let at_rest = self.is_at_rest();
        match &mut self.phase {
            Phase::Pausing { until, next } if *until <= self.now.elapsed => {
                let next = std::mem::replace(&mut **next, Phase::Idle);
                self.enter(next);
            }
            Phase::Draining if at_rest => self.enter(Phase::Marking),
            Phase::Listing(_) => self.continue_listing(),
            Phase::Closing(_) => self.close_orphans(),
            Phase::Idle
            | Phase::Loading
            | Phase::Probing
            | Phase::Draining
            | Phase::Marking
            | Phase::Sweeping(_)
            | Phase::Watching { .. }
            | Phase::Pausing { .. } => {}
        }
    }

    pub(super) fn on_loaded(&mut self, answer: Result<Saved, StoreFailure>) {
        let saved = match answer {
            Ok(saved) => saved,
            Err(failure) => return self.enter_later_for_store(Phase::Loading, &failure),
        };
        self.intake_attempts = 0;
        self.quarantined = saved.quarantined.into_iter().collect();
        match saved.position {
            Some(RESTORED) => {
                self.restoring = true;
                self.enter(Phase::Draining);
            }
            Some(version) => {
                self.position.restart(version);
                self.checkpoints.saved = Some(version);
                self.enter(Phase::Probing);
            }
            None => self.begin_list(false),
        }
    }

    pub(super) fn on_probed(&mut self, answer: Result<ResourceVersion, ClusterError>) {
        match answer {
            Ok(version) if version < self.position.seen() => {
                tracing::error!(
                    kind = self.kind.name,
                    cluster = %version,
                    stored = %self.position.seen(),
                    "The cluster is older than SQL: it was restored from a backup. \
                     Everything is listed once and the cluster wins"
                );
                self.restoring = true;
                self.enter(Phase::Draining);
            }
            Ok(_) => self.begin_watch(),
            Err(error) => self.enter_later(Phase::Probing, "ask for the version", &error),
        }
    }

    pub(super) fn begin_watch(&mut self) {
        self.synced = true;
        self.enter(Phase::Watching {
            since: self.now.elapsed,
            events: 0,
        });
    }

    pub(super) fn on_watch(&mut self, answer: Result<WatchEvent, ClusterError>) {
        let Phase::Watching { events, since } = &mut self.phase else {
            return;
        };
        if self.now.elapsed.saturating_sub(*since) > self.settings.requeue_period {
            self.intake_attempts = 0;
        }
        let event = match answer {
            Ok(event) => event,
            Err(ClusterError::Expired(reason)) => {
                tracing::info!(kind = self.kind.name, "The watch expired: {reason}");
                return self.begin_list(false);
            }
            Err(error) => return self.enter_later(Phase::Probing, "watch", &error),
        };
        *events += 1;
        self.intake_attempts = 0;
        self.metrics.events.inc();
        match event {
            WatchEvent::Applied(object) => {
                let version = object.metadata.resource_version;
                self.observe_present(object, version);
                self.position.advance(version);
            }
            WatchEvent::Deleted(object) => {
                let version = object.metadata.resource_version;
                let (uid, name) = (object.metadata.uid.clone(), ObjectName::of(&object));
                self.observe(&uid, name, Observation::Gone(Some(object)), version);
                self.position.advance(version);
            }
            WatchEvent::Bookmark(version) => self.position.advance(version),
            WatchEvent::Unreadable(item) => self.report_unreadable(&item),
        }
    }

    pub(super) fn on_watch_ended(&mut self) {
        let Phase::Watching { since, events } = self.phase else {
            return;
        };
        if events == 0 && self.now.elapsed - since < WATCH_LEAST {
            let error = ClusterError::Retryable {
                cause: "watch_closed",
                retry_after: None,
                message: "the server closed the watch at once".to_owned(),
            };
            return self.enter_later(Phase::Probing, "watch", &error);
        }
        self.begin_watch();
    }

    pub(super) fn report_unreadable(&mut self, item: &Unreadable) {
        self.metrics.unreadable.inc();
        tracing::error!(kind = self.kind.name, object = %item.name, "Not stored: {}", item.reason);
        self.last_error = Some(format!("{}: {}", item.name, item.reason));
    }

    /// Whether nothing that was begun is still under way.
    pub(super) fn is_at_rest(&self) -> bool {
        self.batches.is_empty() && self.effects_under_way == 0 && !self.checkpoints.saving()
    }

    /// A position worth saving that is not the saved one.
    fn unsaved_position(&self) -> Option<ResourceVersion> {
        let watching = matches!(self.phase, Phase::Watching { .. });
        let watermark = self.watermark();
        let checkpoints = &self.checkpoints;
        let worth = !checkpoints.saving() && checkpoints.saved != Some(watermark) && watermark >= checkpoints.least;
        (watching && worth).then_some(watermark)
    }

    pub(super) fn checkpoint_deadline(&self) -> Option<Duration> {
        self.unsaved_position().map(|_| self.checkpoints.due)
    }

    pub(super) fn save_checkpoint(&mut self) {
        let last_call = self.stopping && self.batches.is_empty() && self.effects_under_way == 0;
        let Some(watermark) = self.unsaved_position() else {
            return;
        };
        if self.checkpoints.due > self.now.elapsed && !last_call {
            return;
        }
        self.checkpoints.due = self.now.elapsed + self.settings.checkpoint_period;
        self.checkpoints.under_way = Some(watermark);
        self.out.push(Output::SaveCheckpoint(watermark));
        for uid in std::mem::take(&mut self.checkpoints.unreleased) {
            self.out.push(Output::ReleaseQuarantine(uid));
        }
    }

    pub(super) fn on_checkpoint_saved(&mut self, answer: Result<(), StoreFailure>) {
        let saved = self.checkpoints.under_way.take();
        let marking = matches!(self.phase, Phase::Marking);
        match answer {
            Ok(()) if marking => {
                self.checkpoints.saved = saved;
                self.restoring = false;
                self.forget_everything();
                self.begin_list(true);
            }
            Err(failure) if marking => self.enter_later_for_store(Phase::Marking, &failure),
            Ok(()) => self.checkpoints.saved = saved,
            Err(failure) => {
                self.note_store_failure("save the position", &failure);
                // Stopping: the position is a convenience, and time is short.
                if self.stopping {
                    self.checkpoints.saved = saved;
                }
            }
        }
    }
}
