//! Whose turn it is to write an object. Of several writes that depend on the same version, one succeeds, and all others
//! have been sent in vain: where many hold one object, most would. Holders that go release their reference last of all,
//! so that others that go too do so in the same write. Those who wait are served in the order in which they came. Pure;
//! decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::arrivals::Arrivals;
use crate::cluster::outcome::Task;
use crate::decide::Step;
use crate::object::{Key, KindName};

/// The objects that steps write.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Those that one under way writes.
    taken: BTreeSet<Key>,
    /// By object, those whose next step writes it.
    waiting: BTreeMap<Key, Arrivals>,
    /// Those with somebody who waits, and nobody who writes.
    open: Arrivals,
    /// By object, the holders that go and release it, once nobody has anything else to do.
    later: BTreeMap<Key, Arrivals>,
}

impl Turns {
    /// Whether the step may begin. Otherwise, its object is decided on again once it may. An object of another service
    /// is written by that one, which sees to its own turns.
    pub(super) fn take(&mut self, task: &Task, foreign: &BTreeSet<KindName>) -> bool {
        let Some(written) = written(task).filter(|written| !foreign.contains(&written.kind)) else {
            return true;
        };
        if self.taken.insert(written.clone()) {
            return true;
        }
        let waiting = self.waiting.entry(written.clone()).or_default();
        waiting.add(task.object.key.clone());
        false
    }

    /// Others that wait to write the object that this step writes, at most so many.
    pub(super) fn others(&mut self, task: &Task, most: usize) -> Vec<Key> {
        let Some(written) = written(task) else {
            return Vec::new();
        };
        let of = match releases(task) {
            true => &mut self.later,
            false => &mut self.waiting,
        };
        let Some(waiting) = of.get_mut(written) else {
            return Vec::new();
        };
        let others = std::iter::from_fn(|| waiting.pop_first()).take(most).collect();
        if waiting.is_empty() {
            of.remove(written);
        }
        others
    }

    /// Whether the step is put off: it releases a reference of a holder that goes.
    pub(super) fn put_off(&mut self, task: &Task, foreign: &BTreeSet<KindName>) -> bool {
        let written = written(task).filter(|written| releases(task) && !foreign.contains(&written.kind));
        if let Some(written) = written {
            let later = self.later.entry(written.clone()).or_default();
            later.add(task.object.key.clone());
        }
        written.is_some()
    }

    /// One of those whose step was put off, if it may be done now.
    pub(super) fn next_put_off(&mut self) -> Option<Key> {
        let mut later = self.later.keys();
        let written = later.find(|written| !self.taken.contains(*written))?.clone();
        let holders = self.later.get_mut(&written)?;
        let next = holders.pop_first();
        if holders.is_empty() {
            self.later.remove(&written);
        }
        next
    }

    /// The step is over.
    pub(super) fn give_back(&mut self, task: &Task) {
        if let Some(written) = written(task)
            && self.taken.remove(written)
            && self.waiting.contains_key(written)
        {
            self.open.add(written.clone());
        }
    }

    /// An object that has waited and is to be decided on again: the one that is written before those that hold it.
    pub(super) fn next(&mut self) -> Option<Key> {
        while let Some(written) = self.open.first().cloned() {
            let waiting = self
                .waiting
                .get_mut(&written)
                .filter(|_| !self.taken.contains(&written));
            let next = waiting.and_then(|waiting| match waiting.remove(&written) {
                true => Some(written.clone()),
                false => waiting.pop_first(),
            });
            if self.waiting.get(&written).is_some_and(Arrivals::is_empty) {
                self.waiting.remove(&written);
            }
            match next {
                Some(next) => return Some(next),
                None => self.open.remove(&written),
            };
        }
        None
    }
}

fn releases(task: &Task) -> bool {
    matches!(task.step, Step::Release(_)) && task.object.is_leaving()
}

