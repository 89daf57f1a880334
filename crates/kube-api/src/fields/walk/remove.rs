//! Paths taken out of a value. Knows nothing of the reason.

use serde_json::{Map, Value};

use crate::fields::element::Element;
use crate::fields::set::FieldSet;
use crate::fields::shape::{Merging, Shape};

/// `value` without the members of `set`. What becomes empty by it becomes null.
pub(in super::super) fn remove(shape: Shape<'_>, value: &Value, set: &FieldSet) -> Value {
    match (shape.merging(value), value) {
        (Merging::Map(map), Value::Object(fields)) => {
            let mut rest = Map::new();
            for (name, inner) in fields {
                let element = Element::field(name);
                if !set.has(&element) {
                    let kept = match set.below(&element) {
                        Some(below) => remove(map.field(name), inner, below),
                        None => inner.clone(),
                    };
                    rest.insert(name.clone(), kept);
                }
            }
            if rest.is_empty() { Value::Null } else { rest.into() }
        }
        (Merging::List(list), Value::Array(items)) => {
            let mut rest = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let element = list.element(item, index);
                if !set.has(&element) {
                    rest.push(match set.below(&element) {
                        Some(below) => remove(list.item(), item, below),
                        None => item.clone(),
                    });
                }
            }
            if rest.is_empty() { Value::Null } else { rest.into() }
        }
        (Merging::Leaf | Merging::Map(_) | Merging::List(_), _) => value.clone(),
    }
}

/// The set with the fields added that a schema declares by name and that have members below them: a struct goes
/// with its last field, a map stays.
pub(in super::super) fn with_named_fields(shape: Shape<'_>, set: FieldSet) -> FieldSet {
    let named = set.into_branches().map(|mut branch| {
        if let Element::Field(name) = &branch.element
            && !branch.below.is_empty()
        {
            branch.is_member |= shape.declares(name);
        }
        branch.below = with_named_fields(shape.at(&branch.element), branch.below);
        branch
    });
    named.collect()
}
