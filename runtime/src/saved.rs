//! What the saved position of a kind says beside the position: one number in the database holds
//! both, so that one write changes both.

use kindex_model::object::ResourceVersion;
use kindex_store::MARKS_FROM;

/// Added to the position while rows are held back. No cluster comes so far.
const HELD: u64 = 1 << 61;
/// Added to the version of a restored cluster, from the moment it is found until it has been
/// listed: its versions may have grown beyond ours by then.
const RESTORING: u64 = MARKS_FROM.0;

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

/// The version at which a restored cluster was found, if a saved position is the mark of it.
pub fn marked(position: ResourceVersion) -> Option<ResourceVersion> {
    match SavedPosition::decode(position) {
        SavedPosition::Restoring(version) => Some(version),
        SavedPosition::Settled(_) | SavedPosition::Held(_) => None,
    }
}

/// The version of the mark that an ingester saves which finds out by itself that the cluster was restored, where it
/// knows of a mark already. Both have rows to correct that the other one may not have seen: the one that made the
/// earlier mark has to learn that there is another.
pub fn found_beside(known: Option<ResourceVersion>, found: ResourceVersion) -> ResourceVersion {
    known.and_then(marked).map_or(found, |marked| found.min(before(marked)))
}

/// The version of the mark with which an ingester takes part that was refused because of a mark which it did not know;
/// `None` where what it was shown is none, because that one is settled by now. It may have written since, and then has
/// to mark that itself; but where it is correcting rows already and nothing that it has seen is of the time that was
/// lost, the mark that another one made of the same restoration is enough.
pub fn joined(known: Option<ResourceVersion>, shown: ResourceVersion) -> Option<ResourceVersion> {
    let shown = marked(shown)?;
    Some(match known.and_then(marked) {
        Some(known) if shown < known => shown,
        Some(_) | None => before(shown),
    })
}

/// A mark says after which version time split: one less is right as well.
fn before(version: ResourceVersion) -> ResourceVersion {
    ResourceVersion(version.0.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(version: u64) -> ResourceVersion {
        SavedPosition::Restoring(ResourceVersion(version)).encode()
    }

    #[test]
    fn who_finds_a_restoration_beside_a_mark_marks_below_it() {
        let found = ResourceVersion(50);
        assert_eq!(found_beside(None, found), found);
        assert_eq!(found_beside(Some(ResourceVersion(70)), found), found, "a position");
        assert_eq!(found_beside(Some(mark(50)), found), ResourceVersion(49));
        assert_eq!(found_beside(Some(mark(80)), found), found);
        assert_eq!(found_beside(Some(mark(0)), found), ResourceVersion(0));
    }

    #[test]
    fn who_is_refused_marks_below_what_it_did_not_know_unless_it_corrects_rows_already() {
        assert_eq!(joined(None, mark(50)), Some(ResourceVersion(49)));
        assert_eq!(joined(Some(ResourceVersion(70)), mark(50)), Some(ResourceVersion(49)));
        assert_eq!(
            joined(Some(mark(51)), mark(50)),
            Some(ResourceVersion(50)),
            "the same restoration"
        );
        assert_eq!(
            joined(Some(mark(40)), mark(50)),
            Some(ResourceVersion(49)),
            "a later one"
        );
        assert_eq!(joined(None, ResourceVersion(70)), None);
    }

    #[test]
    fn every_mark_and_no_other_position_is_one_for_the_store() {
        let version = ResourceVersion(4711);
        assert!(SavedPosition::Restoring(ResourceVersion(0)).encode() >= MARKS_FROM);
        assert!(SavedPosition::Held(version).encode() < MARKS_FROM);
        assert!(SavedPosition::Settled(version).encode() < MARKS_FROM);
    }

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
