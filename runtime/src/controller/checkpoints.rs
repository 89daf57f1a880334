//! The checkpoint as the database holds it, and when it is saved anew. Knows nothing of what is settled.

use std::time::Duration;

use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::ResourceVersion;

use crate::message::Output;

#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    saved: Option<Checkpoint>,
    in_flight: Option<Checkpoint>,
    /// Nothing below is saved: the list that ended a restoration is not settled yet.
    least: ResourceVersion,
    due: Duration,
}

impl Checkpoints {
    /// What the database holds, as far as is known.
    pub(super) fn saved(&self) -> Option<Checkpoint> {
        self.saved
    }

    /// The database holds this, as it says.
    pub(super) fn learn(&mut self, saved: Checkpoint) {
        self.saved = Some(saved);
    }

    /// Whether a restore mark is saved: the restoration is not settled.
    pub(super) fn is_marked(&self) -> bool {
        self.known_mark().is_some()
    }

    fn known_mark(&self) -> Option<ResourceVersion> {
        self.saved.and_then(Checkpoint::restored_to)
    }

    /// A list has ended at this version. The restore mark stays until the orphans of the restored cluster are settled,
    /// because no watch reports them.
    pub(super) fn on_listed(&mut self, version: ResourceVersion) {
        self.least = if self.is_marked() { version } else { ResourceVersion(0) };
    }

    pub(super) fn is_saving(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Asks for this to be saved in place of what is known.
    pub(super) fn save(&mut self, checkpoint: Checkpoint) -> Output {
        self.in_flight = Some(checkpoint);
        Output::SaveCheckpoint {
            checkpoint,
            known_mark: self.known_mark(),
        }
    }

    /// What was being saved.
    pub(super) fn end_saving(&mut self) -> Option<Checkpoint> {
        self.in_flight.take()
    }

    /// The checkpoint to save for this watermark, where it is worth saving. `held` says that live rows without an
    /// object are held back.
    pub(super) fn unsaved(&self, watermark: ResourceVersion, held: bool) -> Option<Checkpoint> {
        let checkpoint = match held {
            false => Checkpoint::Settled(watermark),
            true => Checkpoint::Held(watermark),
        };
        let worth = !self.is_saving() && self.saved != Some(checkpoint) && watermark >= self.least;
        worth.then_some(checkpoint)
    }

    /// When the next checkpoint is saved.
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
        let watermark = ResourceVersion(7);
        let settled = Checkpoint::Settled(watermark);
        assert_eq!(checkpoints.unsaved(watermark, false), Some(settled));
        let _output = checkpoints.save(settled);
        assert_eq!(checkpoints.unsaved(ResourceVersion(8), false), None, "one at a time");
        assert_eq!(checkpoints.end_saving(), Some(settled));
        checkpoints.learn(settled);
        assert_eq!(checkpoints.unsaved(watermark, false), None);
        assert_eq!(checkpoints.unsaved(watermark, true), Some(Checkpoint::Held(watermark)));
    }

    #[test]
    fn the_mark_of_a_restoration_stays_until_its_list_is_settled() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.learn(Checkpoint::Restoring(ResourceVersion(3)));
        checkpoints.on_listed(ResourceVersion(9));
        assert_eq!(checkpoints.unsaved(ResourceVersion(8), false), None);
        let settled = Checkpoint::Settled(ResourceVersion(9));
        assert_eq!(checkpoints.unsaved(ResourceVersion(9), false), Some(settled));
        let Output::SaveCheckpoint { known_mark, .. } = checkpoints.save(settled) else {
            panic!("a checkpoint is saved");
        };
        assert_eq!(
            known_mark,
            Some(ResourceVersion(3)),
            "the known mark is replaced, and no other"
        );
    }
}
