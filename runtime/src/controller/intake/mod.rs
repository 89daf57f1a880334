//! Follows the cluster: resumes from the checkpoint, watches, and detects gaps and restorations, which `listing`,
//! `sweep` and `restoration` handle. Observations leave as an [`Event`]; the amount of pending work comes in as a
//! [`Backlog`].

use std::time::Duration;

use kindex_kube_client::{ClusterError, Unreadable};
use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::ResourceVersion;

use super::checkpoints::Checkpoints;
use super::entry::ObservedObject;
use super::environment::Environment;
use super::listing::{Compared, Listed, Listing};
use super::restoration::Restoration;
use super::sweep::{Closing, Sweep};
use super::watermark::Oldest;
use crate::marks::joined;
use crate::message::{Output, StoreFailure};
use crate::status::HeldOrphans;

mod gaps;

mod positions;

mod watching;

pub(super) use positions::Sent;

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
    /// Whether batches or effects are in flight, other than questions about what objects own.
    pub(super) in_flight: bool,
    /// Whether such questions are. A stop does not wait for these: they change nothing, and may take long.
    pub(super) is_asking: bool,
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
    /// How many rows may be closed in spite of the orphan limits; 0 after the first comparison.
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
            ClusterError::Retryable { cause, retry_after, .. } => (cause.label(), retry_after.unwrap_or_default()),
            // The whole kind is missing: its CRD is not installed, or does not serve this version.
            ClusterError::Unserved {
                in_other_version,
                message,
            } => return self.wait_for_crd(env, next, in_other_version.then_some(message.as_str())),
            ClusterError::NotFound(_) => ("not_found", Duration::ZERO),
            ClusterError::Conflict(_) => ("conflict", Duration::ZERO),
            ClusterError::Expired(_) => ("expired", Duration::ZERO),
            ClusterError::Refused(_) => ("refused_by_cluster", Duration::ZERO),
        };
        tracing::warn!(kind = env.kind.name, "{what}: {error}");
        env.metrics.retry(cause);
        env.last_error = Some(format!("{what}: {error}"));
        self.pause(env, next, cause, at_least);
    }

    /// Logs once that the kind is missing, and retries until it is served. `in_other_version`: what the cluster serves
    /// instead.
    fn wait_for_crd(&mut self, env: &mut Environment, next: Phase, in_other_version: Option<&str>) {
        let (kind, crd) = (env.kind.name, env.kind.crd_name());
        env.metrics.retry("not_found");
        if !std::mem::replace(&mut self.unserved, true) {
            match in_other_version {
                Some(message) => tracing::warn!(kind, crd, "The kind is waited for: {message}"),
                None => tracing::warn!(
                    kind,
                    crd,
                    "The cluster does not serve this kind: waiting until its CRD is installed"
                ),
            }
        }
        let missing = || format!("the cluster has no CustomResourceDefinition {crd}");
        env.last_error = Some(in_other_version.map_or_else(missing, str::to_owned));
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

    /// The cluster has reported this version.
    fn note_version(&mut self, version: ResourceVersion) {
        self.newest = self.newest.max(version);
    }

    fn probe(&mut self, env: &mut Environment) {
        self.enter(env, Phase::Probing(self.newest));
    }

    /// Schedules the next comparison with the whole list after this time, or after its period if that is shorter.
    fn trust_stream_for(&mut self, env: &Environment, time: Duration) {
        let period = env.settings.compare_period;
        self.comparison_due = (!period.is_zero()).then(|| env.now.elapsed + time.min(period));
    }

    /// Another ingester found the cluster restored, and this one learns it by being refused to save its position.
    fn join_restoration(&mut self, env: &Environment, shown: Checkpoint) {
        let Some(version) = joined(self.checkpoints.saved(), shown) else {
            return;
        };
        tracing::warn!(
            kind = env.kind.name,
            %version,
            "Another ingester found that the cluster was restored from a backup: rows beyond this version are corrected"
        );
        self.checkpoints.learn(shown);
        self.restore_beyond(version);
    }

    fn restore_beyond(&mut self, version: ResourceVersion) {
        self.restoring = Some(self.restoring.map_or(version, |known| known.min(version)));
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
