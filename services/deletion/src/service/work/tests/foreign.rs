//! Objects of other services: of one that is deleted, the archive is asked for what is deleted with it, once for each
//! phase, and a service that was restored from a backup is not believed too early, nor taken for what it was.

use kindex_model::reference::OnDelete;

use super::*;
use crate::fixture::live;
use crate::object::{DeletionState, Edge};

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
        refused: None,
    };
    work.ended(&task);
    work.learned(&task.object, Some(swept), Vec::new(), now);
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

#[test]
fn the_archive_is_not_asked_for_what_goes_with_an_object_of_a_service_that_is_doubted() {
    let (mut work, now) = (work(true), Instant::now());
    work.happened(project(), true);
    assert_eq!(work.next_look_up(), Some(project()));
    work.looked_up(&project(), Some(in_phase(1, Some(Phase::Deleting))), now);
    work.doubted(&project().kind);
    assert!(!asks(&mut work, now));
    work.replayed(&project().kind, Vec::new());
    assert!(!asks(&mut work, now), "it was not looked up since");
    assert_eq!(work.next_look_up(), Some(project()));
    work.looked_up(&project(), Some(in_phase(2, Some(Phase::Deleting))), now);
    assert!(asks(&mut work, now));
}

/// A cluster that goes with the project.
fn cluster() -> Object {
    Object {
        edges: vec![Edge {
            reference: "project",
            target: project(),
            owned: false,
            on_delete: OnDelete::Cascade,
        }],
        ..live(key("Cluster", "c"), "c")
    }
}

/// The project that is being deleted and has the reference of the cluster.
fn held(version: u64) -> Object {
    Object {
        references: cluster().reference_name().into_iter().collect(),
        ..in_phase(version, Some(Phase::Deleting))
    }
}

/// Clusters may name a project.
fn work_with_clusters() -> Work {
    work_with_clusters_of(false)
}

/// Clusters may name a project, which may own them.
fn work_with_clusters_of(owned: bool) -> Work {
    let declared = [project().kind, network().kind].map(|target| Declared {
        holder: cluster().key.kind,
        owned: owned && target == project().kind,
        target,
    });
    let setup = Setup {
        foreign: BTreeSet::from([project().kind]),
        ..Setup::default()
    };
    Work::new(declared.to_vec(), setup, BLOCKED_AFTER)
}

/// As if what is owned waited until its owner drains, which it does not before it has been released.
#[test]
fn what_an_object_of_another_service_owns_goes_as_soon_as_that_is_deleted() {
    let (mut work, now) = (work_with_clusters_of(true), Instant::now());
    let mut owned = cluster();
    owned.edges.iter_mut().for_each(|edge| edge.owned = true);
    work.on_list(&owned.key.kind, ResourceVersion(6), vec![owned.clone()]);
    work.replayed(&project().kind, Vec::new());
    assert_eq!(work.next_look_up(), Some(project()));
    let held_in = |version, phase| Object {
        references: owned.reference_name().into_iter().collect(),
        ..in_phase(version, phase)
    };
    work.looked_up(&project(), Some(held_in(1, None)), now);
    assert!(work.next(now).is_none(), "its owner stays");
    work.happened(project(), true);
    assert_eq!(work.next_look_up(), Some(project()));
    // As the answer of its service is read, whatever its phase is there.
    work.looked_up(&project(), Some(held_in(2, Some(Phase::Draining))), now);
    let task = work.next(now).expect("it is deleted with it");
    assert_eq!(task.object.key, owned.key);
    assert!(matches!(task.step, Step::Delete(_)), "{:?}", task.step);
}

