//! How many steps ask another service at a time: one that is silent keeps a step for as long as an answer may take, and
//! would otherwise have all of them, however many objects are deleted with one of its own. Pure; decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use super::arrivals::Arrivals;
use crate::cluster::outcome::Task;
use crate::decide::{Cause, Step};
use crate::object::{Key, KindName};

/// Few of all steps: the others go on beside a service that is silent.
const STEPS_MAX: usize = 4;

/// The steps that ask services, by their groups.
#[derive(Debug, Default)]
pub(super) struct PeerTurns {
    /// How many are under way.
    asking: BTreeMap<String, usize>,
    /// The objects whose next step asks it, in the order in which they came.
    waiting: BTreeMap<String, Arrivals>,
}

impl PeerTurns {
    /// Whether the step may begin. Otherwise, its object is decided on again once it may.
    pub(super) fn take(&mut self, task: &Task, foreign: &BTreeSet<KindName>) -> bool {
        let Some(group) = asked(task, foreign) else { return true };
        let asking = self.asking.entry(group.to_owned()).or_default();
        if *asking < STEPS_MAX {
            *asking += 1;
            return true;
        }
        let waiting = self.waiting.entry(group.to_owned()).or_default();
        waiting.add(task.object.key.clone());
        false
    }

    /// The step is over, or does not begin after all.
    pub(super) fn give_back(&mut self, task: &Task, foreign: &BTreeSet<KindName>) {
        let Some(group) = asked(task, foreign) else { return };
        if let Some(asking) = self.asking.get_mut(group) {
            *asking -= 1;
            if *asking == 0 {
                self.asking.remove(group);
            }
        }
    }

    /// An object that has waited, and is to be decided on again.
    pub(super) fn next(&mut self) -> Option<Key> {
        let asking = &self.asking;
        let is_free = |group: &str| asking.get(group).is_none_or(|asking| *asking < STEPS_MAX);
        let (group, waiting) = self.waiting.iter_mut().find(|(group, _)| is_free(group))?;
        let (group, next) = (group.clone(), waiting.pop_first());
        if waiting.is_empty() {
            self.waiting.remove(&group);
        }
        next
    }
}

/// The group of the service that a step asks.
fn asked<'t>(task: &'t Task, foreign: &BTreeSet<KindName>) -> Option<&'t str> {
    let object = &task.object;
    let kinds: Vec<&KindName> = match &task.step {
        Step::Place { target, .. }
        | Step::Request(Cause::Target { target, .. })
        | Step::Delete(Cause::Target { target, .. }) => vec![&target.key.kind],
        // A live holder reads everything that its fields name.
        Step::Release(target) if !object.is_leaving() => iter::once(&target.key.kind)
            .chain(object.edges.iter().map(|edge| &edge.target.kind))
            .collect(),
        Step::Release(target) => vec![&target.key.kind],
        Step::Free { confirm } => confirm.iter().map(|key| &key.kind).collect(),
        // What archived objects hold is released there.
        Step::Sweep => vec![&object.key.kind],
        _ => Vec::new(),
    };
    let kind = kinds.into_iter().find(|kind| foreign.contains(kind))?;
    Some(&kind.group)
}
