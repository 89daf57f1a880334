//! Which object is decided on next, and whether its step may begin: one step of an object at a time, and none that
//! keeps the others from their turn. Knows neither the objects nor the clock. Pure; decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::arrivals::Arrivals;
use super::peer_turns::PeerTurns;
use super::turns::Turns;
use crate::cluster::outcome::Task;
use crate::decide::Step;
use crate::object::{Key, KindName};

/// Objects that place or release their reference by one write.
pub(super) const TOGETHER_MAX: usize = 64;
/// After so many steps, what was put off has its turn: others go before, but not for ever.
const PUT_OFF_EVERY: usize = 64;
/// With more around it, an object is decided on after others: each of those may be about to change something.
pub(super) const NEIGHBORS_MANY: usize = 64;

/// The objects that are to be decided on, and those with a step under way.
///
/// # Guarantees
/// - No object is given out between the beginning of its step and [`Queue::free`].
/// - No object is lost. One that was added is given out later, or is decided on again once its step is over. One whose
///   step may not begin is given out again once it may.
/// - Those that were added are given out in the order of that: whoever is added again and again keeps no other from its
///   turn. One that is added while it waits keeps its place, and one with a step under way comes last. Those whose step
///   may not begin wait in the same way, and go before the others once it may.
/// - What is put off is given out after [`PUT_OFF_EVERY`] steps, of either sort by turns.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// To be decided on.
    queued: Arrivals,
    /// Objects with a step under way, or a pause.
    busy: BTreeSet<Key>,
    /// How often in succession the step of an object has failed.
    failures: BTreeMap<Key, u32>,
    turns: Turns,
    peer_turns: PeerTurns,
    /// Of those to be decided on, the ones with very many objects around them.
    crowded: Arrivals,
    /// Steps since something had its turn that was put off.
    since_put_off: usize,
    /// Whether a crowded one is next of what was put off.
    is_crowded_next: bool,
}

/// An object to decide on.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) key: Key,
    /// Whether others went before, so that its step is not put off once more.
    was_put_off: bool,
}

impl Queue {
    /// These are to be decided on. Those with a step under way are once that is over, in any case.
    pub(super) fn add(&mut self, keys: impl IntoIterator<Item = Key>) {
        for key in keys.into_iter().filter(|key| !self.busy.contains(key)) {
            self.queued.add(key);
        }
    }

    /// The next object to decide on, which has no step under way. If it has a step to take, that one is to
    /// [`begin`](Queue::begin).
    pub(super) fn next(&mut self, neighbors: impl Fn(&Key) -> usize) -> Option<Candidate> {
        loop {
            let candidate = self.pick(&neighbors)?;
            // Otherwise, it is decided on again once its step is over.
            if !self.busy.contains(&candidate.key) {
                self.queued.remove(&candidate.key);
                return Some(candidate);
            }
        }
    }

    /// Whether the step of an object may begin. It is under way from then on. Otherwise, the object is decided on again
    /// once the step may begin.
    pub(super) fn begin(&mut self, candidate: Candidate, task: &Task, foreign: &BTreeSet<KindName>) -> bool {
        if !candidate.was_put_off && self.turns.put_off(task, foreign) {
            return false;
        }
        self.since_put_off += 1;
        if !self.peer_turns.take(task, foreign) {
            return false;
        }
        if self.turns.take(task, foreign) {
            self.busy.insert(candidate.key);
            return true;
        }
        self.peer_turns.give_back(task, foreign);
        false
    }

    /// Others that may wait to do the same as a step that begins. Each of them is to be decided on, and is then told to
    /// [`join`](Queue::join), or added. What has failed is tried alone: of several, one may be refused.
    pub(super) fn others(&mut self, task: &Task) -> Vec<Key> {
        let is_joint = matches!(task.step, Step::Place { .. } | Step::Release(_));
        if !is_joint || self.failures.contains_key(&task.object.key) {
            return Vec::new();
        }
        let mut others = self.turns.others(task, TOGETHER_MAX - 1);
        others.retain(|key| !self.busy.contains(key));
        let (failed, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|key| self.failures.contains_key(key));
        self.add(failed);
        others
    }

    /// One of the others takes part in the step.
    pub(super) fn join(&mut self, key: Key) {
        self.queued.remove(&key);
        self.busy.insert(key);
    }

    /// Nothing of a step is under way any more: those may begin that have waited for it.
    pub(super) fn give_back(&mut self, task: &Task, foreign: &BTreeSet<KindName>) {
        self.turns.give_back(task);
        self.peer_turns.give_back(task, foreign);
    }

    /// The step of an object is over, and so is the pause after it. The object is decided on again.
    pub(super) fn free(&mut self, key: &Key) {
        self.busy.remove(key);
        self.queued.add(key.clone());
    }

    /// The step of an object has failed. How often in succession it had failed before.
    pub(super) fn failed(&mut self, key: &Key) -> u32 {
        let failures = self.failures.entry(key.clone()).or_default();
        *failures += 1;
        *failures - 1
    }

