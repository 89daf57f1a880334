//! Why an object enters a phase of its deletion, as its record says it: what is known of it at that moment without
//! another request. Pure.

use jiff::Timestamp;
use kindex_model::deletion::{Phase, PhaseStart};
use kindex_model::reference_name::ReferenceName;

use crate::object::Object;

/// Those that a message names; others are counted.
const NAMED_MAX: usize = 4;

/// The beginning of a phase of an object of the cluster as it was seen. `holders` are the references that it waits for
/// in the first one.
pub fn of(object: &Object, phase: Phase, holders: &[ReferenceName], since: Timestamp) -> PhaseStart {
    let names: Vec<String> = match phase {
        Phase::Deleting => holders.iter().map(ToString::to_string).collect(),
        Phase::Draining => {
            let owned = object.references.iter().map(ToString::to_string);
            owned.chain(object.others.iter().cloned()).collect()
        }
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
    use super::*;
    use crate::fixture::{GROUP, deleting, key};

    fn message(object: &Object, phase: Phase, holders: &[ReferenceName]) -> String {
        of(object, phase, holders, Timestamp::UNIX_EPOCH).message
    }

    fn reference(number: usize) -> ReferenceName {
        ReferenceName::new("Cluster", GROUP, &format!("u{number}")).expect("a name")
    }

    #[test]
    fn a_phase_begins_for_what_is_known_of_the_object() {
        let mut object = deleting(key("Network", "n"), "u");
        let held = "others hold or name it";
        assert_eq!(message(&object, Phase::Deleting, &[]), held);
        object.references = [reference(1)].into();
        object.others = ["example.com/cleanup".to_owned()].into();
        let draining = "only what it owns and its cleanup are left: cluster.x.example.com/u1, example.com/cleanup";
        assert_eq!(message(&object, Phase::Draining, &[]), draining);
        let finalizing = of(&object, Phase::Finalizing, &[], Timestamp::UNIX_EPOCH);
        assert_eq!(finalizing.message, "it releases what it refers to");
        assert_eq!(
            (finalizing.phase, finalizing.reason),
            (Phase::Finalizing, "NothingLeft")
        );
        let many: Vec<_> = (1..8).map(reference).collect();
        let many = message(&object, Phase::Deleting, &many);
        assert!(many.ends_with("cluster.x.example.com/u4 and 3 more"), "{many}");
        let archived = of_archived(Phase::Deleting, Timestamp::UNIX_EPOCH);
        assert_eq!((archived.reason, &*archived.message), ("InUse", held));
    }

    /// As if it waited for what is deleted only once it drains.
    #[test]
    fn the_first_phase_names_nothing_that_the_object_owns() {
        let mut object = deleting(key("Network", "n"), "u");
        let [holder, owned] = [1, 2].map(reference);
        object.references = [holder.clone(), owned].into();
        let held = "others hold or name it: cluster.x.example.com/u1";
        assert_eq!(message(&object, Phase::Deleting, &[holder]), held);
    }
}
