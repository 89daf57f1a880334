//! The events that people are told by. While there is one, none of its name is added.

use super::World;
use crate::notice::Notice;
use crate::object::Key;

impl World {
    /// An event about an object is recorded, if its API server answers.
    pub(in super::super) fn record_event(&mut self, name: String, about: &Key, notice: &Notice) {
        if self.answers(about).is_ok() {
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
