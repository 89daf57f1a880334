//! Conditions in the status of an object that waits: `DeletionPhase` names the phase, `DeletionBlocked` says what the
//! object waits for. `ReferenceRefused` says what a live object cannot hold. How a kind spells conditions is read from
//! its CustomResourceDefinition. Those of a kind whose status has none are in an annotation.

use jiff::Timestamp;
use kindex_model::deletion::{BLOCKED_CONDITION, CONDITION_LISTS, PHASE_CONDITION, Phase, REFUSED_CONDITION};
use serde_json::{Map, Value, json};

use crate::notice::Notice;

/// The fields that are written. A kind that requires others has conditions of its own sort.
const TEXTS: [&str; 4] = ["type", "status", "reason", "message"];
/// How a kind spells conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The list of the status that has them.
    pub list: &'static str,
    holds: String,
    holds_not: String,
    time: Option<TimeField>,
}

/// Where a condition has its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeField {
    /// `lastTransitionTime`: when the status changed, in RFC 3339, as Kubernetes has it.
    Transition,
    /// `lastUpdatedTimestamp`: when anything changed, in milliseconds since 1970.
    Updated,
}

/// What the conditions of an object are to say.
#[derive(Clone, Copy, Debug)]
pub struct Deletion<'a> {
    /// The phase that is recorded.
    pub phase: Option<Phase>,
    /// Since when.
    pub since: Option<Timestamp>,
    /// What it waits for; nothing where it has just begun this phase.
    pub notice: Option<&'a Notice>,
    /// The present.
    pub now: Timestamp,
}

/// One condition.
struct Condition<'a> {
    name: &'static str,
    holds: bool,
    reason: &'a str,
    message: String,
    at: Timestamp,
}

impl Form {
    /// That of conditions in an annotation, as Kubernetes spells them.
    pub fn recorded() -> Self {
        Self {
            list: CONDITION_LISTS[0],
            holds: "True".to_owned(),
            holds_not: "False".to_owned(),
            time: Some(TimeField::Transition),
        }
    }

    /// That of a kind in one of its versions, by its definition; `None` where its status has no conditions or is no
    /// subresource.
    pub fn of(definition: &Value, version: &str) -> Option<Self> {
        let mut versions = definition["spec"]["versions"].as_array()?.iter();
        let version = versions.find(|one| one["name"] == version)?;
        version.pointer("/subresources/status")?;
        let status = version.pointer("/schema/openAPIV3Schema/properties/status/properties")?;
        CONDITION_LISTS
            .into_iter()
            .find_map(|list| Self::of_items(list, &status[list]["items"]))
    }

    fn of_items(list: &'static str, items: &Value) -> Option<Self> {
        let fields = &items["properties"];
        let is_text = |field: &str| fields[field]["type"] == "string";
        let is_open = |field: &str| fields[field]["enum"].is_null();
        if !TEXTS.into_iter().all(is_text) || !is_open("type") || !is_open("reason") {
            return None;
        }
        let time = time_field(fields);
        let is_written = |field: &Value| {
            let time = time.map(TimeField::name);
            TEXTS.into_iter().chain(time).any(|written| field == written)
        };
        let required = items["required"].as_array();
        if !required.is_none_or(|required| required.iter().all(is_written)) {
            return None;
        }
        Some(Self {
            list,
            holds: spelled("True", &fields["status"])?,
            holds_not: spelled("False", &fields["status"])?,
            time,
        })
    }

    /// The conditions of a status with those of its deletion; `None` where they say that already, or where nobody has
    /// said before that the object waits, and nobody does now.
    pub fn with(&self, status: &Value, deletion: Deletion<'_>) -> Option<Vec<Value>> {
        let known = status[self.list].as_array().cloned().unwrap_or_default();
        let mut conditions = known.clone();
        if deletion.notice.is_none() && !has(&known, BLOCKED_CONDITION) {
            return None;
        }
        self.set(&mut conditions, phase(deletion));
        if let Some(blocked) = blocked(deletion) {
            self.set(&mut conditions, blocked);
        }
        (conditions != known).then_some(conditions)
    }

    /// The conditions of a status with what is refused to a live object, or that nothing is any more; `None` where they
    /// say that already, or where nothing ever was.
    pub fn with_refusal(&self, status: &Value, notice: Option<&Notice>, now: Timestamp) -> Option<Vec<Value>> {
        let known = status[self.list].as_array().cloned().unwrap_or_default();
        if notice.is_none() && !has(&known, REFUSED_CONDITION) {
            return None;
        }
        let (reason, message) = match notice {
            Some(notice) => (notice.reason, notice.text()),
            None => ("ReferencesPlaced", "what its fields name has its references".to_owned()),
        };
        let mut conditions = known.clone();
        let refusal = Condition {
            name: REFUSED_CONDITION,
            holds: notice.is_some(),
            reason,
            message,
            at: now,
        };
        self.set(&mut conditions, refusal);
        (conditions != known).then_some(conditions)
    }

