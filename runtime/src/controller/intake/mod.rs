//! Follows the cluster: resumes from the checkpoint, watches, and detects gaps and restorations, which `listing`,
//! `sweep` and `restoration` handle. Observations leave as an [`Event`]; the amount of pending work comes in as a
//! [`Backlog`].

use std::time::Duration;

use kindex_kube_client::{ClusterError, Unreadable, WatchEvent};
use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::ResourceVersion;

use super::super::message::{Output, StoreFailure};
use super::super::status::HeldOrphans;
use super::checkpoints::Checkpoints;
use super::entry::ObservedObject;
use super::environment::Environment;
use super::listing::{Compared, Listed, Listing, Next};
use super::restoration::Restoration;
use super::sweep::{Closing, Sweep};
use super::watermark::Oldest;

mod gaps;

mod positions;

pub(super) use positions::Sent;

/// A watch that ends sooner without an event counts as failed.
const WATCH_LEAST: Duration = Duration::from_secs(1);
/// After a resumed start, SQL is compared with the whole list as soon as the watch ends after this time: versions do
/// not show a rebuilt cluster whose versions are already higher than those of the old one.
const TRUST_AFTER_START: Duration = Duration::from_secs(240);

/// What the intake does while the cluster does not serve the kind.
const WAITS_FOR_CRD: &str = "waiting for its CRD";

/// The phase of the intake.
#[derive(Debug)]
enum Phase {
    Idle,
    /// The checkpoint is being read.
    Loading,
    /// The cluster's version is being compared with the newest known one. This precedes every watch: from a version
    /// that the cluster has not reached, a watch would wait silently.
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
    fn name(&self) -> &'static str {
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

/// The effect of a step of the intake on pending objects.
#[derive(Debug)]
pub(super) enum Event {
    Nothing,
    /// The watch shows this.
    Seen(ObservedObject),
    /// A page of the list, to be compared with its rows.
    Compared(Compared),
    /// A list has ended. Pending objects that are not in it may be gone.
    Listed(Listed),
    /// There are orphans to look up.
    Orphans,
    /// A list begins: none of its items is an echo.
    ListBegun,
    /// Pending objects are dropped: the cluster was restored.
    Restored,
}

/// How much is pending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backlog {
    /// Objects that wait only for us or the database.
    pub(super) active: usize,
    /// Whether batches or effects are in flight.
    pub(super) in_flight: bool,
    pub(super) oldest: Oldest,
}

/// The intake.
#[derive(Debug)]
pub(super) struct Intake {
    phase: Phase,
    /// The newest version received. Everything up to it has arrived.
    received: ResourceVersion,
    /// The newest version that the cluster ever reported. If it later reports a lower one, it was restored.
    newest: ResourceVersion,
    checkpoints: Checkpoints,
    /// The version at which a restoration was found, until the cluster is being listed. Nothing new begins meanwhile.
    restoring: Option<ResourceVersion>,
    /// Failures in a row.
    attempts: u32,
    /// Whether the cluster does not serve the kind: its CRD is not installed.
    unserved: bool,
    /// Whether the first comparison or resumption is done.
    synced: bool,
    held_orphans: Option<HeldOrphans>,
    /// How many rows may be closed in spite of the orphan guard; 0 after the first comparison.
    orphans_allowed: usize,
    /// Before the first watch, SQL is compared with the whole list.
    compare_first: bool,
    /// When SQL is next compared with the whole list even without a gap; set from the first watch on.
    comparison_due: Option<Duration>,
}

impl Intake {
    pub(super) fn new(orphans_allowed: usize) -> Self {
        Self {
            phase: Phase::Idle,
            received: ResourceVersion::default(),
            newest: ResourceVersion::default(),
            checkpoints: Checkpoints::default(),
            restoring: None,
            attempts: 0,
            unserved: false,
            synced: false,
            held_orphans: None,
            orphans_allowed,
            compare_first: orphans_allowed > 0,
            comparison_due: None,
        }
    }

    /// Enters a phase, and sends its request.
    fn enter(&mut self, env: &mut Environment, phase: Phase) {
        let question = match &phase {
            Phase::Idle | Phase::Closing(_) | Phase::Pausing { .. } => None,
            Phase::Loading => Some(Output::Load),
            Phase::Probing(_) => Some(Output::Probe),
            Phase::Restoring(restoration) => restoration.request(&env.settings, &mut self.checkpoints),
            Phase::Listing(listing) => Some(listing.request(&env.settings)),
            Phase::Sweeping(sweep) => Some(sweep.request(&env.settings)),
            Phase::Watching { .. } => Some(Output::Watch(self.received)),
        };
        if let Some(question) = question {
            env.emit(question);
        }
        self.phase = phase;
    }

    fn leave(&mut self) -> Phase {
        std::mem::replace(&mut self.phase, Phase::Idle)
    }

