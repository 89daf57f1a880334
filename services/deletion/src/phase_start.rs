//! Why an object enters a phase of its deletion, as its record says it: what is known of it at that moment without
//! another request. Pure.

use jiff::Timestamp;
use kindex_model::deletion::{Phase, PhaseStart};

use crate::object::Object;

/// Those that a message names; others are counted.
const NAMED_MAX: usize = 4;

/// The beginning of a phase of an object of the cluster as it was seen.
pub fn of(object: &Object, phase: Phase, since: Timestamp) -> PhaseStart {
    let references = object.references.iter().map(ToString::to_string);
    let names: Vec<String> = match phase {
        Phase::Deleting => references.collect(),
        Phase::Draining => references.chain(object.others.iter().cloned()).collect(),
        Phase::Finalizing => Vec::new(),
    };
    start(phase, since, &names)
}

/// The same of an archived object. The finalizers in its text are those that it had in the cluster.
pub fn of_archived(phase: Phase, since: Timestamp) -> PhaseStart {
    start(phase, since, &[])
}

fn start(phase: Phase, since: Timestamp, names: &[String]) -> PhaseStart {
    let (reason, text) = match phase {
        Phase::Deleting if names.is_empty() => ("InUse", "others hold or name it, or it is not known yet which"),
        Phase::Deleting => ("InUse", "others hold or name it"),
        Phase::Draining => ("NotInUse", "only what it owns and its cleanup are left"),
        Phase::Finalizing => ("NothingLeft", "it releases what it refers to"),
    };
    PhaseStart {
        phase,
        since,
        reason,
        message: text.to_owned() + &listed(names),
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let shown = names.iter().take(NAMED_MAX).map(String::as_str);
    let more = match names.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(": {}{more}", shown.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use kindex_model::reference_name::ReferenceName;

    use super::*;
    use crate::fixture::{GROUP, deleting, key};

    fn message(object: &Object, phase: Phase) -> String {
        of(object, phase, Timestamp::UNIX_EPOCH).message
    }

    #[test]
    fn a_phase_begins_for_what_is_known_of_the_object() {
        let mut object = deleting(key("Network", "n"), "u");
        let unknown = "others hold or name it, or it is not known yet which";
        assert_eq!(message(&object, Phase::Deleting), unknown);
        let holder = |number: usize| ReferenceName::new("Cluster", GROUP, &format!("u{number}")).expect("a name");
        object.references = [holder(1)].into();
        object.others = ["example.com/cleanup".to_owned()].into();
        let held = "others hold or name it: cluster.x.example.com/u1";
        assert_eq!(message(&object, Phase::Deleting), held);
        let draining = "only what it owns and its cleanup are left: cluster.x.example.com/u1, example.com/cleanup";
        assert_eq!(message(&object, Phase::Draining), draining);
        let finalizing = of(&object, Phase::Finalizing, Timestamp::UNIX_EPOCH);
        assert_eq!(finalizing.message, "it releases what it refers to");
        assert_eq!(
            (finalizing.phase, finalizing.reason),
            (Phase::Finalizing, "NothingLeft")
        );
        object.references = (1..8).map(holder).collect();
        let held = message(&object, Phase::Deleting);
        assert!(held.ends_with("cluster.x.example.com/u4 and 3 more"), "{held}");
        let archived = of_archived(Phase::Deleting, Timestamp::UNIX_EPOCH);
        assert_eq!((archived.reason, &*archived.message), ("InUse", unknown));
    }
}
