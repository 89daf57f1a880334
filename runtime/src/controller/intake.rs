//! Following the cluster: resume from the saved position, watch, and find out when
//! the stream has a gap. What to do about a gap is the business of `listing`.

use std::time::Duration;

use kindex_kube_client::{ClusterError, ObjectName, Unreadable, WatchEvent};
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_store::{Saving, backoff};

use super::super::message::{Output, Saved, StoreFailure};
use super::super::saved::{SavedPosition, marked};
use super::Controller;
use super::entry::Observation;
use super::listing::Listing;
use super::restoration::Restoration;
use super::sweep::{Closing, Sweep};

/// A watch that ends sooner, without an event, has failed.
const WATCH_LEAST: Duration = Duration::from_secs(1);
/// A start that resumes goes on at once, and is compared as soon as its watch ends after this time: versions alone do
/// not tell a cluster that was built anew and has come further than the old one.
const TRUST_AFTER_START: Duration = Duration::from_secs(240);

/// What the intake does while the cluster does not serve the kind.
pub(super) const WAITS_FOR_CRD: &str = "waiting for its CRD";

/// What the intake does.
#[derive(Debug)]
pub(super) enum Phase {
    Idle,
    /// The saved position is being read.
    Loading,
    /// The cluster's version is being compared with the newest that it ever told, as it was
    /// when the question went out. No watch is opened without: from a version that the
    /// cluster has not reached it would wait in silence.
    Probing(ResourceVersion),
    /// The cluster was restored; see `restoration`.
    Restoring(Restoration),
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
            Self::Probing(_) => "asking the cluster for its version",
            Self::Restoring(_) => "making ready for a restored cluster",
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
    pub(super) saved: Option<ResourceVersion>,
    pub(super) under_way: Option<ResourceVersion>,
    /// Nothing below is saved: the list that ended a restoration is not settled yet.
    least: ResourceVersion,
    due: Duration,
    /// Quarantine records whose removal failed; tried again with the next checkpoint.
    pub(super) unreleased: Vec<(Uid, ResourceVersion)>,
}

impl Checkpoints {
    /// A restoration was found and is not known to be settled.
    pub(super) fn marked(&self) -> bool {
        self.saved.is_some_and(|position| marked(position).is_some())
    }

    /// A list has ended at this version. Orphans of a restored cluster are in no watch: the
    /// mark stays until they are settled.
    pub(super) fn on_listed(&mut self, version: ResourceVersion) {
        self.least = if self.marked() { version } else { ResourceVersion(0) };
    }

    pub(super) fn saving(&self) -> bool {
        self.under_way.is_some()
    }

    /// Asks for this to be saved in place of what is known.
    pub(super) fn save(&mut self, position: ResourceVersion) -> Output {
        self.under_way = Some(position);
        Output::SaveCheckpoint {
            position,
            known_mark: self.saved.filter(|_| self.marked()),
        }
    }
}

impl Controller {
    /// Whether nothing new begins.
    pub(super) fn is_paused(&self) -> bool {
        self.stopping || self.restoring.is_some()
    }

    pub(super) fn start(&mut self) {
        self.enter(Phase::Loading);
    }

    /// Begins a phase with the question that it waits for.
    pub(super) fn enter(&mut self, phase: Phase) {
        match &phase {
            Phase::Idle | Phase::Closing(_) | Phase::Pausing { .. } => {}
            Phase::Loading => self.out.push(Output::Load),
            Phase::Probing(_) => self.out.push(Output::Probe),
            Phase::Restoring(restoration) => {
                let question = restoration.request(&self.settings, &mut self.checkpoints);
                self.out.extend(question);
            }
            Phase::Listing(listing) => self.out.push(listing.request(&self.settings)),
            Phase::Sweeping(sweep) => self.out.push(sweep.request(&self.settings)),
            Phase::Watching { .. } => self.out.push(Output::Watch(self.position.seen())),
        }
        self.phase = phase;
    }

    /// Enters a phase later: its question failed.
    pub(super) fn enter_later(&mut self, next: Phase, what: &str, error: &ClusterError) {
        let (cause, at_least) = match error {
            ClusterError::Retryable { cause, retry_after, .. } => (*cause, retry_after.unwrap_or_default()),
            // Of a whole kind: nobody has installed it.
            ClusterError::NotFound(_) => return self.wait_for_crd(next),
            ClusterError::Conflict(_) => ("conflict", Duration::ZERO),
            ClusterError::Expired(_) => ("expired", Duration::ZERO),
            ClusterError::Refused(_) => ("refused_by_cluster", Duration::ZERO),
        };
        tracing::warn!(kind = self.kind.name, "{what}: {error}");
        self.metrics.retry(cause);
        self.last_error = Some(format!("{what}: {error}"));
        self.pause_intake(next, cause, at_least);
    }

    /// The kind is told to be missing once, and asked for again until it is there.
    fn wait_for_crd(&mut self, next: Phase) {
        let crd = self.kind.crd_name();
        self.metrics.retry("not_found");
        if !self.unserved {
            self.unserved = true;
            let kind = self.kind.name;
            tracing::warn!(
                kind,
                crd,
                "The cluster does not serve this kind: waiting until its CRD is installed"
            );
        }
        self.last_error = Some(format!("the cluster has no CustomResourceDefinition {crd}"));
        self.pause_intake(next, "not_found", Duration::ZERO);
    }

