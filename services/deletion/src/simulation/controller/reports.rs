//! What people are told of objects that wait. An event is recorded after it was decided on, and a process may die in
//! between.

use std::time::Duration;

use jiff::Timestamp;

use super::super::Bug;
use super::super::world::World;
use super::Controller;
use crate::cluster::event::digest;
use crate::notice::Notice;
use crate::object::{Key, Object};
use crate::service::notices::Due;

impl Controller {
    /// What has waited for too long is to be reported.
    pub(in super::super) fn look(&mut self, bug: Bug) {
        for (object, notice) in self.waiting.overdue(&self.graph, self.now, Timestamp::UNIX_EPOCH) {
            if bug == Bug::ReportAgain {
                self.waiting.forget(&object.key);
                self.queue.insert(object.key.clone());
            }
            self.notices.add(object, notice);
        }
    }

    /// Records the next event, which changes nothing where there is one of that name. What it is about, and says.
    pub(in super::super) fn record_event(&mut self, world: &mut World, bug: Bug) -> Option<(Key, Notice)> {
        let (object, due) = self.notices.begin()?;
        self.notices.end(&object.key);
        let Due::Notice(notice) = due else {
            return None;
        };
        world.record_event(event_name(&object, &notice, bug), &object.key, &notice);
        Some((object.key, notice))
    }

    /// How many objects of a kind have waited for too long, and for how long one of them has waited.
    pub(in super::super) fn blocked(&self, kind: &str) -> (usize, Duration) {
        self.waiting.blocked(kind, self.now)
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
