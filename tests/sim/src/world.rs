//! One history: processes, cluster, database and virtual time. Gives inputs to processes and checks the rules; `play`
//! takes whole turns.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::Object;
use kindex_runtime::message::Input;
use kindex_runtime::settings::Settings;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::api::SimApi;
use super::checks::Checks;
use super::cluster::version_of;
use super::coverage::aim;
use super::fault::Fault;
use super::harness::{Harness, Parts};
use super::http::Wire;
use super::past::SimHistory;
use super::process::{Process, Site, summary};
use super::step::Step;
use super::storage::SimStorage;
use super::thing::{FINAL_THING, KEPT_THING, THING};

mod abandoned;

mod restorations;

mod record;

use abandoned::Abandoned;
use record::{Counts, Log};
use restorations::Restorations;

/// Adds a line to the log of the history, if one is kept.
macro_rules! log {
    ($world:expr, $($line:tt)*) => {
        if $world.log.is_kept {
            let line = format!($($line)*);
            $world.log.add($world.elapsed, &line);
        }
    };
}
pub(crate) use log;

/// When each outage ends.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    pub(crate) cluster: Duration,
    pub(crate) disk: Duration,
    pub(crate) database: Duration,
}

/// See the module.
pub struct World<'a> {
    pub(crate) harness: &'a Harness,
    pub(crate) parts: Parts,
    seed: u64,
    pub(crate) site: Site,
    pub(crate) api: Arc<SimApi>,
    pub(crate) storage: Arc<SimStorage>,
    pub(crate) processes: Vec<Process>,
    started: u64,
    pub(crate) abandoned: Abandoned,
    pub(crate) elapsed: Duration,
    pub(crate) outages: Outages,
    pub(crate) restorations: Restorations,
    pub(crate) checks: Checks,
    pub(crate) counts: Counts,
    pub(crate) log: Log,
    pub(crate) wrong: Option<String>,
}

impl<'a> World<'a> {
    /// Begins a history, with the settings and processes that a seed determines.
    pub fn new(seed: u64, parts: Parts, harness: &'a Harness, keep_log: bool) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let settings = draw_settings(&mut rng);
        let kind = match rng.random_range(0..100) {
            0..6 => &FINAL_THING,
            6..22 => &KEPT_THING,
            _ => &THING,
        };
        // A single ingester hardly ever leaves rows newer than the restored cluster.
        let rewinds = aim(seed).1 == Step::Rewind;
        let processes = if rng.random_bool(0.3) || rewinds { 2 } else { 1 };
        let api = Arc::new(SimApi::default());
        let real = matches!(parts, Parts::All).then(|| harness.store());
        let storage = Arc::new(SimStorage::new(real));
        storage.database().history = kind.history.then(SimHistory::default);
        let checks = Checks::of(kind, &settings, processes);
        let first = format!(
            "seed {seed}, {parts:?}: {processes} ingesters, immutable: {}, {settings:?}",
            kind.immutable
        );
        let mut world = Self {
            harness,
            parts,
            seed,
            site: Site {
                kind,
                settings,
                cluster: api.clone(),
                storage: storage.clone(),
                metrics: harness.metrics.clone(),
                wire: None,
                watches: None,
            },
            api,
            storage,
            processes: Vec::new(),
            started: 0,
            abandoned: Abandoned::default(),
            elapsed: Duration::ZERO,
            outages: Outages::default(),
            restorations: Restorations::default(),
            checks,
            counts: Counts::new(harness.metrics.lost.get()),
            log: Log::new(first, keep_log),
            wrong: None,
        };
        for who in 0..processes {
            let process = world.new_process();
            world.processes.push(process);
            world.step(who, Input::Start);
        }
        world
    }

    /// A process that has not started.
    pub(crate) fn new_process(&mut self) -> Process {
        let mut site = self.site.clone();
        if self.parts == Parts::All {
            let wire = Wire::new(self.api.clone());
            let client = Arc::new(self.harness.run(self.parts, async { wire.client() }));
            site.watches = Some(client.clone());
            site.cluster = client;
            site.wire = Some(wire);
        }
        self.started += 1;
        let jitter = self.seed.wrapping_mul(31).wrapping_add(self.started);
        Process::new(&site, jitter, self.elapsed)
    }

