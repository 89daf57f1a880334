//! How far the events of a kind are stored, and what has to be known beside that at the next start. One number in the
//! database holds both, so that one write changes both. The one place that knows how.

use crate::object::ResourceVersion;

/// Added to the version while rows are held back. No cluster comes so far.
const HELD: u64 = 1 << 61;
/// Added to the version of a restored cluster, from the moment it is found until it has been listed: its versions may
/// have grown beyond ours by then.
const RESTORING: u64 = 1 << 62;

/// From where a watch goes on after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// Everything up to this version is settled.
    Settled(ResourceVersion),
    /// The same, but for live rows whose objects are gone and that are too many to be closed: the next
    /// start compares once more, and so knows of them.
    Held(ResourceVersion),
    /// The cluster was found restored from a backup at this version, and is not yet listed: a mark, which is replaced
    /// only by who knows it.
    Restoring(ResourceVersion),
}

impl Checkpoint {
    /// The least of all marks: a number from here on is one, below it is none.
    pub const LEAST_MARK: Self = Self::Restoring(ResourceVersion(0));

    /// Reads what was saved.
    pub const fn unpack(number: u64) -> Self {
        match number {
            RESTORING.. => Self::Restoring(ResourceVersion(number - RESTORING)),
            HELD.. => Self::Held(ResourceVersion(number - HELD)),
            _ => Self::Settled(ResourceVersion(number)),
        }
    }

    /// What is saved.
    pub const fn pack(self) -> u64 {
        match self {
            Self::Settled(version) => version.0,
            Self::Held(version) => version.0 + HELD,
            Self::Restoring(version) => version.0 + RESTORING,
        }
    }

    /// The version alone.
    pub const fn version(self) -> ResourceVersion {
        match self {
            Self::Settled(version) | Self::Held(version) | Self::Restoring(version) => version,
        }
    }

    /// The version to which a cluster was restored, if this is the restore mark of it.
    pub const fn restored_to(self) -> Option<ResourceVersion> {
        match self {
            Self::Restoring(version) => Some(version),
            Self::Settled(_) | Self::Held(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn checkpoints() -> impl Strategy<Value = Checkpoint> {
        // No cluster comes to 2^61.
        let near = (prop::sample::select(vec![0, 44, 60]), -2_i64..3);
        let near = near.prop_map(|(bit, more)| (1_u64 << bit).saturating_add_signed(more));
        let versions = prop_oneof![near, 0..1_u64 << 61].prop_map(ResourceVersion);
        let with = [Checkpoint::Settled, Checkpoint::Held, Checkpoint::Restoring];
        (versions, prop::sample::select(with.to_vec())).prop_map(|(version, with)| with(version))
    }

    proptest! {
        #[test]
        fn a_checkpoint_is_read_as_it_was_saved(checkpoint in checkpoints()) {
            prop_assert_eq!(Checkpoint::unpack(checkpoint.pack()), checkpoint);
            prop_assert!(i64::try_from(checkpoint.pack()).is_ok(), "the column holds it");
        }

        #[test]
        fn a_number_comes_back_as_it_was(number in any::<u64>()) {
            prop_assert_eq!(Checkpoint::unpack(number).pack(), number);
        }

        /// The database tells them apart by their numbers.
        #[test]
        fn every_mark_and_no_other_checkpoint_is_at_least_the_least_mark(checkpoint in checkpoints()) {
            let is_mark = checkpoint.pack() >= Checkpoint::LEAST_MARK.pack();
            prop_assert_eq!(is_mark, checkpoint.restored_to().is_some());
        }
    }

    /// What databases hold that exist.
    #[test]
    fn a_checkpoint_has_the_number_that_it_always_had() {
        let version = ResourceVersion(4711);
        for (checkpoint, number) in [
            (Checkpoint::Settled(version), 4711),
            (Checkpoint::Held(version), 2_305_843_009_213_698_663),
            (Checkpoint::Restoring(version), 4_611_686_018_427_392_615),
        ] {
            assert_eq!((checkpoint.pack(), checkpoint.version()), (number, version));
        }
    }
}
