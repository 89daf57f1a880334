//! Values by the uids of objects, no more than so many: the one that was set longest ago makes room for another. Knows
//! nothing of what they mean. Pure.

use std::collections::BTreeMap;

/// The values that were set last.
///
/// # Guarantees
/// Nothing depends on the order of the uids.
#[derive(Debug)]
pub(super) struct Recent<V> {
    max: usize,
    /// Each with the number of its setting.
    values: BTreeMap<String, (u64, V)>,
    /// The uids by these numbers.
    uids: BTreeMap<u64, String>,
    /// The number of the next setting.
    next: u64,
}

impl<V> Recent<V> {
    /// No values, and room for so many.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            values: BTreeMap::new(),
            uids: BTreeMap::new(),
            next: 0,
        }
    }

    /// The value of an object.
    pub(super) fn get(&self, uid: &str) -> Option<&V> {
        self.values.get(uid).map(|(_, value)| value)
    }

    /// The value of an object, which is the last one to make room for another from now on.
    pub(super) fn set(&mut self, uid: &str, value: V) {
        self.remove(uid);
        if self.values.len() >= self.max
            && let Some((_, oldest)) = self.uids.pop_first()
        {
            self.values.remove(&oldest);
        }
        self.uids.insert(self.next, uid.to_owned());
        self.values.insert(uid.to_owned(), (self.next, value));
        self.next += 1;
    }

    /// An object has no value any more.
    pub(super) fn remove(&mut self, uid: &str) {
        if let Some((number, _)) = self.values.remove(uid) {
            self.uids.remove(&number);
        }
    }

    /// How many objects have a value.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if the first one by its uid made room each time, and so began anew for ever.
    #[test]
    fn the_value_that_was_set_longest_ago_makes_room_for_another() {
        let mut recent = Recent::new(2);
        for uid in ["a", "b", "a", "c"] {
            recent.set(uid, uid);
        }
        let all = |recent: &Recent<&'static str>| ["a", "b", "c"].map(|uid| recent.get(uid).copied());
        assert_eq!(all(&recent), [Some("a"), None, Some("c")]);
        recent.remove("c");
        recent.remove("nobody");
        recent.set("b", "again");
        assert_eq!(all(&recent), [Some("a"), Some("again"), None]);
        assert_eq!((recent.len(), recent.uids.len()), (2, 2));
    }
}
