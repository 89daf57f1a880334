//! The events of objects: those that watches report, and those that people are told by. Of the latter, none is added
//! while there is one of its name.

use super::{Event, World};
use crate::notice::Notice;
use crate::object::Key;

impl Event {
    /// The object that a watch reports.
    pub(in super::super) fn about(&self) -> &Key {
        match self {
            Self::Applied(object) => &object.key,
            Self::Deleted(key, _) | Self::Archived(key) => key,
        }
    }
}

impl World {
    /// An event about an object is recorded, if its API server answers.
    pub(in super::super) fn record_event(&mut self, name: String, about: &Key, notice: &Notice) {
        if self.servers.answers(about).is_ok() {
            let event = || (about.clone(), notice.clone());
            self.events.entry(name).or_insert_with(event);
        }
    }

    /// What the events about an object say.
    pub(in super::super) fn events_about(&self, key: &Key) -> Vec<&Notice> {
        let events = self.events.values().filter(|(about, _)| about == key);
        events.map(|(_, notice)| notice).collect()
    }
}
