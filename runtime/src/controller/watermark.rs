//! The watermark: the version up to which all events are settled.

use std::collections::BTreeSet;

use kindex_model::object::{ResourceVersion, Uid};

/// The lowest version: 0 is none.
const FIRST: ResourceVersion = ResourceVersion(1);

/// The versions of events that are not settled.
#[derive(Debug, Default)]
pub(super) struct Unsettled(BTreeSet<(ResourceVersion, Uid)>);

impl Unsettled {
    pub(super) fn begin(&mut self, version: ResourceVersion, uid: &Uid) {
        self.0.insert((version, uid.clone()));
    }

    pub(super) fn settle(&mut self, version: ResourceVersion, uid: &Uid) {
        self.0.remove(&(version, uid.clone()));
    }

    pub(super) fn oldest(&self) -> Option<ResourceVersion> {
        self.0.first().map(|(version, _)| *version)
    }
}

/// The oldest versions that a watch must not resume after.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Oldest {
    /// That of an event that is not settled.
    pub(super) unsettled: Option<ResourceVersion>,
    /// That of a text that the history does not hold yet.
    pub(super) unrecorded: Option<ResourceVersion>,
}

/// The highest version at which a watch may resume after a crash without missing a row or a text of the history, if
/// everything up to `received` has arrived. `None` if there is no such version yet.
pub(super) fn watermark(received: ResourceVersion, oldest: Oldest) -> Option<ResourceVersion> {
    let settled = match oldest.unsettled {
        Some(oldest) => ResourceVersion(oldest.0.saturating_sub(1)).min(received),
        None => received,
    };
    let recorded = match oldest.unrecorded {
        Some(oldest) => settled.min(ResourceVersion(oldest.0.saturating_sub(1))),
        None => settled,
    };
    (recorded >= FIRST).then_some(recorded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled_up_to(received: u64, unsettled: &Unsettled) -> Option<u64> {
        let oldest = Oldest {
            unsettled: unsettled.oldest(),
            unrecorded: None,
        };
        watermark(ResourceVersion(received), oldest).map(|version| version.0)
    }

    #[test]
    fn the_watermark_stays_below_the_oldest_unsettled_event() {
        let mut unsettled = Unsettled::default();
        for version in 5..=8 {
            unsettled.begin(ResourceVersion(version), &Uid::from("a"));
        }
        unsettled.settle(ResourceVersion(6), &Uid::from("a"));
        assert_eq!(settled_up_to(8, &unsettled), Some(4));
        unsettled.settle(ResourceVersion(5), &Uid::from("a"));
        assert_eq!(settled_up_to(8, &unsettled), Some(6));
        for version in 7..=8 {
            unsettled.settle(ResourceVersion(version), &Uid::from("a"));
        }
        assert_eq!(settled_up_to(8, &unsettled), Some(8));
    }

    #[test]
    fn there_is_no_watermark_below_the_first_version() {
        let mut unsettled = Unsettled::default();
        unsettled.begin(ResourceVersion(1), &Uid::from("a"));
        assert_eq!(settled_up_to(1, &unsettled), None, "0 is not a version to resume from");
        unsettled.settle(ResourceVersion(1), &Uid::from("a"));
        assert_eq!(settled_up_to(1, &unsettled), Some(1));
    }

    #[test]
    fn the_watermark_waits_for_the_history_as_well() {
        let at = |unsettled: Option<u64>, unrecorded: Option<u64>| {
            let oldest = Oldest {
                unsettled: unsettled.map(ResourceVersion),
                unrecorded: unrecorded.map(ResourceVersion),
            };
            watermark(ResourceVersion(9), oldest).map(|version| version.0)
        };
        assert_eq!(at(None, Some(5)), Some(4));
        assert_eq!(at(Some(3), Some(5)), Some(2));
        assert_eq!(at(Some(7), Some(5)), Some(4));
        assert_eq!(at(None, Some(1)), None);
    }
}