    /// Turns a panic outside of a turn into a failure of the seed, so that the other seeds go on.
    pub(crate) fn catch_panic(&mut self, play: impl FnOnce(&mut Self)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| play(self))) {
            self.wrong.get_or_insert(panic_text(&*panic));
        }
    }

    /// Advances the time, and fires the timers that are due.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.elapsed += time;
        self.api.cluster().now = self.true_time();
        for who in 0..self.processes.len() {
            if self.processes[who].wakes_at().is_some_and(|at| at <= self.elapsed) {
                self.step(who, Input::Timer);
            }
        }
    }

    fn true_time(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).expect("in range") + self.elapsed
    }

    /// The time that a process's wall clock shows.
    pub(crate) fn wall(&self, who: usize) -> Timestamp {
        self.true_time() + SignedDuration::from_secs(self.processes[who].clock_error_s)
    }

    /// Gives an input to the controller of a process.
    pub(crate) fn step(&mut self, who: usize, input: Input) {
        self.note_newest(who, &input);
        let wall = self.wall(who);
        match self.processes[who].step(self.elapsed, wall, input) {
            Err(wrong) => self.wrong = self.wrong.take().or(Some(wrong)),
            Ok(outputs) => {
                for output in outputs {
                    log!(self, "  {who} → {}", summary(&output));
                }
            }
        }
    }

    /// Counts that a fault happened in a step.
    pub(crate) fn met(&mut self, fault: Fault, step: Step) {
        self.counts.coverage.add(fault, step);
    }

    /// Counts that a fault happened in every step that a process has in flight.
    pub(crate) fn met_all(&mut self, fault: Fault, who: usize) {
        for step in self.processes[who].steps() {
            if fault.impossible(step).is_none() {
                self.met(fault, step);
            }
        }
    }

    pub(crate) fn check(&mut self) {
        if self.wrong.is_some() {
            return;
        }
        // A process that noticed in this turn acted without knowing, and an abandoned write may still be committed.
        self.checks.unaware = self.restorations.is_under_way();
        self.checks.restored_again = self.restorations.count > 1;
        if self.restorations.all_noticed() && self.abandoned.open_transactions.is_empty() {
            self.restorations.end();
        }
        let checkpoint = self.storage.database().checkpoint;
        let marked = checkpoint.and_then(Checkpoint::restored_to).is_some();
        self.checks.checkpoint_is_old &= !self.restorations.all_noticed() || !marked;
        let checked = self
            .checks
            .after_turn(&mut self.api.cluster(), &mut self.storage.database());
        let difference = self.storage.take_difference();
        self.wrong = difference.or(checked.err());
    }

    /// Records the newest version that a process has received.
    fn note_newest(&mut self, who: usize, input: &Input) {
        let of = |object: &Object| object.metadata.resource_version.0;
        let version = match input {
            Input::Loaded(Ok(saved)) => match saved.checkpoint {
                Some(Checkpoint::Settled(version) | Checkpoint::Held(version)) => version.0,
                Some(Checkpoint::Restoring(_)) | None => 0,
            },
            Input::Probed(Ok(version)) => version.0,
            Input::Page(Ok(page)) => page.resource_version.0,
            Input::Watch(Ok(event)) => version_of(event),
            Input::Effect(_, done) => done.object().map_or(0, of),
            _ => 0,
        };
        let process = &mut self.processes[who];
        process.newest = version.max(process.newest);
        match input {
            Input::Loaded(Ok(saved)) => process.is_blank = saved.checkpoint.is_none(),
            _ => process.is_blank &= version == 0,
        }
    }

    /// A process loads a checkpoint that another one saved after the restoration, and has nothing to notice.
    pub(crate) fn note_load(&mut self, who: usize) {
        let version = self.api.cluster().version;
        let saved = self.storage.database().checkpoint.map_or(version, Checkpoint::pack);
        if saved <= version {
            self.restorations.notice(who);
            self.checks.checkpoint_is_old &= !self.restorations.all_noticed();
        }
    }

    /// The log of this history.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Whether all rules held.
    ///
    /// # Errors
    /// The first that did not.
    pub fn verdict(&self) -> Result<(), String> {
        self.wrong.clone().map_or(Ok(()), Err)
    }
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("no text"))
}

fn draw_settings(rng: &mut Xoshiro256PlusPlus) -> Settings {
    Settings {
        concurrent_reconciles: rng.random_range(1..=3),
        requeue_period: Duration::from_secs(2),
        deletion_delay: Duration::from_millis(if rng.random_bool(0.3) { 2_500 } else { 0 }),
        finalizer_wait: Duration::from_millis([0, 0, 400, 60_000][rng.random_range(0..4)]),
        adopt_finalizers: rng.random_bool(0.3),
        version_cache: rng.random_bool(0.4),
        batch_rows_max: rng.random_range(1..=5),
        pending_max: rng.random_range(4..=20),
        page_rows: rng.random_range(1..=4),
        checkpoint_period: Duration::from_millis(100),
        ..Settings::default()
    }
}
