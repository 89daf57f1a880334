//! What is to be done: the queue of objects to decide on, what is known of them, and what those wait for that have no
//! step. Puts these parts together, each of which has rules of its own. Sends nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use kindex_model::kind::Kind;
use kindex_model::object::{Object as Text, ResourceVersion};
use kindex_model::reference_name::ReferenceName;
use tokio::time::Instant;

use crate::answers::Swept;
use crate::cleanup_states::CallOutcome;
use crate::cluster::outcome::{Task, go_together};
use crate::decide::{CleanupState, FoundHolder, Step, decide};
use crate::graph::{Declared, Graph};
use crate::kinds::{Kinds, key_of};
use crate::object::{DeletionState, Key, KindName, Object, Released};
use crate::peer::LookUps;
use crate::peer::look_ups::PeerLookUps;
use crate::targets::Answer;
use crate::vanished::Vanished;

use super::placed::PlacedObjects;
use super::queue::Queue;
use super::waiting::{WaitingObjects, awaited_references};

pub(crate) mod knowledge;

mod look_ups;

mod reports;

#[cfg(test)]
mod tests;

use knowledge::Knowledge;

/// What one run is told at its beginning.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    /// The kinds of other services. Their objects are not decided on here.
    pub(crate) foreign: BTreeSet<KindName>,
    /// The look-ups of these.
    pub(crate) look_ups: LookUps,
    /// The groups of other services that can be asked for holders.
    pub(crate) services: BTreeSet<String>,
    /// The kinds whose objects may have something outside.
    pub(crate) outside: BTreeSet<KindName>,
    /// Whether there is an archive to ask.
    pub(crate) archives: bool,
}

/// All work of one run.
pub(super) struct Work {
    setup: Setup,
    /// What the cluster and the look-ups have said.
    graph: Graph,
    /// The look-ups that are due.
    look_ups: PeerLookUps,
    knowledge: Knowledge,
    queue: Queue,
    waiting: WaitingObjects,
    placed: PlacedObjects,
    vanished: Vanished,
    /// The uids of those that may be on cycles by now, and are not in the cluster.
    archived_on_cycles: BTreeSet<String>,
}

impl Work {
    pub(super) fn new(declared: Vec<Declared>, setup: Setup, blocked_after: Duration) -> Self {
        Self {
            setup,
            graph: Graph::new(declared),
            look_ups: PeerLookUps::default(),
            knowledge: Knowledge::new(blocked_after),
            queue: Queue::default(),
            waiting: WaitingObjects::new(blocked_after),
            placed: PlacedObjects::default(),
            vanished: Vanished::default(),
            archived_on_cycles: BTreeSet::new(),
        }
    }

    pub(super) fn on_list(&mut self, kind: &KindName, version: ResourceVersion, objects: Vec<Object>) {
        let concerned = self.graph.replace(kind, version, objects);
        self.vanished.forget_unknown(&self.graph);
        for object in self.graph.objects().filter(|object| object.key.kind == *kind) {
            self.look_ups.ask_for_targets(&self.setup.foreign, &self.graph, object);
        }
        self.changed(concerned);
    }

    pub(super) fn on_watch_lost(&mut self, kind: &KindName) {
        self.graph.lose(kind);
    }

    /// A watch reports an object. One that is known in this version or a later one is not read again: most of what
    /// watches report is the echo of our own writes. Still, an older version may say what was released.
    pub(super) fn on_watch_event(&mut self, kinds: &Kinds, kind: &Kind, text: &Text, now: Instant) {
        let metadata = &text.metadata;
        let known = self.graph.get(&key_of(kind, text));
        let known = known.filter(|known| *known.uid == *metadata.uid.0);
        if known.is_some_and(|known| metadata.resource_version <= known.version) {
            let released = Released::read(metadata, &kinds.names.recorded);
            self.vanished.explain(&metadata.uid.0, &released);
        } else {
            self.seen(kinds.read(kind, text), now);
        }
    }

