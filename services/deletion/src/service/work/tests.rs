//! What people are reported of an object that waits, and when.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kindex_model::deletion::{Annotations, Phase};
use kindex_model::object::Metadata;

use super::*;
use crate::decide::{Archived, Step};
use crate::fixture::{GROUP, deleting, key, key_in, live};
use crate::object::Names;

mod cycles;

mod foreign;

mod heard;

mod settled;

mod together;

mod unheld;

const BLOCKED_AFTER: Duration = Duration::from_secs(30);

fn network() -> Key {
    key("Network", "a")
}

fn reference(group: &str) -> ReferenceName {
    ReferenceName::new("Cluster", group, "u").expect("a name")
}

/// A network that is being deleted, and all that is known of it: of its own service there is no cluster.
struct Stage {
    work: Work,
    begun: Instant,
}

impl Stage {
    fn new(references: &[ReferenceName]) -> Self {
        let declared = Declared {
            holder: KindName::new("x.example.com", "Cluster"),
            target: network().kind,
            owned: false,
        };
        let setup = Setup {
            services: BTreeSet::from(["y.example.com".to_owned()]),
            archives: true,
            ..Setup::default()
        };
        let object = Object {
            version: ResourceVersion(5),
            finalizers: vec!["x.example.com/deletion".to_owned()],
            references: references.iter().cloned().collect(),
            phase: Some(Phase::Deleting),
            ..deleting(network(), "n")
        };
        let mut work = Work::new(vec![declared.clone()], setup, BLOCKED_AFTER);
        work.on_list(&declared.holder, ResourceVersion(6), Vec::new());
        work.on_list(&declared.target, ResourceVersion(6), vec![object]);
        Self {
            work,
            begun: Instant::now(),
        }
    }

    /// One look after so many seconds: what is due is answered, then the reasons and messages are collected that are
    /// reported by then.
    fn look(&mut self, seconds: u64, answer: &impl Fn(&mut Work, &Task, Instant)) -> Vec<(&'static str, String)> {
        let now = self.begun + Duration::from_secs(seconds);
        self.work.ask_again(now);
        for _ in 0..3 {
            let Some(task) = self.work.next(now) else {
                break;
            };
            self.work.ended(&task);
            answer(&mut self.work, &task, now);
            self.work.free(&task.object.key);
        }
        assert!(self.work.next(now).is_none(), "it waits");
        let reported = self.work.overdue(now, Timestamp::UNIX_EPOCH).into_iter();
        reported.map(|one| (one.notice.reason, one.notice.message)).collect()
    }
}

#[test]
fn a_holder_that_nobody_finds_is_reported_once_while_it_is_asked_for_again_and_again() {
    let mut stage = Stage::new(&[reference("x.example.com")]);
    let nowhere = |work: &mut Work, task: &Task, now| match &task.step {
        Step::Keep(names) => work.learned(&task.object, None, names.clone(), now),
        other => panic!("{other:?}"),
    };
    let reported: Vec<_> = (0..300).flat_map(|second| stage.look(second, &nowhere)).collect();
    let [(reason, message)] = reported.as_slice() else {
        panic!("{reported:?}");
    };
    assert_eq!(*reason, "HolderNotFound");
    assert!(message.contains("cluster.x.example.com/u (not found)"), "{message}");
}

/// Answers that these archived objects hold the network.
fn held_by(names: String) -> impl Fn(&mut Work, &Task, Instant) {
    move |work, task, now| {
        assert_eq!(task.step, Step::Sweep);
        let swept = Swept {
            phase: task.object.phase,
            archived: Archived::Remaining {
                plain: vec![names.clone()],
                owned: Vec::new(),
            },
            goes_on: false,
            refused: None,
        };
        work.learned(&task.object, Some(swept), Vec::new(), now);
    }
}

