//! After a gap, first half: the whole list, page by page, compared with its rows.
//! Differences are written like any event. Memory: one page, and eight bytes an object.

use std::collections::HashMap;

use kindex_kube_client::{ClusterError, ObjectName, Page};
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::seen::Seeing;
use kindex_query::Life;
use kindex_store::RowState;

use super::super::decide::{Row, RowText};
use super::super::message::{Output, StoreFailure};
use super::super::settings::Settings;
use super::Controller;
use super::entry::{Entry, Observation, Position};
use super::intake::Phase;

/// A list that is being read.
#[derive(Debug, Default)]
pub(super) struct Listing {
    continue_token: Option<String>,
    /// Of the list; known with the first page.
    version: Option<ResourceVersion>,
    seen: Seeing,
    /// Something in the list has no identity: what is missing cannot be told.
    unidentified: bool,
    /// The cluster is older than SQL, and wins.
    restored: bool,
    /// The newest version that the cluster had told when the list began.
    newest: ResourceVersion,
    step: Step,
}

#[derive(Debug, Default)]
enum Step {
    /// A page was asked for.
    #[default]
    Page,
    /// The rows of a page were asked for.
    Rows(Page),
    /// The next page waits for room.
    Room,
}

impl Listing {
    pub(super) fn waits_for_room(&self) -> bool {
        matches!(self.step, Step::Room)
    }

    /// The question that the list waits for.
    pub(super) fn request(&self, settings: &Settings) -> Output {
        match &self.step {
            Step::Rows(page) => Output::ReadPageRows(uids(page)),
            Step::Page | Step::Room => Output::List {
                continue_token: self.continue_token.clone(),
                limit: settings.page_rows,
            },
        }
    }
}

fn uids(page: &Page) -> Vec<Uid> {
    page.objects.iter().map(|object| object.metadata.uid.clone()).collect()
}

impl Controller {
    pub(super) fn begin_list(&mut self, restored: bool) {
        self.metrics.relists.inc();
        self.compare_first = false;
        self.trust_stream_for(self.settings.compare_period);
        self.removed.clear();
        self.enter(Phase::Listing(Listing {
            restored: restored || self.checkpoints.marked(),
            newest: self.newest,
            ..Listing::default()
        }));
    }

    /// What was pending belongs to a cluster that is no more.
    pub(super) fn forget_everything(&mut self) {
        self.entries.clear();
        self.queue.clear();
        self.groups.clear();
        self.unrecorded.clear();
        self.records.clear();
        self.timers.clear();
        self.effects.clear();
        self.removed.clear();
        self.position = Position::default();
        if let Some(rows) = &mut self.rows {
            rows.clear();
        }
    }

    pub(super) fn on_page(&mut self, answer: Result<Page, ClusterError>) {
        let Phase::Listing(mut listing) = std::mem::replace(&mut self.phase, Phase::Idle) else {
            return;
        };
        let page = match answer {
            Ok(page) if page.resource_version == ResourceVersion(0) => {
                let error = ClusterError::Refused("the list has no version".to_owned());
                return self.list_anew(&listing, &error);
            }
            Ok(page) => page,
            Err(error @ ClusterError::Expired(_)) => return self.list_anew(&listing, &error),
            Err(error) => return self.enter_later(Phase::Listing(listing), "list", &error),
        };
        self.intake_attempts = 0;
        self.note_served();
        if listing.version.is_none() && page.resource_version < listing.newest {
            return self.begin_restoration(page.resource_version);
        }
        self.note_version(page.resource_version);
        listing.version.get_or_insert(page.resource_version);
        listing.continue_token.clone_from(&page.continue_token);
        for item in &page.unreadable {
            self.report_unreadable(item);
            match &item.uid {
                Some(uid) => listing.seen.add(uid),
                None => listing.unidentified = true,
            }
        }
        for object in &page.objects {
            listing.seen.add(&object.metadata.uid);
        }
        if page.objects.is_empty() {
            listing.step = Step::Room;
            self.phase = Phase::Listing(listing);
        } else {
            listing.step = Step::Rows(page);
            self.enter(Phase::Listing(listing));
        }
    }