    /// The cluster has answered a question about the kind.
    pub(super) fn note_served(&mut self) {
        if std::mem::take(&mut self.unserved) {
            tracing::info!(
                kind = self.kind.name,
                "The CRD of this kind is installed: it is stored from now on"
            );
        }
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
        let restoring = self.restoring;
        let restored = restoring.is_some();
        match &mut self.phase {
            Phase::Pausing { until, next } if *until <= self.now.elapsed => {
                let next = std::mem::replace(&mut **next, Phase::Idle);
                self.enter(next);
            }
            Phase::Restoring(restoration) if at_rest => {
                let known = restoring.unwrap_or(restoration.version());
                if let Some(next) = restoration.drained(known) {
                    self.enter(Phase::Restoring(next));
                }
            }
            // Found out by the way: nothing begins any more, so nobody would make room.
            Phase::Watching { .. } | Phase::Closing(_) if restored => self.probe(),
            Phase::Listing(listing) if restored && listing.waits_for_room() => self.probe(),
            Phase::Listing(_) => self.continue_listing(),
            Phase::Closing(_) => self.close_orphans(),
            Phase::Idle
            | Phase::Loading
            | Phase::Probing(_)
            | Phase::Restoring(_)
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
        let records = saved.quarantined.into_iter();
        self.quarantined = records.map(|record| (record.uid.clone(), record)).collect();
        match saved.position {
            Some(mark) if marked(mark).is_some() => {
                self.restoring = marked(mark);
                self.checkpoints.saved = Some(mark);
                self.probe();
            }
            Some(saved) => {
                let position = SavedPosition::decode(saved);
                let version = position.version();
                self.compare_first |= matches!(position, SavedPosition::Held(_));
                self.position.restart(version);
                self.checkpoints.saved = Some(saved);
                self.note_version(version);
                self.probe();
            }
            None => self.begin_list(false),
        }
    }

    /// The cluster told this version of itself.
    pub(super) fn note_version(&mut self, version: ResourceVersion) {
        self.newest = self.newest.max(version);
    }

    pub(super) fn probe(&mut self) {
        self.enter(Phase::Probing(self.newest));
    }

    pub(super) fn on_probed(&mut self, answer: Result<ResourceVersion, ClusterError>) {
        let Phase::Probing(newest) = self.phase else {
            return;
        };
        if answer.is_ok() {
            self.note_served();
        }
        match answer {
            Ok(version) if self.restoring.is_some() || version < newest => self.begin_restoration(version),
            Ok(version) => {
                self.note_version(version);
                if self.compare_first || self.is_comparison_due() {
                    self.begin_list(false);
                } else {
                    self.begin_watch();
                }
            }
            Err(error) => self.enter_later(Phase::Probing(newest), "ask for the version", &error),
        }
    }

    /// Asked between two watches, so that no watch is cut short for it.
    fn is_comparison_due(&self) -> bool {
        self.comparison_due.is_some_and(|due| due <= self.now.elapsed)
    }

    /// The stream is trusted from now on for so long, or for its period if that is shorter.
    pub(super) fn trust_stream_for(&mut self, time: Duration) {
        let period = self.settings.compare_period;
        self.comparison_due = (!period.is_zero()).then(|| self.now.elapsed + time.min(period));
    }

    fn begin_watch(&mut self) {
        self.synced = true;
        if self.comparison_due.is_none() {
            self.trust_stream_for(TRUST_AFTER_START);
        }
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
            Err(error) => return self.enter_later(Phase::Probing(self.newest), "watch", &error),
        };
        *events += 1;
        self.intake_attempts = 0;
        self.metrics.events.inc();
        match event {
            WatchEvent::Applied(object) => self.on_change(object, false),
            WatchEvent::Deleted(object) => self.on_change(object, true),
            WatchEvent::Bookmark(version) => self.advance(version),
            WatchEvent::Unreadable(item) => self.report_unreadable(&item),
        }
    }

    /// Takes up what a watch tells. What it tells again is settled, or pending; to store it now
    /// would put a row there that no later event closes.
    fn on_change(&mut self, object: Object, gone: bool) {
        let version = object.metadata.resource_version;
        if version <= self.position.seen() {
            return self.metrics.collapsed.inc();
        }
        let (uid, name) = (object.metadata.uid.clone(), ObjectName::of(&object));
        let observation = if gone {
            Observation::Gone(Some(object))
        } else {
            Observation::Present(object)
        };
        self.observe(&uid, name, observation, version);
        self.advance(version);
    }

    fn advance(&mut self, version: ResourceVersion) {
        self.note_version(version);
        self.position.advance(version);
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
            return self.enter_later(Phase::Probing(self.newest), "watch", &error);
        }
        self.probe();
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
        let watching = matches!(self.phase, Phase::Watching { .. }) && self.restoring.is_none();
        let watermark = self.watermark()?;
        let checkpoints = &self.checkpoints;
        let position = match self.held_orphans {
            None => SavedPosition::Settled(watermark),
            Some(_) => SavedPosition::Held(watermark),
        };
        let position = position.encode();
        let worth = !checkpoints.saving() && checkpoints.saved != Some(position) && watermark >= checkpoints.least;
        (watching && worth).then_some(position)
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
        let save = self.checkpoints.save(watermark);
        self.out.push(save);
        for (uid, stored) in std::mem::take(&mut self.checkpoints.unreleased) {
            self.out.push(Output::ReleaseQuarantine(uid, stored));
        }
    }

    pub(super) fn on_checkpoint_saved(&mut self, answer: Result<Saving, StoreFailure>) {
        let saved = self.checkpoints.under_way.take();
        if let Phase::Restoring(restoration) = &self.phase
            && restoration.is_marking()
        {
            return self.on_marked(answer);
        }
        match answer {
            Ok(Saving::Done) => self.checkpoints.saved = saved,
            Ok(Saving::Refused(shown)) => self.join_restoration(shown),
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