    /// The step of an object has succeeded, or the object is gone.
    pub(super) fn forget_failures(&mut self, key: &Key) {
        self.failures.remove(key);
    }

    /// Those that are to be decided on in any case.
    #[cfg(test)]
    pub(super) fn queued(&self) -> BTreeSet<Key> {
        self.queued.keys().cloned().collect()
    }

    fn pick(&mut self, neighbors: &impl Fn(&Key) -> usize) -> Option<Candidate> {
        let is_due = self.since_put_off >= PUT_OFF_EVERY;
        if let Some(candidate) = is_due.then(|| self.pick_put_off()).flatten() {
            return Some(candidate);
        }
        while let Some(key) = self.pick_in_turn() {
            if neighbors(&key) <= NEIGHBORS_MANY {
                return Some(Candidate {
                    key,
                    was_put_off: false,
                });
            }
            self.crowded.add(key);
        }
        self.pick_put_off()
    }

    fn pick_in_turn(&mut self) -> Option<Key> {
        let waited = self.turns.next().or_else(|| self.peer_turns.next());
        waited.or_else(|| self.queued.pop_first())
    }

    /// By turns one of either sort, so that neither keeps the other waiting.
    fn pick_put_off(&mut self) -> Option<Candidate> {
        self.since_put_off = 0;
        self.is_crowded_next = !self.is_crowded_next;
        let key = match self.is_crowded_next {
            true => self.crowded.pop_first().or_else(|| self.turns.next_put_off()),
            false => self.turns.next_put_off().or_else(|| self.crowded.pop_first()),
        };
        key.map(|key| Candidate { key, was_put_off: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::{Cause, Seen};
    use crate::fixture::{key, key_in, live};
    use crate::object::{DeletionState, Object};

    fn at(name: &str) -> Key {
        key("Cluster", name)
    }

    fn task(name: &str, state: DeletionState, step: Step) -> Task {
        Task {
            object: Object {
                state,
                ..live(at(name), name)
            },
            target: None,
            step,
            others: Vec::new(),
        }
    }

    fn target() -> Seen {
        Seen {
            key: at("target"),
            uid: "target".to_owned(),
        }
    }

    /// Writes its own object alone.
    fn adopts(name: &str) -> Task {
        task(name, DeletionState::Live, Step::Adopt)
    }

    /// Writes the target.
    fn places(name: &str) -> Task {
        let step = Step::Place {
            reference: "target",
            target: target(),
        };
        task(name, DeletionState::Live, step)
    }

    /// Writes the target once others have had their turn.
    fn releases(name: &str) -> Task {
        task(name, DeletionState::Deleting, Step::Release(target()))
    }

    /// The kind of another service.
    fn foreign() -> BTreeSet<KindName> {
        BTreeSet::from([key_in("y.example.com", "Project", "p").kind])
    }

    /// Asks that service, and writes its own object.
    fn asks(name: &str) -> Task {
        let cause = Cause::Target {
            reference: "project",
            target: Seen {
                key: key_in("y.example.com", "Project", "p"),
                uid: "p".to_owned(),
            },
            held: false,
        };
        task(name, DeletionState::Live, Step::Request(cause))
    }

    fn queue(names: &[&str]) -> Queue {
        let mut queue = Queue::default();
        queue.add(names.iter().map(|name| at(name)));
        queue
    }

    /// The names of those with very many objects around them begin with `crowded`.
    fn neighbors(key: &Key) -> usize {
        NEIGHBORS_MANY + usize::from(key.name.starts_with("crowded"))
    }

    /// The next step that begins, where this is the step of each object.
    fn begin(queue: &mut Queue, step_of: impl Fn(&str) -> Task) -> Option<Task> {
        while let Some(candidate) = queue.next(neighbors) {
            let task = step_of(&candidate.key.name);
            if queue.begin(candidate, &task, &foreign()) {
                return Some(task);
            }
        }
        None
    }

    /// The objects of the steps that begin, as long as there are any.
    fn begin_all(queue: &mut Queue, step_of: impl Fn(&str) -> Task + Copy) -> Vec<String> {
        let begun = std::iter::from_fn(|| begin(queue, step_of));
        begun.map(|task| task.object.key.name.to_string()).collect()
    }

    fn end(queue: &mut Queue, task: &Task) {
        queue.give_back(task, &foreign());
        queue.free(&task.object.key);
    }

    #[test]
    fn an_object_with_a_step_under_way_is_not_given_out_until_that_is_over() {
        let mut queue = queue(&["a"]);
        let task = begin(&mut queue, adopts).expect("a step");
        queue.add([at("a")]);
        assert!(queue.next(neighbors).is_none(), "it is busy");
        assert!(queue.next(neighbors).is_none(), "it is busy still");
        end(&mut queue, &task);
        assert_eq!(begin_all(&mut queue, adopts), ["a"], "once");
    }

    /// As if the keys were an order: a change of what comes first in it would be seen at once, and others late.
    #[test]
    fn whoever_waits_keeps_its_place_when_it_is_added_again() {
        let mut queue = queue(&["b", "crowded-b", "c", "crowded-a"]);
        queue.add(["a", "c", "b", "crowded-a"].map(at));
        assert_eq!(begin_all(&mut queue, adopts), ["b", "c", "a", "crowded-b", "crowded-a"]);
    }

    #[test]
    fn whoever_is_added_while_its_step_is_under_way_comes_last() {
        let mut queue = queue(&["a"]);
        let task = begin(&mut queue, adopts).expect("a step");
        queue.add(["a", "b"].map(at));
        end(&mut queue, &task);
        assert_eq!(begin_all(&mut queue, adopts), ["b", "a"]);
    }

    /// Each is decided on again as soon as its step is over, or even before that.
    #[test]
    fn whoever_is_added_again_and_again_keeps_no_other_from_its_turn() {
        let mut queue = queue(&["a", "b", "c"]);
        let mut begun = Vec::new();
        for _ in 0..6 {
            let task = begin(&mut queue, adopts).expect("a step");
            queue.add([at("a")]);
            end(&mut queue, &task);
            queue.add([at("a")]);
            begun.push(task.object.key.name.to_string());
        }
        assert_eq!(begun, ["a", "b", "c", "a", "b", "c"]);
    }

    #[test]
    fn what_writes_the_same_waits_until_that_is_written_and_is_not_forgotten() {
        let mut queue = queue(&["a", "b", "c"]);
        let first = begin(&mut queue, places).expect("a step");
        assert!(begin(&mut queue, places).is_none(), "the target is being written");
        queue.give_back(&first, &foreign());
        assert_eq!(begin_all(&mut queue, places), ["b"]);
        queue.give_back(&places("b"), &foreign());
        assert_eq!(begin_all(&mut queue, places), ["c"]);
    }

    /// As if a service were asked by a step that did not begin, for ever.
    #[test]
    fn a_step_that_does_not_begin_takes_nobodys_turn_at_another_service() {
        let begun = |is_refused: bool| {
            let mut queue = queue(&["placing"]);
            begin(&mut queue, places).expect("a step");
            if is_refused {
                queue.add([at("target")]);
                assert!(begin(&mut queue, asks).is_none(), "the target is being written");
            }
            queue.add((0..20).map(|number| at(&format!("{number:02}"))));
            begin_all(&mut queue, asks).len()
        };
        assert!((1..20).contains(&begun(false)), "not all ask at a time");
        assert_eq!(begun(true), begun(false));
    }

    #[test]
    fn what_is_put_off_comes_after_all_others_if_they_are_few() {
        let mut queue = queue(&["a", "crowded", "z"]);
        let step_of = |name: &str| if name == "a" { releases(name) } else { adopts(name) };
        assert_eq!(begin_all(&mut queue, step_of), ["z", "crowded", "a"]);
    }

    /// Each is decided on again after its step, so that there is always something else.
    #[test]
    fn what_is_put_off_has_its_turn_by_either_sort_though_there_is_always_something_else() {
        let mut queue = queue(&["a", "crowded", "z"]);
        let step_of = |name: &str| if name == "a" { releases(name) } else { adopts(name) };
        let mut put_off = Vec::new();
        for number in 0..=4 * PUT_OFF_EVERY {
            let task = begin(&mut queue, step_of).expect("a step");
            end(&mut queue, &task);
            let name = task.object.key.name.to_string();
            if name != "z" {
                put_off.push((number / PUT_OFF_EVERY, number % PUT_OFF_EVERY, name));
            }
        }
        let expected = [(1, "crowded"), (2, "a"), (3, "crowded"), (4, "a")];
        assert_eq!(put_off, expected.map(|(rounds, name)| (rounds, 0, name.to_owned())));
    }

    #[test]
    fn others_join_a_step_or_are_added_and_what_has_failed_is_tried_alone() {
        let mut queue = queue(&["a", "b", "c", "d", "e"]);
        let first = begin(&mut queue, places).expect("a step");
        assert!(queue.others(&first).is_empty(), "nobody waits yet");
        assert!(begin(&mut queue, places).is_none());
        assert_eq!((queue.failed(&at("c")), queue.failed(&at("c"))), (0, 1));
        queue.give_back(&first, &foreign());
        let second = begin(&mut queue, places).expect("a step");
        assert_eq!(queue.others(&second), [at("d"), at("e")]);
        assert_eq!(queue.queued(), BTreeSet::from([at("c")]));
        queue.join(at("d"));
        queue.add([at("d"), at("e")]);
        assert_eq!(begin_all(&mut queue, adopts), ["c", "e"], "d takes part");
    }

    #[test]
    fn nobody_joins_a_step_that_failed_before() {
        let mut queue = queue(&["a", "b", "c"]);
        let first = begin(&mut queue, places).expect("a step");
        assert!(begin(&mut queue, places).is_none());
        queue.failed(&at("b"));
        queue.give_back(&first, &foreign());
        let second = begin(&mut queue, places).expect("a step");
        assert!(queue.others(&second).is_empty());
        queue.forget_failures(&at("b"));
        assert_eq!(queue.others(&second), [at("c")]);
        assert_eq!(queue.failed(&at("b")), 0, "it is counted anew");
    }
}
