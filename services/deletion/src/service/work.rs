//! What is to be done: a queue of objects to decide on, one step of each at a time, and what those wait for that have
//! none. Sends nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kindex_model::object::ResourceVersion;
use tokio::time::Instant;

use crate::cluster::carry_out::Task;
use crate::decide::{Outside, Step, decide};
use crate::graph::{Declared, Graph};
use crate::notice::{Notice, notice};
use crate::object::{Key, KindName, Object};
use crate::vanished::Vanished;

/// An object that waits.
struct Waiting {
    step: Step,
    since: Instant,
    /// Whether an event told of it.
    reported: bool,
}

/// All work of one run.
pub(super) struct Work {
    graph: Graph,
    queue: BTreeSet<Key>,
    /// Objects with a step under way, or a pause.
    busy: BTreeSet<Key>,
    waiting: BTreeMap<Key, Waiting>,
    failures: BTreeMap<Key, u32>,
    vanished: Vanished,
}

impl Work {
    pub(super) fn new(declared: Vec<Declared>) -> Self {
        Self {
            graph: Graph::new(declared),
            queue: BTreeSet::new(),
            busy: BTreeSet::new(),
            waiting: BTreeMap::new(),
            failures: BTreeMap::new(),
            vanished: Vanished::default(),
        }
    }

    pub(super) fn listed(&mut self, kind: &KindName, version: ResourceVersion, objects: Vec<Object>) {
        let concerned = self.graph.replace(kind, version, objects);
        self.queue.extend(concerned);
    }

    pub(super) fn lost(&mut self, kind: &KindName) {
        self.graph.lose(kind);
    }

    pub(super) fn seen(&mut self, object: Object, now: Instant) {
        let known = self.graph.get(&object.key);
        let known = known.filter(|known| known.uid == object.uid && known.version < object.version);
        if let Some(known) = known {
            self.vanished.compare(&self.graph, known, Some(&object), now);
        }
        let concerned = self.graph.apply(object);
        self.queue.extend(concerned);
    }

    pub(super) fn gone(&mut self, key: &Key, uid: &str, now: Instant) {
        if let Some(known) = self.graph.get(key).filter(|known| known.uid == uid) {
            self.vanished.compare(&self.graph, known, None, now);
        }
        let concerned = self.graph.remove(key, uid);
        self.queue.extend(concerned);
    }

    /// The next step, of an object that has none under way.
    pub(super) fn next(&mut self, now: Instant) -> Option<Task> {
        loop {
            let key = self.queue.iter().find(|key| !self.busy.contains(*key))?.clone();
            self.queue.remove(&key);
            if let Some(task) = self.decide(&key, now) {
                self.busy.insert(key);
                return Some(task);
            }
        }
    }

    fn decide(&mut self, key: &Key, now: Instant) -> Option<Task> {
        let Some(look) = self.graph.look(key, Outside::Gone) else {
            self.waiting.remove(key);
            self.failures.remove(key);
            return None;
        };
        let step = decide(&look);
        let target = match &step {
            Step::Place { target, .. } | Step::Release(target) => self.graph.get(&target.key),
            Step::Wait(_) | Step::Rest(_) => {
                self.wait(key, step, now);
                return None;
            }
            Step::Guard | Step::Request(_) | Step::Delete(_) | Step::Record(_) | Step::CleanUp | Step::Free { .. } => {
                None
            }
        };
        let task = Task {
            object: look.object.clone(),
            target: target.cloned(),
            step,
        };
        self.waiting.remove(key);
        Some(task)
    }

    fn wait(&mut self, key: &Key, step: Step, now: Instant) {
        if notice(&step, None).is_none() {
            self.waiting.remove(key);
        } else if self.waiting.get(key).is_none_or(|waiting| waiting.step != step) {
            let waiting = Waiting {
                step,
                since: now,
                reported: false,
            };
            self.waiting.insert(key.clone(), waiting);
        }
    }

    /// The step of an object is over, and the object is decided on again.
    pub(super) fn free(&mut self, key: &Key) {
        self.busy.remove(key);
        self.queue.insert(key.clone());
    }

    pub(super) fn succeeded(&mut self, key: &Key) {
        self.failures.remove(key);
    }

    /// How often in succession the step has failed before.
    pub(super) fn failed(&mut self, key: &Key) -> u32 {
        let failures = self.failures.entry(key.clone()).or_default();
        *failures += 1;
        *failures - 1
    }

    /// How many objects of a kind have waited for too long to go, and for how long one of them has at most.
    pub(super) fn blocked(&self, kind: &str, now: Instant) -> (usize, Duration) {
        let waiting = self.waiting.iter();
        let leaving = waiting.filter(|(key, waiting)| key.kind.kind == kind && matches!(waiting.step, Step::Wait(_)));
        let (mut count, mut longest) = (0, Duration::ZERO);
        for (_, waiting) in leaving {
            count += usize::from(waiting.reported);
            longest = longest.max(now.duration_since(waiting.since));
        }
        (count, longest)
    }

    /// The objects from which references vanished, with what to tell.
    pub(super) fn vanished(&mut self, now: Instant) -> Vec<(Object, Notice)> {
        self.vanished.judge(&self.graph, now)
    }

    /// The objects that have waited for too long since somebody was told, with what to tell.
    pub(super) fn overdue(&mut self, now: Instant, patience: Duration) -> Vec<(Object, Notice)> {
        let mut overdue = Vec::new();
        for (key, waiting) in &mut self.waiting {
            if waiting.reported || now.duration_since(waiting.since) < patience {
                continue;
            }
            let Some(object) = self.graph.get(key) else {
                continue;
            };
            let cycle = self.graph.cycle(key);
            waiting.reported = true;
            overdue.extend(notice(&waiting.step, cycle.as_deref()).map(|notice| (object.clone(), notice)));
        }
        overdue
    }
}
