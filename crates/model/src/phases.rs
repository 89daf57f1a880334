//! The phases of a deletion, and those that one has entered, as conditions: what each is, when it began and why. An
//! annotation has these, by the write that records the phase itself. Somebody else may have written there, so what is
//! read is checked, and has each phase once.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The bytes of status, reason and message of a phase. Kindex writes fewer; what somebody else writes there would be
/// copied from phase to phase, until a cluster refuses the annotations.
const TEXT_BYTES_MAX: usize = 2048;

/// How far the deletion of an object is. Once it is done, the object is gone, and nothing is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It waits until nothing refers to it. What cascades goes meanwhile.
    Deleting,
    /// It waits until what it owns is gone, and what it has outside is cleaned up.
    Draining,
    /// It releases the objects that it refers to.
    Finalizing,
}

/// A text that is no phase.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a phase of a deletion")]
pub struct UnknownPhase(String);

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Deleting, Self::Draining, Self::Finalizing];

    /// As it is recorded.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deleting => "DELETING",
            Self::Draining => "DRAINING",
            Self::Finalizing => "FINALIZING",
        }
    }

    /// As the conditions of a deletion name it.
    pub const fn condition_type(self) -> &'static str {
        match self {
            Self::Deleting => "Deleting",
            Self::Draining => "Draining",
            Self::Finalizing => "Finalizing",
        }
    }

    /// The phase that conditions name so.
    pub fn of_condition_type(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.condition_type() == name)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Phase {
    type Err = UnknownPhase;

    fn from_str(text: &str) -> Result<Self, UnknownPhase> {
        let mut phases = Self::ALL.into_iter();
        phases
            .find(|phase| phase.as_str() == text)
            .ok_or_else(|| UnknownPhase(text.to_owned()))
    }
}

/// A phase that has begun. It lasts until the next one begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseCondition {
    /// `Deleting`, `Draining` or `Finalizing`.
    #[serde(rename = "type")]
    pub name: String,
    /// `True`: it has begun.
    pub status: String,
    /// Why it began, as one word.
    pub reason: String,
    /// The same for people.
    #[serde(default)]
    pub message: String,
    /// When it began.
    pub last_transition_time: Timestamp,
}

impl PhaseCondition {
    fn is_short(&self) -> bool {
        self.status.len() + self.reason.len() + self.message.len() <= TEXT_BYTES_MAX
    }
}

/// The beginning of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseStart {
    /// The phase.
    pub phase: Phase,
    /// When it begins.
    pub since: Timestamp,
    /// Why, as one word.
    pub reason: &'static str,
    /// The same for people.
    pub message: String,
}

impl PhaseStart {
    /// As a condition.
    fn condition(&self) -> PhaseCondition {
        PhaseCondition {
            name: self.phase.condition_type().to_owned(),
            status: "True".to_owned(),
            reason: self.reason.to_owned(),
            message: self.message.clone(),
            last_transition_time: self.since,
        }
    }
}

/// The phases in the text of an annotation, in their order and each once, without those with long texts; none where
/// that is no such text.
pub(crate) fn read(text: Option<&str>) -> Vec<PhaseCondition> {
    let read = text.and_then(|text| serde_json::from_str::<Vec<PhaseCondition>>(text).ok());
    let mut known = Vec::new();
    let mut last = None;
    for condition in read.unwrap_or_default() {
        let phase = Phase::of_condition_type(&condition.name);
        if phase > last && condition.is_short() {
            last = phase;
            known.push(condition);
        }
    }
    known
}

/// The text of the annotation once another phase begins. What claims to have begun no earlier than it is left out.
pub(crate) fn with(before: &[PhaseCondition], start: &PhaseStart) -> String {
    let is_earlier = |condition: &&PhaseCondition| {
        Phase::of_condition_type(&condition.name).is_some_and(|phase| phase < start.phase)
    };
    let begun = start.condition();
    let phases: Vec<&PhaseCondition> = before.iter().filter(is_earlier).chain([&begun]).collect();
    serde_json::to_string(&phases).expect("they are texts and times")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(phase: Phase, second: i64) -> PhaseStart {
        PhaseStart {
            phase,
            since: Timestamp::from_second(second).expect("a time"),
            reason: "InUse",
            message: "others refer to it".to_owned(),
        }
    }

    fn text(phases: &[(Phase, i64)]) -> String {
        let mut text = None;
        for (phase, second) in phases {
            let before = read(text.as_deref());
            text = Some(with(&before, &start(*phase, *second)));
        }
        text.expect("a phase")
    }

    fn names(text: &str) -> Vec<String> {
        read(Some(text)).into_iter().map(|condition| condition.name).collect()
    }

    #[test]
    fn each_phase_is_added_with_its_time_and_reason() {
        let first = r#"{"type":"Deleting","status":"True","reason":"InUse","message":"others refer to it","#;
        let expected = format!(r#"[{first}"lastTransitionTime":"1970-01-01T00:00:07Z"}}]"#);
        assert_eq!(text(&[(Phase::Deleting, 7)]), expected);
        let all = text(&[(Phase::Deleting, 7), (Phase::Draining, 8), (Phase::Finalizing, 9)]);
        assert!(all.starts_with(expected.trim_end_matches(']')), "{all}");
        assert_eq!(names(&all), ["Deleting", "Draining", "Finalizing"]);
        let skipped = text(&[(Phase::Deleting, 7), (Phase::Finalizing, 9)]);
        assert_eq!(names(&skipped), ["Deleting", "Finalizing"]);
    }

    /// As if the list grew with each attempt, or with whatever somebody writes there.
    #[test]
    fn no_phase_is_there_twice_or_before_an_earlier_one() {
        let twice = text(&[(Phase::Deleting, 7), (Phase::Draining, 8), (Phase::Draining, 9)]);
        assert_eq!(names(&twice), ["Deleting", "Draining"]);
        assert!(twice.contains("00:00:09Z") && !twice.contains("00:00:08Z"), "{twice}");
        let [deleting, draining] = [Phase::Deleting, Phase::Draining].map(|phase| start(phase, 7).condition());
        let other = PhaseCondition {
            name: "Ready".to_owned(),
            ..deleting.clone()
        };
        let strange = [draining.clone(), other, deleting, draining];
        let strange = serde_json::to_string(&strange).expect("JSON");
        assert_eq!(names(&strange), ["Draining"]);
        for none in ["", "[]", "{}", r#"[{"type":"Deleting"}]"#] {
            assert!(read(Some(none)).is_empty(), "{none}");
        }
        assert!(read(None).is_empty());
    }

    #[test]
    fn a_phase_with_a_long_text_is_left_out() {
        for (bytes, phases) in [
            (TEXT_BYTES_MAX - 1, vec!["Deleting", "Draining"]),
            (TEXT_BYTES_MAX, vec!["Deleting", "Draining"]),
            (TEXT_BYTES_MAX + 1, vec!["Draining"]),
        ] {
            let deleting = start(Phase::Deleting, 7).condition();
            let others = deleting.status.len() + deleting.reason.len();
            let long = PhaseCondition {
                message: "m".repeat(bytes - others),
                ..deleting
            };
            let text = serde_json::to_string(&[long, start(Phase::Draining, 8).condition()]).expect("JSON");
            assert_eq!(names(&text), phases, "{bytes}");
        }
    }

    #[test]
    fn phases_are_in_order_and_read_as_they_are_written() {
        assert!(Phase::ALL.is_sorted());
        for phase in Phase::ALL {
            assert_eq!(phase.to_string().parse(), Ok(phase));
        }
        assert!("deleting".parse::<Phase>().is_err());
    }
}
