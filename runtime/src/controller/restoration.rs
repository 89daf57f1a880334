//! A cluster that came back from a backup: what is under way ends, the fact is marked in the
//! database, and rows of the time that never was lose their version, so that they stand in
//! nobody's way; a history puts that time aside. Then everything is listed, which is the business of `listing`.

use kindex_model::object::{ResourceVersion, Uid};
use kindex_store::{Arrival, RowState, Saving};

use super::super::message::{Output, StoreFailure};
use super::super::saved::{SavedPosition, found_beside, joined};
use super::super::settings::Settings;
use super::Controller;
use super::intake::{Checkpoints, Phase};

/// How far the restoration is.
#[derive(Clone, Debug)]
pub(super) struct Restoration {
    /// What the cluster said when it was found: rows beyond are of another time.
    version: ResourceVersion,
    step: Step,
}

#[derive(Clone, Debug)]
enum Step {
    /// What is under way ends.
    Draining,
    /// The mark is being saved.
    Marking,
    /// What the history tells of that time is put aside.
    Unsaying,
    /// A page of rows is being read.
    Scanning { after: Option<Arrival> },
    /// Rows of that page are being rewound; then the page after it comes, if there is one.
    Rewinding { uids: Vec<Uid>, next: Option<Arrival> },
}

impl Restoration {
    /// The question that the step waits for.
    pub(super) fn request(&self, settings: &Settings, checkpoints: &mut Checkpoints) -> Option<Output> {
        Some(match &self.step {
            Step::Draining => return None,
            Step::Marking => checkpoints.save(self.mark()),
            Step::Unsaying => Output::Unsay(self.version),
            Step::Scanning { after } => Output::Scan {
                after: *after,
                limit: settings.page_rows,
            },
            Step::Rewinding { uids, .. } => Output::Rewind(uids.clone()),
        })
    }

    pub(super) fn version(&self) -> ResourceVersion {
        self.version
    }

    fn mark(&self) -> ResourceVersion {
        SavedPosition::Restoring(self.version).encode()
    }

    pub(super) fn is_marking(&self) -> bool {
        matches!(self.step, Step::Marking)
    }

    /// The step that follows when nothing is under way any more; what was may have told of an earlier split.
    pub(super) fn drained(&self, known: ResourceVersion) -> Option<Self> {
        let marking = Self {
            version: self.version.min(known),
            step: Step::Marking,
        };
        matches!(self.step, Step::Draining).then_some(marking)
    }
}

impl Controller {
    /// Looks at the version that a write of ours made. A cluster that tells its version may have
    /// grown since it came back, by our own hand too; what a write makes is newer than all before.
    pub(super) fn look_for_restoration(&mut self, uid: &Uid, made: ResourceVersion) {
        let sent = self.entries.get_mut(uid).and_then(|entry| entry.sent.take());
        if sent.is_some_and(|sent| sent.made_in_the_past(made)) {
            let before = found_beside(self.checkpoints.saved, ResourceVersion(made.0 - 1));
            self.restore_beyond(before);
        }
    }

    /// Another ingester found the cluster restored, and this one learns it by being refused to save its position.
    pub(super) fn join_restoration(&mut self, shown: ResourceVersion) {
        let Some(version) = joined(self.checkpoints.saved, shown) else {
            return;
        };
        tracing::warn!(
            kind = self.kind.name,
            %version,
            "Another ingester found that the cluster was restored from a backup: rows beyond this version are corrected"
        );
        self.checkpoints.saved = Some(shown);
        self.restore_beyond(version);
    }

    fn restore_beyond(&mut self, version: ResourceVersion) {
        self.restoring = Some(self.restoring.map_or(version, |known| known.min(version)));
    }

    pub(super) fn begin_restoration(&mut self, version: ResourceVersion) {
        tracing::error!(
            kind = self.kind.name,
            cluster = %version,
            stored = %self.position.seen(),
            "The cluster is older than SQL: it was restored from a backup. \
             Everything is listed once and the cluster wins"
        );
        // What is known already says when time split, and the cluster has gone on since.
        let version = match self.restoring {
            Some(known) => known.min(version),
            None => found_beside(self.checkpoints.saved, version),
        };
        self.restoring = Some(version);
        let step = Step::Draining;
        self.enter(Phase::Restoring(Restoration { version, step }));
    }

    pub(super) fn on_marked(&mut self, answer: Result<Saving, StoreFailure>) {
        let Phase::Restoring(mut restoration) = std::mem::replace(&mut self.phase, Phase::Idle) else {
            return;
        };
        match answer {
            Err(failure) => return self.enter_later_for_store(Phase::Restoring(restoration), &failure),
            Ok(Saving::Refused(shown)) => {
                self.join_restoration(shown);
                restoration.version = self.restoring.unwrap_or(restoration.version);
                return self.enter(Phase::Restoring(restoration));
            }
            Ok(Saving::Done) => {}
        }
        self.intake_attempts = 0;
        self.checkpoints.saved = Some(restoration.mark());
        self.newest = restoration.version;
        self.forget_everything();
        if self.kind.history {
            let step = Step::Unsaying;
            self.enter(Phase::Restoring(Restoration { step, ..restoration }));
        } else {
            self.scan_for_restoration(restoration.version, None);
        }
    }

    fn scan_for_restoration(&mut self, version: ResourceVersion, after: Option<Arrival>) {
        let step = Step::Scanning { after };
        self.enter(Phase::Restoring(Restoration { version, step }));
    }

    pub(super) fn on_scanned_for_restoration(
        &mut self,
        restoration: Restoration,
        answer: Result<Vec<RowState>, StoreFailure>,
    ) {
        let states = match answer {
            Ok(states) => states,
            Err(failure) => return self.enter_later_for_store(Phase::Restoring(restoration), &failure),
        };
        self.intake_attempts = 0;
        let version = restoration.version;
        let full = states.len() >= self.settings.page_rows as usize;
        let next = states.last().filter(|_| full).map(|state| state.arrival);
        let beyond = states.into_iter().filter(|state| state.cluster_version() > version);
        let uids: Vec<Uid> = beyond.map(|state| state.uid).collect();
        if uids.is_empty() {
            return self.rewind_next_page(version, next);
        }
        let step = Step::Rewinding { uids, next };
        self.enter(Phase::Restoring(Restoration { version, step }));
    }

    pub(super) fn on_rewound(&mut self, answer: Result<(), StoreFailure>) {
        let Phase::Restoring(restoration) = std::mem::replace(&mut self.phase, Phase::Idle) else {
            return;
        };
        match (answer, restoration) {
            (Err(failure), restoration) => self.enter_later_for_store(Phase::Restoring(restoration), &failure),
            (Ok(()), Restoration { version, step }) => {
                self.intake_attempts = 0;
                match step {
                    Step::Unsaying => self.scan_for_restoration(version, None),
                    Step::Rewinding { next, .. } => self.rewind_next_page(version, next),
                    Step::Draining | Step::Marking | Step::Scanning { .. } => {}
                }
            }
        }
    }

    fn rewind_next_page(&mut self, version: ResourceVersion, next: Option<Arrival>) {
        match next {
            Some(after) => self.scan_for_restoration(version, Some(after)),
            None => {
                self.restoring = None;
                self.begin_list(true);
            }
        }
    }
}
