//! What two values differ in, as sets of paths. Knows nothing of who made the difference.

use std::cell::{Cell, LazyCell};

use serde_json::{Map, Value};

use super::{entries, fields_of, is_bare, items_of};
use crate::fields::TooLarge;
use crate::fields::element::Element;
use crate::fields::set::{Branch, FieldSet};
use crate::fields::shape::{ListShape, MapShape, Merging, Shape};

/// What a value differs in from another. No path is in more than one of the sets.
#[derive(Debug, Default)]
pub(in super::super) struct Comparison {
    pub(in super::super) removed: FieldSet,
    pub(in super::super) modified: FieldSet,
    pub(in super::super) added: FieldSet,
}

impl Comparison {
    /// All paths that differ.
    pub(in super::super) fn all(self) -> FieldSet {
        self.removed.union(self.modified).union(self.added)
    }
}

/// Compares two whole objects.
pub(in super::super) fn compare(shape: Shape<'_>, before: &Value, after: &Value) -> Comparison {
    compare_within(shape, before, after, None)
}

/// Compares two whole objects, with regard to these paths alone where they are given.
pub(in super::super) fn compare_within(
    shape: Shape<'_>,
    before: &Value,
    after: &Value,
    scope: Option<&FieldSet>,
) -> Comparison {
    let room = TextBudget::new(usize::MAX);
    let mut differences = Differences::new(scope, &room);
    inside(shape, Some(before), Some(after), &mut differences);
    differences.into()
}

/// Compares two whole objects.
///
/// # Errors
/// The paths that were modified and added have more text than that. No more of them are gathered.
pub(in super::super) fn compare_up_to(
    text_bytes_max: usize,
    shape: Shape<'_>,
    before: &Value,
    after: &Value,
) -> Result<Comparison, TooLarge> {
    let room = TextBudget::new(text_bytes_max);
    let mut differences = Differences::new(None, &room);
    inside(shape, Some(before), Some(after), &mut differences);
    match room.is_spent() {
        true => Err(TooLarge),
        false => Ok(differences.into()),
    }
}

/// How much text the paths that are found may still have; nothing once there was more.
struct TextBudget(Cell<Option<usize>>);

impl TextBudget {
    fn new(text_bytes: usize) -> Self {
        Self(Cell::new(Some(text_bytes)))
    }

    fn take(&self, branch: &Branch) {
        // With its braces, and without a comma: the last one has none.
        let bytes = branch.own_bytes() + 1;
        self.0.set(self.0.get().and_then(|left| left.checked_sub(bytes)));
    }

    fn is_spent(&self) -> bool {
        self.0.get().is_none()
    }
}

/// What happened to the value at one path itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Removed,
    Modified,
    Added,
}

/// What was found so far below one path.
struct Differences<'s> {
    /// Of the paths below it, those that matter; all where there is none.
    scope: Option<&'s FieldSet>,
    room: &'s TextBudget,
    removed: Vec<Branch>,
    modified: Vec<Branch>,
    added: Vec<Branch>,
}

impl From<Differences<'_>> for Comparison {
    fn from(differences: Differences<'_>) -> Self {
        Self {
            removed: differences.removed.into_iter().collect(),
            modified: differences.modified.into_iter().collect(),
            added: differences.added.into_iter().collect(),
        }
    }
}

impl<'s> Differences<'s> {
    fn new(scope: Option<&'s FieldSet>, room: &'s TextBudget) -> Self {
        Self {
            scope,
            room,
            removed: Vec::new(),
            modified: Vec::new(),
            added: Vec::new(),
        }
    }

