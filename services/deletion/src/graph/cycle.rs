//! Objects that wait for each other.

use std::collections::{BTreeMap, VecDeque};

use super::Graph;
use crate::object::{Key, Object};

impl Graph {
    /// The objects around one of its references back to itself, where there is such a path: a deletion of any of them
    /// waits for itself.
    pub fn cycle(&self, key: &Key) -> Option<Vec<Key>> {
        let mut reached: BTreeMap<Key, Key> = BTreeMap::new();
        let mut next = VecDeque::from([key.clone()]);
        while let Some(target) = next.pop_front() {
            let object = self.objects.get(&target)?;
            for name in &object.references {
                let Some(holder) = self.uids.get(name.uid()) else {
                    continue;
                };
                if holder == key {
                    return Some(path(&reached, key, target));
                }
                let leaves = self.objects.get(holder).is_some_and(Object::is_leaving);
                if leaves && !reached.contains_key(holder) {
                    reached.insert(holder.clone(), target.clone());
                    next.push_back(holder.clone());
                }
            }
        }
        None
    }
}

/// From `key` over those who hold it to `last`, which `key` holds.
pub(crate) fn path(reached: &BTreeMap<Key, Key>, key: &Key, last: Key) -> Vec<Key> {
    let mut path = vec![last];
    while let Some(before) = path.last().and_then(|at| reached.get(at)) {
        path.push(before.clone());
    }
    debug_assert!(path.last() == Some(key), "the search began there");
    path.reverse();
    path
}
