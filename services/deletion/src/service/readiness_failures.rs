//! Why a deletion graph does not do its work now, by kind: its objects are not followed, or nobody says whether one of
//! them exists.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use crate::object::KindName;

/// Failures that last, in the order of the kinds.
#[derive(Default)]
pub(super) struct ReadinessFailures(Mutex<BTreeMap<String, String>>);

impl ReadinessFailures {
    /// The objects of a kind are not followed.
    pub(super) fn begin(&self, kind: &KindName, why: String) {
        self.known().insert(kind.to_string(), why);
    }

    /// The objects of a kind are followed.
    pub(super) fn end(&self, kind: &KindName) {
        self.known().remove(&kind.to_string());
    }

    /// Nothing is followed any more, so that nothing fails.
    pub(super) fn clear(&self) {
        self.known().clear();
    }

    /// All of them, for people.
    pub(super) fn list(&self) -> Vec<String> {
        self.known().values().cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().expect("nobody panics with it")
    }
}