    pub(super) fn seen(&mut self, object: Object, now: Instant) {
        self.vanished.explain(&object.uid, &object.released);
        let known = self.graph.get(&object.key);
        let known = known.filter(|known| known.uid == object.uid && known.version < object.version);
        match known {
            Some(known) if self.setup.foreign.contains(&known.key.kind) => {
                self.vanished.compare_foreign(&self.graph, known, &object, now);
            }
            Some(known) => {
                self.vanished.compare(&self.graph, known, Some(&object), now);
                self.knowledge.answers.compare(known, &object);
            }
            None => {}
        }
        self.look_ups.ask_for_targets(&self.setup.foreign, &self.graph, &object);
        if self.setup.foreign.contains(&object.key.kind) {
            self.look_again_if_leaving(&object, now);
        }
        let concerned = self.graph.apply(object);
        self.queue.add(concerned);
    }

    pub(super) fn gone(&mut self, key: &Key, uid: &str, now: Instant) {
        let concerned = if self.setup.foreign.contains(&key.kind) {
            // What was under way meanwhile does not count, though it may be newer: only a later answer is sure to be.
            self.look_ups.ask(key.clone());
            self.graph.remove_until(key, uid, self.setup.look_ups.last())
        } else {
            if let Some(known) = self.graph.get(key).filter(|known| known.uid == uid) {
                self.vanished.compare(&self.graph, known, None, now);
            }
            self.graph.remove(key, uid)
        };
        self.knowledge.targets.forget(&concerned);
        self.changed(concerned);
    }

    /// What held these in the cluster may hold them out of the archive now.
    fn changed(&mut self, concerned: BTreeSet<Key>) {
        self.knowledge.answers.forget(&concerned);
        self.queue.add(concerned);
    }

    /// The next holder of another service that is to be looked for.
    pub(super) fn next_holder(&mut self) -> Option<ReferenceName> {
        self.knowledge.holders.next_due()
    }

    /// What its service says of a holder.
    pub(super) fn found(&mut self, name: ReferenceName, found: Option<FoundHolder>, now: Instant) {
        let targets: Vec<_> = self.graph.targets(&name).cloned().collect();
        if self.knowledge.holders.answered(name, found, now) {
            self.waiting.look_again(&targets, now);
        }
        self.queue.add(targets);
    }

    /// Its service does not say, and is asked again.
    pub(super) fn find_again(&mut self, name: &ReferenceName) {
        self.knowledge.holders.unanswered(name);
    }

    /// What a step has learned of the archive.
    pub(super) fn learned(&mut self, object: &Object, swept: Option<Swept>, missing: Vec<ReferenceName>, now: Instant) {
        for name in missing {
            self.knowledge.holders.answered(name, None, now);
        }
        if let Some(swept) = swept {
            self.knowledge.answers.swept(object, swept, now);
        }
    }

    /// What the archive has answered about an object that a live one names.
    pub(super) fn asked(&mut self, holder: &Object, (target, answer): (Key, Answer), now: Instant) {
        self.knowledge.targets.answered(holder, target, answer, now);
    }

    /// What the archive has answered about the objects from which a live one was moved. What it names now does not wait
    /// for it if one of them holds it.
    pub(super) fn asked_for_former(&mut self, holder: &Object, has_former: bool, now: Instant) {
        self.knowledge.targets.asked_for_former(holder, has_former, now);
        if has_former {
            self.queue.add(holder.edges.iter().map(|edge| edge.target.clone()));
        }
    }

    /// Whether an object of the cluster from which this one was moved holds it still; nothing where that is not known.
    pub(super) fn has_former(&self, holder: &Object) -> Option<bool> {
        let input = self.graph.input(&holder.key, CleanupState::Gone)?;
        let is_known = input.object.uid == holder.uid && input.object.edges == holder.edges;
        (is_known && input.targets_unknown.is_empty()).then_some(input.has_former)
    }

    /// What came of a call of the cleanup of an object.
    pub(super) fn cleanup_called(&mut self, object: &Object, outcome: CallOutcome, now: Instant) {
        self.knowledge.cleanup_states.record(object, outcome, now);
    }

