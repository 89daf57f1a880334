//! The objects that one controller is to decide on, and its steps under way. A play chooses which of them is next.

use std::collections::BTreeSet;

use super::CONCERNED;
use super::task::Task;
use crate::object::Key;
use crate::simulation::Bug;

/// What a controller has to do, as far as it knows.
pub(super) struct Queue {
    queued: BTreeSet<Key>,
    tasks: Vec<Task>,
    /// Of those whom a change concerns, how many are decided on again.
    wakes: usize,
}

impl Queue {
    pub(super) fn new(bug: Bug) -> Self {
        Self {
            queued: BTreeSet::new(),
            tasks: Vec::new(),
            wakes: if bug == Bug::WakeFew { CONCERNED } else { usize::MAX },
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.tasks.is_empty()
    }

    pub(super) fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// A change concerns these.
    pub(super) fn wake(&mut self, concerned: impl IntoIterator<Item = Key>) {
        self.queued.extend(concerned.into_iter().take(self.wakes));
    }

    /// This one is to be decided on in any case.
    pub(super) fn add(&mut self, key: Key) {
        self.queued.insert(key);
    }

    /// An object to decide on, which leaves the queue.
    pub(super) fn next(&mut self, choice: usize) -> Option<Key> {
        let at = choice.checked_rem(self.queued.len())?;
        let key = self.queued.iter().nth(at).cloned()?;
        self.queued.remove(&key);
        Some(key)
    }

    /// All that are to be decided on.
    pub(super) fn queued(&self) -> impl Iterator<Item = &Key> {
        self.queued.iter()
    }

    /// One of these takes part in the step of another one.
    pub(super) fn join(&mut self, key: &Key) {
        self.queued.remove(key);
    }

    /// Whether an object has a step under way.
    pub(super) fn is_busy(&self, key: &Key) -> bool {
        self.tasks.iter().any(|task| task.is_of(key))
    }

    /// A step begins, or goes on.
    pub(super) fn begin(&mut self, task: Task) {
        self.tasks.push(task);
    }

    /// A step of which the next request is sent: it goes on, or is over.
    pub(super) fn take(&mut self, choice: usize) -> Option<Task> {
        let at = choice.checked_rem(self.tasks.len())?;
        Some(self.tasks.swap_remove(at))
    }

    /// A step is over. Its objects are decided on again.
    pub(super) fn end(&mut self, task: &Task) {
        self.queued.extend(task.members().into_iter().map(|member| member.key));
    }
}