/// As if an object went on being deleted although nobody can say whether its service still knows of that.
#[test]
fn nothing_goes_with_an_object_of_a_service_that_is_doubted_until_all_is_known_again() {
    let (mut work, now) = (work_with_clusters(), Instant::now());
    work.on_list(&cluster().key.kind, ResourceVersion(6), vec![cluster()]);
    let look_up = |work: &mut Work, version| {
        assert_eq!(work.next_look_up(), Some(project()), "{version}");
        work.looked_up(&project(), Some(held(version)), now);
    };
    work.replayed(&project().kind, Vec::new());
    look_up(&mut work, 1);
    work.doubted(&project().kind);
    assert!(work.next(now).is_none(), "it was known before");
    work.happened(project(), true);
    look_up(&mut work, 2);
    assert!(work.next(now).is_none(), "one answer does not end the doubt");
    work.replayed(&project().kind, Vec::new());
    assert!(
        work.next(now).is_none(),
        "the events are complete, and the answers are not"
    );
    look_up(&mut work, 3);
    let task = work.next(now).expect("the cluster is deleted with it");
    assert_eq!(task.object.key, cluster().key);
    assert!(matches!(task.step, Step::Delete(_)), "{:?}", task.step);
}

/// As if what was read before, but learned later, were the last word.
#[test]
fn what_a_slow_step_did_not_find_is_looked_up_again() {
    let sent = LookUps::default();
    let setup = Setup {
        foreign: BTreeSet::from([project().kind]),
        look_ups: sent.clone(),
        ..Setup::default()
    };
    let (mut work, now) = (Work::new(Vec::new(), setup, BLOCKED_AFTER), Instant::now());
    work.looked_up(&project(), Some(in_phase(sent.begin(), None)), now);
    // A step does not find it, and takes its time, while its service is restored and a look-up finds it.
    sent.begin();
    work.happened(project(), false);
    assert_eq!(work.next_look_up(), Some(project()));
    let found = in_phase(sent.begin(), None);
    work.gone(&project(), "p", now);
    assert_eq!(work.next_look_up(), None, "one is under way");
    work.looked_up(&project(), Some(found), now);
    assert_eq!(
        work.next_look_up(),
        Some(project()),
        "nobody knows which answer is newer"
    );
    work.looked_up(&project(), Some(in_phase(sent.begin(), None)), now);
    assert!(work.graph.get(&project()).is_some());
    assert_eq!(work.next_look_up(), None);
    work.looked_up(&project(), None, now);
    assert_eq!(work.next_look_up(), Some(project()));
    work.looked_up(&project(), None, now);
    assert_eq!(
        work.next_look_up(),
        None,
        "what is not there is not asked for again and again"
    );
}

/// As if what went could not come back, or as if any answer brought it back.
#[test]
fn an_object_of_another_service_that_is_restored_counts_and_a_late_answer_does_not() {
    let sent = LookUps::default();
    let setup = Setup {
        foreign: BTreeSet::from([project().kind]),
        look_ups: sent.clone(),
        ..Setup::default()
    };
    let (mut work, now) = (Work::new(Vec::new(), setup, BLOCKED_AFTER), Instant::now());
    work.looked_up(&project(), Some(in_phase(sent.begin(), None)), now);
    for _ in 0..2 {
        assert!(
            work.graph.get(&project()).is_some(),
            "it is there, also once it was restored"
        );
        // A step reads it, and takes its time, while a later look-up does not find it.
        let read = in_phase(sent.begin(), None);
        sent.begin();
        work.looked_up(&project(), None, now);
        work.seen(read, now);
        assert_eq!(work.graph.get(&project()), None, "that was read before");
        work.looked_up(&project(), Some(in_phase(sent.begin(), None)), now);
    }
}