    fn at(
        &mut self,
        element: impl FnOnce() -> Element,
        shape: Shape<'_>,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        if self.room.is_spent() {
            return;
        }
        // Most values do not differ, and need none.
        let element = LazyCell::new(element);
        let mut inner = Differences::new(None, self.room);
        if let Some(scope) = self.scope {
            inner.scope = scope.below(&element);
            if inner.scope.is_none() {
                if scope.has(&element) {
                    self.note(own_change(shape, before, after), &element);
                }
                return;
            }
        }
        let change = inside(shape, before, after, &mut inner);
        let Comparison {
            removed,
            modified,
            added,
        } = inner.into();
        for (below, which) in [
            (removed, Change::Removed),
            (modified, Change::Modified),
            (added, Change::Added),
        ] {
            let is_member = change == Some(which);
            if is_member || !below.is_empty() {
                let branch = Branch {
                    element: Element::clone(&element),
                    is_member,
                    below,
                };
                self.push(which, branch);
            }
        }
    }

    fn push(&mut self, change: Change, branch: Branch) {
        let found = match change {
            Change::Removed => {
                self.removed.push(branch);
                return;
            }
            Change::Modified => &mut self.modified,
            Change::Added => &mut self.added,
        };
        self.room.take(&branch);
        found.push(branch);
    }

    fn is_of_nothing(&self) -> bool {
        self.scope.is_some_and(FieldSet::is_empty)
    }

    /// Something happened to an entry as a whole.
    fn note(&mut self, change: Option<Change>, element: &Element) {
        let Some(change) = change else { return };
        let branch = Branch {
            element: element.clone(),
            is_member: true,
            below: FieldSet::default(),
        };
        self.push(change, branch);
    }
}

/// What happened to a value itself, whatever is inside.
fn own_change(shape: Shape<'_>, before: Option<&Value>, after: Option<&Value>) -> Option<Change> {
    let (nothing, room) = (FieldSet::default(), TextBudget::new(usize::MAX));
    let mut inner = Differences::new(Some(&nothing), &room);
    inside(shape, before, after, &mut inner)
}

/// Compares what is inside two values, of which one may be absent. Gives what happened to the value itself.
fn inside(
    shape: Shape<'_>,
    before: Option<&Value>,
    after: Option<&Value>,
    comparison: &mut Differences<'_>,
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
fn sides<'v>(before: Option<&'v Value>, after: Option<&'v Value>) -> impl Iterator<Item = &'v Value> {
    let (first, second) = match (before, after) {
        (Some(before), Some(after)) if after.is_null() => (Some(before), None),
        (Some(before), Some(after)) if before.is_null() || same_kind(before, after) => (Some(after), None),
        both => both,
    };
    first.into_iter().chain(second)
}

fn same_kind(a: &Value, b: &Value) -> bool {
    a.is_object() == b.is_object() && a.is_array() == b.is_array()
}

fn maps(
    map: MapShape<'_>,
    before: Option<&Map<String, Value>>,
    after: Option<&Map<String, Value>>,
    comparison: &mut Differences<'_>,
) {
    if comparison.is_of_nothing() {
        return;
    }
    let mut names: Vec<&String> = before.into_iter().chain(after).flat_map(Map::keys).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let before = before.and_then(|fields| fields.get(name));
        let after = after.and_then(|fields| fields.get(name));
        comparison.at(|| Element::field(name), map.field(name), before, after);
    }
}

/// Entries that occur more than once are compared as if they were one value. An element takes more than its entry, and
/// most lists are as they were.
fn lists(list: ListShape<'_>, before: &[Value], after: &[Value], comparison: &mut Differences<'_>) {
    if comparison.is_of_nothing() || before == after {
        return;
    }
    let (before, after) = (entries(list, before), entries(list, after));
    let mut elements: Vec<&Element> = before.iter().chain(&after).map(|(element, _)| element).collect();
    elements.sort_unstable();
    elements.dedup();
    for element in elements {
        let (old, new) = (all_of(&before, element), all_of(&after, element));
        let (first_old, first_new) = (
            old.first().map(|(_, value)| *value),
            new.first().map(|(_, value)| *value),
        );
        match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => comparison.at(|| element.clone(), list.item(), first_old, first_new),
            (2.., 2..) if old == new => {}
            (2.., 2..) => comparison.note(Some(Change::Modified), element),
            (2.., _) => {
                if first_new.is_some() {
                    comparison.at(|| element.clone(), list.item(), None, first_new);
                }
                comparison.note(Some(Change::Removed), element);
            }
            (_, 2..) => {
                if first_old.is_some() {
                    comparison.at(|| element.clone(), list.item(), first_old, None);
                }
                comparison.note(Some(Change::Added), element);
            }
        }
    }
}

/// The entries of one element.
fn all_of<'a, 'v>(entries: &'a [(Element, &'v Value)], element: &Element) -> &'a [(Element, &'v Value)] {
    let begin = entries.partition_point(|(other, _)| other < element);
    let count = entries[begin..].partition_point(|(other, _)| other == element);
    &entries[begin..begin + count]
}
