//! A search for objects that wait for each other: from one of them over those that wait for it, back to itself. Very
//! many may hold one object, but none holds very many. Reads nothing itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::decide::Seen;
use crate::graph::path;

/// Objects of which a search asks who waits for them.
const LOOKED_MAX: usize = 200;
/// Objects that it knows of.
const REACHED_MAX: usize = 4096;

/// A search that begins with one object.
#[derive(Debug)]
pub struct Search {
    begin: Seen,
    /// By uid of each that was reached, the object which holds it. Several that are archived may have had one name.
    reached: BTreeMap<String, Seen>,
    next: VecDeque<Seen>,
    /// Those that were looked at.
    looked: usize,
}

impl Search {
    /// One that has looked at nothing yet.
    pub fn new(begin: Seen) -> Self {
        Self {
            next: VecDeque::from([begin.clone()]),
            begin,
            reached: BTreeMap::new(),
            looked: 0,
        }
    }

    /// The next one of which is to be read who waits for it; none where all are known, or the search has looked at
    /// enough.
    pub fn next_holder(&mut self) -> Option<Seen> {
        if self.looked == LOOKED_MAX {
            return None;
        }
        self.looked += 1;
        self.next.pop_front()
    }

    /// The same; none once so many are known that wait.
    pub fn next_holder_until(&mut self, known_max: usize) -> Option<Seen> {
        match self.reached.len() < known_max {
            true => self.next_holder(),
            false => None,
        }
    }

    /// Takes in who waits for that one, of which more may be known later. If this closes a cycle, returns its path: the
    /// object with which the search began, then those that hold each other, each after the one that it holds.
    pub fn awaited_by(&mut self, holder: &Seen, waiting: Vec<Seen>) -> Option<Vec<Seen>> {
        let closes = waiting.iter().any(|one| one.uid == self.begin.uid);
        for one in waiting {
            let has_room = one.uid != self.begin.uid && self.reached.len() < REACHED_MAX;
            if !has_room || self.reached.contains_key(&one.uid) {
                continue;
            }
            self.reached.insert(one.uid.clone(), holder.clone());
            self.next.push_back(one);
        }
        closes.then(|| {
            // From the first one on, each is held by the one before. Each was reached from one that was reached before
            // it, so that the path ends.
            let mut path = path(&self.reached, &self.begin.uid, holder.clone());
            path[1..].reverse();
            path
        })
    }

