//! What is being deleted, and a holder that names it without a reference on it: whether it is deleted with it, and for
//! how long it is waited for.

use kindex_model::reference::OnDelete;

use super::*;
use crate::object::{DeletionState, Edge};

fn cascade(target: Key) -> Edge {
    Edge {
        reference: "to",
        target,
        owned: false,
        on_delete: OnDelete::Cascade,
    }
}

fn declared(holder: &Key, target: &Key) -> Declared {
    Declared {
        holder: holder.kind.clone(),
        target: target.kind.clone(),
        owned: false,
    }
}

fn project(name: &str) -> Key {
    key_in("identity.example.com", "Project", name)
}

/// A cluster that was moved to the project `new`.
fn moved() -> Object {
    Object {
        edges: vec![cascade(project("new"))],
        ..live(key("Cluster", "c"), "c")
    }
}

/// As if a former target that is not known yet held nothing: a restart would delete what it holds.
#[test]
fn after_a_restart_what_was_moved_stays_until_all_are_known_that_may_hold_it() {
    for is_held in [true, false] {
        let setup = Setup {
            foreign: BTreeSet::from([project("new").kind]),
            ..Setup::default()
        };
        let declared = declared(&moved().key, &project("new"));
        let (mut work, now) = (Work::new(vec![declared], setup, BLOCKED_AFTER), Instant::now());
        let new = |version| Object {
            version: ResourceVersion(version),
            phase: Some(Phase::Deleting),
            ..deleting(project("new"), "new")
        };
        let name = moved().reference_name().filter(|_| is_held);
        let old = Object {
            references: name.into_iter().collect(),
            ..live(project("old"), "old")
        };
        work.on_list(&moved().key.kind, ResourceVersion(6), vec![moved()]);
        assert_eq!(work.next_look_up(), Some(project("new")));
        work.looked_up(&project("new"), Some(new(1)), now);
        assert!(work.next(now).is_none(), "{is_held}: nobody names the other project");
        work.replayed(&project("new").kind, vec![project("old")]);
        for found in [new(2), old] {
            assert!(work.next(now).is_none(), "{is_held}: {} was not looked up", found.key);
            assert_eq!(work.next_look_up().as_ref(), Some(&found.key));
            work.looked_up(&found.key.clone(), Some(found), now);
        }
        let task = work.next(now);
        let deletes = task.is_some_and(|task| task.object == moved() && matches!(task.step, Step::Delete(_)));
        assert_eq!(deletes, !is_held, "it is deleted with it only if nothing else holds it");
    }
}

/// Of four objects, each of which goes with the one before and holds it, the first one names the last one without a
/// reference. One of them is still live.
fn around(live_one: &str) -> Vec<Object> {
    let names = ["h", "x1", "x2", "t"];
    let at = |at: usize| key("Link", names[at % names.len()]);
    let object = |place: usize| {
        let name = names[place];
        let holder = names.get(place + 1).copied();
        let state = match name == live_one {
            true => DeletionState::Live,
            false => DeletionState::Deleting,
        };
        Object {
            state,
            phase: (state == DeletionState::Deleting).then_some(Phase::Deleting),
            references: holder
                .and_then(|holder| live(key("Link", holder), holder).reference_name())
                .into_iter()
                .collect(),
            edges: vec![cascade(at(place + names.len() - 1))],
            ..live(at(place), name)
        }
    };
    (0..names.len()).map(object).collect()
}

fn known(live_one: &str) -> Work {
    let link = key("Link", "h");
    let mut work = Work::new(vec![declared(&link, &link)], Setup::default(), BLOCKED_AFTER);
    work.on_list(&link.kind, ResourceVersion(6), around(live_one));
    work
}

fn steps(work: &mut Work, now: Instant) -> Vec<Task> {
    std::iter::from_fn(|| work.next(now)).collect()
}

