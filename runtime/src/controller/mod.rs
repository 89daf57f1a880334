//! The controller of one kind: a deterministic state machine without I/O. [`Controller::step`] takes the time and an
//! input, and returns outputs to carry out.
//!
//! It consists of parts, each with its own state, and passes values between them in one direction. `intake`
//! follows the cluster and compares it with SQL after a gap (`listing`, `sweep`, `restoration`), `pending` collapses
//! what it shows by uid and decides, `commit` writes batches (with `records` for the history) and finds what the
//! database refuses (`quarantine`), and `effects` releases and deletes objects once that is committed. `objects`
//! moves each object from one part to the next.

use std::sync::Arc;
use std::time::Duration;

use kindex_model::kind::{Kind, Platform};
use kindex_model::object::Uid;

use super::message::{EffectDone, Input, Now, Output};
use super::settings::Settings;
use super::status::KindStatus;
use crate::metrics::KindMetrics;

mod environment;

mod watermark;

mod checkpoints;

mod entry;

mod listing;

mod sweep;

mod restoration;

mod intake;

mod pending;

mod records;

mod quarantine;

mod reports;

mod commit;

mod effects;

mod objects;

use environment::Environment;
use intake::{Event, Intake};
use listing::Listed;
use objects::Objects;
use pending::Pending;

/// See the module.
pub struct Controller {
    env: Environment,
    intake: Intake,
    objects: Objects,
}

impl Controller {
    /// A controller that has not started. `owned`: the kinds whose objects those of `kind` may own. `seed` determines
    /// the jitter of its pauses.
    pub fn new(
        kind: &'static Kind,
        platform: Platform,
        owned: Vec<&'static Kind>,
        settings: Settings,
        metrics: Arc<KindMetrics>,
        seed: u64,
    ) -> Self {
        Self {
            intake: Intake::new(settings.orphans_allowed),
            objects: Objects::new(Pending::new(&settings)),
            env: Environment::new(kind, platform, owned, settings, metrics, seed),
        }
    }

    /// Takes one input and returns the outputs to carry out.
    pub fn step(&mut self, now: Now, input: Input) -> Vec<Output> {
        self.env.now = now;
        let event = self.take(input);
        self.pass_on(event);
        self.objects.quarantine.set_restored(self.intake.is_marked());
        self.objects.fire_timers(&mut self.env);
        let event = self.intake.go_on(&mut self.env, self.objects.backlog());
        self.pass_on(event);
        if !self.is_paused() {
            self.objects.begin_effects(&mut self.env, self.intake.newest());
            self.objects.begin_batches(&mut self.env);
            // A batch whose rows are known may lead to effects instead of a write, and no other input may follow that
            // would send them.
            self.objects.begin_effects(&mut self.env, self.intake.newest());
        }
        self.objects.quarantine.release_again(&mut self.env);
        self.intake.save_checkpoint(&mut self.env, self.objects.backlog());
        self.env.take_outputs()
    }

    fn take(&mut self, input: Input) -> Event {
        let (env, intake, objects) = (&mut self.env, &mut self.intake, &mut self.objects);
        match input {
            Input::Start => intake.start(env),
            Input::Timer => {}
            Input::Stop => {
                env.stopping = true;
                env.emit(Output::StopWatch);
            }
            Input::Loaded(answer) => {
                let checkpoint = answer.map(|saved| {
                    objects.quarantine.load(saved.quarantined);
                    saved.checkpoint
                });
                return intake.on_loaded(env, checkpoint);
            }
            Input::Probed(answer) => return intake.on_probed(env, answer),
            Input::Page(answer) => intake.on_page(env, answer),
            Input::PageRows(answer) => return intake.on_page_rows(env, answer),
            Input::Scanned(answer) => return intake.on_scanned(env, answer),
            Input::Rewound(answer) => return intake.on_rewound(env, answer),
            Input::Watch(answer) => return intake.on_watch(env, answer),
            Input::WatchEnded => intake.on_watch_ended(env),
            Input::CheckpointSaved(answer) => return intake.on_checkpoint_saved(env, answer),
            Input::Rows(ticket, answer) => objects.on_rows(env, ticket, answer),
            Input::Written(ticket, answer) => objects.on_written(env, ticket, answer),
            Input::Effect(uid, done) => self.on_effect(&uid, done),
            Input::QuarantineReleased(uid, stored, answer) => {
                objects.quarantine.on_released(env, uid, stored, answer);
            }
        }
        Event::Nothing
    }

