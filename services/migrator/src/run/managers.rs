//! Entries of `metadata.managedFields` that name a version which the definition no longer declares. An API server
//! forgets the owner of such fields at the next write; under a version that is declared, the owner keeps them.
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::Value;

/// The versions of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Every `apiVersion`: `michelangelo.api/v2`.
    pub all: BTreeSet<String>,
    /// That of the stored version.
    pub storage: String,
}

/// The same entries, with those of versions that are gone under the stored one; `None` where there are none. Fields
/// that one manager owns under both are put together.
pub fn cleaned(entries: &[ManagedFieldsEntry], declared: &Declared) -> Option<Vec<ManagedFieldsEntry>> {
    let is_gone = |entry: &ManagedFieldsEntry| {
        let version = entry.api_version.as_ref();
        version.is_some_and(|version| !declared.all.contains(version))
    };
    if !entries.iter().any(is_gone) {
        return None;
    }
    let mut kept: Vec<ManagedFieldsEntry> = Vec::new();
    for entry in entries {
        let mut entry = entry.clone();
        if is_gone(&entry) {
            entry.api_version = Some(declared.storage.clone());
        }
        match kept.iter_mut().find(|one| is_same_owner(one, &entry)) {
            Some(one) => join(one, entry),
            None => kept.push(entry),
        }
    }
    Some(kept)
}

fn is_same_owner(one: &ManagedFieldsEntry, other: &ManagedFieldsEntry) -> bool {
    let owner = |entry: &ManagedFieldsEntry| {
        let ManagedFieldsEntry {
            manager,
            operation,
            api_version,
            subresource,
            ..
        } = entry.clone();
        (manager, operation, api_version, subresource)
    };
    owner(one) == owner(other)
}

fn join(one: &mut ManagedFieldsEntry, other: ManagedFieldsEntry) {
    if other.time.as_ref().map(|time| time.0) > one.time.as_ref().map(|time| time.0) {
        one.time = other.time;
    }
    match (&mut one.fields_v1, other.fields_v1) {
        (Some(fields), Some(others)) => unite(&mut fields.0, others.0),
        (fields @ None, others) => *fields = others,
        (Some(_), None) => {}
    }
}

/// Adds the paths of one set to another one.
fn unite(fields: &mut Value, others: Value) {
    let (Value::Object(fields), Value::Object(others)) = (fields, others) else {
        return;
    };
    for (name, below) in others {
        match fields.get_mut(&name) {
            Some(known) => unite(known, below),
            None => {
                fields.insert(name, below);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entries(json: Value) -> Vec<ManagedFieldsEntry> {
        serde_json::from_value(json).expect("entries")
    }

    fn declared() -> Declared {
        Declared {
            all: ["zoo/v2", "zoo/v3"].map(str::to_owned).into(),
            storage: "zoo/v3".to_owned(),
        }
    }

    #[test]
    fn entries_of_declared_versions_stay_as_they_are() {
        let own = entries(json!([{"manager": "a", "operation": "Update", "apiVersion": "zoo/v2"}]));
        assert_eq!(cleaned(&own, &declared()), None);
        assert_eq!(cleaned(&[], &declared()), None);
    }

    #[test]
    fn an_owner_under_a_version_that_is_gone_keeps_its_fields() {
        let before = entries(json!([
            {"manager": "a", "operation": "Apply", "apiVersion": "zoo/v1", "fieldsV1": {"f:spec": {"f:x": {}}}},
            {"manager": "b", "operation": "Update", "apiVersion": "zoo/v2", "fieldsV1": {"f:spec": {"f:y": {}}}},
        ]));
        let mut after = before.clone();
        after[0].api_version = Some("zoo/v3".to_owned());
        assert_eq!(cleaned(&before, &declared()), Some(after));
    }

    #[test]
    fn what_one_owner_has_under_both_versions_is_put_together() {
        let before = entries(json!([
            {"manager": "a", "operation": "Apply", "apiVersion": "zoo/v1", "fieldsV1": {"f:spec": {"f:x": {}}}},
            {"manager": "a", "operation": "Apply", "apiVersion": "zoo/v3", "fieldsV1": {"f:spec": {"f:y": {}}}},
            {"manager": "a", "operation": "Apply", "apiVersion": "zoo/v3", "subresource": "status", "fieldsV1": {}},
        ]));
        let after = cleaned(&before, &declared()).expect("changed");
        assert_eq!(after.len(), 2);
        let fields = after[0].fields_v1.as_ref().expect("fields");
        assert_eq!(fields.0, json!({"f:spec": {"f:x": {}, "f:y": {}}}));
    }
}
