//! One value merged into another. Refuses to remove anything: what an applied value no longer holds is the matter of
//! `remove`.

use serde_json::{Map, Value};

use crate::fields::element::Element;
use crate::fields::shape::{ListShape, MapShape, Merging, Shape};

/// `applied` merged into `live`: leaves of `applied` win, everything else of `live` stays. Lists keep the order of
/// `live` where `applied` does not say another.
pub(in super::super) fn merge(shape: Shape<'_>, live: Value, applied: Value) -> Value {
    let typed = if applied.is_null() { &live } else { &applied };
    match (shape.merging(typed), live, applied) {
        (Merging::Map(map), Value::Object(live), Value::Object(applied))
            if !(live.is_empty() && applied.is_empty()) =>
        {
            maps(map, live, applied)
        }
        (Merging::List(list), Value::Array(live), Value::Array(applied))
            if !(live.is_empty() && applied.is_empty()) =>
        {
            lists(list, live, applied).into()
        }
        // What one of the two has inside stays where the other has nothing.
        (Merging::Map(_), Value::Object(live), Value::Null) if !live.is_empty() => live.into(),
        (Merging::List(_), Value::Array(live), Value::Null) if !live.is_empty() => live.into(),
        (_, _, applied) => applied,
    }
}

fn maps(map: MapShape<'_>, mut live: Map<String, Value>, applied: Map<String, Value>) -> Value {
    for (name, value) in applied {
        match live.get_mut(&name) {
            Some(known) => *known = merge(map.field(&name), known.take(), value),
            None => {
                live.insert(name, value);
            }
        }
    }
    live.into()
}

/// What tells the entries of a list apart, and where each of them is.
struct Keys {
    keys: Vec<Element>,
    /// Positions, in the order of the keys.
    sorted: Vec<usize>,
}

impl Keys {
    fn of(list: ListShape<'_>, items: &[Value]) -> Self {
        let keys: Vec<Element> = items
            .iter()
            .enumerate()
            .map(|(index, item)| list.element(item, index))
            .collect();
        let mut sorted: Vec<usize> = (0..keys.len()).collect();
        sorted.sort_by(|a, b| keys[*a].cmp(&keys[*b]));
        Self { keys, sorted }
    }

    /// Where an entry of this key is, the first of several, and whether it is the only one.
    fn find(&self, key: &Element) -> Option<(usize, bool)> {
        let at = self.sorted.partition_point(|position| self.keys[*position] < *key);
        let is_here = |at: usize| self.sorted.get(at).filter(|position| self.keys[**position] == *key);
        let first = is_here(at)?;
        Some((*first, is_here(at + 1).is_none()))
    }
}

/// Entries in the order of `applied`, with those that only `live` has kept in their places between them.
fn lists(list: ListShape<'_>, live: Vec<Value>, mut applied: Vec<Value>) -> Vec<Value> {
    let (live_keys, applied_keys) = (Keys::of(list, &live), Keys::of(list, &applied));
    let mut live: Vec<Option<Value>> = live.into_iter().map(Some).collect();
    let mut out = Vec::with_capacity(live.len().max(applied.len()));
    let (mut at_live, mut at_applied, mut at_shared) = (0, 0, 0);
    while at_live < live.len() || at_applied < applied.len() {
        let next_applied = applied_keys.keys.get(at_applied);
        // The next entry of `applied` that `live` has as well.
        at_shared = at_shared.max(at_applied);
        while applied_keys
            .keys
            .get(at_shared)
            .is_some_and(|key| live_keys.find(key).is_none())
        {
            at_shared += 1;
        }
        if let Some(key) = live_keys.keys.get(at_live) {
            let Some((first_applied, _)) = applied_keys.find(key) else {
                out.extend(live[at_live].take());
                at_live += 1;
                continue;
            };
            let is_other = next_applied.is_some_and(|next| next != key);
            if is_other && applied_keys.keys.get(at_shared).is_some_and(|next| next != key) {
                // To be merged where `applied` has it.
                at_live += 1;
                continue;
            }
            if first_applied < at_applied || next_applied == Some(key) {
                at_live += 1;
            }
        }
        if let Some(key) = next_applied {
            // Duplicates are not merged with the new entry.
            let known = live_keys.find(key).filter(|(_, is_only)| *is_only);
            let known = known.and_then(|(position, _)| live[position].take());
            let applied = applied[at_applied].take();
            out.push(match known {
                Some(known) => merge(list.item(), known, applied),
                None => applied,
            });
            at_applied += 1;
        }
    }
    out
}
