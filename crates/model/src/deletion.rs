//! How far the deletion of an object is, as its metadata says: in annotations, and for an archived object, which no API
//! server gives one, in its deletionTimestamp. Phases only go forward, and each may be skipped.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::object::Metadata;
use crate::phases;
pub use crate::phases::{Phase, PhaseCondition, PhaseStart, UnknownPhase};

/// The condition that names the phase of a deletion.
pub const PHASE_CONDITION: &str = "DeletionPhase";
/// The condition that says whether a deletion waits, and for whom.
pub const BLOCKED_CONDITION: &str = "DeletionBlocked";
/// The condition that says that a live object cannot hold what a field of it names.
pub const REFUSED_CONDITION: &str = "ReferenceRefused";
/// The lists of a status that may have conditions.
pub const CONDITION_LISTS: [&str; 2] = ["conditions", "statusConditions"];

/// The annotations by which a deletion, and the release of a reference, are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotations {
    /// The phase.
    pub phase: String,
    /// The time at which it began.
    pub since: String,
    /// All phases up to this one, as [`PhaseCondition`]s in JSON.
    pub phases: String,
    /// The conditions of an object whose status has no place for them, as JSON.
    pub conditions: String,
    /// On a holder that stays: the target whose reference is released next.
    pub detached: String,
    /// On a target: the references, separated by commas, that somebody is about to take off by hand.
    pub release: String,
    /// On a target: the references that the API has released, as [`Releases`](crate::releases::Releases) writes them.
    /// Where a reference goes without such a trace, somebody has taken it off.
    pub released: String,
}

impl Annotations {
    /// Those of the platform or service with this group.
    pub fn of(group: &str) -> Self {
        Self {
            phase: format!("{group}/deletion-phase"),
            since: format!("{group}/deletion-since"),
            phases: format!("{group}/deletion-phases"),
            conditions: format!("{group}/deletion-conditions"),
            detached: format!("{group}/detached-from"),
            release: format!("{group}/release-references"),
            released: format!("{group}/released-reference"),
        }
    }

    /// All of them.
    pub fn names(&self) -> [&str; 7] {
        let Self {
            phase,
            since,
            phases,
            conditions,
            detached,
            release,
            released,
        } = self;
        [phase, since, phases, conditions, detached, release, released]
    }

    /// The conditions among the annotations of an object, where a status has them.
    pub fn status_in(&self, annotations: &BTreeMap<String, String>) -> Value {
        let text = annotations.get(&self.conditions);
        let conditions = text.and_then(|text| serde_json::from_str::<Vec<Value>>(text).ok());
        conditions.map_or(Value::Null, |conditions| json!({ (CONDITION_LISTS[0]): conditions }))
    }

    /// Whether a deletion is recorded. An archived object without a record has left the cluster, and its
    /// deletionTimestamp says no more than that.
    pub fn is_recorded(&self, metadata: &Metadata) -> bool {
        metadata.annotations.contains_key(&self.phase)
    }

    /// The phases that the deletion of an object has entered, in their order.
    pub fn phases_in(&self, annotations: &BTreeMap<String, String>) -> Vec<PhaseCondition> {
        phases::read(annotations.get(&self.phases).map(String::as_str))
    }

    /// The annotations that an object gets which enters a phase after others.
    pub fn of_start(&self, before: &[PhaseCondition], start: &PhaseStart) -> Map<String, Value> {
        self.with_list(start, phases::with(before, start).into())
    }

    /// The same of an object that has no room for the list of its phases, which is taken away.
    pub fn without_list(&self, start: &PhaseStart) -> Map<String, Value> {
        self.with_list(start, Value::Null)
    }

    fn with_list(&self, start: &PhaseStart, phases: Value) -> Map<String, Value> {
        let said: [(&String, Value); 3] = [
            (&self.phase, start.phase.to_string().into()),
            (&self.since, start.since.to_string().into()),
            (&self.phases, phases),
        ];
        said.into_iter().map(|(name, value)| (name.clone(), value)).collect()
    }

    /// The text of an archived object whose deletion, requested at a time, enters a phase. Everything but the metadata
    /// stays byte for byte.
    ///
    /// # Errors
    /// A text that is no object.
    pub fn record(&self, text: &str, start: &PhaseStart, requested: Timestamp) -> serde_json::Result<String> {
        with_metadata(text, |metadata, said| {
            let before = phases::read(said.get(&self.phases).and_then(Value::as_str));
            said.extend(self.of_start(&before, start));
            metadata.insert("deletionTimestamp".to_owned(), json!(Time(requested)));
        })
    }

