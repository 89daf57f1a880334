//! Conflicts of an apply: fields that other managers own, with the API server's message.

use std::collections::BTreeMap;
use std::fmt;

use super::element::Element;
use super::managers::Manager;
use super::set::FieldSet;
use crate::size::note;

/// One field that another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path of the field: `.spec.algorithm`.
    pub field: String,
    /// The text of the cause: `conflict with "a" using v1`.
    pub message: String,
}

/// All conflicts of an apply, at least one. Of thousands the first are told, and of long paths the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts {
    /// Those that are told, by manager.
    pub reported: Vec<Conflict>,
    /// The message of the Status that refuses the apply.
    pub message: String,
}

/// The conflicts over `sets`, by manager.
pub(super) fn conflicts(sets: &BTreeMap<&Manager, FieldSet>) -> Conflicts {
    let (mut reported, mut lines, mut count) = (Vec::new(), Vec::new(), 0);
    let mut fields = Vec::new();
    for (manager, set) in sets {
        let (manager, before) = (manager.to_string(), fields.len());
        set.each(&mut Vec::new(), &mut |path| {
            count += 1;
            note(&mut fields, &Path(path));
        });
        let fields = fields.get(before..).unwrap_or_default();
        if !fields.is_empty() {
            lines.push(format!("conflicts with {manager}:"));
        }
        lines.extend(fields.iter().map(|field| format!("- {field}")));
        reported.extend(fields.iter().map(|field| Conflict {
            field: field.clone(),
            message: format!("conflict with {manager}"),
        }));
    }
    let message = match reported.as_slice() {
        [only] => format!("Apply failed with 1 conflict: {}: {}", only.message, only.field),
        _ => format!("Apply failed with {count} conflicts: {}", lines.join("\n")),
    };
    Conflicts { reported, message }
}

/// A path as messages write it.
struct Path<'a>(&'a [&'a Element]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| fmt::Display::fmt(element, f))
    }
}
