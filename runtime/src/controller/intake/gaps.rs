//! The list, at the start and again: closes a gap in the watch by reading the list and the rows, and looks up orphans.
//! After a restoration of the cluster, rows are rewound first.

use kindex_kube_client::{ClusterError, Page};
use kindex_model::object::ResourceVersion;
use kindex_model::uid_set::UidSet;
use kindex_store::{CheckpointOutcome, RowState};

use super::{Event, Intake, Phase, has_room, report_unreadable};
use crate::controller::environment::Environment;
use crate::controller::listing::Listing;
use crate::controller::restoration::Restoration;
use crate::controller::sweep::{Closing, Judgment, Orphan, Sweep};
use crate::marks::found_beside;
use crate::message::StoreFailure;

impl Intake {
    pub(super) fn begin_list(&mut self, env: &mut Environment, restored: bool) -> Event {
        env.metrics.relists.inc();
        self.compare_first = false;
        self.trust_stream_for(env, env.settings.compare_period);
        let restored = restored || self.checkpoints.is_marked();
        self.enter(env, Phase::Listing(Listing::new(restored, self.newest)));
        Event::ListBegun
    }

    pub(in super::super) fn on_page(&mut self, env: &mut Environment, answer: Result<Page, ClusterError>) {
        let mut listing = match self.leave() {
            Phase::Listing(listing) => listing,
            other => return self.phase = other,
        };
        let page = match answer {
            Ok(page) if page.resource_version == ResourceVersion(0) => {
                let error = ClusterError::Refused("the list has no version".to_owned());
                return self.relist(env, &listing, &error);
            }
            Ok(page) => page,
            Err(error @ ClusterError::Expired(_)) => return self.relist(env, &listing, &error),
            Err(error) => return self.enter_later(env, Phase::Listing(listing), "list", &error),
        };
        self.attempts = 0;
        self.note_served(env);
        if listing.is_of_the_past(&page) {
            return self.begin_restoration(env, page.resource_version);
        }
        self.note_version(page.resource_version);
        for item in &page.unreadable {
            report_unreadable(env, item);
        }
        if listing.take(page) {
            self.enter(env, Phase::Listing(listing));
        } else {
            self.phase = Phase::Listing(listing);
        }
    }

    fn relist(&mut self, env: &mut Environment, listing: &Listing, error: &ClusterError) {
        let anew = listing.anew(self.newest);
        self.enter_later(env, Phase::Listing(anew), "list", error);
    }

    pub(in super::super) fn on_page_rows(
        &mut self,
        env: &mut Environment,
        answer: Result<Vec<RowState>, StoreFailure>,
    ) -> Event {
        let mut listing = match self.leave() {
            Phase::Listing(listing) => listing,
            other => {
                self.phase = other;
                return Event::Nothing;
            }
        };
        let rows = match answer {
            Ok(rows) => rows,
            Err(failure) => {
                self.enter_later_for_store(env, Phase::Listing(listing), &failure);
                return Event::Nothing;
            }
        };
        self.attempts = 0;
        let compared = listing.compare(&rows);
        self.phase = Phase::Listing(listing);
        compared.map_or(Event::Nothing, Event::Compared)
    }

    /// Begins the sweep after the list. `pending`: unsettled objects that are not in the list.
    pub(in super::super) fn begin_sweep(
        &mut self,
        env: &mut Environment,
        version: ResourceVersion,
        seen: UidSet,
        pending: Vec<Orphan>,
    ) {
        self.enter(env, Phase::Sweeping(Sweep::new(version, seen, pending)));
    }

    /// Ends the list without a sweep: an item has no uid, so missing objects cannot be determined.
    pub(in super::super) fn skip_sweep(&mut self, env: &Environment, version: ResourceVersion) {
        tracing::warn!(
            kind = env.kind.name,
            "An item of the list has no uid: no orphaned row is closed after this list"
        );
        self.close(version, Vec::new());
    }

    pub(in super::super) fn on_scanned(
        &mut self,
        env: &mut Environment,
        answer: Result<Vec<RowState>, StoreFailure>,
    ) -> Event {
        let rows = match answer {
            Ok(rows) => rows,
            Err(failure) => {
                let phase = self.leave();
                self.enter_later_for_store(env, phase, &failure);
                return Event::Nothing;
            }
        };
        self.attempts = 0;
        match self.leave() {
            Phase::Sweeping(mut sweep) => {
                if sweep.take(rows, env.settings.page_rows) {
                    self.judge_orphans(env, sweep);
                    return Event::Orphans;
                }
                self.enter(env, Phase::Sweeping(sweep));
            }
            Phase::Restoring(restoration) => {
                let next = restoration.scanned(rows, env.settings.page_rows);
                return self.go_on_restoring(env, next);
            }
            other => self.phase = other,
        }
        Event::Nothing
    }

