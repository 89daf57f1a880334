//! The walks over values: which paths a value sets, what two values differ in, how one merges into another, and how
//! paths are taken out of a value. Knows nothing of managers.

mod compare;
mod merge;
mod remove;

use serde_json::{Map, Value};

use super::element::Element;
use super::set::{Branch, FieldSet};
use super::shape::{ListShape, Merging, Shape};

pub(super) use compare::{Comparison, compare, compare_up_to, compare_within};
pub(super) use merge::merge;
pub(super) use remove::{remove, with_named_fields};

/// The paths that `value` sets: its leaves, and every entry of a list or map that merges.
pub(super) fn paths(shape: Shape<'_>, value: &Value) -> FieldSet {
    match (shape.merging(value), value) {
        (Merging::Map(map), Value::Object(fields)) => {
            let branch = |(name, inner): (&String, &Value)| {
                let is_leaf = matches!(map.field(name).merging(inner), Merging::Leaf);
                let is_bare = inner.is_null() || inner.as_object().is_some_and(Map::is_empty);
                Branch {
                    element: Element::field(name),
                    is_member: is_leaf || is_bare || !map.declares(name),
                    below: paths(map.field(name), inner),
                }
            };
            fields.iter().map(branch).collect()
        }
        (Merging::List(list), Value::Array(items)) => {
            let entries = entries(list, items);
            let branches = entries.chunk_by(|(a, _), (b, _)| a == b).map(|same| Branch {
                element: same[0].0.clone(),
                is_member: true,
                below: match same {
                    [(_, entry)] => paths(list.item(), entry),
                    _ => FieldSet::default(),
                },
            });
            branches.collect()
        }
        (Merging::Leaf | Merging::Map(_) | Merging::List(_), _) => FieldSet::default(),
    }
}

/// The entries of a list in the order of what tells them apart; those that are told apart by nothing are neighbors.
fn entries<'v>(list: ListShape<'_>, items: &'v [Value]) -> Vec<(Element, &'v Value)> {
    let entries = items.iter().enumerate();
    let mut entries: Vec<_> = entries.map(|(index, item)| (list.element(item, index), item)).collect();
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
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
