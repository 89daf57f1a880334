//! One value merged into another. Refuses to remove anything: what an applied value no longer holds is the matter of
//! `remove`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::super::element::Element;
use super::super::shape::{ListShape, MapShape, Merging, Shape};
use super::{fields_of, is_bare, items_of};

/// `applied` merged into `live`: leaves of `applied` win, everything else of `live` stays. Lists keep the order of
/// `live` where `applied` does not say another.
pub(in super::super) fn merge(shape: Shape<'_>, live: &Value, applied: &Value) -> Value {
    merged(shape, Some(live), Some(applied)).unwrap_or_else(|| applied.clone())
}

/// The merged value; none where nothing is left to say.
fn merged(shape: Shape<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let whole = || applied.or(live).cloned();
    let typed = applied.filter(|value| !value.is_null()).or(live).or(applied)?;
    match shape.merging(typed) {
        Merging::Leaf => whole(),
        Merging::Map(map) => {
            let (live, applied) = (fields_of(live), fields_of(applied));
            if is_bare(live.map(Map::len), applied.map(Map::len)) {
                whole()
            } else {
                maps(map, live, applied)
            }
        }
        Merging::List(list) => {
            let (live, applied) = (items_of(live), items_of(applied));
            if is_bare(live.map(<[_]>::len), applied.map(<[_]>::len)) {
                whole()
            } else {
                lists(list, live.unwrap_or_default(), applied.unwrap_or_default())
            }
        }
    }
}

fn maps(map: MapShape<'_>, live: Option<&Map<String, Value>>, applied: Option<&Map<String, Value>>) -> Option<Value> {
    let mut out = Map::new();
    for name in live.into_iter().chain(applied).flat_map(Map::keys) {
        if out.contains_key(name) {
            continue;
        }
        let live = live.and_then(|fields| fields.get(name));
        let applied = applied.and_then(|fields| fields.get(name));
        if let Some(value) = merged(map.field(name), live, applied) {
            out.insert(name.clone(), value);
        }
    }
    (!out.is_empty()).then(|| out.into())
}

/// Entries in the order of `applied`, with those that only `live` has kept in their places between them.
fn lists(list: ListShape<'_>, live: &[Value], applied: &[Value]) -> Option<Value> {
    let keyed = |items: &[Value]| -> Vec<Element> {
        items
            .iter()
            .enumerate()
            .map(|(index, item)| list.element(item, index))
            .collect()
    };
    let (live_keys, applied_keys) = (keyed(live), keyed(applied));
    let mut live_entries: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for (key, item) in live_keys.iter().zip(live) {
        // Duplicates are not merged with the new entry.
        live_entries
            .entry(key)
            .and_modify(|entry| *entry = None)
            .or_insert(Some(item));
    }
    let applied_entries: BTreeSet<&Element> = applied_keys.iter().collect();
    let mut shared: VecDeque<&Element> = applied_keys
        .iter()
        .filter(|key| live_entries.contains_key(key))
        .collect();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(applied.len()));
    let (mut at_live, mut at_applied) = (0, 0);
    while at_live < live.len() || at_applied < applied.len() {
        let next_applied = applied_keys.get(at_applied);
        if let Some(key) = live_keys.get(at_live) {
            if !applied_entries.contains(key) {
                out.extend(merged(list.item(), Some(&live[at_live]), None));
                at_live += 1;
                continue;
            }
            let is_other = next_applied.is_some_and(|next| next != key);
            if is_other && shared.front().is_some_and(|next| *next != key) {
                // To be merged where `applied` has it.
                at_live += 1;
                continue;
            }
            if done.contains(key) || next_applied == Some(key) {
                at_live += 1;
            }
        }
        if let Some(key) = next_applied {
            let live_entry = live_entries.get(key).copied().flatten();
            out.extend(merged(list.item(), live_entry, Some(&applied[at_applied])));
            done.insert(key);
            if shared.front() == Some(&key) {
                shared.pop_front();
            }
            at_applied += 1;
        }
    }
    (!out.is_empty()).then(|| out.into())
}