    /// The uids of those that wait for the object with which the search began, as far as it has looked.
    pub fn into_waiting(self) -> BTreeSet<String> {
        self.reached.into_keys().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::key;

    /// With its uid as its name, up to a slash.
    fn seen(uid: &str) -> Seen {
        let name = uid.split_once('/').map_or(uid, |(name, _)| name);
        Seen {
            key: key("Network", name),
            uid: uid.to_owned(),
        }
    }

    /// A search that begins with `a`, where each of these is held by the other: the first path that it finds, how many
    /// it looks at until then, and who waits for `a` in the end.
    fn found(held: &[(String, String)]) -> (Option<Vec<String>>, usize, BTreeSet<String>) {
        let (mut search, mut looked, mut first) = (Search::new(seen("a")), 0, None);
        while let Some(holder) = search.next_holder() {
            looked += usize::from(first.is_none());
            let waiting = held.iter().filter(|(_, other)| *other == holder.uid);
            let waiting = waiting.map(|(uid, _)| seen(uid)).collect();
            let path = search.awaited_by(&holder, waiting);
            first = first.or(path);
        }
        let path = first.map(|path: Vec<Seen>| path.into_iter().map(|seen| seen.uid).collect());
        (path, looked, search.into_waiting())
    }

    fn pairs(held: &[(&str, &str)]) -> Vec<(String, String)> {
        let held = held.iter();
        held.map(|(name, holder)| ((*name).to_owned(), (*holder).to_owned()))
            .collect()
    }

    #[test]
    fn a_cycle_of_any_length_is_found_with_its_whole_path() {
        let path = |held: &[(&str, &str)]| found(&pairs(held)).0.map(|names| names.join(" "));
        assert_eq!(path(&[("a", "a")]).as_deref(), Some("a"));
        assert_eq!(path(&[("a", "b"), ("b", "a")]).as_deref(), Some("a b"));
        let three = [("a", "b"), ("b", "c"), ("c", "a")];
        assert_eq!(path(&three).as_deref(), Some("a b c"));
        let beside_others = [
            ("x", "a"),
            ("a", "b"),
            ("y", "b"),
            ("b", "c"),
            ("x", "y"),
            ("c", "d"),
            ("d", "a"),
        ];
        assert_eq!(path(&beside_others).as_deref(), Some("a b c d"));
    }

    #[test]
    fn whoever_only_waits_for_a_cycle_is_on_none() {
        let held = pairs(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")]);
        assert_eq!(found(&held), (None, 1, BTreeSet::new()), "nobody waits for it");
        let held = pairs(&[("b", "a"), ("b", "c"), ("c", "d"), ("d", "b")]);
        let waiting = ["b", "c", "d"].map(ToOwned::to_owned);
        assert_eq!(found(&held), (None, 4, BTreeSet::from(waiting)), "those that it holds");
        assert_eq!(found(&[]), (None, 1, BTreeSet::new()));
    }

    /// As if whoever is found after a first cycle waited for nobody.
    #[test]
    fn all_that_wait_are_known_though_a_cycle_was_found_before() {
        let held = pairs(&[("b", "a"), ("a", "b"), ("c", "b"), ("d", "c")]);
        let (path, _, waiting) = found(&held);
        assert_eq!(path.expect("a cycle"), ["a", "b"]);
        assert_eq!(waiting, BTreeSet::from(["b", "c", "d"].map(ToOwned::to_owned)));
    }

    /// As if a name had one object: in the archive, those that had it before are deleted too.
    #[test]
    fn all_that_had_one_name_are_known_with_those_that_they_hold() {
        for (held, path, waiting) in [
            (
                [("b/1", "a"), ("b/2", "a"), ("c", "b/2"), ("a", "c")],
                "a c b/2",
                ["b/1", "b/2", "c"],
            ),
            // The name of the object with which the search began.
            (
                [("a/2", "a"), ("c", "a/2"), ("d", "c"), ("a", "d")],
                "a d c a/2",
                ["a/2", "c", "d"],
            ),
            // One name twice on the way.
            (
                [("b/1", "a"), ("c", "b/1"), ("b/2", "c"), ("a", "b/2")],
                "a b/2 c b/1",
                ["b/1", "b/2", "c"],
            ),
        ] {
            let (found, _, known) = found(&pairs(&held));
            assert_eq!(found.map(|names| names.join(" ")).as_deref(), Some(path), "{held:?}");
            assert_eq!(known, BTreeSet::from(waiting.map(ToOwned::to_owned)), "{held:?}");
        }
    }

    #[test]
    fn a_search_over_very_many_ends() {
        let chain = (0..2 * LOOKED_MAX).map(|number| ((number + 1).to_string(), number.to_string()));
        let held: Vec<_> = pairs(&[("0", "a")]).into_iter().chain(chain).collect();
        let (path, looked, waiting) = found(&held);
        assert_eq!((path, looked, waiting.len()), (None, LOOKED_MAX, LOOKED_MAX));
    }

    /// As if an object that holds very many ended the search.
    #[test]
    fn a_cycle_is_found_though_one_on_it_holds_very_many() {
        let many = |held: usize| -> Vec<_> {
            let held = (0..held).map(|number| (number.to_string(), "a".to_owned()));
            held.chain(pairs(&[("a", "150")])).collect()
        };
        let (path, looked, waiting) = found(&many(300));
        assert_eq!(path.expect("a cycle"), ["a", "150"]);
        assert!(looked <= LOOKED_MAX && waiting.len() == 300, "{looked}");
        let (path, _, waiting) = found(&many(2 * REACHED_MAX));
        assert_eq!(
            (path.is_some(), waiting.len()),
            (true, REACHED_MAX),
            "it is one of the first"
        );
    }

    /// As if each sweep over the holders of an object read as much as a search for a cycle, which is rare.
    #[test]
    fn a_search_that_needs_few_looks_at_no_more() {
        for (known_max, looked) in [(0, 0), (1, 1), (2, 1), (3, 1), (4, 2), (9, 5)] {
            let held = pairs(&[("b", "a"), ("c", "a"), ("d", "a"), ("e", "b")]);
            let (mut search, mut looks) = (Search::new(seen("a")), 0);
            while let Some(holder) = search.next_holder_until(known_max) {
                looks += 1;
                let waiting = held.iter().filter(|(_, other)| *other == holder.uid);
                search.awaited_by(&holder, waiting.map(|(uid, _)| seen(uid)).collect());
            }
            assert_eq!(looks, looked, "{known_max}");
        }
    }
}
