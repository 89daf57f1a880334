//! A search for tombstones that wait for each other: from one of them over those that hold it, back to itself. Reads
//! nothing itself.

use std::collections::{BTreeMap, VecDeque};

use crate::decide::Seen;
use crate::graph::path;
use crate::object::Key;

/// Tombstones that a search looks at.
const REACHED_MAX: usize = 200;

/// A search that begins with one tombstone.
#[derive(Debug)]
pub struct Search {
    begin: Seen,
    /// Of each tombstone that was reached, the one that it holds.
    reached: BTreeMap<Key, Key>,
    next: VecDeque<Seen>,
}

impl Search {
    /// One that has looked at nothing yet.
    pub fn new(begin: Seen) -> Self {
        Self {
            next: VecDeque::from([begin.clone()]),
            begin,
            reached: BTreeMap::new(),
        }
    }

    /// The next one whose holders are to be read; none where there is no cycle, or the search has looked at enough.
    pub fn next_target(&mut self) -> Option<Seen> {
        self.next.pop_front().filter(|_| self.reached.len() < REACHED_MAX)
    }

    /// Takes in which tombstones hold that one. If this closes a cycle, returns its path: the tombstone with which the
    /// search began, then those that hold each other, each after the one that it holds.
    pub fn held_by(&mut self, target: &Seen, holders: Vec<Seen>) -> Option<Vec<Key>> {
        for holder in holders {
            if holder.uid == self.begin.uid {
                return Some(path(&self.reached, &self.begin.key, target.key.clone()));
            }
            if holder.key != self.begin.key && !self.reached.contains_key(&holder.key) {
                self.reached.insert(holder.key.clone(), target.key.clone());
                self.next.push_back(holder);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::key;

    fn seen(name: &str) -> Seen {
        Seen {
            key: key("Network", name),
            uid: name.to_owned(),
        }
    }

    /// What a search finds that begins with `a`, and how many were looked at, where each of these is held by the other.
    fn found(held: &[(String, String)]) -> (Option<Vec<String>>, usize) {
        let (mut search, mut looked) = (Search::new(seen("a")), 0);
        while let Some(target) = search.next_target() {
            looked += 1;
            let holders = held.iter().filter(|(name, _)| *name == target.uid);
            let holders = holders.map(|(_, holder)| seen(holder)).collect();
            if let Some(path) = search.held_by(&target, holders) {
                return (Some(path.into_iter().map(|key| key.name).collect()), looked);
            }
        }
        (None, looked)
    }

    fn pairs(held: &[(&str, &str)]) -> Vec<(String, String)> {
        let held = held.iter();
        held.map(|(name, holder)| ((*name).to_owned(), (*holder).to_owned()))
            .collect()
    }

    #[test]
    fn a_cycle_of_any_length_is_found_with_its_whole_path() {
        let path = |held: &[(&str, &str)]| found(&pairs(held)).0.map(|names| names.join(" "));
        assert_eq!(path(&[("a", "b"), ("b", "a")]).as_deref(), Some("a b"));
        let three = [("a", "b"), ("b", "c"), ("c", "a")];
        assert_eq!(path(&three).as_deref(), Some("a b c"));
        let beside_others = [
            ("a", "x"),
            ("a", "b"),
            ("b", "y"),
            ("b", "c"),
            ("y", "x"),
            ("c", "d"),
            ("d", "a"),
        ];
        assert_eq!(path(&beside_others).as_deref(), Some("a b c d"));
    }

    #[test]
    fn whoever_only_waits_for_a_cycle_is_on_none() {
        let held = pairs(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")]);
        assert_eq!(found(&held), (None, 4));
        assert_eq!(found(&[]), (None, 1));
    }

    #[test]
    fn a_search_over_very_many_ends() {
        let chain = (0..2 * REACHED_MAX).map(|number| (number.to_string(), (number + 1).to_string()));
        let held: Vec<_> = pairs(&[("a", "0")]).into_iter().chain(chain).collect();
        assert_eq!(found(&held), (None, REACHED_MAX));
    }
}
