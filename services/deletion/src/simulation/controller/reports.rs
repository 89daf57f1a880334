//! What people are told of objects that wait. An event is recorded after it was decided on, and a process may die in
//! between.

use std::time::Duration;

use jiff::Timestamp;

use super::Controller;
use crate::archive::cycle;
use crate::cluster::event::digest;
use crate::decide::Seen;
use crate::notice::{Notice, cycle_notice};
use crate::object::{Key, Object};
use crate::service::notices::{Due, Notices, Search};
use crate::service::waiting::WaitingObjects;
use crate::simulation::Bug;
use crate::simulation::world::World;

/// What objects wait for, and what is to be reported of it.
pub(super) struct Reports {
    pub(super) waiting: WaitingObjects,
    notices: Notices,
}

impl Reports {
    pub(super) fn new(blocked_after: Duration) -> Self {
        Self {
            waiting: WaitingObjects::new(blocked_after),
            notices: Notices::default(),
        }
    }
}

impl Controller {
    /// What has waited for too long is to be reported.
    pub(in super::super) fn look(&mut self, bug: Bug) {
        let (today, holders) = (Timestamp::UNIX_EPOCH, &self.knowledge.holders);
        for overdue in self.reports.waiting.overdue(&self.graph, holders, self.now, today) {
            if bug == Bug::ReportAgain {
                self.reports.waiting.forget(&overdue.object.key);
                self.queue.add(overdue.object.key.clone());
            }
            self.reports.notices.add_overdue(overdue);
        }
    }

    /// Records the next event, which changes nothing where there is one of that name. What it is about, and says.
    pub(in super::super) fn record_event(&mut self, world: &mut World, bug: Bug) -> Option<(Key, Notice)> {
        while let Some(search) = self.reports.notices.begin_search() {
            self.search(world, search);
        }
        let (object, due) = self.reports.notices.begin()?;
        self.reports.notices.end(&object.key);
        let Due::Notice(notice) = due else {
            return None;
        };
        world.record_event(event_name(&object, &notice, bug), &object.key, &notice);
        Some((object.key, notice))
    }

    fn search(&mut self, world: &mut World, search: Search) {
        let Search {
            object,
            notice,
            is_reported,
        } = search;
        let said = match self.cycle_of(world, Seen::of(&object)) {
            Some(path) => {
                self.report_cycle(&path);
                Some(cycle_notice(&Seen::keys(&path)))
            }
            None => (!is_reported).then_some(notice),
        };
        self.reports.notices.end_search(object, said);
    }

    /// The objects around one of its references back to an object, live or archived.
    pub(in super::super) fn cycle_of(&self, world: &mut World, object: Seen) -> Option<Vec<Seen>> {
        let mut search = cycle::Search::new(object);
        while let Some(holder) = search.next_holder() {
            for waiting in [self.graph.waiting_on(&holder), world.waiting_for(&holder)] {
                if let Some(path) = search.awaited_by(&holder, waiting) {
                    return Some(path);
                }
            }
        }
        None
    }

    /// The object with which a cycle begins is reported with it: others on it may have been without it.
    pub(in super::super) fn report_cycle(&mut self, path: &[Seen]) {
        let today = Timestamp::UNIX_EPOCH;
        for overdue in self.reports.waiting.on_cycle(&self.graph, path, today) {
            self.reports.notices.add_overdue(overdue);
        }
    }

    /// How many objects of a kind have waited for too long, and for how long one of them has waited.
    pub(in super::super) fn blocked(&self, kind: &str) -> (usize, Duration) {
        self.reports.waiting.blocked(kind, self.now)
    }
}

fn event_name(object: &Object, notice: &Notice, bug: Bug) -> String {
    let message = match bug {
        Bug::NameByRoots => notice.text(),
        Bug::NameByObject => String::new(),
        _ => notice.message.clone(),
    };
    let named = Notice {
        message,
        ..notice.clone()
    };
    digest(object, &named)
}