    /// What others have added to a condition stays.
    fn set(&self, conditions: &mut Vec<Value>, condition: Condition<'_>) {
        let Condition { name, at, .. } = condition;
        let status = if condition.holds { &self.holds } else { &self.holds_not };
        let mut known = conditions.iter_mut().filter_map(Value::as_object_mut);
        let place = match known.find(|one| one.get("type").is_some_and(|of| of == name)) {
            Some(place) => place,
            None => {
                conditions.push(Value::Object(Map::new()));
                let last = conditions.last_mut().and_then(Value::as_object_mut);
                last.expect("it was pushed")
            }
        };
        let before = place.clone();
        for (field, text) in TEXTS
            .into_iter()
            .zip([name, status, condition.reason, &condition.message])
        {
            place.insert(field.to_owned(), json!(text));
        }
        match self.time {
            Some(TimeField::Transition) if before.get("status") != place.get("status") => {
                place.insert(TimeField::Transition.name().to_owned(), json!(at.to_string()));
            }
            Some(TimeField::Updated) if before != *place => {
                place.insert(TimeField::Updated.name().to_owned(), json!(at.as_millisecond()));
            }
            Some(TimeField::Transition | TimeField::Updated) | None => {}
        }
    }
}

impl TimeField {
    const fn name(self) -> &'static str {
        match self {
            Self::Transition => "lastTransitionTime",
            Self::Updated => "lastUpdatedTimestamp",
        }
    }
}

fn time_field(fields: &Value) -> Option<TimeField> {
    let (transition, updated) = (&fields["lastTransitionTime"], &fields["lastUpdatedTimestamp"]);
    let is_number = updated["type"] == "integer" || updated["x-kubernetes-int-or-string"] == true;
    match transition["type"] == "string" {
        true => Some(TimeField::Transition),
        false => is_number.then_some(TimeField::Updated),
    }
}

/// How a field spells a status: in an enum, by its last word.
fn spelled(word: &str, field: &Value) -> Option<String> {
    let Some(values) = field["enum"].as_array() else {
        return Some(word.to_owned());
    };
    let mut values = values.iter().filter_map(Value::as_str);
    let is_meant = |value: &&str| {
        value
            .rsplit('_')
            .next()
            .is_some_and(|last| last.eq_ignore_ascii_case(word))
    };
    values.find(is_meant).map(ToOwned::to_owned)
}

fn phase(deletion: Deletion<'_>) -> Condition<'static> {
    let (reason, message) = match deletion.phase {
        Some(phase) => (phase.condition_type(), phase.to_string()),
        None => ("Requested", "no phase is recorded yet".to_owned()),
    };
    let since = deletion.since.map_or(String::new(), |since| format!(" since {since}"));
    Condition {
        name: PHASE_CONDITION,
        holds: true,
        reason,
        message: message + &since,
        at: deletion.since.unwrap_or(deletion.now),
    }
}

/// What is waited for in a phase that has just begun, a notice says later. In the last one that is rare.
fn blocked(deletion: Deletion<'_>) -> Option<Condition<'_>> {
    let (holds, reason, message) = match (deletion.notice, deletion.phase) {
        (Some(notice), _) => (true, notice.reason, notice.text()),
        (None, Some(Phase::Draining)) => (
            true,
            "DeletionDraining",
            "nothing holds it any more; it waits for what is left of it".to_owned(),
        ),
        (None, Some(Phase::Finalizing)) => (false, "DeletionFinalizing", "it releases what it refers to".to_owned()),
        (None, None | Some(Phase::Deleting)) => return None,
    };
    Some(Condition {
        name: BLOCKED_CONDITION,
        holds,
        reason,
        message,
        at: deletion.now,
    })
}

/// Whether the conditions of an object, in whichever list, may say that its deletion waits.
pub(crate) fn may_be_reported(status: &Value) -> bool {
    let mut lists = CONDITION_LISTS.into_iter().filter_map(|list| status[list].as_array());
    lists.any(|conditions| has(conditions, BLOCKED_CONDITION))
}

fn has(conditions: &[Value], name: &str) -> bool {
    conditions.iter().any(|condition| condition["type"] == name)
}

#[cfg(test)]
mod tests;
