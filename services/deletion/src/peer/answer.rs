//! What is known of an object from what its service says of it and of the references on it.

use std::collections::BTreeSet;

use kindex_model::deletion::Phase;
use kindex_model::object::ResourceVersion;
use kindex_model::object_state::State;
use kindex_model::reference_name::ReferenceName;
use serde_json::Value;

use crate::object::{DeletionState, Key, Names, Object, Released};

/// What is known of an object from the answer about its references. Its service judges whether it is deleted or leaves
/// for the archive. What it owns here goes as what cascades does: it drains only once it is released.
pub(super) fn object(key: &Key, number: u64, answer: &Value) -> Option<Object> {
    let target = &answer["target"];
    let uid = target["uid"].as_str().filter(|uid| !uid.is_empty())?;
    let state = state(target)?;
    let is_deleted = match state {
        State::Live | State::Archived => false,
        State::Deleting => true,
        State::Deleted | State::Unknown => return None,
    };
    let names = answer["references"]
        .as_array()?
        .iter()
        .filter_map(|held| held["name"].as_str());
    let references: BTreeSet<_> = names.filter_map(ReferenceName::of_finalizer).collect();
    // An older version of the service has only the state.
    let in_rows = state == State::Archived || target["archived"] == true;
    let released = Released::elsewhere(releases(target), in_rows);
    // The deletion finalizer is its service's, whatever it is called there.
    let deletion_finalizer = Names::of_service(&key.kind.group).finalizer;
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
        finalizers: vec![deletion_finalizer],
        has_deletion_finalizer: true,
        references,
        others: BTreeSet::new(),
        phase: is_deleted.then_some(Phase::Draining),
        since: None,
        phases: Vec::new(),
        released,
        refused: false,
        edges: Vec::new(),
    })
}

/// How far an object is, if its service says so in a word that is known.
pub(super) fn state(object: &Value) -> Option<State> {
    object["state"].as_str().and_then(State::parse)
}

/// The latest releases on it, the last one first. An older version of the service has the record alone.
fn releases(target: &Value) -> Vec<&str> {
    match target["releasedReferences"].as_array() {
        Some(releases) => releases.iter().filter_map(Value::as_str).collect(),
        None => target["releasedReference"]
            .as_str()
            .into_iter()
            .flat_map(|record| record.split(','))
            .collect(),
    }
}

/// Whether a service deletes the object with this uid, by an answer that may be without references.
pub(super) fn is_deleting(uid: &str, answer: &Value) -> bool {
    let target = &answer["target"];
    target["uid"] == *uid && state(target) == Some(State::Deleting)
}

/// Whether another object has the name of the one with this uid.
pub(super) fn is_another(uid: &str, answer: &Value) -> bool {
    let found = answer["target"]["uid"].as_str();
    found.is_some_and(|found| found != uid)
}

/// The version in which a service has the object in its cluster. An older version of the service says none, nor does
/// any of an archived object.
pub(super) fn version(answer: &Value) -> Option<&str> {
    answer["target"]["resourceVersion"].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::key_in;

    const HELD: &str = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
    const OTHER: &str = "cluster.compute.example.com/11c215ab-f1cc-4f3b-b1c0-232ae8d852ce";

    fn network() -> Key {
        key_in("region.example.com", "Network", "blue")
    }

    fn answer(state: &str) -> Value {
        json!({"target": {"uid": "u", "state": state}, "references": [{"name": HELD}]})
    }

    #[test]
    fn an_object_is_as_far_as_its_service_says() {
        let live = object(&network(), 7, &answer("Live")).expect("an object");
        assert_eq!((live.state, live.phase), (DeletionState::Live, None));
        assert_eq!((live.version, live.references.len()), (ResourceVersion(7), 1));
        let archived = object(&network(), 7, &answer("Archived")).expect("an object");
        let held_alike = Object {
            released: live.released.clone(),
            ..archived
        };
        assert_eq!(held_alike, live, "who is archived is held as before");
        let deleted = object(&network(), 7, &answer("Deleting")).expect("an object");
        assert!(deleted.is_leaving());
        assert_eq!(deleted.phase, Some(Phase::Draining), "what it owns here goes too");
        for unclear in [answer("Unknown"), answer("Deleted"), json!({}), Value::Null] {
            assert_eq!(object(&network(), 7, &unclear), None, "{unclear}");
        }
    }

    #[test]
    fn only_the_very_object_that_its_service_deletes_is_being_deleted() {
        let deleted = json!({"target": {"uid": "u", "state": "Deleting"}, "references": []});
        assert!(is_deleting("u", &deleted) && is_deleting("u", &answer("Deleting")));
        assert!(!is_deleting("v", &deleted), "another one has its name");
        for unclear in [
            answer("Live"),
            answer("Archived"),
            answer("Unknown"),
            json!({}),
            Value::Null,
        ] {
            assert!(!is_deleting("u", &unclear), "{unclear}");
        }
    }

    #[test]
    fn the_version_is_read_and_another_object_of_the_name_is_seen() {
        let mut answer = answer("Live");
        assert_eq!(version(&answer), None, "an older version of the service");
        answer["target"]["resourceVersion"] = json!("7");
        assert_eq!(version(&answer), Some("7"));
        assert!(is_another("v", &answer) && !is_another("u", &answer));
        assert!(!is_another("u", &Value::Null));
    }

    /// An older version of the service has none of these fields, or says the last release alone.
    #[test]
    fn what_its_service_says_of_a_release_is_read() {
        let name: ReferenceName = HELD.parse().expect("a name");
        let read = |state: &str, field: &str, said: Value| {
            let mut answer = answer(state);
            answer["target"][field] = said;
            object(&network(), 7, &answer).expect("an object").released
        };
        let before = read("Deleting", "other", json!(true));
        for (said, is_released) in [
            (read("Deleting", "other", json!(true)), false),
            (read("Deleting", "releasedReference", json!(format!("{HELD}@5"))), true),
            (read("Archived", "other", json!(true)), true),
            (read("Deleting", "archived", json!(true)), true),
            (
                read(
                    "Deleting",
                    "releasedReferences",
                    json!([format!("{OTHER}@6"), format!("{HELD}@5")]),
                ),
                true,
            ),
            (
                read("Deleting", "releasedReferences", json!([format!("{OTHER}@6")])),
                false,
            ),
        ] {
            assert_eq!(said.reports_release_since(&before, &name), is_released, "{said:?}");
        }
    }
}
