//! The walks over values: which paths a value sets, what two values differ in, how one merges into another, and how
//! paths are taken out of a value. Refuses to know managers.

mod compare;
mod merge;
mod remove;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::Element;
use super::set::FieldSet;
use super::shape::{ListShape, Merging, Shape};

pub(super) use compare::{Comparison, compare};
pub(super) use merge::merge;
pub(super) use remove::{remove, with_named_fields};

/// The paths that `value` sets: its leaves, and every entry of a list or map that merges.
pub(super) fn paths(shape: Shape<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    match (shape.merging(value), value) {
        (Merging::Map(map), Value::Object(fields)) => {
            for (name, inner) in fields {
                let element = Element::Field(name.clone());
                let is_leaf = matches!(map.field(name).merging(inner), Merging::Leaf);
                let is_bare = inner.is_null() || inner.as_object().is_some_and(Map::is_empty);
                if is_leaf || is_bare || !map.declares(name) {
                    set.insert(element.clone());
                }
                set.put_below(&element, paths(map.field(name), inner));
            }
        }
        (Merging::List(list), Value::Array(items)) => {
            for (element, entries) in entries(list, items) {
                if let [entry] = entries.as_slice() {
                    set.put_below(&element, paths(list.item(), entry));
                }
                set.insert(element);
            }
        }
        (Merging::Leaf | Merging::Map(_) | Merging::List(_), _) => {}
    }
    set
}

/// The entries of a list by what tells them apart; more than one where the list has duplicates.
fn entries<'v>(list: ListShape<'_>, items: &'v [Value]) -> BTreeMap<Element, Vec<&'v Value>> {
    let mut entries: BTreeMap<Element, Vec<&Value>> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        entries.entry(list.element(item, index)).or_default().push(item);
    }
    entries
}

fn fields_of(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn items_of(value: Option<&Value>) -> Option<&[Value]> {
    value.and_then(Value::as_array).map(Vec::as_slice)
}

/// Whether neither side has anything inside: then the value is taken as a whole, so that null and empty stay apart.
fn is_bare(before: Option<usize>, after: Option<usize>) -> bool {
    before.unwrap_or(0) == 0 && after.unwrap_or(0) == 0
}

#[cfg(test)]
mod tests;
