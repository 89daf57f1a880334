//! The controller of one kind: a deterministic machine without I/O. Time, randomness
//! and everything that happens come in through [`Controller::step`]; what is to be done
//! comes out of it. Which of its modules does what: `intake` follows the cluster, `listing`
//! and `sweep` compare it with SQL after a gap, `restoration` makes ready for a cluster that came
//! back from a backup, `queue` holds what is pending, `records` what the history waits for,
//! `batch` writes both and `effects` lets objects leave the cluster.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kindex_kube_client::ObjectName;
use kindex_model::head::Head;
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_store::QuarantineRecord;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::decide::Row;
use super::message::{Input, Now, Output, StoreFailure, Ticket};
use super::settings::Settings;
use super::status::{HeldOrphans, KindStatus};
use crate::metrics::KindMetrics;

mod entry;

mod effects;

mod intake;

mod listing;

mod restoration;

mod sweep;

mod queue;

mod records;

mod batch;

use batch::{Batch, StoreGate};
use entry::{Entry, Position};
use intake::{Checkpoints, Phase, WAITS_FOR_CRD};
use records::Records;

/// See the module.
pub struct Controller {
    kind: &'static Kind,
    platform: Platform,
    settings: Settings,
    metrics: Arc<KindMetrics>,
    rng: StdRng,
    now: Now,
    out: Vec<Output>,
    stopping: bool,

    phase: Phase,
    position: Position,
    /// The newest version that the cluster ever told: one that it falls below tells that it
    /// was restored.
    newest: ResourceVersion,
    checkpoints: Checkpoints,
    /// The version at which the cluster was found to be restored from a backup, until it is
    /// being listed. Nothing begins meanwhile.
    restoring: Option<ResourceVersion>,
    /// Failures of the intake in a row.
    intake_attempts: u32,
    /// The cluster does not know the kind: its CRD is not installed, or not any more.
    unserved: bool,
    /// The first comparison or resumption is done.
    synced: bool,
    held_orphans: Option<HeldOrphans>,
    /// See [`Settings::orphans_allowed`]; 0 after the first comparison.
    orphans_allowed: usize,
    /// Before the first watch, SQL is compared with the whole list.
    compare_first: bool,
    /// When SQL is compared with the whole list whatever the stream says; known from the first watch on.
    comparison_due: Option<Duration>,

    entries: BTreeMap<Uid, Entry>,
    queue: VecDeque<Uid>,
    queue_since: Duration,
    groups: VecDeque<Vec<Uid>>,
    timers: BTreeSet<(Duration, Uid)>,
    records: Records,
    batches: BTreeMap<Ticket, Batch>,
    next_ticket: Ticket,
    store_gate: StoreGate,

    effects: VecDeque<Uid>,
    effects_under_way: usize,
    /// Objects that our last effect removed, with the version that SQL holds. Every effect is on the condition that
    /// nobody wrote since: what the watch still tells is others' up to that version, and after it the echo of our own.
    removed: BTreeMap<Uid, ResourceVersion>,
    rows: Option<BTreeMap<Uid, Row>>,
    quarantined: BTreeMap<Uid, QuarantineRecord>,
    /// Objects that the database refuses together with their records. They stay pending, and are tried alone.
    unrecorded: BTreeSet<Uid>,
    /// Hash of the problems that were last reported for a uid.
    reported: BTreeMap<Uid, u64>,
    last_error: Option<String>,
}

impl Controller {
    /// A controller that has not begun. `seed` decides the jitter of its pauses.
    pub fn new(
        kind: &'static Kind,
        platform: Platform,
        settings: Settings,
        metrics: Arc<KindMetrics>,
        seed: u64,
    ) -> Self {
        Self {
            kind,
            platform,
            rows: settings.version_cache.then(BTreeMap::new),
            metrics,
            rng: StdRng::seed_from_u64(seed),
            now: Now {
                wall: Timestamp::UNIX_EPOCH,
                elapsed: Duration::ZERO,
            },
            out: Vec::new(),
            stopping: false,
            phase: Phase::Idle,
            position: Position::default(),
            newest: ResourceVersion::default(),
            checkpoints: Checkpoints::default(),
            restoring: None,
            intake_attempts: 0,
            unserved: false,
            synced: false,
            held_orphans: None,
            orphans_allowed: settings.orphans_allowed,
            compare_first: settings.orphans_allowed > 0,
            comparison_due: None,
            entries: BTreeMap::new(),
            queue: VecDeque::new(),
            queue_since: Duration::ZERO,
            groups: VecDeque::new(),
            timers: BTreeSet::new(),
            records: Records::default(),
            batches: BTreeMap::new(),
            next_ticket: 0,
            store_gate: StoreGate::default(),
            effects: VecDeque::new(),
            effects_under_way: 0,
            removed: BTreeMap::new(),
            quarantined: BTreeMap::new(),
            unrecorded: BTreeSet::new(),
            reported: BTreeMap::new(),
            last_error: None,
            settings,
        }
    }

