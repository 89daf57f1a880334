//! What is known of an object from what its service says of it and of the references on it.

use std::collections::BTreeSet;

use kindex_model::deletion::Phase;
use kindex_model::object::ResourceVersion;
use kindex_model::reference_name::ReferenceName;
use serde_json::Value;

use crate::object::{DeletionState, Key, Names, Object, Released};

/// What is known of an object from the answer about its references. Its service judges whether it is deleted or leaves
/// for the archive. What it owns here goes as what cascades does: it drains only once it is released.
pub(super) fn object(key: &Key, number: u64, answer: &Value) -> Option<Object> {
    let uid = answer["target"]["uid"].as_str().filter(|uid| !uid.is_empty())?;
    let is_deleted = match answer["target"]["state"].as_str()? {
        "Live" | "Archived" => false,
        "Deleting" => true,
        _ => return None,
    };
    let names = answer["references"]
        .as_array()?
        .iter()
        .filter_map(|held| held["name"].as_str());
    let references: BTreeSet<_> = names.filter_map(ReferenceName::of_finalizer).collect();
    // The guard is its service's, whatever it is called there.
    let guard = Names::of_service(&key.kind.group).finalizer;
    Some(Object {
        key: key.clone(),
        uid: uid.to_owned(),
        version: ResourceVersion(number),
        state: if is_deleted {
            DeletionState::Deleting
        } else {
            DeletionState::Live
        },
        requested: false,
        immutable: false,
        finalizers: vec![guard],
        guarded: true,
        references,
        others: BTreeSet::new(),
        phase: is_deleted.then_some(Phase::Draining),
        since: None,
        released: Released::default(),
        refused: false,
        edges: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::key_in;

    fn network() -> Key {
        key_in("region.example.com", "Network", "blue")
    }

    fn answer(state: &str) -> Value {
        let held = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
        json!({"target": {"uid": "u", "state": state}, "references": [{"name": held}]})
    }

    #[test]
    fn an_object_is_as_far_as_its_service_says() {
        let live = object(&network(), 7, &answer("Live")).expect("an object");
        assert_eq!((live.state, live.phase), (DeletionState::Live, None));
        assert_eq!((live.version, live.references.len()), (ResourceVersion(7), 1));
        let archived = object(&network(), 7, &answer("Archived")).expect("an object");
        assert_eq!(archived, live, "who is archived is held as before");
        let deleted = object(&network(), 7, &answer("Deleting")).expect("an object");
        assert!(deleted.is_leaving() && deleted.phase.is_some());
        for unclear in [answer("Unknown"), answer("Deleted"), json!({}), Value::Null] {
            assert_eq!(object(&network(), 7, &unclear), None, "{unclear}");
        }
    }
}