/// The object that a step writes. A live holder waits before it releases, for longer than anybody may have the turn.
fn written(task: &Task) -> Option<&Key> {
    match &task.step {
        Step::Place { target, .. } => Some(&target.key),
        Step::Release(target) => Some(&target.key).filter(|_| releases(task)),
        Step::Adopt | Step::Request(_) | Step::Delete(_) | Step::Record(..) | Step::Keep(_) | Step::Free { .. } => {
            Some(&task.object.key)
        }
        Step::Hold { .. } | Step::Sweep | Step::CleanUp | Step::Wait(_) | Step::Rest(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::deletion::Phase;

    use super::*;
    use crate::decide::Seen;
    use crate::fixture::{key, live};
    use crate::object::{DeletionState, Object};

    fn object(name: &str, state: DeletionState) -> Object {
        Object {
            state,
            ..live(key("Network", name), &format!("uid-{name}"))
        }
    }

    fn task(name: &str, state: DeletionState, step: Step) -> Task {
        Task {
            object: object(name, state),
            target: None,
            step,
            others: Vec::new(),
        }
    }

    /// One of the holders of `target` that is leaving the cluster.
    fn releases(name: &str) -> Task {
        let target = Seen::of(&object("target", DeletionState::Deleting));
        task(name, DeletionState::Deleting, Step::Release(target))
    }

    fn records() -> Task {
        task(
            "target",
            DeletionState::Deleting,
            Step::Record(Phase::Draining, Vec::new()),
        )
    }

    fn none() -> BTreeSet<KindName> {
        BTreeSet::new()
    }

    #[test]
    fn of_those_that_write_one_object_one_does_at_a_time_and_none_is_forgotten() {
        let mut turns = Turns::default();
        assert!(turns.take(&releases("a"), &none()));
        assert!(!turns.take(&releases("b"), &none()));
        assert!(!turns.take(&releases("c"), &none()));
        assert_eq!(turns.next(), None, "a is not through");
        turns.give_back(&releases("a"));
        assert_eq!(turns.next(), Some(releases("b").object.key));
        assert!(turns.take(&releases("b"), &none()));
        assert_eq!(turns.next(), None, "b is not through");
        turns.give_back(&releases("b"));
        assert_eq!(turns.next(), Some(releases("c").object.key));
        assert_eq!(
            turns.next(),
            None,
            "c has nothing to write any more, and no turn is left"
        );
        assert!(turns.waiting.is_empty() && turns.open.is_empty() && turns.taken.is_empty());
    }

    #[test]
    fn those_who_wait_follow_one_that_has_nothing_to_write_any_more() {
        let mut turns = Turns::default();
        for name in ["a", "b", "c"] {
            turns.take(&releases(name), &none());
        }
        turns.give_back(&releases("a"));
        assert_eq!(turns.next(), Some(releases("b").object.key));
        assert_eq!(turns.next(), Some(releases("c").object.key));
    }

    /// As if the keys were an order: one that comes first in it and waits again and again would delay all others.
    #[test]
    fn those_who_wait_are_served_in_the_order_in_which_they_came() {
        let mut turns = Turns::default();
        for name in ["x", "c", "a", "b", "c"] {
            turns.take(&releases(name), &none());
        }
        turns.give_back(&releases("x"));
        for name in ["c", "a", "b"] {
            assert_eq!(turns.next(), Some(releases(name).object.key));
        }
        assert_eq!(turns.next(), None);
    }

    #[test]
    fn an_object_is_written_by_its_own_step_before_those_who_hold_it() {
        let mut turns = Turns::default();
        assert!(turns.take(&releases("a"), &none()));
        assert!(!turns.take(&releases("b"), &none()));
        assert!(!turns.take(&records(), &none()));
        turns.give_back(&releases("a"));
        assert_eq!(turns.next(), Some(records().object.key));
    }

    #[test]
    fn live_holders_that_wait_and_objects_of_other_services_have_no_turns() {
        let mut turns = Turns::default();
        let live = |name: &str| Task {
            object: object(name, DeletionState::Live),
            ..releases(name)
        };
        assert!(turns.take(&live("a"), &none()) && turns.take(&live("b"), &none()));
        let foreign = BTreeSet::from([live("a").object.key.kind]);
        assert!(turns.take(&releases("a"), &foreign) && turns.take(&releases("b"), &foreign));
    }
}
