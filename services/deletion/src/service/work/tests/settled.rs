//! What a step takes off, as far as its writes are known once it is over.

use kindex_model::reference::OnDelete;

use super::*;
use crate::cluster::outcome::Writes;
use crate::decide::Seen;
use crate::object::Edge;

const UID: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
/// By then, what went is judged.
const LATER: Duration = Duration::from_secs(60);

fn overtaken() -> Writes {
    Writes {
        is_overtaken: true,
        ..Writes::default()
    }
}

/// Whether it is reported that an object is `after` instead of `before` while a step is under way.
fn is_reported(work: &mut Work, task: &Task, (before, after): (Object, Object), writes: &Writes) -> bool {
    let now = Instant::now();
    work.seen(before, now);
    work.expect(task, now);
    work.seen(after, now);
    work.settle(task, writes);
    !work.vanished(now + LATER).is_empty()
}

/// When a process takes over from another one, both may free the same object, and one of them is refused.
#[test]
fn a_finalizer_that_another_process_took_off_before_is_not_reported() {
    let network = |version: u64, has_deletion_finalizer: bool| Object {
        version: ResourceVersion(version),
        has_deletion_finalizer,
        ..deleting(network(), "n")
    };
    let unclear = Writes {
        is_unclear: true,
        ..Writes::default()
    };
    let done = Writes {
        made: vec![("n".to_owned(), ResourceVersion(6))],
        ..Writes::default()
    };
    for (decided_on, writes, expected) in [
        (5, overtaken(), false),
        (5, unclear, false),
        (5, done, false),
        (5, Writes::default(), true),
        // It was gone before, and was there again.
        (7, overtaken(), true),
    ] {
        let mut work = Work::new(Vec::new(), Setup::default(), BLOCKED_AFTER);
        let task = Task {
            object: network(decided_on, true),
            others: Vec::new(),
            step: Step::Free { confirm: Vec::new() },
            target: None,
        };
        let change = (network(5, true), network(6, false));
        let found = is_reported(&mut work, &task, change, &writes);
        assert_eq!(found, expected, "{decided_on} {writes:?}");
    }
}

#[test]
fn of_another_service_only_a_release_that_was_asked_for_is_ours() {
    let project = key_in("identity.example.com", "Project", "a");
    let edge = Edge {
        reference: "project",
        target: project.clone(),
        owned: false,
        on_delete: OnDelete::Block,
    };
    let holder = Object {
        edges: vec![edge],
        ..live(key("Cluster", "c"), UID)
    };
    let name = holder.reference_name().expect("a name");
    let shown = |version: u64, names: &[ReferenceName]| Object {
        version: ResourceVersion(version),
        references: names.iter().cloned().collect(),
        ..live(project.clone(), "p")
    };
    let held = shown(2, std::slice::from_ref(&name));
    let task = Task {
        object: holder.clone(),
        others: Vec::new(),
        step: Step::Release(Seen::of(&held)),
        target: Some(held.clone()),
    };
    let asked = Writes {
        released: vec![name.to_string()],
        ..Writes::default()
    };
    for (writes, expected) in [(asked, false), (Writes::default(), true)] {
        let setup = Setup {
            foreign: BTreeSet::from([project.kind.clone()]),
            ..Setup::default()
        };
        let mut work = Work::new(Vec::new(), setup, BLOCKED_AFTER);
        work.seen(holder.clone(), Instant::now());
        let change = (held.clone(), shown(3, &[]));
        assert_eq!(is_reported(&mut work, &task, change, &writes), expected, "{writes:?}");
    }
}
