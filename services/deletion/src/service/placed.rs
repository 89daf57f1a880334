//! Live objects whose conditions say that something is refused, though nothing is any more: when that is written, and
//! when again if it could not be. Sends nothing.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::{RETRIES_DOUBLED, RETRY_AFTER};
use crate::object::Key;

/// All such objects. However often one of them changes, that is no reason to try again before it is due.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PlacedObjects {
    /// Those that are to be written.
    to_write: BTreeSet<Key>,
    /// Those that could not be written.
    unwritten: BTreeMap<Key, Retry>,
}

/// How something is tried that has failed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Retry {
    /// How often it has failed, as far as that counts.
    failures: u32,
    /// When it is tried again; nothing once it was.
    due: Option<Instant>,
}

impl PlacedObjects {
    /// The conditions of an object are to be written, unless they could not be, and are not due yet.
    pub(super) fn add(&mut self, key: &Key, now: Instant) {
        let due = self.unwritten.get(key).and_then(|retry| retry.due);
        if due.is_none_or(|due| due <= now) {
            self.to_write.insert(key.clone());
        }
    }

    /// Those that are to be written, once each time that they were added.
    pub(super) fn take(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.to_write)
    }

    /// One could not be written: it is tried again after a while.
    pub(super) fn failed(&mut self, key: Key, now: Instant) {
        let retry = self.unwritten.entry(key).or_default();
        retry.due = Some(now + RETRY_AFTER * 2_u32.pow(retry.failures));
        retry.failures = (retry.failures + 1).min(RETRIES_DOUBLED);
    }

    /// Those that are due again, to be decided on: their conditions may say something else by now.
    pub(super) fn due(&mut self, now: Instant) -> impl Iterator<Item = Key> {
        let unwritten = self.unwritten.iter_mut();
        unwritten.filter_map(move |(key, retry)| {
            let is_due = retry.due.take_if(|due| *due <= now).is_some();
            is_due.then(|| key.clone())
        })
    }

    /// The conditions of an object say what is so, or there is no such object any more: a failure is of no interest.
    pub(super) fn forget(&mut self, key: &Key) {
        self.unwritten.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fixture::key;

    /// As if each version of an object whose status is refused were a reason to try at once, ahead of what others wait
    /// for.
    #[test]
    fn an_object_that_changes_all_the_time_is_not_written_before_that_is_due() {
        let (mut placed, cluster, begun) = (PlacedObjects::default(), key("Cluster", "c"), Instant::now());
        let written = |placed: &mut PlacedObjects, now| {
            placed.add(&cluster, now);
            placed.take().len()
        };
        assert_eq!(written(&mut placed, begun), 1);
        let mut now = begun;
        for doubled in [0, 1, 2, 3, 4, 5, 6, 6] {
            placed.failed(cluster.clone(), now);
            let due = now + RETRY_AFTER * 2_u32.pow(doubled);
            let before = due - Duration::from_millis(1);
            assert_eq!(placed.due(before).count(), 0);
            assert_eq!(written(&mut placed, before), 0, "{doubled}");
            assert_eq!(written(&mut placed, due), 1, "{doubled}");
            assert!(placed.due(due).eq([cluster.clone()]));
            assert_eq!(placed.due(due).count(), 0, "once");
            assert_eq!(written(&mut placed, due), 1, "nothing says that this one fails too");
            now = due;
        }
        placed.forget(&cluster);
        assert_eq!(placed, PlacedObjects::default());
    }
}