    /// Asks the archive and the cleanups again where that is due, and writes again what could not be written.
    pub(super) fn ask_again(&mut self, now: Instant) {
        self.queue.add(self.placed.due(now));
        self.queue.add(self.knowledge.due(&self.graph, now));
        self.queue.add(self.waiting.due(now));
    }

    /// The next step, of an object that has none under way, on an object that no other one writes.
    pub(super) fn next(&mut self, now: Instant) -> Option<Task> {
        loop {
            let candidate = self.queue.next(|key| self.graph.neighbors(key))?;
            let Some(mut task) = self.decide(&candidate.key, now) else {
                continue;
            };
            if !self.queue.begin(candidate, &task, &self.setup.foreign) {
                continue;
            }
            self.gather(&mut task, now);
            if let Step::Place { target, .. } | Step::Release(target) = &task.step {
                task.target = self.graph.get(&target.key).cloned();
            }
            self.expect(&task, now);
            return Some(task);
        }
    }

    /// Others join the step that wait to do the same.
    fn gather(&mut self, task: &mut Task, now: Instant) {
        for key in self.queue.others(task) {
            let other = self.decide(&key, now);
            let step = (&task.object, &task.step);
            let joins = other.filter(|other| go_together(step, (&other.object, &other.step)));
            match joins {
                Some(other) => {
                    self.queue.join(key);
                    task.others.push(other.object);
                }
                None => self.queue.add([key]),
            }
        }
    }

    /// Nothing of a step is under way any more.
    pub(super) fn ended(&mut self, task: &Task) {
        self.queue.give_back(task, &self.setup.foreign);
    }

    fn decide(&mut self, key: &Key, now: Instant) -> Option<Task> {
        if self.setup.foreign.contains(&key.kind) {
            return self.sweep_holders(key, now);
        }
        let Some(input) = self.knowledge.input(&self.graph, &self.setup, key, now) else {
            self.queue.forget_failures(key);
            self.knowledge.forget(key);
            self.waiting.forget(key);
            self.placed.forget(key);
            return None;
        };
        let step = decide(&input);
        if matches!(step, Step::Wait(_) | Step::Rest(_)) {
            let (refused, all_are_placed) = (input.object.refused, step == Step::Rest(Vec::new()));
            if refused && all_are_placed && input.object.state == DeletionState::Live {
                self.placed.add(key, now);
            } else {
                self.placed.forget(key);
            }
            self.wait(key, step, now);
            return None;
        }
        let task = Task {
            object: input.object.clone(),
            target: None,
            step,
            others: Vec::new(),
        };
        self.waiting.goes_on(key, &task.step);
        Some(task)
    }

    /// What is archived and names an object of another service goes with that one. Whoever is in the cluster decides on
    /// itself.
    fn sweep_holders(&self, key: &Key, now: Instant) -> Option<Task> {
        let object = self.graph.get(key)?;
        let is_deleted = object.phase.is_some() && object.is_leaving() && !self.graph.doubts(&key.kind);
        let is_due = self.setup.archives && is_deleted && self.knowledge.answers.is_due(object, now);
        is_due.then(|| Task {
            object: object.clone(),
            target: None,
            step: Step::Sweep,
            others: Vec::new(),
        })
    }

    fn wait(&mut self, key: &Key, step: Step, now: Instant) {
        let of_services = awaited_references(&step).iter().map(|reference| &reference.name);
        let of_services = of_services.filter(|name| self.setup.services.contains(name.group()));
        self.knowledge
            .holders
            .seek(of_services.filter(|name| self.graph.find(name.uid()).is_none()), now);
        self.waiting.rests(key, step, now);
    }

    /// The step of an object is over, and the object is decided on again.
    pub(super) fn free(&mut self, key: &Key) {
        self.queue.free(key);
    }

    pub(super) fn succeeded(&mut self, key: &Key) {
        self.queue.forget_failures(key);
    }

    /// How often in succession the step has failed before.
    pub(super) fn failed(&mut self, key: &Key) -> u32 {
        self.queue.failed(key)
    }
}