    /// Takes one input and says what is to be done now.
    pub fn step(&mut self, now: Now, input: Input) -> Vec<Output> {
        self.now = now;
        match input {
            Input::Start => self.start(),
            Input::Timer => {}
            Input::Stop => self.stop(),
            Input::Loaded(answer) => self.on_loaded(answer),
            Input::Probed(answer) => self.on_probed(answer),
            Input::Page(answer) => self.on_page(answer),
            Input::PageRows(answer) => self.on_page_rows(answer),
            Input::Scanned(answer) => self.on_scanned(answer),
            Input::Rewound(answer) => self.on_rewound(answer),
            Input::Watch(answer) => self.on_watch(answer),
            Input::WatchEnded => self.on_watch_ended(),
            Input::Rows(ticket, answer) => self.on_rows(ticket, answer),
            Input::Written(ticket, answer) => self.on_written(ticket, answer),
            Input::Effect(uid, done) => self.on_effect(&uid, done),
            Input::CheckpointSaved(answer) => self.on_checkpoint_saved(answer),
            Input::QuarantineReleased(uid, stored, answer) => self.on_quarantine_released(uid, stored, answer),
        }
        self.fire_timers();
        self.continue_intake();
        self.begin_effects();
        self.begin_batches();
        self.save_checkpoint();
        std::mem::take(&mut self.out)
    }

    /// When the next [`Input::Timer`] is due, by [`Now::elapsed`].
    pub fn deadline(&self) -> Option<Duration> {
        if self.stopping {
            return None;
        }
        let timer = self.timers.first().map(|(at, _)| *at);
        [
            timer,
            self.batch_deadline(),
            self.intake_deadline(),
            self.checkpoint_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Whether there is room for another event of the watch.
    pub fn wants_events(&self) -> bool {
        let room = |pending| pending < self.settings.pending_max;
        !self.stopping && room(self.active()) && room(self.records.len())
    }

    /// After [`Input::Stop`]: whether nothing is under way any more.
    pub fn is_drained(&self) -> bool {
        self.stopping && self.is_at_rest()
    }

    /// A copy of what is worth showing.
    pub fn status(&self) -> KindStatus {
        KindStatus {
            kind: self.kind.name,
            synced: self.synced,
            active: true,
            unserved: self.unserved,
            phase: if self.unserved {
                WAITS_FOR_CRD
            } else {
                self.phase.name()
            },
            pending: self.entries.len(),
            waiting: self.timers.len(),
            held: self.entries.values().filter(|entry| entry.is_held()).count(),
            position: self.position.seen(),
            settled: self.watermark().unwrap_or_default(),
            oldest_arrival: self.oldest_arrival(),
            quarantined: self.quarantine_reasons(),
            unrecorded: self.unrecorded.len(),
            held_orphans: self.held_orphans,
            last_error: self.last_error.clone(),
            failing: self.is_intake_failing() || self.store_gate.is_closed(),
        }
    }

    fn quarantine_reasons(&self) -> BTreeMap<Uid, String> {
        let records = self.quarantined.values();
        records
            .map(|record| (record.uid.clone(), record.reason.clone()))
            .collect()
    }

    fn stop(&mut self) {
        self.stopping = true;
        self.out.push(Output::StopWatch);
    }

    fn head(&self, object: &Object) -> Head {
        Head::of(object, self.kind, &self.platform)
    }

    /// Where a watch may resume after a crash without missing a row or a version, if there is
    /// such a place yet.
    fn watermark(&self) -> Option<ResourceVersion> {
        let settled = self.position.watermark()?;
        let kept = match self.records.oldest() {
            Some(oldest) => settled.min(ResourceVersion(oldest.0.saturating_sub(1))),
            None => settled,
        };
        (kept >= Position::FIRST).then_some(kept)
    }

    /// Entries that wait for nothing but us and the database.
    fn active(&self) -> usize {
        self.entries.len() - self.timers.len()
    }

    fn oldest_arrival(&self) -> Option<Timestamp> {
        let pending = self.entries.values().filter(|entry| !entry.waits_as_it_should());
        let age = self
            .now
            .elapsed
            .saturating_sub(pending.map(|entry| entry.arrived).min()?);
        self.now.wall.checked_sub(age).ok()
    }

    fn note_store_failure(&mut self, what: &str, failure: &StoreFailure) {
        self.note_batch_failure(what, failure, None, false);
    }

    /// An outage is told by the store once for all kinds; that a deletion waits for its end is told each time.
    fn note_batch_failure(
        &mut self,
        what: &str,
        failure: &StoreFailure,
        object: Option<&ObjectName>,
        is_awaited: bool,
    ) {
        self.metrics.retry(failure.cause);
        let (kind, cause, message) = (self.kind.name, failure.cause, &failure.message);
        let object = object.map(tracing::field::display);
        if failure.is_outage() && !is_awaited {
            tracing::debug!(kind, object, cause, "{what}: {message}");
        } else {
            tracing::warn!(kind, object, cause, "{what}: {message}");
        }
        self.last_error = Some(format!("{what}: {}", failure.message));
    }
}
