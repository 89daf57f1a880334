//! Why the migrator does not do its work now, by the part that says so.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The parts that can be in trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The resources of `migration.k8s.io`.
    Definitions,
    /// The rounds of the trigger.
    Trigger,
    /// The watch of migrations.
    Migrations,
}

impl Part {
    /// In the log.
    fn word(self) -> &'static str {
        match self {
            Self::Definitions => "definitions",
            Self::Trigger => "trigger",
            Self::Migrations => "migrations",
        }
    }
}

/// Failures of now. One is logged when it begins, changes and ends.
#[derive(Debug, Default)]
pub(super) struct PartFailures(Mutex<BTreeMap<Part, String>>);

impl PartFailures {
    /// A part is in trouble.
    pub(super) fn begin(&self, part: Part, why: String) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(&part) != Some(&why) {
            tracing::warn!(part = part.word(), why, "The migrator is held up");
            known.insert(part, why);
        }
    }

    /// A part does its work.
    pub(super) fn end(&self, part: Part) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.remove(&part).is_some() {
            tracing::info!(part = part.word(), "The migrator goes on");
        }
    }

    /// Nothing is done any more, so that nothing is in trouble.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// All of them, for people.
    pub(super) fn list(&self) -> Vec<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().map(|why| format!("storage versions: {why}")).collect()
    }
}
