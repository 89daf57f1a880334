//! From one phase to the next: reads the checkpoint, compares versions, and watches. A gap or a restoration that is
//! found there is left to `gaps`.

use std::time::Duration;

use kindex_kube_client::{ClusterCause, ClusterError, WatchEvent};
use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::ResourceVersion;

use super::{Backlog, Event, Intake, Phase, has_room, report_unreadable};
use crate::controller::entry::ObservedObject;
use crate::controller::environment::Environment;
use crate::controller::listing::Next;
use crate::message::StoreFailure;

/// A watch that ends sooner without an event counts as failed.
const WATCH_LEAST: Duration = Duration::from_secs(1);
/// After a resumed start, SQL is compared with the whole list as soon as the watch ends after this time: versions do
/// not show a rebuilt cluster whose versions are already higher than those of the old one.
const TRUST_AFTER_START: Duration = Duration::from_secs(240);

impl Intake {
    /// Continues after a pause or when there is room again.
    pub(in super::super) fn go_on(&mut self, env: &mut Environment, backlog: Backlog) -> Event {
        if env.stopping {
            return Event::Nothing;
        }
        let drained = !backlog.in_flight && !backlog.is_asking && !self.checkpoints.is_saving();
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
    pub(in super::super) fn on_loaded(
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

    pub(in super::super) fn on_probed(
        &mut self,
        env: &mut Environment,
        answer: Result<ResourceVersion, ClusterError>,
    ) -> Event {
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

    fn begin_watch(&mut self, env: &mut Environment) {
        self.synced = true;
        if self.comparison_due.is_none() {
            self.trust_stream_for(env, TRUST_AFTER_START);
        }
        let since = env.now.elapsed;
        self.enter(env, Phase::Watching { since, events: 0 });
    }

    pub(in super::super) fn on_watch(
        &mut self,
        env: &mut Environment,
        answer: Result<WatchEvent, ClusterError>,
    ) -> Event {
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

    pub(in super::super) fn on_watch_ended(&mut self, env: &mut Environment) {
        let Phase::Watching { since, events } = self.phase else {
            return;
        };
        if events == 0 && env.now.elapsed - since < WATCH_LEAST {
            let error = ClusterError::Retryable {
                cause: ClusterCause::WatchClosed,
                retry_after: None,
                message: "the server closed the watch at once".to_owned(),
            };
            return self.enter_later(env, Phase::Probing(self.newest), "watch", &error);
        }
        self.probe(env);
    }
}
