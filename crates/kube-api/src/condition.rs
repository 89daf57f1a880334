//! Conditions in the status of an object: whether each is true, and since when. Knows no types of conditions.
//! <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md>

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const LAST_TRANSITION_TIME: &str = "lastTransitionTime";

/// Whether a condition is true. Another text than these three says as little as a condition that is not there: it is
/// read as unknown, so that one odd condition does not make its object unreadable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "String")]
pub enum ConditionStatus {
    /// It is.
    True,
    /// It is not.
    False,
    /// Nobody can say.
    #[default]
    Unknown,
}

impl ConditionStatus {
    /// Reads the word on the wire.
    pub fn read(word: &str) -> Self {
        let known = [Self::True, Self::False];
        known
            .into_iter()
            .find(|known| known.as_str() == word)
            .unwrap_or_default()
    }

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<String> for ConditionStatus {
    fn from(word: String) -> Self {
        Self::read(&word)
    }
}

/// What a condition says.
#[derive(Debug, Clone, Copy)]
pub struct Condition<'a> {
    /// What it is about; a status has one condition of each type.
    pub r#type: &'a str,
    /// Whether it is true.
    pub status: ConditionStatus,
    /// Why, in one word.
    pub reason: &'a str,
    /// Why, for people.
    pub message: &'a str,
}

/// Whether the condition of this type is among these, and true.
pub fn is_true(conditions: &Value, r#type: &str) -> bool {
    let mut conditions = conditions.as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == r#type && one["status"] == ConditionStatus::True.as_str())
}

/// Sets the condition of its type among these; `lastTransitionTime` becomes `now` only where the status is another.
pub fn set(conditions: &mut Value, condition: &Condition<'_>, now: &str) {
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    let mut written = json!({
        "type": condition.r#type,
        "status": condition.status.as_str(),
        "reason": condition.reason,
        "message": condition.message,
        LAST_TRANSITION_TIME: now,
    });
    match conditions.iter_mut().find(|one| one["type"] == condition.r#type) {
        None => conditions.push(written),
        Some(known) => {
            if known["status"] == written["status"] {
                written[LAST_TRANSITION_TIME] = known[LAST_TRANSITION_TIME].take();
            }
            *known = written;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_as_it_is_written_and_another_text_is_unknown() {
        for status in [ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown] {
            let written = serde_json::to_string(&status).expect("a word");
            assert_eq!(written, format!("{:?}", status.as_str()));
            let read: ConditionStatus = serde_json::from_str(&written).expect("a status");
            assert_eq!(read, status);
        }
        for text in ["", "true", "Perhaps"] {
            assert_eq!(
                ConditionStatus::from(text.to_owned()),
                ConditionStatus::Unknown,
                "{text}"
            );
        }
    }

    #[test]
    fn the_time_of_a_condition_changes_with_its_status_alone() {
        let ready = |status, reason| Condition {
            r#type: "Ready",
            status,
            reason,
            message: "m",
        };
        let mut conditions = Value::Null;
        assert!(!is_true(&conditions, "Ready"));
        for (status, reason, now, since) in [
            (ConditionStatus::False, "a", "1", "1"),
            (ConditionStatus::False, "b", "2", "1"),
            (ConditionStatus::True, "b", "3", "3"),
            (ConditionStatus::True, "b", "4", "3"),
        ] {
            set(&mut conditions, &ready(status, reason), now);
            let expected = json!([{"type": "Ready", "status": status.as_str(), "reason": reason, "message": "m",
                "lastTransitionTime": since}]);
            assert_eq!(conditions, expected);
            assert_eq!(is_true(&conditions, "Ready"), status == ConditionStatus::True);
            assert!(!is_true(&conditions, "Live"));
        }
    }
}
