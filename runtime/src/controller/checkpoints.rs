//! The position as the database holds it, and when it is saved anew. Knows nothing of what is settled.

use std::time::Duration;

use kindex_model::object::ResourceVersion;

use super::super::message::Output;
use super::super::saved::{SavedPosition, marked};

#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    saved: Option<ResourceVersion>,
    in_flight: Option<ResourceVersion>,
    /// Nothing below is saved: the list that ended a restoration is not settled yet.
    least: ResourceVersion,
    due: Duration,
}

impl Checkpoints {
    /// What the database holds, as far as is known.
    pub(super) fn saved(&self) -> Option<ResourceVersion> {
        self.saved
    }

    /// The database holds this, as it says.
    pub(super) fn learn(&mut self, saved: ResourceVersion) {
        self.saved = Some(saved);
    }

    /// A restoration was found and is not known to be settled.
    pub(super) fn is_marked(&self) -> bool {
        self.saved.is_some_and(|position| marked(position).is_some())
    }

    /// A list has ended at this version. Orphans of a restored cluster are in no watch: the
    /// mark stays until they are settled.
    pub(super) fn on_listed(&mut self, version: ResourceVersion) {
        self.least = if self.is_marked() { version } else { ResourceVersion(0) };
    }

    pub(super) fn is_saving(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Asks for this to be saved in place of what is known.
    pub(super) fn save(&mut self, position: ResourceVersion) -> Output {
        self.in_flight = Some(position);
        Output::SaveCheckpoint {
            position,
            known_mark: self.saved.filter(|_| self.is_marked()),
        }
    }

    /// What was being saved.
    pub(super) fn end_saving(&mut self) -> Option<ResourceVersion> {
        self.in_flight.take()
    }

    /// The position to save for this watermark, where it is worth saving. `held` says that live rows without an
    /// object are held back.
    pub(super) fn unsaved(&self, watermark: ResourceVersion, held: bool) -> Option<ResourceVersion> {
        let position = match held {
            false => SavedPosition::Settled(watermark),
            true => SavedPosition::Held(watermark),
        };
        let position = position.encode();
        let worth = !self.is_saving() && self.saved != Some(position) && watermark >= self.least;
        worth.then_some(position)
    }

    /// When the next position is saved.
    pub(super) fn due(&self) -> Duration {
        self.due
    }

    /// One is saved now; the next one after this time.
    pub(super) fn put_off(&mut self, until: Duration) {
        self.due = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_or_being_saved_is_not_saved_again() {
        let mut checkpoints = Checkpoints::default();
        let position = ResourceVersion(7);
        assert_eq!(checkpoints.unsaved(position, false), Some(position));
        let _output = checkpoints.save(position);
        assert_eq!(checkpoints.unsaved(ResourceVersion(8), false), None, "one at a time");
        assert_eq!(checkpoints.end_saving(), Some(position));
        checkpoints.learn(position);
        assert_eq!(checkpoints.unsaved(position, false), None);
        let held = checkpoints.unsaved(position, true);
        assert_eq!(held.map(SavedPosition::decode), Some(SavedPosition::Held(position)));
    }

    #[test]
    fn the_mark_of_a_restoration_stays_until_its_list_is_settled() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.learn(SavedPosition::Restoring(ResourceVersion(3)).encode());
        checkpoints.on_listed(ResourceVersion(9));
        assert_eq!(checkpoints.unsaved(ResourceVersion(8), false), None);
        let settled = ResourceVersion(9);
        assert_eq!(checkpoints.unsaved(settled, false), Some(settled));
        let Output::SaveCheckpoint { known_mark, .. } = checkpoints.save(settled) else {
            panic!("a position is saved");
        };
        assert!(known_mark.is_some(), "the known mark is replaced, and no other");
    }
}
