//! Fields that an apply would take from other managers, and how the API server says so. Refuses to know who is right.

use std::collections::BTreeMap;

use super::managers::Manager;
use super::set::FieldSet;

/// One field that another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path of the field: `.spec.algorithm`.
    pub field: String,
    /// The text of the cause: `conflict with "a" using v1`.
    pub message: String,
    /// The other manager, as messages name it.
    manager: String,
}

/// The conflicts over `sets`, by manager.
pub(super) fn conflicts(sets: &BTreeMap<&Manager, FieldSet>) -> Vec<Conflict> {
    let mut found = Vec::new();
    for (manager, set) in sets {
        let manager = manager.to_string();
        set.each(&mut Vec::new(), &mut |path| {
            found.push(Conflict {
                field: path.iter().map(ToString::to_string).collect(),
                message: format!("conflict with {manager}"),
                manager: manager.clone(),
            });
        });
    }
    found
}

/// The message of the Status that refuses an apply.
pub fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!("Apply failed with 1 conflict: {}: {}", only.message, only.field);
    }
    let mut by_manager: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for conflict in conflicts {
        by_manager.entry(&conflict.manager).or_default().push(&conflict.field);
    }
    let lines: Vec<String> = by_manager
        .into_iter()
        .flat_map(|(manager, fields)| {
            std::iter::once(format!("conflicts with {manager}:"))
                .chain(fields.into_iter().map(|field| format!("- {field}")))
        })
        .collect();
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}
