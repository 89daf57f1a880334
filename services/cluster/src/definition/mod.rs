//! CustomResourceDefinitions: what a valid one looks like, which names it is granted, which resources it defines. Pure
//! functions over its JSON, which know nothing of storage and requests.

mod serve;

mod selectable;

mod check;

mod names;

use kindex_kube_api::condition::{self, Condition, ConditionStatus};
use serde_json::{Value, json};

pub(crate) use check::problems;
pub(crate) use names::{Claims, settle};
pub(crate) use serve::{is_established, resources};

use serve::versions;

/// Keeps a definition until its objects are gone.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fills what a manifest may leave out: the singular, the list kind, the conversion strategy.
pub(crate) fn apply_defaults(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
            names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
        }
    }
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
}

/// Notes the storage version among the versions that objects may be stored in.
pub(crate) fn record_stored_version(definition: &mut Value) {
    let storage = versions(definition)
        .find(|version| version["storage"] == true)
        .map(|version| version["name"].clone());
    let Some(storage) = storage else { return };
    match definition["status"]["storedVersions"].as_array_mut() {
        Some(stored) if stored.contains(&storage) => {}
        Some(stored) => stored.push(storage),
        None => definition["status"]["storedVersions"] = json!([storage]),
    }
}

/// Marks a definition that waits for its objects to be deleted.
pub(crate) fn mark_terminating(definition: &mut Value, now: &str) {
    let terminating = Condition {
        r#type: "Terminating",
        status: ConditionStatus::True,
        reason: "InstanceDeletionPending",
        message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    };
    condition::set(&mut definition["status"]["conditions"], &terminating, now);
}

#[cfg(test)]
mod tests;
