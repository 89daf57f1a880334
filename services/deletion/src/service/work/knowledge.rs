//! What others have answered on which decisions depend: the archive, the services of holders, and the cleanups outside.
//! What the cluster itself says is in the graph. Asks nobody.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::Setup;
use crate::answers::Answers;
use crate::cleanup_states::CleanupStates;
use crate::decide::{CleanupState, Input};
use crate::graph::Graph;
use crate::holders::Holders;
use crate::object::Key;
use crate::targets::Targets;

/// All answers of one run.
pub(crate) struct Knowledge {
    /// Of the archive, about those that hold an object out of it.
    pub(crate) answers: Answers,
    /// Of the archive, about what live objects name or once named.
    pub(crate) targets: Targets,
    /// Of other services, about holders.
    pub(crate) holders: Holders,
    /// Of cleanups.
    pub(crate) cleanup_states: CleanupStates,
}

impl Knowledge {
    pub(crate) fn new(blocked_after: Duration) -> Self {
        Self {
            answers: Answers::default(),
            targets: Targets::default(),
            holders: Holders::new(blocked_after),
            cleanup_states: CleanupStates::default(),
        }
    }

    /// All that a decision on an object depends on; nothing where there is no such object.
    pub(crate) fn input<'g>(&self, graph: &'g Graph, setup: &Setup, key: &Key, now: Instant) -> Option<Input<'g>> {
        let known = graph.get(key).filter(|_| setup.outside.contains(&key.kind));
        let cleanup = known.map_or(CleanupState::Gone, |known| self.cleanup_states.of(known, now));
        let mut input = graph.input(key, cleanup)?;
        if setup.archives {
            self.answers.complete(&mut input, now);
            let is_foreign = |target: &Key| setup.foreign.contains(&target.kind);
            self.targets.complete(&mut input, graph, is_foreign, now);
        }
        self.holders.complete(&mut input, now);
        Some(input)
    }

    /// The objects that are to be decided on because somebody is to be asked again.
    pub(crate) fn due(&mut self, graph: &Graph, now: Instant) -> BTreeSet<Key> {
        let mut due = self.holders.due(graph, now);
        due.extend(self.answers.due(now));
        due.extend(self.targets.due(graph, now));
        due.extend(self.cleanup_states.due(now));
        due
    }

    /// There is no such object any more.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.answers.forget([key]);
        self.targets.forget([key]);
        self.cleanup_states.forget(key);
    }
}