    fn list_anew(&mut self, listing: &Listing, error: &ClusterError) {
        let anew = Listing {
            restored: listing.restored,
            newest: self.newest,
            ..Listing::default()
        };
        self.enter_later(Phase::Listing(anew), "list", error);
    }

    pub(super) fn on_page_rows(&mut self, answer: Result<Vec<RowState>, StoreFailure>) {
        let Phase::Listing(mut listing) = std::mem::replace(&mut self.phase, Phase::Idle) else {
            return;
        };
        let Step::Rows(page) = std::mem::take(&mut listing.step) else {
            return self.phase = Phase::Listing(listing);
        };
        let states = match answer {
            Ok(states) => states,
            Err(failure) => {
                listing.step = Step::Rows(page);
                return self.enter_later_for_store(Phase::Listing(listing), &failure);
            }
        };
        self.intake_attempts = 0;
        let states: HashMap<&Uid, &RowState> = states.iter().map(|state| (&state.uid, state)).collect();
        listing.step = Step::Room;
        // What the list had seen, it shows: no row that was written up to then is newer than its object.
        let horizon = if listing.restored {
            ResourceVersion(u64::MAX)
        } else {
            listing.version.unwrap_or_default()
        };
        self.phase = Phase::Listing(listing);
        for object in page.objects {
            let state = states.get(&object.metadata.uid);
            let row = state.map(|state| Row::beside(state, Some(&object)));
            self.observe_listed(object, row, horizon);
        }
    }

    /// Takes up a listed object where it differs from its row. A row up to the horizon that is newer
    /// than its object is one of a time that the cluster lost, and a reason to ask, for then the
    /// cluster wins.
    fn observe_listed(&mut self, object: Object, row: Option<Row>, horizon: ResourceVersion) {
        let uid = object.metadata.uid.clone();
        let version = object.metadata.resource_version;
        if let Some(row) = row {
            self.remember_row(&uid, row);
        }
        let current = row.is_some_and(|row| row.is_current() && row.version == version);
        let recorded = self.quarantined.contains_key(&uid);
        if self.entries.contains_key(&uid) {
            return self.observe_present(object, version);
        }
        if current && !recorded && self.is_plain(&self.head(&object)) {
            return;
        }
        let name = ObjectName::of(&object);
        let observation = Observation::Present(object);
        self.sight(&uid, &observation);
        let mut entry = Entry::new(observation, name, version, self.now.elapsed);
        entry.row = Some(row);
        // A list is the cluster's answer as well; but a row may have been closed since.
        entry.confirmed = row.filter(|row| row.text == RowText::Different && row.life == Life::Live);
        self.position.begin(version, &uid);
        self.entries.insert(uid.clone(), entry);
        if row.is_some_and(|row| row.version > version && row.version <= horizon) {
            self.ask(&uid, row);
        } else {
            self.enqueue(&uid);
        }
    }

    /// Asks for the next page when there is room, or goes on to the rows.
    pub(super) fn continue_listing(&mut self) {
        let room = self.active() <= self.settings.pending_max / 2;
        let Phase::Listing(listing) = &mut self.phase else {
            return;
        };
        if !matches!(listing.step, Step::Room) || !room {
            return;
        }
        if listing.continue_token.is_some() {
            listing.step = Step::Page;
            self.out.push(listing.request(&self.settings));
            return;
        }
        let Listing {
            version,
            seen,
            unidentified,
            ..
        } = std::mem::take(listing);
        let version = version.expect("a page came before");
        if unidentified {
            tracing::warn!(
                kind = self.kind.name,
                "Something in the list has no uid: no row is closed this time"
            );
            return self.finish_sweep(version, Vec::new());
        }
        self.begin_sweep(version, seen.finish());
    }
}