    fn judge_orphans(&mut self, env: &Environment, sweep: Sweep) {
        let allowed = self.orphans_allowed;
        let Judgment {
            version,
            found,
            live,
            on_demand,
            held,
            orphans,
        } = sweep.judge(env.settings.orphan_limits, allowed);
        env.metrics.orphans.inc_by(found as u64);
        let kind = env.kind.name;
        if on_demand {
            tracing::warn!(
                kind,
                orphans = found,
                live,
                allowed,
                "Closing orphaned rows beyond the limits, as --allow-orphans demands"
            );
        } else if held.is_some() {
            tracing::error!(
                kind,
                orphans = found,
                live,
                allowed,
                "The list lacks more objects than maxOrphans and maxOrphanPercent allow: no row is closed"
            );
        }
        self.held_orphans = held;
        self.close(version, orphans);
    }

    fn close(&mut self, version: ResourceVersion, orphans: Vec<Orphan>) {
        self.orphans_allowed = 0;
        self.phase = Phase::Closing(Closing {
            version,
            orphans: orphans.into(),
        });
    }

    /// How many orphans have not been looked up yet.
    pub(in super::super) fn orphans(&self) -> usize {
        match &self.phase {
            Phase::Closing(closing) => closing.orphans.len(),
            _ => 0,
        }
    }

    /// The next orphan to look up, if so many active objects leave room for it.
    pub(in super::super) fn next_orphan(&mut self, env: &Environment, active: usize) -> Option<Orphan> {
        match &mut self.phase {
            Phase::Closing(closing) if has_room(env, active) => closing.orphans.pop_front(),
            _ => None,
        }
    }

    /// Puts back an orphan for which an effect is in flight.
    pub(in super::super) fn put_back(&mut self, orphan: Orphan) {
        if let Phase::Closing(closing) = &mut self.phase {
            closing.orphans.push_back(orphan);
        }
    }

    /// Resumes the watch once all orphans were looked up.
    pub(in super::super) fn end_closing(&mut self, env: &mut Environment) {
        let Phase::Closing(Closing { version, orphans }) = &self.phase else {
            return;
        };
        if orphans.is_empty() {
            self.received = *version;
            self.checkpoints.on_listed(*version);
            self.probe(env);
        }
    }

    pub(super) fn begin_restoration(&mut self, env: &mut Environment, version: ResourceVersion) {
        tracing::error!(
            kind = env.kind.name,
            cluster = %version,
            stored = %self.received,
            "The cluster is older than SQL: it was restored from a backup. \
             Relisting, and SQL will follow the cluster"
        );
        // A known mark has the version to which the cluster was restored; the cluster has advanced since.
        let version = match self.restoring {
            Some(known) => known.min(version),
            None => found_beside(self.checkpoints.saved(), version),
        };
        self.restoring = Some(version);
        self.enter(env, Phase::Restoring(Restoration::new(version)));
    }

    /// The restore mark was saved, or refused because of another one.
    pub(super) fn on_marked(
        &mut self,
        env: &mut Environment,
        restoration: Restoration,
        answer: Result<CheckpointOutcome, StoreFailure>,
    ) -> Event {
        match answer {
            Err(failure) => {
                self.enter_later_for_store(env, Phase::Restoring(restoration), &failure);
                Event::Nothing
            }
            Ok(CheckpointOutcome::Refused(shown)) => {
                self.join_restoration(env, shown);
                let version = self.restoring.unwrap_or(restoration.version());
                self.enter(env, Phase::Restoring(restoration.before(version)));
                Event::Nothing
            }
            Ok(CheckpointOutcome::Done) => {
                self.attempts = 0;
                self.checkpoints.learn(restoration.checkpoint());
                self.newest = restoration.version();
                self.received = ResourceVersion::default();
                self.enter(env, Phase::Restoring(restoration.marked(env.kind.history)));
                Event::Restored
            }
        }
    }

    pub(in super::super) fn on_rewound(&mut self, env: &mut Environment, answer: Result<(), StoreFailure>) -> Event {
        match (answer, self.leave()) {
            (Ok(()), Phase::Restoring(restoration)) => {
                self.attempts = 0;
                self.go_on_restoring(env, restoration.rewound())
            }
            (Err(failure), phase @ Phase::Restoring(_)) => {
                self.enter_later_for_store(env, phase, &failure);
                Event::Nothing
            }
            (_, other) => {
                self.phase = other;
                Event::Nothing
            }
        }
    }

    fn go_on_restoring(&mut self, env: &mut Environment, next: Option<Restoration>) -> Event {
        match next {
            Some(restoration) => {
                self.enter(env, Phase::Restoring(restoration));
                Event::Nothing
            }
            None => {
                self.restoring = None;
                self.begin_list(env, true)
            }
        }
    }
}
