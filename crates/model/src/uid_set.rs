//! A set of uids in eight bytes each, such as those that a list has shown, so that a list of any length can be compared
//! with SQL's rows.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::object::Uid;

/// A set of uids that is being filled.
#[derive(Debug, Default)]
pub struct UidSetBuilder(Vec<u64>);

impl UidSetBuilder {
    /// Takes up one more uid.
    pub fn add(&mut self, uid: &Uid) {
        self.0.push(hash(uid));
    }

    /// The set, once it is complete.
    pub fn finish(mut self) -> UidSet {
        self.0.sort_unstable();
        UidSet(self.0)
    }
}

/// A set of uids. Two uids of one hash would hide a uid that is absent, never one that is there.
#[derive(Debug, Default)]
pub struct UidSet(Vec<u64>);

impl UidSet {
    /// Whether the uid was added.
    pub fn contains(&self, uid: &Uid) -> bool {
        self.0.binary_search(&hash(uid)).is_ok()
    }
}

fn hash(uid: &Uid) -> u64 {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    hasher.finish()
}
