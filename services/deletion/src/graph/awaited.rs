//! Whom an object that is leaving the cluster waits for though they do not have its reference, and who waits for whom
//! over any number of others.

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::iter;

use kindex_model::reference_name::ReferenceName;

use super::Graph;
use crate::decide::MissingReference;
use crate::object::{DeletionState, Edge, Key, Object};

#[cfg(test)]
mod tests;

/// Names and references that one search looks at.
const LOOKED_AT_MAX: usize = 4096;

impl Graph {
    /// Those who name an object that is leaving the cluster, and hold no reference on it. Whatever stays waits for
    /// nobody.
    pub(super) fn missing(&self, object: &Object) -> Vec<MissingReference> {
        if !object.is_leaving() {
            return Vec::new();
        }
        let namers = self.namers.get(&object.key).into_iter().flatten();
        let namers = namers.filter(|key| **key != object.key);
        let placed: HashSet<&str> = object.references.iter().map(ReferenceName::uid).collect();
        let has_reference = |holder: &Object| {
            let name = || holder.reference_name();
            placed.contains(holder.uid.as_str()) && name().is_some_and(|name| object.references.contains(&name))
        };
        // If a holder waited for the object, and that one for it in turn, although it does not have its reference,
        // there would be nothing that anybody could release: both would wait for ever.
        let waiting = LazyCell::new(|| self.waiting_for(object));
        let waits = |holder: &Object| holder.state == DeletionState::Deleting && waiting.contains(&holder.key);
        let missing = namers.filter_map(|key| self.objects.get(key));
        let missing = missing.filter(|holder| !has_reference(holder) && !waits(holder));
        let named = missing.map(|holder| {
            let edges = || holder.edges.iter().filter(|edge| edge.target == object.key);
            MissingReference {
                holder: holder.key.clone(),
                owned: edges().any(|edge| edge.owned),
                cascades: edges().any(Edge::cascades),
                stays: holder.state == DeletionState::Live && self.has_former(holder),
            }
        });
        named.collect()
    }

    /// The objects leaving the cluster that do not have the reference of a holder which names them, where that holder
    /// is this object or waits for it: whether they wait for the holder depends on this object too.
    pub(super) fn depending_on(&self, object: &Object) -> BTreeSet<Key> {
        let waiting = self.waiting_for(object).into_iter();
        let waiting = waiting.filter_map(|key| self.objects.get(key));
        let mut depending = BTreeSet::new();
        for holder in iter::once(object).chain(waiting) {
            if let Some(name) = holder.reference_name() {
                depending.extend(self.unheld(&holder.edges, &name).into_iter().cloned());
            }
        }
        depending
    }

    /// The objects leaving the cluster that wait for another one. The search goes from a holder to what it holds: very
    /// many may hold one object, but none names very many.
    fn waiting_for<'g>(&'g self, object: &'g Object) -> BTreeSet<&'g Key> {
        let (mut waiting, mut next) = (BTreeSet::new(), VecDeque::from([object]));
        let mut left = LOOKED_AT_MAX;
        while let Some(awaited) = next.pop_front() {
            for other in self.held_by(awaited).take(left) {
                left -= 1;
                if other.is_leaving() && other.key != object.key && waiting.insert(&other.key) {
                    next.push_back(other);
                }
            }
        }
        waiting
    }

    /// The objects that have the reference of a holder, and those that it names and goes with.
    fn held_by<'g>(&'g self, holder: &'g Object) -> impl Iterator<Item = &'g Object> {
        let targets = holder.reference_name().and_then(|name| self.targets.get(&name));
        let goes_with = holder.edges.iter().filter(|edge| edge.owned || edge.cascades());
        let keys = targets.into_iter().flatten().chain(goes_with.map(|edge| &edge.target));
        keys.filter_map(|key| self.objects.get(key))
    }
}