#[test]
fn an_object_whose_holders_change_all_the_time_is_reported_with_those_of_the_time() {
    let mut stage = Stage::new(&[]);
    let mut reported = Vec::new();
    for second in 0..360_u64 {
        let now = stage.look(second, &held_by(format!("{}", second / 20)));
        reported.extend(now.into_iter().map(|(_, message)| (second, message)));
    }
    assert!(reported.len() >= 3, "{reported:?}");
    for (second, message) in &reported {
        // An answer that was the same for a while is asked for again after some time.
        let mut names = second.saturating_sub(30) / 20..=second / 20;
        let is_known = names.any(|name| *message == format!("still in use by {name}"));
        assert!(is_known, "{second}: {message}");
    }
    let pauses = reported.windows(2).map(|two| two[1].0 - two[0].0);
    assert!(
        pauses.clone().all(|pause| pause >= BLOCKED_AFTER.as_secs()),
        "{reported:?}"
    );
}

#[test]
fn others_are_reported_once_they_have_been_waited_for_as_long_as_the_first_ones() {
    let mut stage = Stage::new(&[]);
    let mut reported = Vec::new();
    for second in 0..400_u64 {
        let name = if second < 200 { "a" } else { "b" };
        let now = stage.look(second, &held_by(name.to_owned()));
        reported.extend(now.into_iter().map(|_| second));
    }
    let [first, second] = reported.as_slice() else {
        panic!("{reported:?}");
    };
    assert_eq!(*first, BLOCKED_AFTER.as_secs());
    assert!(*second >= 200 + BLOCKED_AFTER.as_secs(), "{second}");
}

#[test]
fn archived_holders_are_reported_once_for_each_set_of_them() {
    let mut stage = Stage::new(&[]);
    let first: Vec<_> = (0..300)
        .flat_map(|second| stage.look(second, &held_by("a".to_owned())))
        .collect();
    let then: Vec<_> = (300..600)
        .flat_map(|second| stage.look(second, &held_by("b".to_owned())))
        .collect();
    let blocked = |name: &str| [("DeletionBlocked", format!("still in use by {name}"))];
    assert_eq!(
        (first.as_slice(), then.as_slice()),
        (&blocked("a")[..], &blocked("b")[..])
    );
    let (objects, longest) = stage.work.blocked("Network", stage.begun + Duration::from_secs(600));
    assert_eq!(objects, 1);
    assert!(
        longest > Duration::from_secs(200),
        "it has waited since the set changed"
    );
}

/// A cluster of another service, held by these.
fn there(is_leaving: bool, held_by: &[ReferenceName]) -> FoundHolder {
    FoundHolder {
        key: key_in("y.example.com", "Cluster", "a"),
        is_leaving,
        held_by: held_by.iter().cloned().collect(),
    }
}

#[test]
fn a_holder_of_another_service_is_looked_for_there() {
    let holder = reference("y.example.com");
    let nothing = |_: &mut Work, task: &Task, _| panic!("{:?}", task.step);
    let mut stage = Stage::new(std::slice::from_ref(&holder));
    // Of the other service's clusters, those are known then that our fields name: this one is none of them.
    stage
        .work
        .replayed(&KindName::new("y.example.com", "Cluster"), Vec::new());
    assert!(stage.look(0, &nothing).is_empty());
    assert_eq!(stage.work.next_holder(), Some(holder.clone()));
    assert_eq!(stage.work.next_holder(), None);
    stage.work.found(holder.clone(), Some(there(false, &[])), stage.begun);
    let reported = stage.look(30, &nothing);
    assert_eq!(
        reported,
        [(
            "DeletionBlocked",
            "still in use by cluster.y.example.com default/a".to_owned()
        )]
    );
    // It is asked for again, and is gone by then.
    let mut reported = Vec::new();
    for second in [30, 60] {
        assert_eq!(stage.work.next_holder(), Some(holder.clone()), "{second}");
        let now = stage.begun + Duration::from_secs(second);
        stage.work.found(holder.clone(), None, now);
        assert!(stage.look(second, &nothing).is_empty(), "{second}");
        reported = stage.look(second + 30, &nothing);
    }
    assert_eq!(reported[0].0, "HolderNotFound");
    let of_others = ReferenceName::new("Cluster", "z.example.com", "u").expect("a name");
    let mut stage = Stage::new(&[of_others]);
    stage.look(0, &nothing);
    assert_eq!(stage.work.next_holder(), None, "nobody knows that service");
}

