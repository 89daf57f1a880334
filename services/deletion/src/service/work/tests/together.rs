//! Several objects that place or release a reference on the same target.

use kindex_model::reference::OnDelete;

use super::*;
use crate::fixture::live;
use crate::object::{DeletionState, Edge};
use crate::service::queue::{NEIGHBORS_MANY, TOGETHER_MAX};

fn reference_of(name: &str) -> ReferenceName {
    ReferenceName::new("Cluster", "x.example.com", name).expect("a name")
}

/// A cluster that names the network.
fn holder(name: &str, state: DeletionState, version: u64) -> Object {
    Object {
        key: key("Cluster", name),
        uid: name.to_owned(),
        version: ResourceVersion(version),
        state,
        references: BTreeSet::new(),
        phase: (state == DeletionState::Deleting).then_some(Phase::Finalizing),
        edges: vec![Edge {
            reference: "network",
            target: network(),
            owned: false,
            on_delete: OnDelete::Block,
        }],
        ..target(&[], version)
    }
}

fn target(held_by: &[&str], version: u64) -> Object {
    Object {
        version: ResourceVersion(version),
        finalizers: vec!["x.example.com/deletion".to_owned()],
        references: held_by.iter().map(|name| reference_of(name)).collect(),
        ..live(network(), "n")
    }
}

/// A network, and clusters that are live or leaving.
fn work(held_by: &[&str], holders: Vec<Object>) -> Work {
    let declared = Declared {
        holder: key("Cluster", "a").kind,
        target: network().kind,
        owned: false,
    };
    let mut work = Work::new(vec![declared], Setup::default(), BLOCKED_AFTER);
    work.on_list(&network().kind, ResourceVersion(5), vec![target(held_by, 5)]);
    work.on_list(&key("Cluster", "a").kind, ResourceVersion(6), holders);
    work
}

fn names(task: &Task) -> Vec<&str> {
    task.objects().map(|object| &*object.key.name).collect()
}

/// What was written is known, and all whose step it was are decided on again.
fn end(work: &mut Work, task: &Task, held_by: &[&str], version: u64, now: Instant) {
    work.ended(task);
    work.seen(target(held_by, version), now);
    for object in task.objects() {
        work.free(&object.key);
    }
}

#[test]
fn while_one_places_its_reference_the_others_wait_and_then_do_so_together() {
    let live = ["a", "b", "c"].map(|name| holder(name, DeletionState::Live, 6));
    let (mut work, now) = (work(&[], live.to_vec()), Instant::now());
    let first = work.next(now).expect("a step");
    assert_eq!(names(&first), ["a"], "nobody waits yet");
    assert!(work.next(now).is_none(), "the others wait");
    end(&mut work, &first, &["a"], 7, now);
    let then = work.next(now).expect("a step");
    assert!(matches!(then.step, Step::Place { .. }), "{:?}", then.step);
    assert_eq!(names(&then), ["b", "c"]);
    assert!(work.next(now).is_none(), "nobody is decided on twice at a time");
    end(&mut work, &then, &["a", "b", "c"], 8, now);
    assert!(work.next(now).is_none(), "all have placed theirs");
}

#[test]
fn holders_that_go_release_together_once_others_have_done_what_they_can() {
    let mut all = ["a", "b", "d"]
        .map(|name| holder(name, DeletionState::Deleting, 6))
        .to_vec();
    all.push(holder("c", DeletionState::Live, 6));
    all[2].phase = None;
    let (mut work, now) = (work(&["a", "b", "d"], all), Instant::now());
    let places = work.next(now).expect("a step");
    assert_eq!(names(&places), ["c"]);
    let records = work.next(now).expect("a step of its own");
    let finalizing = Step::Record(Phase::Finalizing, Vec::new());
    assert_eq!((names(&records), &records.step), (vec!["d"], &finalizing));
    assert!(work.next(now).is_none(), "the target is being written");
    end(&mut work, &places, &["a", "b", "c", "d"], 7, now);
    let releases = work.next(now).expect("a step");
    assert!(matches!(releases.step, Step::Release(_)), "{:?}", releases.step);
    assert_eq!(names(&releases), ["a", "b"], "c stays, d is not that far");
    let known = releases.target.as_ref().map(|target| target.version);
    assert_eq!(known, Some(ResourceVersion(7)), "as it was written last");
}

#[test]
fn an_object_with_very_many_holders_is_decided_on_after_them() {
    let held_by: Vec<_> = (0..=NEIGHBORS_MANY).map(|number| format!("{number:04}")).collect();
    let held_by: Vec<&str> = held_by.iter().map(String::as_str).collect();
    let (mut work, now) = (work(&held_by, Vec::new()), Instant::now());
    let without_finalizer = Object {
        has_deletion_finalizer: false,
        ..target(&held_by, 7)
    };
    let mut last = without_finalizer.clone();
    (last.key.name, last.uid, last.references) = ("z".into(), "z".to_owned(), BTreeSet::new());
    work.seen(without_finalizer, now);
    work.seen(last, now);
    let steps = std::iter::from_fn(|| work.next(now).map(|task| task.object.key.name.to_string()));
    assert_eq!(steps.collect::<Vec<_>>(), ["z", "a"]);
}

#[test]
fn what_has_failed_is_tried_alone_and_keeps_nobody() {
    let live = ["a", "b", "c", "d"].map(|name| holder(name, DeletionState::Live, 6));
    let (mut work, now) = (work(&[], live.to_vec()), Instant::now());
    let first = work.next(now).expect("a step");
    assert!(work.next(now).is_none());
    work.failed(&key("Cluster", "c"));
    end(&mut work, &first, &["a"], 7, now);
    let others = work.next(now).expect("a step");
    assert_eq!(names(&others), ["b", "d"]);
    assert!(work.next(now).is_none());
    end(&mut work, &others, &["a", "b", "d"], 8, now);
    let alone = work.next(now).expect("a step");
    assert_eq!(names(&alone), ["c"]);
}

#[test]
fn of_very_many_so_many_join_one_write() {
    let all: Vec<_> = (0..TOGETHER_MAX * 2)
        .map(|number| holder(&format!("{number:04}"), DeletionState::Live, 6))
        .collect();
    let (mut work, now) = (work(&[], all), Instant::now());
    let first = work.next(now).expect("a step");
    assert!(work.next(now).is_none());
    end(&mut work, &first, &["0000"], 7, now);
    let then = work.next(now).expect("a step");
    assert_eq!(names(&then).len(), TOGETHER_MAX);
}
