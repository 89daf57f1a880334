//! What two values differ in, as sets of paths. Refuses to know who made the difference.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::element::Element;
use super::super::set::FieldSet;
use super::super::shape::{ListShape, MapShape, Merging, Shape};
use super::{entries, fields_of, is_bare, items_of};

/// What a value differs in from another. No path is in more than one of the sets.
#[derive(Debug, Default)]
pub(in super::super) struct Comparison {
    pub(in super::super) removed: FieldSet,
    pub(in super::super) modified: FieldSet,
    pub(in super::super) added: FieldSet,
}

/// Compares two whole objects.
pub(in super::super) fn compare(shape: Shape<'_>, before: &Value, after: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    inside(shape, Some(before), Some(after), &mut comparison);
    comparison
}

/// What happened to the value at one path itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Removed,
    Modified,
    Added,
}

impl Comparison {
    fn set(&mut self, change: Change) -> &mut FieldSet {
        match change {
            Change::Removed => &mut self.removed,
            Change::Modified => &mut self.modified,
            Change::Added => &mut self.added,
        }
    }

    fn at(&mut self, element: &Element, shape: Shape<'_>, before: Option<&Value>, after: Option<&Value>) {
        let mut inner = Self::default();
        if let Some(change) = inside(shape, before, after, &mut inner) {
            self.set(change).insert(element.clone());
        }
        self.removed.put_below(element, inner.removed);
        self.modified.put_below(element, inner.modified);
        self.added.put_below(element, inner.added);
    }
}

/// Compares what is inside two values, of which one may be absent. Gives what happened to the value itself.
fn inside(
    shape: Shape<'_>,
    before: Option<&Value>,
    after: Option<&Value>,
    comparison: &mut Comparison,
) -> Option<Change> {
    let presence = match (before, after) {
        (None, Some(_)) => Some(Change::Added),
        (Some(_), None) => Some(Change::Removed),
        (Some(_), Some(_)) | (None, None) => None,
    };
    let leaf = || presence.or_else(|| (before != after).then_some(Change::Modified));
    let mut own = presence;
    for side in sides(before, after) {
        match shape.merging(side) {
            Merging::Leaf => own = own.or_else(leaf),
            Merging::Map(map) => {
                let (before, after) = (fields_of(before), fields_of(after));
                if is_bare(before.map(Map::len), after.map(Map::len)) {
                    own = own.or_else(leaf);
                } else {
                    maps(map, before, after, comparison);
                }
            }
            Merging::List(list) => {
                let (before, after) = (items_of(before), items_of(after));
                if is_bare(before.map(<[_]>::len), after.map(<[_]>::len)) {
                    own = own.or_else(leaf);
                } else {
                    lists(list, before.unwrap_or_default(), after.unwrap_or_default(), comparison);
                }
            }
        }
    }
    own
}

/// The values whose types the comparison follows: both where the JSON type has changed, else the one that is more
/// than null.
fn sides<'v>(before: Option<&'v Value>, after: Option<&'v Value>) -> Vec<&'v Value> {
    match (before, after) {
        (Some(before), Some(after)) if after.is_null() => vec![before],
        (Some(before), Some(after)) if before.is_null() || same_kind(before, after) => vec![after],
        _ => before.into_iter().chain(after).collect(),
    }
}

fn same_kind(a: &Value, b: &Value) -> bool {
    a.is_object() == b.is_object() && a.is_array() == b.is_array()
}

fn maps(
    map: MapShape<'_>,
    before: Option<&Map<String, Value>>,
    after: Option<&Map<String, Value>>,
    comparison: &mut Comparison,
) {
    let names: BTreeSet<&String> = before.into_iter().chain(after).flat_map(Map::keys).collect();
    for name in names {
        let before = before.and_then(|fields| fields.get(name));
        let after = after.and_then(|fields| fields.get(name));
        comparison.at(&Element::Field(name.clone()), map.field(name), before, after);
    }
}

/// Entries that occur more than once are compared as if they were one value.
fn lists(list: ListShape<'_>, before: &[Value], after: &[Value], comparison: &mut Comparison) {
    let (before, after) = (entries(list, before), entries(list, after));
    let elements: BTreeSet<&Element> = before.keys().chain(after.keys()).collect();
    for element in elements {
        let old = before.get(element).map(Vec::as_slice).unwrap_or_default();
        let new = after.get(element).map(Vec::as_slice).unwrap_or_default();
        let (first_old, first_new) = (old.first().copied(), new.first().copied());
        match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => comparison.at(element, list.item(), first_old, first_new),
            (2.., 2..) if old == new => {}
            (2.., 2..) => comparison.modified.insert(element.clone()),
            (2.., _) => {
                if first_new.is_some() {
                    comparison.at(element, list.item(), None, first_new);
                }
                comparison.removed.insert(element.clone());
            }
            (_, 2..) => {
                if first_old.is_some() {
                    comparison.at(element, list.item(), first_old, None);
                }
                comparison.added.insert(element.clone());
            }
        }
    }
}