/// As if only its neighbors were concerned once an object is deleted: each of the four would wait for the next one,
/// and nobody would decide on the last one again.
#[test]
fn who_waits_for_a_holder_without_its_reference_hears_that_it_waits_in_turn() {
    for live_one in ["h", "x1", "x2"] {
        let (mut work, now) = (known(live_one), Instant::now());
        let begun = steps(&mut work, now);
        let [task] = begun.as_slice() else {
            panic!("{live_one}: {} steps", begun.len());
        };
        assert_eq!(&*task.object.key.name, live_one);
        assert!(matches!(task.step, Step::Delete(_)), "{:?}", task.step);
        work.ended(task);
        let deleted = around("").into_iter().find(|object| object.key == task.object.key);
        let deleted = Object {
            version: ResourceVersion(7),
            ..deleted.expect("it is one of them")
        };
        work.seen(deleted, now);
        work.free(&task.object.key);
        let then = steps(&mut work, now);
        let [task] = then.as_slice() else {
            panic!("{live_one}: {} steps", then.len());
        };
        assert_eq!(&*task.object.key.name, "t", "{live_one}");
        assert_eq!(task.step, Step::Record(Phase::Finalizing, Vec::new()), "{live_one}");
    }
}

/// As if a change that nobody was told of were never found, or as if everything were decided on all the time.
#[test]
fn who_waits_for_a_holder_without_its_reference_is_decided_on_again_after_a_while() {
    let (mut work, now) = (known("h"), Instant::now());
    assert_eq!(steps(&mut work, now).len(), 1, "the holder is deleted with it");
    work.ask_again(now);
    assert!(work.queue.queued().is_empty());
    let then = now + Duration::from_secs(3600);
    work.ask_again(then);
    assert_eq!(
        work.queue.queued(),
        BTreeSet::from([key("Link", "t")]),
        "the others wait for what is placed"
    );
    assert!(steps(&mut work, then).is_empty());
    work.ask_again(then);
    assert!(work.queue.queued().is_empty(), "once");
}

/// What is known of a cluster that was moved to a network which is being deleted, and of nothing that holds it.
fn moved_to_network() -> (Work, Object) {
    let cluster = Object {
        edges: vec![cascade(network())],
        ..live(key("Cluster", "c"), "c")
    };
    let new = Object {
        phase: Some(Phase::Deleting),
        ..deleting(network(), "new")
    };
    let setup = Setup {
        archives: true,
        ..Setup::default()
    };
    let mut work = Work::new(vec![declared(&cluster.key, &network())], setup, BLOCKED_AFTER);
    work.on_list(&cluster.key.kind, ResourceVersion(6), vec![cluster.clone()]);
    work.on_list(&network().kind, ResourceVersion(6), vec![new]);
    (work, cluster)
}

/// As if only the holder were decided on again: what it names would wait for it for ever.
#[test]
fn what_the_archive_holds_stays_and_the_archive_is_asked_again_for_it() {
    let ((mut work, cluster), now) = (moved_to_network(), Instant::now());
    let begun = steps(&mut work, now);
    let [task] = begun.as_slice() else {
        panic!("{} steps", begun.len());
    };
    assert!(
        task.object == cluster && matches!(task.step, Step::Delete(_)),
        "{task:?}"
    );
    work.ended(task);
    work.asked_for_former(&cluster, true, now);
    work.free(&cluster.key);
    let then = steps(&mut work, now);
    let [task] = then.as_slice() else {
        panic!("{} steps", then.len());
    };
    assert_eq!((&task.object.key, &task.step), (&network(), &Step::Sweep), "it goes on");
    let later = now + Duration::from_secs(2);
    work.ask_again(later);
    let again = steps(&mut work, later);
    assert!(again.iter().any(|task| task.object == cluster), "{again:?}");
}

/// As if what is not known held nothing: a restart would delete what was moved to a tombstone.
#[test]
fn nothing_is_said_of_what_holds_an_object_until_all_is_known_that_may_hold_it() {
    let (mut work, cluster) = moved_to_network();
    let name = cluster.reference_name();
    let old = Object {
        version: ResourceVersion(7),
        references: name.into_iter().collect(),
        ..live(key("Network", "old"), "old")
    };
    assert_eq!(work.has_former(&cluster), Some(false));
    let renamed = Object {
        edges: Vec::new(),
        ..cluster.clone()
    };
    let recreated = Object {
        uid: "another".to_owned(),
        ..cluster.clone()
    };
    for other in [renamed, recreated, old.clone()] {
        assert_eq!(work.has_former(&other), None, "{other:?}");
    }
    work.seen(old, Instant::now());
    assert_eq!(work.has_former(&cluster), Some(true));
    work.on_watch_lost(&network().kind);
    assert_eq!(work.has_former(&cluster), None, "its targets are not followed");
}
