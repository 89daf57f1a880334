//! The next step of an archived object that was deleted while others hold it, a *tombstone*: a pure function of what
//! is left of its holders. It goes through the phases of a live object by the same rules.

use kindex_model::deletion::Phase;

use crate::answers::Swept;
use crate::decide::{Archived, Step, Wait};

/// Decides on one that was swept. `holds` says whether it holds others itself.
///
/// # Guarantees
/// Total. A phase is never recorded after a later one. `Free` is decided only where nothing is left that holds it, and
/// the phase is recorded in which it releases what it holds.
pub fn decide(swept: &Swept, holds: bool) -> Step {
    let recorded = swept.phase;
    let (plain, owned) = match &swept.archived {
        Archived::Left { plain, owned } => (plain.as_slice(), owned.as_slice()),
        Archived::Off | Archived::Unasked => return Step::Sweep,
    };
    let (phase, waits_for) = match (plain, owned) {
        ([], []) if holds => (Phase::Finalizing, None),
        ([], []) => return Step::Free { confirm: Vec::new() },
        ([], owned) => (Phase::Draining, Some(owned)),
        (plain, _) => (Phase::Deleting, Some(plain)),
    };
    match waits_for {
        _ if recorded < Some(phase) => Step::Record(phase),
        Some(names) => Step::Wait(Wait::Archived(names.to_vec())),
        None => Step::Free { confirm: Vec::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(phase: Option<Phase>, plain: &[&str], owned: &[&str], holds: bool) -> Step {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let archived = Archived::Left {
            plain: names(plain),
            owned: names(owned),
        };
        let swept = Swept {
            phase,
            archived,
            goes_on: false,
        };
        decide(&swept, holds)
    }

    fn waits(name: &str) -> Step {
        Step::Wait(Wait::Archived(vec![name.to_owned()]))
    }

    #[test]
    fn each_phase_waits_for_its_own_and_is_recorded_before_that() {
        let phases = [
            None,
            Some(Phase::Deleting),
            Some(Phase::Draining),
            Some(Phase::Finalizing),
        ];
        let all = |plain: &[&str], owned: &[&str], holds| phases.map(|phase| decided(phase, plain, owned, holds));
        let end = || Step::Free { confirm: Vec::new() };
        let held = Step::Record(Phase::Deleting);
        assert_eq!(all(&["h"], &["o"], true), [held, waits("h"), waits("h"), waits("h")]);
        let drains = || Step::Record(Phase::Draining);
        assert_eq!(all(&[], &["o"], true), [drains(), drains(), waits("o"), waits("o")]);
        let releases = || Step::Record(Phase::Finalizing);
        assert_eq!(all(&[], &[], true), [releases(), releases(), releases(), end()]);
        assert_eq!(all(&[], &[], false), [end(), end(), end(), end()], "phases are skipped");
    }
}