/// A live cluster that waits for nothing, and whose conditions may say that something is refused to it.
struct Placed {
    work: Work,
    at: Key,
    begun: Instant,
}

impl Placed {
    fn new() -> Self {
        let at = key("Cluster", "c");
        let mut work = Work::new(Vec::new(), Setup::default(), BLOCKED_AFTER);
        work.on_list(&at.kind, ResourceVersion(6), Vec::new());
        Self {
            work,
            at,
            begun: Instant::now(),
        }
    }

    fn second(&self, number: u64) -> Instant {
        self.begun + Duration::from_secs(number)
    }

    fn seen(&mut self, version: u64, refused: bool) {
        let cluster = Object {
            version: ResourceVersion(version),
            refused,
            ..live(self.at.clone(), "c")
        };
        self.work.seen(cluster, self.begun);
    }

    fn unwritten(&mut self, number: u64) {
        let now = self.second(number);
        self.work.unwritten(self.at.clone(), now);
    }

    /// How many objects are written in that second.
    fn written(&mut self, number: u64) -> usize {
        let now = self.second(number);
        self.work.ask_again(now);
        assert!(self.work.next(now).is_none(), "it has nothing else to do");
        self.work.placed().len()
    }
}

/// A process that gave up after one failure would leave the condition until the object changes.
#[test]
fn that_nothing_is_refused_any_more_is_written_again_until_it_is_written() {
    let mut stage = Placed::new();
    stage.seen(7, true);
    assert_eq!(stage.written(0), 1);
    assert_eq!(stage.written(9), 0, "it is being written");
    let mut now = 10;
    for pause in [1, 1, 2, 4, 8, 16, 32, 32] {
        stage.unwritten(now);
        assert_eq!(stage.written(now + pause / 2), 0, "not at once");
        assert_eq!(stage.written(now + pause), 1, "after {pause} s");
        now += pause;
    }
    stage.unwritten(now);
    stage.seen(8, false);
    assert_eq!(stage.written(now + 100), 0, "its conditions do not say so any more");
    assert_eq!(stage.work.placed, PlacedObjects::default());
}

/// What no watch speaks of any more would be remembered until the process ends.
#[test]
fn what_was_placed_on_an_object_that_a_listing_lacks_is_forgotten() {
    let (name, now) = (reference("x.example.com"), Instant::now());
    let named = |version: u64, references: &[ReferenceName]| Object {
        references: references.iter().cloned().collect(),
        ..released(version, &name)
    };
    let mut work = Work::new(Vec::new(), Setup::default(), BLOCKED_AFTER);
    let nothing = format!("{:?}", work.vanished);
    work.seen(named(2, &[]), now);
    work.seen(named(3, std::slice::from_ref(&name)), now);
    assert_ne!(
        format!("{:?}", work.vanished),
        nothing,
        "it was named before it was placed"
    );
    let kind = &network().kind;
    work.on_list(kind, ResourceVersion(4), vec![named(3, std::slice::from_ref(&name))]);
    assert_ne!(format!("{:?}", work.vanished), nothing, "it is still there");
    work.on_list(kind, ResourceVersion(5), Vec::new());
    assert_eq!(format!("{:?}", work.vanished), nothing);
}

/// A live network on which somebody names a reference, to take it off by hand.
fn released(version: u64, name: &ReferenceName) -> Object {
    let recorded = Annotations::of(GROUP);
    let metadata = Metadata {
        api_version: String::new(),
        uid: "n".into(),
        namespace: network().namespace.to_string(),
        name: network().name.to_string(),
        resource_version: ResourceVersion(version),
        creation_timestamp: None,
        deletion_timestamp: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::from([(recorded.release, name.to_string())]),
        finalizers: Vec::new(),
    };
    Object::read(network().kind, &metadata, &Names::of_service(GROUP), false, Vec::new())
}