    fn on_effect(&mut self, uid: &Uid, done: EffectDone) {
        let ended = self.objects.effects.end(uid);
        if let Some(object) = done.object() {
            self.intake.on_answer(ended.sent, object.metadata.resource_version);
        }
        if let Some(sent) = ended.sent.filter(|_| done.removes()) {
            self.intake.on_removal(sent);
        }
        self.objects.on_effect(&mut self.env, uid, ended, done);
    }

    /// Passes an event of the intake on to the objects.
    fn pass_on(&mut self, event: Event) {
        let (env, objects) = (&mut self.env, &mut self.objects);
        match event {
            Event::Nothing => {}
            Event::Seen(observed) => objects.observe(env, observed),
            Event::Compared(page) => objects.compare(env, page),
            Event::Listed(Listed { version, seen }) => match seen {
                Some(seen) => {
                    let pending = objects.pending.not_in(&seen);
                    self.intake.begin_sweep(env, version, seen, pending);
                }
                None => {
                    self.intake.skip_sweep(env, version);
                    self.close_orphans();
                }
            },
            Event::Orphans => self.close_orphans(),
            Event::ListBegun => objects.effects.forget_removed(),
            Event::Restored => objects.clear(),
        }
    }

    /// Reads orphans from the cluster as there is room. One with an effect in flight is tried later.
    fn close_orphans(&mut self) {
        for _ in 0..self.intake.orphans() {
            let active = self.objects.pending.active();
            let Some(orphan) = self.intake.next_orphan(&self.env, active) else {
                break;
            };
            if let Some(orphan) = self.objects.look_up_orphan(&self.env, orphan) {
                self.intake.put_back(orphan);
            }
        }
        self.intake.end_closing(&mut self.env);
    }

    /// Whether nothing new may begin.
    fn is_paused(&self) -> bool {
        self.env.stopping || self.intake.is_restoring()
    }

    /// When the next [`Input::Timer`] is due, by [`Now::elapsed`].
    pub fn deadline(&self) -> Option<Duration> {
        if self.env.stopping {
            return None;
        }
        let batch = match self.is_paused() {
            true => None,
            false => self.objects.batch_deadline(&self.env),
        };
        let intake = self.intake.deadline(self.objects.backlog());
        let release = self.objects.quarantine.deadline();
        [self.objects.pending.deadline(), batch, intake, release]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether there is room for another event of the watch.
    pub fn wants_events(&self) -> bool {
        let room = |pending| pending < self.env.settings.pending_max;
        !self.env.stopping && room(self.objects.pending.active()) && room(self.objects.commit.records().len())
    }

    /// After [`Input::Stop`]: whether nothing is in flight any more but questions about what objects own, which change
    /// nothing.
    pub fn is_drained(&self) -> bool {
        self.env.stopping && !self.objects.backlog().in_flight && !self.intake.is_saving()
    }

    /// The current status.
    pub fn status(&self) -> KindStatus {
        let (intake, objects) = (&self.intake, &self.objects);
        KindStatus {
            kind: self.env.kind.name,
            synced: intake.is_synced(),
            active: true,
            unserved: intake.is_unserved(),
            phase: intake.phase(),
            pending: objects.pending.len(),
            waiting: objects.pending.waiting(),
            held: objects.pending.held(),
            without_crd: match intake.is_unserved() {
                true => objects.pending.unserved(),
                false => 0,
            },
            position: intake.received(),
            settled: intake.watermark(objects.backlog().oldest).unwrap_or_default(),
            oldest_arrival: objects.pending.oldest_arrival(&self.env, intake.is_unserved()),
            quarantined: objects.quarantine.reasons(),
            unrecorded: objects.quarantine.unrecorded(),
            held_orphans: intake.held_orphans(),
            last_error: self.env.last_error.clone(),
            failing: intake.is_failing() || objects.commit.is_failing(),
        }
    }
}
