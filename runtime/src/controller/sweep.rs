//! After a gap, second half: a walk over SQL's rows. A live row whose object was not in
//! the list is asked for in the cluster, and closed if it is gone there too.

use std::collections::{BTreeSet, VecDeque};

use kindex_kube_client::ObjectName;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::seen::Seen;
use kindex_query::Life;
use kindex_store::{Arrival, RowState};

use super::super::message::{Output, StoreFailure};
use super::super::settings::Settings;
use super::super::status::HeldOrphans;
use super::Controller;
use super::entry::{Entry, Observation, State};
use super::intake::Phase;

/// The walk over SQL's rows that follows a list.
#[derive(Debug)]
pub(super) struct Sweep {
    after: Option<Arrival>,
    version: ResourceVersion,
    seen: Seen,
    live: usize,
    orphans: Vec<Orphan>,
    /// Objects that the list did not show and that were pending when it ended: their rows may
    /// be written behind the walk.
    pending: Vec<Orphan>,
}

/// What a list did not show.
#[derive(Debug)]
pub(super) struct Orphan {
    uid: Uid,
    name: ObjectName,
    version: ResourceVersion,
}

/// Orphans that are being asked for, as there is room.
#[derive(Debug)]
pub(super) struct Closing {
    version: ResourceVersion,
    orphans: VecDeque<Orphan>,
}

impl Sweep {
    fn new(version: ResourceVersion, seen: Seen) -> Self {
        Self {
            after: None,
            version,
            seen,
            live: 0,
            orphans: Vec::new(),
            pending: Vec::new(),
        }
    }

    pub(super) fn request(&self, settings: &Settings) -> Output {
        Output::Scan {
            after: self.after,
            limit: settings.page_rows,
        }
    }
}

impl Controller {
    pub(super) fn begin_sweep(&mut self, version: ResourceVersion, seen: Seen) {
        let mut sweep = Sweep::new(version, seen);
        for (uid, entry) in &self.entries {
            let present = matches!(entry.newest(), Observation::Present(_));
            if present && !sweep.seen.contains(uid) {
                sweep.pending.push(Orphan {
                    uid: uid.clone(),
                    name: entry.name.clone(),
                    version: entry.oldest,
                });
            }
        }
        self.enter(Phase::Sweeping(sweep));
    }

    pub(super) fn on_scanned(&mut self, answer: Result<Vec<RowState>, StoreFailure>) {
        let mut sweep = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Sweeping(sweep) => sweep,
            Phase::Restoring(restoration) => return self.on_scanned_for_restoration(restoration, answer),
            other => return self.phase = other,
        };
        let states = match answer {
            Ok(states) => states,
            Err(failure) => return self.enter_later_for_store(Phase::Sweeping(sweep), &failure),
        };
        self.intake_attempts = 0;
        let last = states.len() < self.settings.page_rows as usize;
        sweep.after = states.last().map(|state| state.arrival);
        for state in states {
            if state.life != Life::Live {
                continue;
            }
            sweep.live += 1;
            if !sweep.seen.contains(&state.uid) {
                sweep.orphans.push(Orphan {
                    name: ObjectName {
                        namespace: state.namespace,
                        name: state.name,
                    },
                    // The row may be beyond the list: of a cluster that was restored, or by
                    // somebody who saw more. Asking tells.
                    version: state.res_version.min(sweep.version),
                    uid: state.uid,
                });
            }
        }
        if last {
            self.judge_orphans(sweep);
        } else {
            self.enter(Phase::Sweeping(sweep));
        }
    }

    fn judge_orphans(&mut self, sweep: Sweep) {
        let found = sweep.orphans.len();
        self.metrics.orphans.inc_by(found as u64);
        self.held_orphans = None;
        let mut orphans = sweep.orphans;
        let allowed = self.orphans_allowed;
        let (kind, live, guard) = (self.kind.name, sweep.live, self.settings.orphan_guard);
        if guard.forbids(found, live) && found <= allowed {
            tracing::warn!(
                kind,
                orphans = found,
                live,
                allowed,
                "So many rows are closed on demand"
            );
        } else if guard.forbids(found, live) {
            tracing::error!(
                kind,
                orphans = found,
                live,
                allowed,
                "The list lacks too many objects to be believed: no row is closed"
            );
            let rows = found;
            self.held_orphans = Some(HeldOrphans { rows, live, guard });
            orphans.clear();
        }
        // What was pending and not in the list went while nobody watched.
        let known: BTreeSet<Uid> = orphans.iter().map(|orphan| orphan.uid.clone()).collect();
        orphans.extend(sweep.pending.into_iter().filter(|orphan| !known.contains(&orphan.uid)));
        self.finish_sweep(sweep.version, orphans);
    }

    pub(super) fn finish_sweep(&mut self, version: ResourceVersion, orphans: Vec<Orphan>) {
        self.orphans_allowed = 0;
        self.phase = Phase::Closing(Closing {
            version,
            orphans: orphans.into(),
        });
        self.close_orphans();
    }

    /// Asks for orphans as there is room; one whose entry is under way comes again later.
    pub(super) fn close_orphans(&mut self) {
        let Phase::Closing(mut closing) = std::mem::replace(&mut self.phase, Phase::Idle) else {
            return;
        };
        for _ in 0..closing.orphans.len() {
            if self.active() > self.settings.pending_max / 2 {
                break;
            }
            let orphan = closing.orphans.pop_front().expect("counted");
            if let Some(orphan) = self.ask_for_orphan(orphan) {
                closing.orphans.push_back(orphan);
            }
        }
        if closing.orphans.is_empty() {
            self.position.restart(closing.version);
            self.checkpoints.on_listed(closing.version);
            self.probe();
        } else {
            self.phase = Phase::Closing(closing);
        }
    }

    fn ask_for_orphan(&mut self, orphan: Orphan) -> Option<Orphan> {
        let Some(entry) = self.entries.get(&orphan.uid) else {
            let Orphan { uid, name, version } = orphan;
            let gone = Observation::Gone(None);
            self.position.begin(version, &uid);
            let entry = Entry::new(gone, name, version, self.now.elapsed);
            self.entries.insert(uid.clone(), entry);
            self.ask(&uid, None);
            return None;
        };
        match entry.state {
            State::Waiting(..) | State::EffectQueued(_) => {
                self.unschedule(&orphan.uid);
                self.ask(&orphan.uid, None);
                None
            }
            State::Queued | State::Grouped | State::Batch | State::Effect => Some(orphan),
        }
    }
}
