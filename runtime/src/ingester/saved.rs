//! What the saved position of a kind says beside the position: one number in the database holds
//! both, so that one write changes both.

use crate::object::ResourceVersion;

/// Added to the position while rows are held back. No cluster comes so far.
const HELD: u64 = 1 << 61;
/// Added to the version of a restored cluster, from the moment it is found until it has been
/// listed: its versions may have grown beyond ours by then.
const RESTORING: u64 = 1 << 62;

/// A position as it is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedPosition {
    /// Everything up to this version is settled.
    Settled(ResourceVersion),
    /// The same, but for live rows whose objects are gone and that are too many to be closed: the next
    /// start compares once more, and so knows of them.
    Held(ResourceVersion),
    /// The cluster was found restored from a backup at this version, and is not yet listed.
    Restoring(ResourceVersion),
}

impl SavedPosition {
    /// Reads what was saved.
    pub fn decode(saved: ResourceVersion) -> Self {
        match saved.0 {
            RESTORING.. => Self::Restoring(ResourceVersion(saved.0 - RESTORING)),
            HELD.. => Self::Held(ResourceVersion(saved.0 - HELD)),
            _ => Self::Settled(saved),
        }
    }

    /// What is saved.
    pub fn encode(self) -> ResourceVersion {
        match self {
            Self::Settled(version) => version,
            Self::Held(version) => ResourceVersion(version.0 + HELD),
            Self::Restoring(version) => ResourceVersion(version.0 + RESTORING),
        }
    }

    /// The version alone.
    pub fn version(self) -> ResourceVersion {
        match self {
            Self::Settled(version) | Self::Held(version) | Self::Restoring(version) => version,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_saved() {
        let version = ResourceVersion(4711);
        for position in [
            SavedPosition::Settled(version),
            SavedPosition::Held(version),
            SavedPosition::Restoring(version),
        ] {
            assert_eq!(SavedPosition::decode(position.encode()), position);
            assert_eq!(position.version(), version);
        }
    }
}
