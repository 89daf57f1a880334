//! Objects of other services that are deleted: the archive is asked for what goes along, once for each phase.

use super::*;
use crate::fixture::live;
use crate::object::DeletionState;

fn project() -> Key {
    key_in("identity.example.com", "Project", "a")
}

/// A project of another service in some phase.
fn in_phase(version: u64, phase: Option<Phase>) -> Object {
    Object {
        version: ResourceVersion(version),
        state: if phase.is_some() {
            DeletionState::Deleting
        } else {
            DeletionState::Live
        },
        finalizers: vec!["identity.example.com/deletion".to_owned()],
        phase,
        ..live(project(), "p")
    }
}

fn work(archives: bool) -> Work {
    let setup = Setup {
        foreign: BTreeSet::from([project().kind]),
        archives,
        ..Setup::default()
    };
    Work::new(Vec::new(), setup, BLOCKED_AFTER)
}

/// Whether the archive is asked about the project.
fn asks(work: &mut Work, now: Instant) -> bool {
    let Some(task) = work.next(now) else {
        return false;
    };
    assert_eq!((&task.object.key, &task.step), (&project(), &Step::Sweep));
    let swept = Swept {
        phase: task.object.phase,
        archived: Archived::Remaining {
            plain: Vec::new(),
            owned: Vec::new(),
        },
        goes_on: false,
    };
    work.ended(&task);
    work.learnt(&task.object, Some(swept), Vec::new(), now);
    work.free(&task.object.key);
    true
}

#[test]
fn the_archive_is_asked_in_each_phase_of_an_object_of_another_service() {
    let (mut work, now) = (work(true), Instant::now());
    work.happened(project(), false);
    assert_eq!(work.next_look_up(), None, "nobody names it, and it stays");
    work.happened(project(), true);
    assert_eq!(work.next_look_up(), Some(project()));
    work.looked_up(&project(), Some(in_phase(1, None)), now);
    assert!(!asks(&mut work, now), "its deletion has not begun");
    for (version, phase) in [(2, Phase::Deleting), (3, Phase::Draining)] {
        work.looked_up(&project(), Some(in_phase(version, Some(phase))), now);
        assert!(asks(&mut work, now), "{phase}");
        assert!(!asks(&mut work, now), "once");
    }
}

#[test]
fn without_an_archive_nobody_is_asked() {
    let (mut work, now) = (work(false), Instant::now());
    work.happened(project(), true);
    assert_eq!(work.next_look_up(), None);
    work.looked_up(&project(), Some(in_phase(1, Some(Phase::Deleting))), now);
    assert!(!asks(&mut work, now));
}
