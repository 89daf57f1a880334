//! Which mark of a restored cluster an ingester saves that knows of another one. Pure.

use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::ResourceVersion;

/// The version of the mark that an ingester saves which finds out by itself that the cluster was restored, where it
/// knows of a mark already. Both have rows to correct that the other one may not have seen: the one that made the
/// earlier mark has to learn that there is another.
pub(super) fn found_beside(known: Option<Checkpoint>, found: ResourceVersion) -> ResourceVersion {
    let known = known.and_then(Checkpoint::restored_to);
    known.map_or(found, |known| found.min(before(known)))
}

/// The version of the mark with which an ingester takes part that was refused because of a mark which it did not know;
/// `None` where what it was shown is none, because that one is settled by now. It may have written since, and then has
/// to mark that itself; but where it is correcting rows already and nothing that it has seen is of the time that was
/// lost, the mark that another one made of the same restoration is enough.
pub(super) fn joined(known: Option<Checkpoint>, shown: Checkpoint) -> Option<ResourceVersion> {
    let shown = shown.restored_to()?;
    Some(match known.and_then(Checkpoint::restored_to) {
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

    fn mark(version: u64) -> Checkpoint {
        Checkpoint::Restoring(ResourceVersion(version))
    }

    fn settled(version: u64) -> Checkpoint {
        Checkpoint::Settled(ResourceVersion(version))
    }

    #[test]
    fn who_finds_a_restoration_beside_a_mark_marks_below_it() {
        let found = ResourceVersion(50);
        assert_eq!(found_beside(None, found), found);
        assert_eq!(found_beside(Some(settled(70)), found), found, "no mark");
        assert_eq!(found_beside(Some(mark(50)), found), ResourceVersion(49));
        assert_eq!(found_beside(Some(mark(80)), found), found);
        assert_eq!(found_beside(Some(mark(0)), found), ResourceVersion(0));
    }

    #[test]
    fn who_is_refused_marks_below_what_it_did_not_know_unless_it_corrects_rows_already() {
        assert_eq!(joined(None, mark(50)), Some(ResourceVersion(49)));
        assert_eq!(joined(Some(settled(70)), mark(50)), Some(ResourceVersion(49)));
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
        assert_eq!(joined(None, settled(70)), None);
    }
}
