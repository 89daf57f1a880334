//! The next step of an archived object that was deleted while others hold it, a *tombstone*: a pure function of what
//! is left of its holders. It goes through the phases of a live object by the same rules.

use kindex_model::deletion::Phase;

use crate::answers::Swept;
use crate::decide::{Archived, CleanupState, Step, Wait};

/// Decides on one that was swept. `holds` says whether it holds others itself.
///
/// # Guarantees
/// Total. A phase is never recorded after a later one. `CleanUp` is decided only where nothing is left that holds it,
/// and the phase is recorded in which it drains. `Free` is decided only where nothing is left outside either, and the
/// phase is recorded in which it releases what it holds.
pub fn decide(swept: &Swept, cleanup: &CleanupState, holds: bool) -> Step {
    let free = || Step::Free { confirm: Vec::new() };
    let wait = |names: &[String]| Step::Wait(Wait::Archived(names.to_vec()));
    let (plain, owned) = match &swept.archived {
        Archived::Remaining { plain, owned } => (plain.as_slice(), owned.as_slice()),
        Archived::Off | Archived::Unasked => return Step::Sweep,
    };
    let (phase, step) = match (plain, owned, cleanup) {
        ([], [], CleanupState::Gone) if holds => (Phase::Finalizing, free()),
        ([], [], CleanupState::Gone) => return free(),
        ([], [], CleanupState::Unconfirmed) => (Phase::Draining, Step::CleanUp),
        ([], [], CleanupState::Remaining(left)) => (Phase::Draining, Step::Wait(Wait::Cleanup(left.clone()))),
        ([], owned, _) => (Phase::Draining, wait(owned)),
        (plain, _, _) => (Phase::Deleting, wait(plain)),
    };
    match swept.phase < Some(phase) {
        true => Step::Record(phase, Vec::new()),
        false => step,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::Remaining;

    const PHASES: [Option<Phase>; 4] = [
        None,
        Some(Phase::Deleting),
        Some(Phase::Draining),
        Some(Phase::Finalizing),
    ];

    fn decided(phase: Option<Phase>, plain: &[&str], owned: &[&str], cleanup: &CleanupState, holds: bool) -> Step {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let archived = Archived::Remaining {
            plain: names(plain),
            owned: names(owned),
        };
        let swept = Swept {
            phase,
            archived,
            goes_on: false,
            refused: None,
        };
        decide(&swept, cleanup, holds)
    }

    fn waits(name: &str) -> Step {
        Step::Wait(Wait::Archived(vec![name.to_owned()]))
    }

    #[test]
    fn each_phase_waits_for_its_own_and_is_recorded_before_that() {
        let all = |plain: &[&str], owned: &[&str], holds| {
            PHASES.map(|phase| decided(phase, plain, owned, &CleanupState::Gone, holds))
        };
        let end = || Step::Free { confirm: Vec::new() };
        let held = Step::Record(Phase::Deleting, Vec::new());
        assert_eq!(all(&["h"], &["o"], true), [held, waits("h"), waits("h"), waits("h")]);
        let drains = || Step::Record(Phase::Draining, Vec::new());
        assert_eq!(all(&[], &["o"], true), [drains(), drains(), waits("o"), waits("o")]);
        let releases = || Step::Record(Phase::Finalizing, Vec::new());
        assert_eq!(all(&[], &[], true), [releases(), releases(), releases(), end()]);
        assert_eq!(all(&[], &[], false), [end(), end(), end(), end()], "phases are skipped");
    }

    /// An object that holds nothing could end without a phase: it drains all the same, and nothing is called before.
    #[test]
    fn what_it_has_outside_is_cleaned_up_after_its_holders_and_before_its_end() {
        let left = Remaining::Failed("no route".to_owned());
        let states = [CleanupState::Unconfirmed, CleanupState::Remaining(left.clone())];
        let steps = [Step::CleanUp, Step::Wait(Wait::Cleanup(left))];
        for (cleanup, step) in states.iter().zip(steps) {
            for holds in [false, true] {
                let all =
                    |plain: &[&str], owned: &[&str]| PHASES.map(|phase| decided(phase, plain, owned, cleanup, holds));
                let held = Step::Record(Phase::Deleting, Vec::new());
                assert_eq!(all(&["h"], &["o"]), [held, waits("h"), waits("h"), waits("h")]);
                let drains = || Step::Record(Phase::Draining, Vec::new());
                assert_eq!(all(&[], &["o"]), [drains(), drains(), waits("o"), waits("o")]);
                assert_eq!(all(&[], &[]), [drains(), drains(), step.clone(), step.clone()]);
            }
        }
    }
}
