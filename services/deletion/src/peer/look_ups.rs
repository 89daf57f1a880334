//! Which objects of other services are to be looked up, and when all of a kind are known that matter. Asks nobody.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::Graph;
use crate::object::{Key, KindName, Object};
use crate::questions::Questions;

/// Look-ups in one service at a time.
const LOOK_UPS_AT_A_TIME: usize = 8;

/// The look-ups that are due.
#[derive(Debug, Default)]
pub struct PeerLookUps {
    questions: Questions<Key>,
    /// Of kinds all of whose objects were heard of, those that were not looked up since.
    missing: BTreeMap<KindName, BTreeSet<Key>>,
    /// Those of them with a look-up under way that was sent before that: its answer may be older.
    early: BTreeSet<Key>,
}

impl PeerLookUps {
    /// An object is to be looked up.
    pub fn ask(&mut self, key: Key) {
        self.questions.ask(&key.kind.group.clone(), key);
    }

    /// The objects of other services that an object names are looked up, unless they are known: their events tell of
    /// what happens to them.
    pub fn ask_for_targets(&mut self, foreign: &BTreeSet<KindName>, graph: &Graph, object: &Object) {
        let named = object.edges.iter().map(|edge| &edge.target);
        for target in named.filter(|target| foreign.contains(&target.kind) && graph.get(target).is_none()) {
            self.ask(target.clone());
        }
    }

    /// All objects of a kind were heard of, and these matter. Whether nothing is missing.
    pub fn replayed(&mut self, kind: &KindName, keys: BTreeSet<Key>) -> bool {
        for key in &keys {
            if self.questions.is_under_way(&key.kind.group, key) {
                self.early.insert(key.clone());
            }
            self.ask(key.clone());
        }
        let is_known = keys.is_empty();
        self.missing.insert(kind.clone(), keys);
        is_known
    }

    /// Nothing of a kind is known any more.
    pub fn doubted(&mut self, kind: &KindName) {
        self.missing.remove(kind);
    }

    /// The next look-up, of an object that has none under way.
    pub fn next_due(&mut self) -> Option<Key> {
        self.questions.begin(LOOK_UPS_AT_A_TIME)
    }

    /// An object was looked up. Whether that was the last one that was missing of its kind.
    pub fn answered(&mut self, key: &Key) -> bool {
        self.questions.end(&key.kind.group, key);
        if self.early.remove(key) {
            return false;
        }
        let missing = self.missing.get_mut(&key.kind);
        missing.is_some_and(|missing| missing.remove(key) && missing.is_empty())
    }

    /// Whether an object is one of those that are missing of their kind.
    pub fn is_missing(&self, key: &Key) -> bool {
        let missing = self.missing.get(&key.kind);
        missing.is_some_and(|missing| missing.contains(key))
    }

    /// A look-up has failed, and is due again.
    pub fn failed(&mut self, key: &Key) {
        self.questions.end(&key.kind.group, key);
        self.early.remove(key);
        self.ask(key.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::key_in;

    fn network(name: &str) -> Key {
        key_in("region.example.com", "Network", name)
    }

    #[test]
    fn a_kind_is_known_once_all_that_matters_was_looked_up() {
        let mut look_ups = PeerLookUps::default();
        let kind = network("a").kind;
        assert!(!look_ups.replayed(&kind, BTreeSet::from([network("a"), network("b")])));
        let first = look_ups.next_due().expect("due");
        look_ups.failed(&first);
        assert!(look_ups.is_missing(&first));
        let second = look_ups.next_due().expect("due");
        assert_ne!(second, first, "one that waits comes first");
        assert!(!look_ups.answered(&second));
        assert!(!look_ups.is_missing(&second));
        assert_eq!(look_ups.next_due().as_ref(), Some(&first), "again");
        assert!(look_ups.answered(&first));
        assert!(!look_ups.answered(&first), "it becomes known once");
        assert!(look_ups.replayed(&kind, BTreeSet::new()), "nothing matters");
    }

    /// As if all services had one number of look-ups together.
    #[test]
    fn a_service_that_hangs_delays_no_look_up_of_another() {
        let mut look_ups = PeerLookUps::default();
        for number in 0..=LOOK_UPS_AT_A_TIME {
            look_ups.ask(key_in("hanging.example.com", "Network", &number.to_string()));
        }
        let under_way = std::iter::from_fn(|| look_ups.next_due()).count();
        assert_eq!(under_way, LOOK_UPS_AT_A_TIME);
        look_ups.ask(network("a"));
        assert_eq!((look_ups.next_due(), look_ups.next_due()), (Some(network("a")), None));
    }

    #[test]
    fn an_object_is_looked_up_again_where_something_happened_meanwhile() {
        let mut look_ups = PeerLookUps::default();
        look_ups.ask(network("a"));
        assert_eq!(look_ups.next_due(), Some(network("a")));
        look_ups.ask(network("a"));
        assert_eq!(look_ups.next_due(), None, "one at a time");
        look_ups.answered(&network("a"));
        assert_eq!(look_ups.next_due(), Some(network("a")));
        assert_eq!(look_ups.next_due(), None);
    }

    /// As if an answer could tell of what was heard after its question was sent, or as if none counted any more.
    #[test]
    fn a_look_up_that_was_under_way_when_all_was_heard_of_does_not_count() {
        for is_failed in [false, true] {
            let mut look_ups = PeerLookUps::default();
            look_ups.ask(network("a"));
            assert_eq!(look_ups.next_due(), Some(network("a")));
            assert!(!look_ups.replayed(&network("a").kind, BTreeSet::from([network("a")])));
            match is_failed {
                true => look_ups.failed(&network("a")),
                false => assert!(!look_ups.answered(&network("a")), "it was sent before"),
            }
            assert_eq!(look_ups.next_due(), Some(network("a")), "again");
            assert!(look_ups.answered(&network("a")), "{is_failed}");
        }
    }

    #[test]
    fn what_is_doubted_does_not_become_known_by_a_look_up() {
        let mut look_ups = PeerLookUps::default();
        look_ups.replayed(&network("a").kind, BTreeSet::from([network("a")]));
        look_ups.doubted(&network("a").kind);
        assert!(!look_ups.answered(&network("a")));
    }
}