    pub(super) fn start(&mut self, env: &mut Environment) {
        self.enter(env, Phase::Loading);
    }

    /// Enters a phase after a backoff: its request failed.
    fn enter_later(&mut self, env: &mut Environment, next: Phase, what: &str, error: &ClusterError) {
        let (cause, at_least) = match error {
            ClusterError::Retryable { cause, retry_after, .. } => (*cause, retry_after.unwrap_or_default()),
            // The whole kind is missing: its CRD is not installed.
            ClusterError::NotFound(_) => return self.wait_for_crd(env, next),
            ClusterError::Conflict(_) => ("conflict", Duration::ZERO),
            ClusterError::Expired(_) => ("expired", Duration::ZERO),
            ClusterError::Refused(_) => ("refused_by_cluster", Duration::ZERO),
        };
        tracing::warn!(kind = env.kind.name, "{what}: {error}");
        env.metrics.retry(cause);
        env.last_error = Some(format!("{what}: {error}"));
        self.pause(env, next, cause, at_least);
    }

    /// Logs once that the kind is missing, and retries until it is served.
    fn wait_for_crd(&mut self, env: &mut Environment, next: Phase) {
        let (kind, crd) = (env.kind.name, env.kind.crd_name());
        env.metrics.retry("not_found");
        if !std::mem::replace(&mut self.unserved, true) {
            tracing::warn!(
                kind,
                crd,
                "The cluster does not serve this kind: waiting until its CRD is installed"
            );
        }
        env.last_error = Some(format!("the cluster has no CustomResourceDefinition {crd}"));
        self.pause(env, next, "not_found", Duration::ZERO);
    }

    /// The cluster has answered a request for the kind.
    fn note_served(&mut self, env: &Environment) {
        if std::mem::take(&mut self.unserved) {
            tracing::info!(
                kind = env.kind.name,
                "The CRD of this kind is installed: it is stored from now on"
            );
        }
    }

    fn enter_later_for_store(&mut self, env: &mut Environment, next: Phase, failure: &StoreFailure) {
        env.note_store_failure(next.name(), failure);
        self.pause(env, next, failure.cause, Duration::ZERO);
    }

    fn pause(&mut self, env: &mut Environment, next: Phase, cause: &'static str, at_least: Duration) {
        self.attempts = self.attempts.saturating_add(1);
        let pause = env.backoff(self.attempts, cause);
        self.phase = Phase::Pausing {
            until: env.now.elapsed + pause.max(at_least),
            next: Box::new(next),
        };
    }

    /// Continues after a pause or when there is room again.
    pub(super) fn go_on(&mut self, env: &mut Environment, backlog: Backlog) -> Event {
        if env.stopping {
            return Event::Nothing;
        }
        let drained = !backlog.in_flight && !self.checkpoints.is_saving();
        let restored = self.restoring.is_some();
        match &mut self.phase {
            Phase::Pausing { until, next } if *until <= env.now.elapsed => {
                let next = std::mem::replace(&mut **next, Phase::Idle);
                self.enter(env, next);
            }
            Phase::Restoring(restoration) if drained => {
                let known = self.restoring.unwrap_or(restoration.version());
                if let Some(next) = restoration.drained(known) {
                    self.enter(env, Phase::Restoring(next));
                }
            }
            // A restoration was found: nothing new begins, so waiting for room would never end.
            Phase::Watching { .. } | Phase::Closing(_) if restored => self.probe(env),
            Phase::Listing(listing) if restored && listing.waits_for_room() => self.probe(env),
            Phase::Listing(listing) if has_room(env, backlog.active) => match listing.go_on() {
                None => {}
                Some(Next::Page) => env.emit(listing.request(&env.settings)),
                Some(Next::End(listed)) => return Event::Listed(listed),
            },
            Phase::Closing(_) => return Event::Orphans,
            Phase::Idle
            | Phase::Loading
            | Phase::Probing(_)
            | Phase::Restoring(_)
            | Phase::Listing(_)
            | Phase::Sweeping(_)
            | Phase::Watching { .. }
            | Phase::Pausing { .. } => {}
        }
        Event::Nothing
    }

    /// Takes what an earlier run has saved.
    pub(super) fn on_loaded(
        &mut self,
        env: &mut Environment,
        answer: Result<Option<Checkpoint>, StoreFailure>,
    ) -> Event {
        let saved = match answer {
            Ok(saved) => saved,
            Err(failure) => {
                self.enter_later_for_store(env, Phase::Loading, &failure);
                return Event::Nothing;
            }
        };
        self.attempts = 0;
        let Some(saved) = saved else {
            return self.begin_list(env, false);
        };
        self.checkpoints.learn(saved);
        match saved {
            Checkpoint::Restoring(version) => self.restoring = Some(version),
            Checkpoint::Held(version) | Checkpoint::Settled(version) => {
                self.compare_first |= matches!(saved, Checkpoint::Held(_));
                self.received = version;
                self.note_version(version);
            }
        }
        self.probe(env);
        Event::Nothing
    }