/// Each of them asks the service, which may be silent.
#[test]
fn a_service_that_is_asked_by_some_keeps_no_others_waiting() {
    let (mut work, now) = (work_with_clusters(), Instant::now());
    let named = |index: usize| Object {
        key: key("Cluster", &format!("c{index}")),
        uid: format!("c{index}"),
        ..cluster()
    };
    let clusters: Vec<Object> = (0..20).map(named).collect();
    let references = clusters.iter().filter_map(Object::reference_name).collect();
    let asked = key("Cluster", "z");
    let mut objects = clusters;
    objects.push(Object {
        state: DeletionState::Requested,
        edges: Vec::new(),
        ..live(asked.clone(), "z")
    });
    work.on_list(&cluster().key.kind, ResourceVersion(6), objects);
    work.replayed(&project().kind, Vec::new());
    assert_eq!(work.next_look_up(), Some(project()));
    let held = Object {
        references,
        ..in_phase(1, Some(Phase::Deleting))
    };
    work.looked_up(&project(), Some(held), now);
    let mut begun: Vec<Task> = std::iter::from_fn(|| work.next(now)).collect();
    assert!(begun.iter().any(|task| task.object.key == asked), "it goes by itself");
    begun.retain(|task| task.object.key != asked);
    assert_eq!(begun.len(), 4, "that ask the service");
    assert_eq!(end_all(&mut work, begun, now), 20, "none is forgotten");
}

/// Ends these and what begins then. How many steps that were, each of another object.
fn end_all(work: &mut Work, mut begun: Vec<Task>, now: Instant) -> usize {
    let mut seen = BTreeSet::new();
    while let Some(task) = begun.pop() {
        assert!(seen.insert(task.object.key.clone()), "once");
        work.ended(&task);
        begun.extend(work.next(now));
    }
    seen.len()
}

/// What archived objects hold is read and released there.
#[test]
fn a_service_that_deletes_many_objects_keeps_no_others_waiting() {
    let (mut work, now) = (work(true), Instant::now());
    for index in 0..20 {
        let deleted = Object {
            key: key_in("identity.example.com", "Project", &format!("p{index}")),
            uid: format!("p{index}"),
            ..in_phase(1, Some(Phase::Deleting))
        };
        work.happened(deleted.key.clone(), true);
        assert_eq!(work.next_look_up().as_ref(), Some(&deleted.key));
        work.looked_up(&deleted.key.clone(), Some(deleted), now);
    }
    let begun: Vec<Task> = std::iter::from_fn(|| work.next(now)).collect();
    assert_eq!(begun.len(), 4, "that ask the service");
    assert!(begun.iter().all(|task| task.step == Step::Sweep));
    assert_eq!(end_all(&mut work, begun, now), 20, "none is forgotten");
}

/// One that was moved reads all its targets again.
#[test]
fn live_holders_that_name_objects_of_a_silent_service_keep_no_others_waiting() {
    let (mut work, now) = (work_with_clusters(), Instant::now());
    let former = |index| key("Network", &format!("n{index}"));
    let clusters: Vec<Object> = (0..20)
        .map(|index| Object {
            key: key("Cluster", &format!("c{index}")),
            uid: format!("c{index}"),
            ..cluster()
        })
        .collect();
    let held: Vec<Object> = (0..20)
        .map(|index| Object {
            references: clusters[index].reference_name().into_iter().collect(),
            ..live(former(index), &format!("n{index}"))
        })
        .collect();
    let project_of_all = Object {
        references: clusters.iter().filter_map(Object::reference_name).collect(),
        ..in_phase(1, None)
    };
    work.on_list(&former(0).kind, ResourceVersion(6), held);
    work.on_list(&cluster().key.kind, ResourceVersion(6), clusters);
    work.replayed(&project().kind, Vec::new());
    assert_eq!(work.next_look_up(), Some(project()));
    work.looked_up(&project(), Some(project_of_all), now);
    let begun: Vec<Task> = std::iter::from_fn(|| work.next(now)).collect();
    assert!(
        begun.iter().all(|task| matches!(task.step, Step::Release(_))),
        "{begun:?}"
    );
    assert_eq!(begun.len(), 4, "that ask the service");
    assert_eq!(end_all(&mut work, begun, now), 20, "none is forgotten");
}