    /// The text of an archived holder that names another object by now, and whose reference on this one is released
    /// next. Everything but the metadata stays byte for byte.
    ///
    /// # Errors
    /// A text that is no object.
    pub fn detach(&self, text: &str, former: &str) -> serde_json::Result<String> {
        with_metadata(text, |_, said| {
            said.insert(self.detached.clone(), former.into());
        })
    }
}

/// An object with other metadata and annotations.
fn with_metadata(
    text: &str,
    change: impl FnOnce(&mut Map<String, Value>, &mut Map<String, Value>),
) -> serde_json::Result<String> {
    let mut parts: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text)?;
    let mut metadata: Map<String, Value> = match parts.get("metadata") {
        Some(metadata) => serde_json::from_str(metadata.get())?,
        None => Map::new(),
    };
    let mut said: Map<String, Value> = match metadata.remove("annotations") {
        Some(said) => serde_json::from_value::<Option<_>>(said)?.unwrap_or_default(),
        None => Map::new(),
    };
    change(&mut metadata, &mut said);
    metadata.insert("annotations".to_owned(), said.into());
    parts.insert("metadata".to_owned(), to_raw_value(&metadata)?);
    serde_json::to_string(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;

    #[test]
    fn a_record_has_the_phase_and_the_times_and_changes_nothing_else() {
        let annotations = Annotations::of("g");
        let at = |second| Timestamp::from_second(second).expect("a time");
        let start = |phase| PhaseStart {
            phase,
            since: at(9),
            reason: "InUse",
            message: String::new(),
        };
        let left = r#","annotations":{"x":"y"},"deletionTimestamp":"2026-01-01T00:00:00Z""#;
        for (said, others) in [("", 0), (r#","annotations":null"#, 0), (left, 1)] {
            let metadata = format!(r#"{{"name":"a","uid":"u","resourceVersion":"7"{said}}}"#);
            let text = &format!(r#"{{"metadata":{metadata},"spec":{{"n":1.0e0}}}}"#);
            assert!(!annotations.is_recorded(&Object::parse_str(text).expect("an object").metadata));
            let recorded = annotations.record(text, &start(Phase::Deleting), at(7));
            let recorded = recorded.expect("an object");
            assert!(recorded.contains(r#""spec":{"n":1.0e0}"#), "{recorded}");
            let metadata = Object::parse_str(&recorded).expect("an object").metadata;
            assert!(annotations.is_recorded(&metadata), "{recorded}");
            assert_eq!(metadata.deletion_timestamp, Some(at(7)));
            assert_eq!(metadata.annotations["g/deletion-phase"], "DELETING");
            assert_eq!(metadata.annotations["g/deletion-since"], "1970-01-01T00:00:09Z");
            assert_eq!(metadata.annotations.len(), others + 3);
            let later = annotations.record(&recorded, &start(Phase::Finalizing), at(7));
            let metadata = Object::parse_str(&later.expect("an object"))
                .expect("an object")
                .metadata;
            assert_eq!(metadata.annotations["g/deletion-phase"], "FINALIZING");
            let phases = annotations.phases_in(&metadata.annotations);
            let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
            assert_eq!(names, ["Deleting", "Finalizing"]);
            assert_eq!(metadata.annotations.len(), others + 3);
        }
        assert!(annotations.record("[]", &start(Phase::Deleting), at(7)).is_err());
    }

    #[test]
    fn a_holder_that_is_detached_has_the_former_target_and_changes_nothing_else() {
        let annotations = Annotations::of("g");
        let text =
            r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7","annotations":{"x":"y"}},"spec":{"n":1.0e0}}"#;
        let detached = annotations.detach(text, "t@7").expect("an object");
        assert!(detached.contains(r#""spec":{"n":1.0e0}"#), "{detached}");
        let metadata = Object::parse_str(&detached).expect("an object").metadata;
        assert_eq!(metadata.annotations["g/detached-from"], "t@7");
        assert_eq!((metadata.annotations.len(), metadata.deletion_timestamp), (2, None));
        assert!(annotations.detach("[]", "t@7").is_err());
    }
}