    /// The cluster has reported this version.
    fn note_version(&mut self, version: ResourceVersion) {
        self.newest = self.newest.max(version);
    }

    fn probe(&mut self, env: &mut Environment) {
        self.enter(env, Phase::Probing(self.newest));
    }

    pub(super) fn on_probed(&mut self, env: &mut Environment, answer: Result<ResourceVersion, ClusterError>) -> Event {
        let Phase::Probing(newest) = self.phase else {
            return Event::Nothing;
        };
        if answer.is_ok() {
            self.note_served(env);
        }
        match answer {
            Ok(version) if self.restoring.is_some() || version < newest => self.begin_restoration(env, version),
            Ok(version) => {
                self.note_version(version);
                if self.compare_first || self.is_comparison_due(env) {
                    return self.begin_list(env, false);
                }
                self.begin_watch(env);
            }
            Err(error) => self.enter_later(env, Phase::Probing(newest), "ask for the version", &error),
        }
        Event::Nothing
    }

    /// Checked between two watches, so that no watch is interrupted.
    fn is_comparison_due(&self, env: &Environment) -> bool {
        self.comparison_due.is_some_and(|due| due <= env.now.elapsed)
    }

    /// Schedules the next comparison with the whole list after this time, or after its period if that is shorter.
    fn trust_stream_for(&mut self, env: &Environment, time: Duration) {
        let period = env.settings.compare_period;
        self.comparison_due = (!period.is_zero()).then(|| env.now.elapsed + time.min(period));
    }

    fn begin_watch(&mut self, env: &mut Environment) {
        self.synced = true;
        if self.comparison_due.is_none() {
            self.trust_stream_for(env, TRUST_AFTER_START);
        }
        let since = env.now.elapsed;
        self.enter(env, Phase::Watching { since, events: 0 });
    }

    pub(super) fn on_watch(&mut self, env: &mut Environment, answer: Result<WatchEvent, ClusterError>) -> Event {
        let Phase::Watching { events, since } = &mut self.phase else {
            return Event::Nothing;
        };
        if env.now.elapsed.saturating_sub(*since) > env.settings.requeue_period {
            self.attempts = 0;
        }
        let event = match answer {
            Ok(event) => event,
            Err(ClusterError::Expired(reason)) => {
                tracing::info!(kind = env.kind.name, "The watch expired: {reason}");
                return self.begin_list(env, false);
            }
            Err(error) => {
                self.enter_later(env, Phase::Probing(self.newest), "watch", &error);
                return Event::Nothing;
            }
        };
        *events += 1;
        self.attempts = 0;
        env.metrics.events.inc();
        match event {
            WatchEvent::Applied(object) => self.on_change(env, ObservedObject::present(object)),
            WatchEvent::Deleted(object) => self.on_change(env, ObservedObject::gone(object)),
            WatchEvent::Bookmark(version) => {
                self.advance(version);
                Event::Nothing
            }
            WatchEvent::Unreadable(item) => {
                report_unreadable(env, &item);
                Event::Nothing
            }
        }
    }

    /// Takes an event of the watch. A repeated event is already settled or pending; storing it again could create a row
    /// that no later event closes.
    fn on_change(&mut self, env: &Environment, observed: ObservedObject) -> Event {
        if observed.at <= self.received {
            env.metrics.collapsed.inc();
            return Event::Nothing;
        }
        self.advance(observed.at);
        Event::Seen(observed)
    }

    fn advance(&mut self, version: ResourceVersion) {
        self.note_version(version);
        self.received = self.received.max(version);
    }

    pub(super) fn on_watch_ended(&mut self, env: &mut Environment) {
        let Phase::Watching { since, events } = self.phase else {
            return;
        };
        if events == 0 && env.now.elapsed - since < WATCH_LEAST {
            let error = ClusterError::Retryable {
                cause: "watch_closed",
                retry_after: None,
                message: "the server closed the watch at once".to_owned(),
            };
            return self.enter_later(env, Phase::Probing(self.newest), "watch", &error);
        }
        self.probe(env);
    }
}

/// Whether a list may continue: half of the room for pending objects is reserved for watch events.
fn has_room(env: &Environment, active: usize) -> bool {
    active <= env.settings.pending_max / 2
}

fn report_unreadable(env: &mut Environment, item: &Unreadable) {
    env.metrics.unreadable.inc();
    tracing::error!(kind = env.kind.name, object = %item.name, "Not stored: {}", item.reason);
    env.last_error = Some(format!("{}: {}", item.name, item.reason));
}
