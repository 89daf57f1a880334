//! Objects in the order in which they were added, each once: one that is added again and again keeps no other from its
//! turn. Knows nothing of what they wait for. Pure.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::object::Key;

/// Those that wait.
///
/// # Guarantees
/// Whoever was added before another one, and is still there, leaves before that one. Nothing depends on the keys.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// By the number of each, in the order of these.
    keys: BTreeMap<u64, Key>,
    numbers: BTreeMap<Key, u64>,
    /// The number of the next one.
    next: u64,
}

impl Arrivals {
    /// An object comes last. One that waits already keeps its place.
    pub(super) fn add(&mut self, key: Key) {
        if let Entry::Vacant(entry) = self.numbers.entry(key) {
            self.keys.insert(self.next, entry.key().clone());
            entry.insert(self.next);
            self.next += 1;
        }
    }

    /// The one that has waited for the longest time.
    pub(super) fn first(&self) -> Option<&Key> {
        self.keys.values().next()
    }

    /// The one that has waited for the longest time leaves.
    pub(super) fn pop_first(&mut self) -> Option<Key> {
        let (_, key) = self.keys.pop_first()?;
        self.numbers.remove(&key);
        Some(key)
    }

    /// An object leaves, wherever it is. Whether it was there.
    pub(super) fn remove(&mut self, key: &Key) -> bool {
        let number = self.numbers.remove(key);
        number.is_some_and(|number| self.keys.remove(&number).is_some())
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// All that wait.
    #[cfg(test)]
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::key;

    fn at(name: &str) -> Key {
        key("Cluster", name)
    }

    #[test]
    fn whoever_waits_keeps_its_place_until_it_leaves() {
        let mut arrivals = Arrivals::default();
        for name in ["c", "a", "b", "c", "a"] {
            arrivals.add(at(name));
        }
        assert_eq!(arrivals.pop_first(), Some(at("c")));
        arrivals.add(at("c"));
        assert!(arrivals.remove(&at("a")) && !arrivals.remove(&at("nobody")));
        arrivals.add(at("a"));
        assert_eq!(arrivals.first(), Some(&at("b")));
        assert!(arrivals.keys().eq(&[at("b"), at("c"), at("a")]));
        let left: Vec<Key> = std::iter::from_fn(|| arrivals.pop_first()).collect();
        assert_eq!(left, [at("b"), at("c"), at("a")]);
        assert!(
            arrivals.is_empty() && arrivals.numbers.is_empty(),
            "each was there once"
        );
    }
}
